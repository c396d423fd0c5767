#pragma once
#include <cstdint>
#include <ostream>
#include <utility>

#include "sched/exploration/job_set.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {

/// Shown by GoogleTest beside a failed expectation.
inline void PrintTo(const JobTiming& job, std::ostream* out) {
  *out << "{" << job.task << "." << job.id << " r " << job.earliest.count() << ".." << job.latest.count() << " c "
       << job.least.count() << ".." << job.most.count() << " d " << job.deadline.count() << " p " << job.priority
       << "}";
}

}  // namespace tutti::internal

namespace tutti::internal::oracle {

/// A job; release and cost as [from, to].
[[nodiscard]] inline JobTiming job(std::int64_t task, std::int64_t id, std::pair<int, int> release,
                                   std::pair<int, int> cost, int deadline, int priority) {
  return {Duration{release.first},
          Duration{release.second},
          Duration{cost.first},
          Duration{cost.second},
          Duration{deadline},
          priority,
          task,
          id};
}

/// A strictly periodic task.
[[nodiscard]] inline TaskTiming periodic(std::int64_t wcet, std::int64_t period, std::int64_t offset,
                                         std::int64_t best_case, std::int64_t deadline, std::int64_t jitter = 0) {
  return {Duration{wcet},   Duration{period},    Duration{deadline}, Duration{jitter}, 0,
          Duration{offset}, Duration{best_case}, Arrivals::Periodic};
}

}  // namespace tutti::internal::oracle
