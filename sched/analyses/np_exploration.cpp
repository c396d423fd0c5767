#include "sched/analyses/np_exploration.hpp"

#include <algorithm>

#include "model/base/expects.hpp"
#include "sched/analyses/demand.hpp"
#include "sched/analyses/utilization.hpp"
#include "sched/exploration/exploration.hpp"

namespace tutti::internal {
namespace {

/// Budget of one exploration: a fraction of a second, up to some seconds where memory is slow.
constexpr ExplorationLimits kLimits{.visits = kVisitsPerWalk};
/// For the answer alone, which bounds of the responses give as well.
constexpr ExplorationLimits kAnswerLimits{.visits = kVisitsPerWalk, .first_visits = kVisitsPerWalk / 64};
/// Above a utilization of 1, where the answer is known and a run that is late is a help.
constexpr ExplorationLimits kRunLimits{.visits = kVisitsPerWalk / 256, .reduced_visits = 0, .jobs = 10'000};

Verdict verdict_of(std::span<const TaskTiming> tasks, Policy policy, const ExplorationLimits& limits) {
  expect_valid_timing(tasks);
  TUTTI_EXPECTS(np_exploration_applies(tasks, policy), "the exploration answers for strictly periodic tasks only");
  for (const TaskTiming& task : tasks)
    TUTTI_EXPECTS(task.offset.count() >= 0 && task.best_case.count() >= 0 && task.best_case <= task.wcet,
                  "offsets are not negative, best cases between 0 and the wcet");
  Exploration found = explore(tasks, policy, limits);
  Verdict verdict;
  verdict.test = kNpExploration;
  verdict.exactness = found.exact ? Exactness::Exact : Exactness::Sufficient;
  verdict.answer = found.answer;
  verdict.reason = std::move(found.reason);
  for (const ResponseRange& range : found.responses) verdict.worst_response.emplace_back(range.worst);
  if (found.answer == Answer::NotSchedulable) {
    verdict.reason = describe_late_run(found.late_run);
    verdict.late_run = std::move(found.late_run);
  }
  return verdict;
}

}  // namespace

bool np_exploration_applies(std::span<const TaskTiming> tasks, Policy policy) {
  return !tasks.empty() && std::ranges::all_of(tasks, [&](const TaskTiming& task) {
    const bool in_order = policy == Policy::CwEdf || task.jitter <= task.period;
    return task.arrivals == Arrivals::Periodic && in_order && !task.regions;
  });
}

Verdict np_exploration(std::span<const TaskTiming> tasks, Policy policy) {
  return verdict_of(tasks, policy, utilization_at_most_one(tasks) ? kLimits : kRunLimits);
}

Answer np_exploration_answer(std::span<const TaskTiming> tasks, Policy policy) {
  return verdict_of(tasks, policy, utilization_at_most_one(tasks) ? kAnswerLimits : kRunLimits).answer;
}

}  // namespace tutti::internal
