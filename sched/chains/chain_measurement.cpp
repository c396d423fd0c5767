#include "sched/chains/chain_measurement.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

/// The jobs of one task, and which of them have an output. Outputs come in the order of starts.
class StageRun {
 public:
  explicit StageRun(std::span<const ChainJob> jobs) : jobs_(jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (jobs[i].finish) outputs_.push_back(i);
  }

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] const ChainJob& operator[](std::size_t job) const { return jobs_[job]; }

  /// The first job at `from` or after it that starts at `earliest` or later and has an output; nothing where there is
  /// none.
  [[nodiscard]] std::optional<std::size_t> next_output(std::size_t from, Duration earliest) const {
    const auto found = std::ranges::partition_point(
        outputs_, [&](std::size_t job) { return job < from || jobs_[job].start < earliest; });
    return found == outputs_.end() ? std::nullopt : std::optional(*found);
  }
  /// The latest job whose output is there at an instant; nothing where there is none.
  [[nodiscard]] std::optional<std::size_t> newest_output(Duration at) const {
    const auto behind =
        std::ranges::partition_point(outputs_, [&](std::size_t job) { return *jobs_[job].finish <= at; });
    return behind == outputs_.begin() ? std::nullopt : std::optional(*(behind - 1));
  }

 private:
  std::span<const ChainJob> jobs_;
  std::vector<std::size_t> outputs_;
};

using Run = std::span<const StageRun>;

/// Time from just after the start of a job of the first task to the effect of an event then.
std::optional<Duration> reaction_after(Run stages, std::size_t observed_before) {
  const Duration event = stages.front()[observed_before].start;
  auto job = stages.front().next_output(observed_before + 1, event);
  if (!job) return std::nullopt;
  Duration beside = stages.front()[*job].beside;
  for (std::size_t i = 1; i < stages.size(); ++i) {
    job = stages[i].next_output(0, *stages[i - 1][*job].finish);
    if (!job || *job == 0) return std::nullopt;
    beside += stages[i][*job].beside;
  }
  return *stages.back()[*job].finish - event - beside;
}

/// Age of the data in an output of the last task when the next one takes its place.
std::optional<Duration> age_of(Run stages, std::size_t output) {
  const auto next = stages.back().next_output(output + 1, stages.back()[output].start);
  if (!next) return std::nullopt;
  std::size_t job = output;
  Duration beside = stages.back()[*next].beside;
  for (std::size_t i = stages.size() - 1; i > 0; --i) {
    const auto before = stages[i - 1].newest_output(stages[i][job].start);
    if (!before || *before + 1 == stages[i - 1].size()) return std::nullopt;
    job = *before;
    beside += stages[i - 1][job + 1].beside;
  }
  return *stages.back()[*next].finish - stages.front()[job].start - beside;
}

}  // namespace

ChainLatencies measure_chain(std::span<const std::vector<ChainJob>> jobs, const ChainLimits& limits) {
  TUTTI_EXPECTS(!jobs.empty(), "a chain has a task");
  const std::vector<StageRun> stages(jobs.begin(), jobs.end());
  ChainLatencies found;
  for (std::size_t k = 0; k < jobs.front().size(); ++k) {
    const auto reaction = reaction_after(stages, k);
    if (!reaction) continue;
    ++found.reactions;
    found.worst_reaction = std::max(found.worst_reaction.value_or(*reaction), *reaction);
    if (limits.bound && *reaction > *limits.bound) ++found.over_bound;
    if (limits.deadline && *reaction > *limits.deadline) ++found.over_deadline;
  }
  for (std::size_t m = 0; m < jobs.back().size(); ++m) {
    if (!jobs.back()[m].finish) continue;
    if (const auto age = age_of(stages, m)) found.worst_data_age = std::max(found.worst_data_age.value_or(*age), *age);
  }
  return found;
}

ChainLatencies ChainJobs::measure(std::span<const TaskId> chain, const ChainLimits& limits) const {
  std::vector<std::vector<ChainJob>> jobs;
  for (const TaskId task : chain) {
    auto& of_task = jobs.emplace_back();
    if (const auto known = jobs_.find(task); known != jobs_.end()) of_task = known->second;
    std::ranges::stable_sort(of_task, {}, &ChainJob::start);
  }
  return measure_chain(jobs, limits);
}

}  // namespace tutti::internal
