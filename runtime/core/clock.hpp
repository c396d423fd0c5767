#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>

#include "model/base/units.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/core/time_turns.hpp"
#include "runtime/core/waker.hpp"

namespace tutti::internal {

/// The instant of what does not happen.
inline constexpr Duration kNever = Duration::max();

/// The time of a run, from its start. The one notion of time that executor, dispatcher and backends share.
class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual Duration now() const = 0;
  /// Returns when `now() >= at`; at once where that is already so.
  virtual void wait_until(Duration at) = 0;
  /// As `wait_until`, and returns sooner where the waker was called since it was looked at.
  virtual void wait_until(Duration at, Waker& waker) {
    if (!waker.changed()) wait_until(at);
  }
  /// Returns when the waker was called since it was looked at, or sooner.
  virtual void wait_for_call(Waker& waker) { waker.sleep_until(std::chrono::steady_clock::time_point::max()); }
  /// Does the work of another thread, which starts at an instant: the time that it takes is that thread's alone where
  /// time does not pass by itself. @return when it is done
  virtual Duration aside(Duration /*start*/, const std::function<void()>& work) {
    work();
    return now();
  }
  /// Whether time passes by itself; if not, it passes only in `wait_until`.
  [[nodiscard]] virtual bool runs_by_itself() const = 0;
  /// Where time does not pass by itself: it passes together with that of other clocks from now on; null: no longer.
  /// @param turns  outlives that
  /// @param clock  number of this one among them
  virtual void join(TimeTurns* /*turns*/, std::size_t /*clock*/) {}
};

/// Time that jumps to whatever is waited for: a run is deterministic and as fast as the host can compute it.
class VirtualClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return "virtual"; }
  [[nodiscard]] Duration now() const override { return now_; }
  using Clock::wait_until;
  void wait_until(Duration at) override {
    if (at <= now_) return;
    if (turns_ != nullptr) turns_->go_on_to(clock_, at);
    now_ = at;
  }
  Duration aside(Duration start, const std::function<void()>& work) override;
  [[nodiscard]] bool runs_by_itself() const override { return false; }
  void join(TimeTurns* turns, std::size_t clock) override { turns_ = turns, clock_ = clock; }

 private:
  Duration now_{};
  TimeTurns* turns_ = nullptr;
  std::size_t clock_ = 0;
};

/// The host's monotonic clock, from the construction of this object.
class RealClock final : public Clock {
 public:
  /// @param waiting  `Block`: it sleeps until the instant; otherwise it spins for the last stretch, and for the first
  /// of
  ///                 a wait for a call: to wake an idle core can take 10 us of the thread that calls
  explicit RealClock(WaitKind waiting = WaitKind::Spin) : waiting_(waiting) {}

  [[nodiscard]] std::string_view name() const override { return "real"; }
  [[nodiscard]] Duration now() const override { return std::chrono::steady_clock::now() - start_; }
  void wait_until(Duration at) override;
  void wait_until(Duration at, Waker& waker) override;
  void wait_for_call(Waker& waker) override;
  [[nodiscard]] bool runs_by_itself() const override { return true; }

 private:
  WaitKind waiting_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace tutti::internal
