#include "runtime/core/clock_fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tutti::internal {
namespace {

/// Runs of a window, of which the least late one counts.
constexpr int kWindow = 16;
/// Drift is measured over at least the least base, in the long run over half of the longest base to all of it: the
/// host's clock is corrected in the course of minutes.
constexpr Duration kLeastBase = std::chrono::milliseconds{20};
constexpr Duration kLongestBase = std::chrono::seconds{20};
/// Clocks are specified to 100 ppm each; an observation of a larger drift is wrong.
constexpr double kMostDrift = 500e-6;
/// Least uncertainty of the drift.
constexpr double kLeastDriftError = 0.2e-6;
/// Largest change of the drift between two observations.
constexpr double kDriftChange = 10e-6;
/// An exchange that is worse than the best by no more than this counts in full, ns.
constexpr double kAsGood = 500;

double ns(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

std::int64_t TimerLine::timer_at(Duration at) const {
  const Duration since = at - host;
  return timer + since.count() + std::llround(ns(since) * drift);
}

double TimerLine::host_at(std::int64_t at) const { return ns(host) + static_cast<double>(at - timer) / (1 + drift); }

void ClockFit::add_exchange(Duration asked, Duration answered, std::int64_t timer) {
  const Duration half = (answered - asked) / 2, middle = asked + half;
  if (++exchanges_ == 1) {
    error_ = ns(half);
    line_ = anchor_ = next_anchor_ = {middle, timer, 0};
    return;
  }
  error_ = std::min(error_, ns(half));
  const double worse = ns(half) - error_;
  if (worse <= kAsGood) return set(middle, timer);
  // A slow exchange shows only that the timer had this value within the round trip.
  const std::int64_t by_line = line_.timer_at(middle);
  const double off = static_cast<double>(timer - by_line);
  if (std::abs(off) > worse) set(middle, by_line + std::llround(off - std::copysign(worse, off)));
}

void ClockFit::add_seen(Duration stored, std::int64_t timer) {
  // A store takes half a round trip over the bus at best.
  const double late = static_cast<double>(timer - line_.timer_at(stored)) - error_;
  if (late < least_) {
    least_ = late;
    least_at_ = stored;
  }
  if (++seen_ < kWindow) return;
  // All stores of a window may have been seen late; the timer's deviation is at most the drift's uncertainty.
  const double most = ns(uncertainty(least_at_)) + kDriftChange * std::abs(ns(least_at_ - line_.host));
  set(least_at_, line_.timer_at(least_at_) + std::llround(std::min(least_, most)));
}

void ClockFit::set(Duration host, std::int64_t timer) {
  const Duration base = host - anchor_.host;
  if (base >= kLeastBase) {
    const double drift = static_cast<double>(timer - anchor_.timer - base.count()) / ns(base);
    if (std::abs(drift) <= kMostDrift) line_.drift = drift;
  }
  line_.host = host;
  line_.timer = timer;
  if (next_anchor_.host <= anchor_.host && base > kLongestBase / 2) next_anchor_ = line_;
  if (base > kLongestBase) anchor_ = std::exchange(next_anchor_, line_);
  seen_ = 0;
  least_ = std::numeric_limits<double>::infinity();
}

Duration ClockFit::uncertainty(Duration at) const {
  const Duration base = line_.host - anchor_.host;
  const double drift = base < kLeastBase ? kMostDrift / 10 : std::max(2 * error_ / ns(base), kLeastDriftError);
  return Duration{std::llround(drift * std::abs(ns(at - line_.host)))};
}

}  // namespace tutti::internal
