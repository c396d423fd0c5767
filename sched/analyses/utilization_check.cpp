#include "sched/analyses/utilization_check.hpp"

#include <fmt/format.h>

#include "sched/analyses/demand.hpp"
#include "sched/utilization.hpp"

namespace tutti {

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
    verdict.reason = fmt::format("the tasks ask for {:.4g} times the time that there is", utilization(tasks));
  }
  return verdict;
}

}  // namespace tutti
