#pragma once
#include <memory>
#include <thread>

#include "model/base/quantities.hpp"

namespace tutti::internal::cuda {

/// A thread for calls that may not come back. One that does not is left alone, with all that it works on.
class CallThread {
 public:
  CallThread();
  CallThread(const CallThread&) = delete;  // it owns a thread
  CallThread& operator=(const CallThread&) = delete;
  ~CallThread();

  using Function = void (*)(void* object);

  /// Calls a function with an object in the thread, and waits for it. Allocates nothing. @pre the call before has come
  /// back
  /// @return whether it came back in time; otherwise `comes_back` may be asked
  [[nodiscard]] bool call(Function function, void* object, Duration limit);
  /// Whether the call comes back within a time.
  [[nodiscard]] bool comes_back(Duration limit);

 private:
  struct State;

  std::shared_ptr<State> state_;  // the thread has it, too
  std::thread thread_;
};

}  // namespace tutti::internal::cuda
