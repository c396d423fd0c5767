#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/admission/admission.hpp"
#include "sched/tasks/task.hpp"

namespace tutti {

/// One job of a scenario; times from its start.
struct ScenarioJob {
  TaskId task;
  Duration arrival{};  ///< >= 0
  Duration ready{};    ///< >= arrival
  /// >= 0; how long it has the machine. Of several regions each takes all that it may, in their order, until that is
  /// over.
  Duration takes{};

  friend bool operator==(const ScenarioJob&, const ScenarioJob&) = default;
};

/// What arrives when, and how long each job takes: one of the many runs that a task set allows.
struct Scenario {
  std::vector<ScenarioJob> jobs;  ///< by rising arrival; of one task, no job is ready before the one before it

  friend bool operator==(const Scenario&, const Scenario&) = default;
};

/// Longer ones are neither made nor read.
inline constexpr std::size_t kMostScenarioJobs = 20'000;

/// A job that ends after its deadline.
struct Miss {
  TaskId task;
  std::uint64_t index = 0;  ///< of the task's jobs, from 0
  Duration finish{};
  Duration deadline{};  ///< absolute

  friend bool operator==(const Miss&, const Miss&) = default;
};

/// The first job to end late when the machine serves the scenario in the order of the policy, each job at one go, or
/// region by region where its task says what they are.
[[nodiscard]] std::optional<Miss> first_miss(std::span<const TaskTiming> tasks, Policy policy,
                                             const Scenario& scenario);

/// A scenario in which some deadline is missed, made from the witness of a refusal: the blocker starts, or comes to its
/// longest region, 1 ns before all jobs of the failing interval become ready together, each as late after its arrival
/// as its jitter allows; every further one arrives as soon as it may, and all take their Wcet.
///
/// A blocker whose longest region is not its first came earlier by the regions in front of it, with the machine for
/// itself. Under EDF it may then be due within the interval; so what it has left behind that region must be done in it
/// as well, and the miss remains.
///
/// Where the verdict has a run of its own (of strictly periodic tasks), that one.
///
/// @return  nothing where the verdict has no witness, where only the longest and the last of a job's regions are known,
///          where only a blocker that starts less than 1 ns before would do, or where it would have more than
///          `kMostScenarioJobs` jobs.
/// @source [GRS96] and [DBBL07]: the patterns that make their conditions necessary.
[[nodiscard]] std::optional<Scenario> counter_example(std::span<const TaskTiming> tasks, Policy policy,
                                                      const Verdict& verdict);

/// The same for the first of the verdicts that gives one.
[[nodiscard]] std::optional<Scenario> counter_example(std::span<const TaskTiming> tasks, Policy policy,
                                                      std::span<const Verdict> verdicts);
/// The same for the first of a refused set's partitions that gives one: a run of its tasks alone.
[[nodiscard]] std::optional<Scenario> counter_example(const AdmissionVerdict& refused, Policy policy);

}  // namespace tutti
