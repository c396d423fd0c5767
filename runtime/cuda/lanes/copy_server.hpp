#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/cuda/gates/signal.hpp"

namespace tutti::internal::cuda {

/// A copy by a thread of the host as a command of a stream. Whoever enqueues it keeps it until the stream is past it,
/// or has the server forget it.
struct ServedCopy {
  class CopyServer* server = nullptr;
  std::function<void()> make;                    ///< called by the server's thread; notes a failure itself
  HostSignal<Count> asked{};                     ///< the run whose copy the stream has come to; set by the stream
  HostSignal<Count> done{};                      ///< the run whose copy is made; the stream is held until then
  Count run = 0;                                 ///< that is expected
  Duration due{};                                ///< when its stream comes to it, by the plan
  bool submitted = false;                        ///< its run is, and `due` holds
  bool at_once = false;                          ///< it may be due whenever its run is submitted
  const std::atomic<bool>* abandoned = nullptr;  ///< no copy begins any more
};

/// Waking a thread may take so long.
inline constexpr Duration kWaking = std::chrono::microseconds{200};

/// Makes copies for streams that ask for them where they come to them, by one thread, one after the other.
///
/// The stream sets a signal and is held by another one. The server's thread looks at the signals of the copies that it
/// was told to expect, makes the copy, and lets the stream go on. It looks without a pause from shortly before a copy
/// is due until some time after, and while a run is armed that begins with one; now and then where one is late; else it
/// sleeps. (A call of the host by the stream, `cudaLaunchHostFunc`, would need no looking, but behind a closed gate the
/// driver takes fewer than 80 of them, each with a kernel behind it, and then waits.)
class CopyServer {
 public:
  /// @param clock  of the instants at which copies are due; outlives it
  /// @param spins  whether its thread may look without a pause
  /// @errors Machine: no thread.
  [[nodiscard]] static Expected<std::unique_ptr<CopyServer>> start(const Clock& clock, bool spins);
  CopyServer(const CopyServer&) = delete;  // its thread knows it by its address
  CopyServer& operator=(const CopyServer&) = delete;
  /// @pre no stream has a copy of it in its queue that it may still come to
  ~CopyServer();

  /// The run of this copy is armed. Allocates nothing.
  /// @param at_once  its stream comes to it as soon as the run is submitted; the thread, where it may spin, stays awake
  void attend(ServedCopy& copy, bool at_once);
  /// A stream will come to this copy: its run is submitted. Allocates nothing. @pre it is attended
  /// @param due  as `ServedCopy::due`
  void expect(ServedCopy& copy, Duration due);
  /// Expects a copy no more, which its stream may not have come to since it could not be enqueued. Waits for its end
  /// where it is being made.
  void forget(const ServedCopy& copy);
  /// Enqueues a copy: the stream asks for it and is held until it is made. Allocates nothing.
  [[nodiscard]] static Expected<void> enqueue(const Driver& driver, cudaStream_t stream, const ServedCopy& copy,
                                              Count run);

 private:
  CopyServer(const Clock& clock, bool spins) : clock_(clock), spins_(spins) {}
  void serve();
  void make(ServedCopy& copy, std::unique_lock<std::mutex>& lock);
  void look_again(std::unique_lock<std::mutex>& lock, Duration last_made);
  [[nodiscard]] ServedCopy* next_asked();
  [[nodiscard]] Duration next_look(Duration now) const;

  const Clock& clock_;
  const bool spins_;

  std::mutex mutex_;
  std::condition_variable news_;       // for its thread
  std::condition_variable made_;       // for those who wait for the end of a copy
  std::vector<ServedCopy*> expected_;  // in the order of the submissions
  const ServedCopy* making_ = nullptr;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace tutti::internal::cuda
