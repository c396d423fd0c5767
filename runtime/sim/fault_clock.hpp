#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/clock.hpp"

namespace tutti::internal {

/// The clock of a host that stands at times: whoever looks at it then, or would wake then, goes on when the host does.
/// The simulated machine behind the host has a clock without stalls, and goes on meanwhile. A stall that nobody looks
/// into, since all sleep, has no effect.
class FaultClock final : public Clock {
 public:
  struct Stall {
    Duration at{};  ///< from the start of the run
    Duration lasts{};
  };

  /// @param clock  of the machine; it outlives this
  FaultClock(Clock& clock, std::vector<Stall> stalls)
      : clock_(&clock), stalls_(std::move(stalls)), counts_(stalls_.size()) {}

  /// A run starts; before, nothing stalls.
  void begin(Duration at) {
    begin_ = at;
    runs_ = true;
  }

  [[nodiscard]] std::string_view name() const override { return clock_->name(); }
  [[nodiscard]] Duration now() const override {
    stand();
    return clock_->now();
  }
  void wait_until(Duration at) override {
    clock_->wait_until(at);
    stand();
  }
  void wait_until(Duration at, Waker& waker) override {
    clock_->wait_until(at, waker);
    stand();
  }
  Duration aside(Duration start, const std::function<void()>& work) override { return clock_->aside(start, work); }
  [[nodiscard]] bool runs_by_itself() const override { return clock_->runs_by_itself(); }

  /// [stalls] how often somebody looked into it and stood: 1 at most in one thread.
  [[nodiscard]] std::vector<std::uint64_t> counts() const { return {counts_.begin(), counts_.end()}; }

 private:
  void stand() const {
    if (!runs_) return;
    for (bool stood = true; stood;) {  // out of one stall into the next
      stood = false;
      for (std::size_t i = 0; i < stalls_.size(); ++i) {
        const Duration since = clock_->now() - begin_ - stalls_[i].at;
        if (since < Duration{0} || since >= stalls_[i].lasts) continue;
        counts_[i].fetch_add(1, std::memory_order_relaxed);
        clock_->wait_until(add_saturating(begin_, add_saturating(stalls_[i].at, stalls_[i].lasts)));
        stood = true;
      }
    }
  }

  Clock* clock_;
  std::vector<Stall> stalls_;
  mutable std::vector<std::atomic<std::uint64_t>> counts_;
  Duration begin_{};
  bool runs_ = false;
};

}  // namespace tutti::internal
