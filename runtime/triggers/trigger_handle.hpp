#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>

#include "runtime/core/spsc_ring.hpp"
#include "runtime/triggers/trigger_source.hpp"

namespace tutti::internal {

/// Triggers that threads of this process fire.
class TriggerHandle final : public TriggerSource {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// Triggers that can wait to be taken.
  static constexpr std::size_t kMostWaiting = 1024;

  /// A trigger has come. Any thread; it waits for others that fire at the same time, and never for the run.
  /// @param at  when; not in the future
  /// @return whether it waits for a run to take it
  bool fire(TimePoint at = std::chrono::steady_clock::now());
  /// Whether a run has it.
  [[nodiscard]] bool has_run();

  void begin(const Clock& clock, Duration epoch, Waker& waker) override;
  void end() noexcept override;
  [[nodiscard]] std::optional<Duration> take(Duration now) override;
  [[nodiscard]] std::uint64_t lost() const override { return lost_.load(std::memory_order_relaxed); }

 private:
  SpscRing<TimePoint> came_{kMostWaiting};
  std::atomic<std::uint64_t> lost_ = 0;
  bool is_real_ = true;  // the clock of the run
  std::mutex firing_;    // held by threads that fire, and at both ends of a run
  Waker* waker_ = nullptr;
};

}  // namespace tutti::internal
