#include "apps/lab/learn/release_times.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/lab/learn/job_order.hpp"
#include "model/base/quantile.hpp"

namespace tutti::internal {
namespace {

/// Jobs that fill more of their period than this follow each other.
constexpr double kFills = 0.97;
/// In a loop, starts drift apart as a random walk: their variation over n jobs is sqrt(n) times that over one. This
/// share of it is asked for, over so many jobs at least.
constexpr double kDrifts = 0.55;
/// Distances that vary less than this share are those of a loop or of a clock: both are one.
constexpr double kVaries = 1e-3;
/// So many jobs of a periodic task are near their clock, and so many periods may be without a job for each that has
/// one.
constexpr double kMost = 0.9;
constexpr std::size_t kMostSkipped = 3;
constexpr std::size_t kJobsOfDrift = 9, kLeastForDrift = 24;
/// A shift of all later starts by more than this many variations is a jump of the clock.
constexpr double kJump = 6;
constexpr std::size_t kMostJumps = 8, kWindow = 6, kLeastWindow = 2;
/// In a loop, the variation over twice as many jobs is larger by this at least; sqrt(2) is expected.
constexpr double kGrows = 1.15;
/// In a loop, pauses vary at most so much more than distances.
constexpr double kPauseVaries = 1.1;

double variation_of_starts(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> away;
  for (const double value : values) away.push_back(std::abs(value - middle));
  return median(std::move(away));
}

/// Starts as instants of a clock: which period each is in, and from which one on the clock has jumped.
struct StartClock {
  double period = 0;
  std::vector<std::int64_t> index;    // [job]
  std::vector<std::size_t> segments;  // first jobs of those between jumps; the first is 0

  /// The job behind the last one of a segment.
  [[nodiscard]] std::size_t end_of(std::size_t segment) const {
    return segment + 1 < segments.size() ? segments[segment + 1] : index.size();
  }
};

/// Least squares of all segments together: one slope, and a level for each.
double slope_of(const std::vector<double>& starts, const StartClock& clock) {
  double above = 0, below = 0;
  for (std::size_t s = 0; s < clock.segments.size(); ++s) {
    const std::size_t begin = clock.segments[s], end = clock.end_of(s);
    double mean_index = 0, mean_start = 0;
    for (std::size_t i = begin; i < end; ++i)
      mean_index += static_cast<double>(clock.index[i]), mean_start += starts[i];
    mean_index /= static_cast<double>(end - begin), mean_start /= static_cast<double>(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const double index = static_cast<double>(clock.index[i]) - mean_index;
      above += index * (starts[i] - mean_start);
      below += index * index;
    }
  }
  return below > 0 ? above / below : clock.period;
}

void count_periods(const std::vector<double>& starts, StartClock& clock) {
  clock.index.assign(starts.size(), 0);
  for (std::size_t i = 1; i < starts.size(); ++i)
    clock.index[i] =
        clock.index[i - 1] + std::max<std::int64_t>(1, std::llround((starts[i] - starts[i - 1]) / clock.period));
}

std::vector<double> residuals_of(const std::vector<double>& starts, const StartClock& clock) {
  std::vector<double> residuals(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i)
    residuals[i] = starts[i] - static_cast<double>(clock.index[i]) * clock.period;
  return residuals;
}

/// The least and the largest value, without one on each side where there are enough.
std::pair<double, double> range_without_outlier(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t skip = values.size() >= 5 ? 1 : 0;
  return {values[skip], values[values.size() - 1 - skip]};
}

/// The job before which the clock has most clearly jumped.
std::optional<std::size_t> jump_in(const std::vector<double>& residuals, const StartClock& clock) {
  std::optional<std::size_t> found;
  double most = kJump;
  for (std::size_t s = 0; s < clock.segments.size(); ++s) {
    const std::size_t begin = clock.segments[s], end = clock.end_of(s);
    for (std::size_t i = begin + kLeastWindow; i + kLeastWindow <= end; ++i) {
      const auto at = residuals.begin() + static_cast<std::ptrdiff_t>(i);
      const std::vector<double> before(at - static_cast<std::ptrdiff_t>(std::min(kWindow, i - begin)), at);
      const std::vector<double> behind(at, at + static_cast<std::ptrdiff_t>(std::min(kWindow, end - i)));
      const double spread =
          std::max({variation_of_starts(before), variation_of_starts(behind), 1e-4 * clock.period, 500.0});
      // All behind it but one are on the other side of all before it but one, and well apart.
      const auto [low, high] = range_without_outlier(before);
      const auto [low_behind, high_behind] = range_without_outlier(behind);
      const double apart = std::max(low_behind - high, low - high_behind);
      if (apart < std::max(high - low, high_behind - low_behind)) continue;
      const double shift = std::abs(median(behind) - median(before));
      if (shift > most * spread) most = shift / spread, found = i;
    }
  }
  return found;
}

/// The median slope over a quarter of the jobs: a jump is in a third of these at most.
double robust_slope(const std::vector<double>& starts, const StartClock& clock) {
  const std::size_t far = std::max<std::size_t>(1, starts.size() / 4);
  std::vector<double> slopes;
  for (std::size_t i = far; i < starts.size(); ++i)
    slopes.push_back((starts[i] - starts[i - far]) / static_cast<double>(clock.index[i] - clock.index[i - far]));
  return median(std::move(slopes));
}

/// @param segments  first jobs behind known jumps, and 0; rising
StartClock clock_of(const std::vector<double>& starts, double usual_distance, std::vector<std::size_t> segments) {
  StartClock clock{usual_distance, {}, std::move(segments)};
  count_periods(starts, clock);
  if (const double slope = robust_slope(starts, clock); slope > 0) clock.period = slope;
  count_periods(starts, clock);
  for (std::size_t jumps = 0; jumps < kMostJumps; ++jumps) {
    const auto jump = jump_in(residuals_of(starts, clock), clock);
    if (!jump) break;
    clock.segments.push_back(*jump);
    std::ranges::sort(clock.segments);
    if (const double slope = slope_of(starts, clock); slope > 0) clock.period = slope;
  }
  if (const double slope = slope_of(starts, clock); slope > 0) clock.period = slope;
  return clock;
}

/// Whether starts drift apart: each counts from the job before, and not from a clock. The variation over many jobs then
/// grows with their number, and a pause varies no more than a distance.
/// @param pauses  [jobs - 1] from the end of a job to the start of the next
bool drifts(const std::vector<double>& starts, const std::vector<double>& pauses, double distance) {
  if (starts.size() < kLeastForDrift) return false;
  const std::size_t far = std::max(kJobsOfDrift, starts.size() / 10);
  const auto variation_over = [&](std::size_t jobs) {
    std::vector<double> away;
    for (std::size_t i = jobs; i < starts.size(); ++i) {
      const double time = starts[i] - starts[i - jobs];
      away.push_back(time - std::round(time / distance) * distance);
    }
    return variation_of_starts(away);
  };
  const double near = variation_over(1);
  if (near < kVaries * distance) return false;  // a clock, or a loop without any variation: both are one
  if (near > 0.12 * distance) return false;     // rounding to periods hides a drift
  const double at_far = variation_over(far), at_further = variation_over(2 * far);
  return at_far > kDrifts * std::sqrt(static_cast<double>(far)) * near && at_further > kGrows * at_far &&
         variation_of_starts(pauses) < kPauseVaries * near;
}

}  // namespace

bool find_release(const RecordedTrace& trace, LearnedTask& task, std::span<const std::int64_t> jumps) {
  std::vector<double> starts, distances, pauses;
  const std::int64_t first = trace.operations.front().start;
  for (const std::int64_t start : task.starts) starts.push_back(static_cast<double>(start - first));
  for (std::size_t i = 1; i < starts.size(); ++i) {
    distances.push_back(starts[i] - starts[i - 1]);
    pauses.push_back(starts[i] - static_cast<double>(end_of_job(trace, task.jobs[i - 1]) - first));
  }
  const double distance = std::max(1.0, median(distances));
  task.skipped = 0;
  task.jumps.clear();
  task.offset = task.starts.front() - first;
  if (static_cast<double>(task.length.usual) > kFills * distance || drifts(starts, pauses, distance)) {
    task.release = Release::ClosedLoop;
    task.period = std::llround(distance);
    task.jitter = 0;
    return true;
  }
  std::vector<std::size_t> segments{0};
  for (const std::int64_t jump : jumps) {
    const auto behind = static_cast<std::size_t>(std::ranges::lower_bound(task.starts, jump) - task.starts.begin());
    if (behind > 0 && behind < task.starts.size()) segments.push_back(behind);
  }
  std::ranges::sort(segments);
  const auto doubled = std::ranges::unique(segments);
  segments.erase(doubled.begin(), doubled.end());
  const StartClock clock = clock_of(starts, distance, std::move(segments));
  for (const std::size_t first_behind : clock.segments)
    if (first_behind > 0) task.jumps.push_back(task.starts[first_behind]);
  const std::vector<double> residuals = residuals_of(starts, clock);
  double jitter = 0;
  std::vector<double> away;  // from the middle of its segment
  for (std::size_t s = 0; s < clock.segments.size(); ++s) {
    const auto begin = residuals.begin() + static_cast<std::ptrdiff_t>(clock.segments[s]);
    const auto end = residuals.begin() + static_cast<std::ptrdiff_t>(clock.end_of(s));
    const auto [low, high] = std::minmax_element(begin, end);
    jitter = std::max(jitter, *high - *low);
    const double middle = median({begin, end});
    for (auto residual = begin; residual != end; ++residual) away.push_back(std::abs(*residual - middle));
    if (s == 0) task.offset = std::max<std::int64_t>(0, std::llround(*low));
  }
  task.release = Release::Periodic;
  task.period = std::max<std::int64_t>(1, std::llround(clock.period));
  task.jitter = std::llround(jitter);
  for (std::size_t i = 1; i < clock.index.size(); ++i)
    if (!std::ranges::count(clock.segments, i))
      task.skipped += static_cast<std::uint64_t>(clock.index[i] - clock.index[i - 1] - 1);
  return quantile(std::move(away), kMost) <= clock.period / 4 && task.skipped <= kMostSkipped * task.jobs.size();
}

}  // namespace tutti::internal
