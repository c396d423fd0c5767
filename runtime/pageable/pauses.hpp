#pragma once
#include <algorithm>
#include <chrono>
#include <mutex>

#include "model/base/units.hpp"

namespace tutti::internal {

/// How long threads stood although they had work: the host had taken them off their cores.
///
/// A thread with work looks at the clock every few microseconds. Where two looks lie a millisecond apart it stood in
/// between. Pauses of several threads at the same time count once. Threads: any.
class Pauses {
 public:
  using Clock = std::chrono::steady_clock;
  using Instant = Clock::time_point;
  static constexpr Clock::duration kLeast = std::chrono::milliseconds{1};

  /// A thread with work, between its looks at the clock.
  class Watch {
   public:
    explicit Watch(Pauses& pauses) : pauses_(pauses) {}
    void look() {
      const Instant now = Clock::now();
      if (now - last_ >= kLeast) pauses_.add(last_, now);
      last_ = now;
    }

   private:
    Pauses& pauses_;
    Instant last_ = Clock::now();
  };

  void clear() {
    const std::lock_guard lock(mutex_);
    total_ = {};
  }
  /// A thread stood between two instants. Pauses are added as they end.
  void add(Instant from, Instant to) {
    const std::lock_guard lock(mutex_);
    total_ += std::max(to - std::max(from, until_), Clock::duration{0});
    until_ = std::max(until_, to);
  }
  [[nodiscard]] Duration total() const {
    const std::lock_guard lock(mutex_);
    return total_;
  }

 private:
  mutable std::mutex mutex_;
  Instant until_{};  // all before is counted
  Clock::duration total_{};
};

}  // namespace tutti::internal
