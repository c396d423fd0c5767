#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "sched/admission/admission.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// One job of a scenario; times from its start.
struct ScenarioJob {
  TaskId task;
  Duration arrival{};  ///< >= 0
  Duration ready{};    ///< >= arrival
  /// >= 0; execution time. With several regions, each in turn takes its longest time until this time is used up.
  /// Nothing where jobs overlap: their operations take what the machine gives them.
  std::optional<Duration> takes = {};

  friend bool operator==(const ScenarioJob&, const ScenarioJob&) = default;
};

/// Arrivals and execution times of jobs: one of the many runs that a task set allows.
struct Scenario {
  std::vector<ScenarioJob> jobs;  ///< by rising arrival; of one task, no job is ready before the one before it

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// Most jobs of a scenario; longer ones are neither made nor read.
inline constexpr std::size_t kMostScenarioJobs = 20'000;

/// A job that ends after its deadline.
struct Miss {
  TaskId task;
  std::uint64_t index = 0;  ///< of the task's jobs, from 0
  Duration finish{};
  Duration deadline{};  ///< absolute

  friend bool operator==(const Miss&, const Miss&) = default;
};

/// The first job to end late when the machine serves the scenario in the order of the policy, each job without
/// preemption, or region by region where its task has regions.
[[nodiscard]] std::optional<Miss> first_miss(std::span<const TaskTiming> tasks, Policy policy,
                                             const Scenario& scenario);

/// A scenario in which some deadline is missed; where none is shown, why not, in a sentence; empty where nothing is
/// refused.
using CounterExample = tl::expected<Scenario, std::string>;

/// A scenario in which some deadline is missed, made from the witness of a refusal: the blocker starts, or comes to its
/// longest region, 1 ns before all jobs of the failing interval become ready together, each as late after its arrival
/// as its jitter allows; every further one arrives as soon as it may, and all take their Wcet.
///
/// A blocker with a longest region that is not its first starts earlier by the regions before it. Under EDF it may then
/// be due within the interval; its regions after the longest must then be done in the interval as well, so the miss
/// remains.
///
/// A late run in the verdict itself (strictly periodic tasks) is taken instead.
///
/// There is none where the verdict has no witness, where only the longest and the last of a job's regions are known,
/// where only a blocker that starts less than 1 ns before would do, or where it would have more than
/// `kMostScenarioJobs` jobs.
/// @source [GRS96] and [DBBL07]: the patterns that make their conditions necessary.
[[nodiscard]] CounterExample counter_example(std::span<const TaskTiming> tasks, Policy policy, const Verdict& verdict);

/// Counter-example from the first of the verdicts that gives one.
[[nodiscard]] CounterExample counter_example(std::span<const TaskTiming> tasks, Policy policy,
                                             std::span<const Verdict> verdicts);
/// Counter-example from the first partition of a refused set that gives one: a run of that partition's tasks alone.
/// Where jobs overlap: of what a refusal proves (`OverlapRefusal`), the jobs in its interval; whatever the order, one
/// of them is late.
[[nodiscard]] CounterExample counter_example(const AdmissionVerdict& refused, Policy policy);

}  // namespace tutti::internal
