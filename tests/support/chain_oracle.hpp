#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sched/tasks/policy.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti::internal::oracle {

/// Times of a job, ns.
struct PlayedJob {
  std::int64_t arrival = 0, ready = 0;
  std::vector<std::int64_t> regions = {};  ///< at least one; more urgent jobs go first between them
  std::int64_t start = -1, finish = -1;    ///< once it has run
};

/// Jobs of each task, in the order of their arrivals.
using PlayedJobs = std::vector<std::vector<PlayedJob>>;

/// Runs the jobs region by region: whenever the machine is free, the next one of the most urgent job that is ready.
/// @param dispatchers  [tasks] tasks with different ones do not wait for each other; empty: all have the same
void play(PlayedJobs& jobs, std::span<const TaskTiming> tasks, Policy policy,
          std::span<const std::size_t> dispatchers = {});

/// The longest reaction time in played jobs, from the definition: every event is followed forward, job by job. Nothing
/// where no event that counts has an effect.
/// @param chain  positions of its tasks, the cause first
[[nodiscard]] std::optional<std::int64_t> slow_reaction(const PlayedJobs& jobs, std::span<const std::size_t> chain);

/// The largest data age, from the definition: every output is followed back, job by job.
[[nodiscard]] std::optional<std::int64_t> slow_data_age(const PlayedJobs& jobs, std::span<const std::size_t> chain);

/// Worst latencies that a search has seen, ns; -1 where it saw none.
struct WorstSeen {
  std::int64_t reaction = -1, data_age = -1;
};

/// Searches for the run of a set in which a chain is slowest: first arrivals, which tasks do not arrive before, costs
/// and jitter of each job, by seeded random steps from arrangements in which the arrivals of neighbours almost meet.
/// Tasks of the chain arrive every period, and tasks with the same `arrives_with` with the task at that position; with
/// `Arrivals::Periodic` all arrive at their offsets, and jobs take their best case at least.
/// @param steps  runs to play
[[nodiscard]] WorstSeen search_worst_run(std::span<const TaskTiming> tasks, Policy policy,
                                         std::span<const std::size_t> chain, std::uint64_t seed, int steps,
                                         std::span<const std::size_t> dispatchers = {});

}  // namespace tutti::internal::oracle
