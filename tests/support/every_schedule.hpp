#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sched/exploration/job_set.hpp"
#include "sched/tasks/executed_job.hpp"

namespace tutti::internal::oracle {

/// What all schedules of a small job set came to.
struct EverySchedule {
  bool missed = false;
  bool complete = true;  ///< not given up
  /// [n] in halves of a ns; of a job that never finished the first is the largest number and the last is -1.
  std::vector<HalfNs> first_finish, last_finish;
};

/// Plays every release and every cost in halves of a ns against a machine that never preempts, never idles while a job
/// is ready and takes the first in priority: the oracle beside the exploration, and slow.
///
/// It knows of each job whether it has been released and nothing of intervals; it decides job by job what is released
/// until the running one ends. With whole parameters the last time in an open interval is half a ns before its end,
/// which is how the finishes are to be read.
/// @param until  starts after this many halves of a ns are not followed
[[nodiscard]] EverySchedule play_every_schedule(std::span<const JobTiming> jobs,
                                                HalfNs until = std::numeric_limits<HalfNs>::max(),
                                                std::size_t most_states = 300'000);

/// A run of the machine with these releases and costs: when each job finishes, looking at every job at every step.
/// @param releases  [n] halves of a ns
/// @param costs     [n] halves of a ns
[[nodiscard]] std::vector<HalfNs> naive_schedule(std::span<const JobTiming> jobs, std::span<const HalfNs> releases,
                                                 std::span<const HalfNs> costs);

}  // namespace tutti::internal::oracle
