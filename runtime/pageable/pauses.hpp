#pragma once
#include <algorithm>
#include <chrono>
#include <mutex>
#include <vector>

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
    known_.clear();
  }
  /// A thread stood between two instants.
  void add(Instant from, Instant to) {
    const std::lock_guard lock(mutex_);
    Pause joined{from, to};
    std::erase_if(known_, [&](const Pause& other) {
      if (other.to < joined.from || other.from > joined.to) return false;
      joined = {std::min(joined.from, other.from), std::max(joined.to, other.to)};
      return true;
    });
    known_.push_back(joined);
  }
  [[nodiscard]] Duration total() const {
    const std::lock_guard lock(mutex_);
    Clock::duration total{};
    for (const Pause& pause : known_) total += pause.to - pause.from;
    return total;
  }

 private:
  struct Pause {
    Instant from, to;
  };

  mutable std::mutex mutex_;
  std::vector<Pause> known_;  // none overlaps another one
};

}  // namespace tutti::internal
