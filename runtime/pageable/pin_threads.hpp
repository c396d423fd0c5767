#pragma once
#include <span>

#include <signal.h>

namespace tutti::internal {

/// Threads that are started while it lives take no signals: the program's handlers run in its own threads.
class WithoutSignals {
 public:
  WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;  // it restores one mask once
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals();

 private:
  sigset_t before_;
};

/// Lets the calling thread run on these cores alone; on all of the program's where none is named, or where the host
/// refuses it.
void pin_this_thread(std::span<const int> cores);

}  // namespace tutti::internal
