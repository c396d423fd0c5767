#include "sched/chains/chain_measurement.hpp"

#include <algorithm>
#include <cstddef>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

using Jobs = std::vector<ChainJob>;

/// The first job at `from` or after it that starts at `earliest` or later and has an output; nothing where there is
/// none.
std::optional<std::size_t> next_output(const Jobs& jobs, std::size_t from, Duration earliest) {
  const auto first =
      std::lower_bound(jobs.begin() + static_cast<std::ptrdiff_t>(std::min(from, jobs.size())), jobs.end(), earliest,
                       [](const ChainJob& job, Duration time) { return job.start < time; });
  const auto found = std::find_if(first, jobs.end(), [](const ChainJob& job) { return job.finish.has_value(); });
  if (found == jobs.end()) return std::nullopt;
  return static_cast<std::size_t>(found - jobs.begin());
}

/// The latest job whose output is there at an instant; nothing where there is none. Outputs come in the order of
/// starts.
std::optional<std::size_t> newest_output(const Jobs& jobs, Duration at) {
  auto last = std::upper_bound(jobs.begin(), jobs.end(), at,
                               [](Duration time, const ChainJob& job) { return time < job.start; });
  while (last != jobs.begin()) {
    --last;
    if (last->finish && *last->finish <= at) return static_cast<std::size_t>(last - jobs.begin());
  }
  return std::nullopt;
}

/// Time from just after the start of a job of the first task to the effect of an event then.
std::optional<Duration> reaction_after(std::span<const Jobs> jobs, std::size_t observed_before) {
  const Duration event = jobs.front()[observed_before].start;
  auto job = next_output(jobs.front(), observed_before + 1, event);
  if (!job) return std::nullopt;
  Duration beside = jobs.front()[*job].beside;
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    job = next_output(jobs[i], 0, *jobs[i - 1][*job].finish);
    if (!job || *job == 0) return std::nullopt;
    beside += jobs[i][*job].beside;
  }
  return *jobs.back()[*job].finish - event - beside;
}

/// Age of the data in an output of the last task when the next one takes its place.
std::optional<Duration> age_of(std::span<const Jobs> jobs, std::size_t output) {
  const auto next = next_output(jobs.back(), output + 1, jobs.back()[output].start);
  if (!next) return std::nullopt;
  std::size_t job = output;
  Duration beside = jobs.back()[*next].beside;
  for (std::size_t i = jobs.size() - 1; i > 0; --i) {
    const auto before = newest_output(jobs[i - 1], jobs[i][job].start);
    if (!before || *before + 1 == jobs[i - 1].size()) return std::nullopt;
    job = *before;
    beside += jobs[i - 1][job + 1].beside;
  }
  return *jobs.back()[*next].finish - jobs.front()[job].start - beside;
}

}  // namespace

ChainLatencies measure_chain(std::span<const std::vector<ChainJob>> jobs, const ChainLimits& limits) {
  TUTTI_EXPECTS(!jobs.empty(), "a chain has a task");
  ChainLatencies found;
  for (std::size_t k = 0; k < jobs.front().size(); ++k) {
    const auto reaction = reaction_after(jobs, k);
    if (!reaction) continue;
    ++found.reactions;
    found.worst_reaction = std::max(found.worst_reaction.value_or(*reaction), *reaction);
    if (limits.bound && *reaction > *limits.bound) ++found.over_bound;
    if (limits.deadline && *reaction > *limits.deadline) ++found.over_deadline;
  }
  for (std::size_t m = 0; m < jobs.back().size(); ++m) {
    if (!jobs.back()[m].finish) continue;
    if (const auto age = age_of(jobs, m)) found.worst_data_age = std::max(found.worst_data_age.value_or(*age), *age);
  }
  return found;
}

}  // namespace tutti::internal
