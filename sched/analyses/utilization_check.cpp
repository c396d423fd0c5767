#include "sched/analyses/utilization_check.hpp"

#include <fmt/format.h>

#include "sched/analyses/demand.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {

Verdict utilization_check(std::span<const TaskTiming> tasks, Policy) {
  expect_valid_timing(tasks);
  Verdict verdict;
  verdict.test = kUtilizationCheck;
  verdict.exactness = Exactness::Necessary;
  if (utilization_at_most_one(tasks)) {
    verdict.answer = Answer::Unknown;
    verdict.reason = "the utilisation is at most 1, which every schedulable set fulfils and some others do too";
  } else {
    verdict.answer = Answer::NotSchedulable;
    const std::string times = fmt::format("{:.4g} times", utilization(tasks));
    verdict.reason =
        fmt::format("the tasks ask for {} the time that there is", times == "1 times" ? "a little more than" : times);
  }
  return verdict;
}

}  // namespace tutti::internal
