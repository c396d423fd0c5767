#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "runtime/core/clock.hpp"
#include "runtime/core/thread_role.hpp"
#include "runtime/cuda/gates/stream_waker.hpp"
#include "runtime/host/real_time.hpp"

namespace tutti::internal::cuda {

/// One run of a batch behind gates, led by the conductor.
class GatedRun {
 public:
  virtual ~GatedRun() = default;

  /// When its time may begin: its earliest start, or some time before it where GPUs hold the run until then.
  [[nodiscard]] virtual Duration may_begin() const = 0;
  /// Begins the run's time, which starts now or at its earliest start.
  virtual void begin(Duration now) = 0;
  /// Opens due gates and records completions; returns whether the run is finished. Allocates nothing, never blocks.
  [[nodiscard]] virtual bool advance(Duration now) = 0;
  /// When it must be called next, if no stream calls the conductor before: an instant after `advance`.
  [[nodiscard]] virtual Duration next_look() = 0;
  /// Notifies the waiting threads; the conductor's last access to the run.
  virtual void finish() = 0;
};

/// The thread that leads all gated runs of a backend, one after the other in the order of submission.
///
/// A thread that spins looks at the clock and the run without a pause while a run is under way or expected, and sleeps
/// otherwise. It has a core of its own, with real-time priority, and locked memory, as far as the host allows. The
/// thread that makes it stays off that core until it destroys it; threads started by that thread in the meantime stay
/// off it for good.
///
/// One that does not spin sleeps until the run's next look, or until something calls its waker: the end of a lane, a
/// submission. It needs no core of its own.
class Conductor {
 public:
  /// @param role  of its thread; one that spins has a default priority where none is given
  Conductor(Clock& clock, const ThreadRole& role);
  Conductor(const Conductor&) = delete;  // its thread knows it by its address
  Conductor& operator=(const Conductor&) = delete;
  ~Conductor();

  /// Runs that can be under way at once.
  static constexpr std::size_t kMostRuns = 4096;

  /// Queues a run behind all submitted runs. @pre there are fewer than `kMostRuns`.
  void submit(GatedRun& run);
  /// Counts the runs that will be submitted soon: the thread stays awake while there are any.
  void expect_one_more() {
    if (expected_.fetch_add(1) == 0 && spins_) waker_->wake();
  }
  void expect_one_less() { expected_.fetch_sub(1); }
  [[nodiscard]] bool busy() const { return finished_.load(std::memory_order_acquire) != submitted_.load(); }

  /// What wakes its thread: streams call it where their work in a run ends, if the thread does not spin.
  [[nodiscard]] StreamWaker& waker() const { return *waker_; }
  [[nodiscard]] bool spins() const { return spins_; }
  /// Processor time of its thread.
  [[nodiscard]] Duration processor_time() const;

  /// Requests that the host refused.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  void lead();
  void perform(GatedRun& run);
  void sleep_until(Duration at);
  /// @return whether it has one of its own now
  bool take_core(std::span<const int> named);
  /// @pre it has a core of its own, or sleeps: else it would keep every other thread from the core that it shares.
  void take_priority(int wanted);
  void give_core_back() const;

  Clock* clock_;
  bool spins_;
  OwnWaker waker_{new StreamWaker};  // called whenever there may be something to do
  std::array<GatedRun*, kMostRuns> ring_{};
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> finished_{0};
  std::atomic<int> expected_{0};
  std::atomic<bool> leaving_{false};
  std::vector<std::string> notes_;
  pid_t maker_ = gettid();
  std::optional<OwnCore> core_;
  std::thread thread_;
};

}  // namespace tutti::internal::cuda
