#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"
#include "sched/tasks/arrivals.hpp"
#include "sched/tasks/executed_job.hpp"
#include "sched/tasks/policy.hpp"
#include "sched/tasks/task_timing.hpp"

namespace tutti::internal {

/// How an answer relates to the truth.
enum class Exactness : std::uint8_t {
  Exact,       ///< says schedulable if and only if it is
  Sufficient,  ///< "schedulable" is a proof; otherwise the answer is unknown
  Necessary,   ///< "not schedulable" is a proof; otherwise the answer is unknown
};

/// Work of one task inside an interval.
struct TaskLoad {
  TaskId task;
  Duration load{};

  friend bool operator==(const TaskLoad&, const TaskLoad&) = default;
};

/// Why a set is not schedulable: an interval in which more must be done than there is time.
struct Witness {
  std::optional<TaskId> task;     ///< the deadline of this task ends the interval, where one task can be named
  Duration interval{};            ///< the smallest interval that fails; its length
  Duration load{};                ///< all that must be done in it, blocking included
  Duration blocking{};            ///< blocking in `load`, by the job that had started before
  std::optional<TaskId> blocker;  ///< the task of that job
  std::vector<TaskLoad> by_task;  ///< demand, tasks with none left out; without the blocker's share
  Duration held_up{};             ///< time in `load` for which the machine may be held up, where no task's has it

  friend bool operator==(const Witness&, const Witness&) = default;
};

/// Result of one test on one task set.
struct Verdict {
  std::string_view test;  ///< the test's name, static
  Exactness exactness = Exactness::Exact;
  Answer answer = Answer::Unknown;
  std::optional<Witness> witness;  ///< with NotSchedulable, where the test finds one
  std::string reason;              ///< why, one sentence, where no witness says it; empty with Schedulable
  /// [n] worst response of each task from its arrival, where the test bounds it; empty where it gives none.
  std::vector<std::optional<Duration>> worst_response;
  /// With NotSchedulable, where the test finds one: jobs in the order of their execution, the last one late.
  std::vector<ExecutedJob> late_run;
  /// Partition that was tested; nothing: the whole set.
  std::optional<std::size_t> partition = {};
};

/// A schedulability test: a row of the table `analyses()`.
///
/// To add one: write `Verdict f(std::span<const TaskTiming>, Policy)` in a new file of `sched/analyses/`, state its
/// source and `@exact`, `@sufficient` or `@necessary`, and add a row in `sched/analyses/analyses.cpp`; the conformance
/// suite of the tests picks the row up and holds it against a brute-force adversary.
struct Analysis {
  std::string_view name;
  Exactness exactness;
  /// Whether the test applies to this set under this policy (for example, only where D = T).
  bool (*applies)(std::span<const TaskTiming>, Policy);
  Verdict (*decide)(std::span<const TaskTiming>, Policy);
  /// The answer of `decide` alone, where it takes far less time; or null.
  Answer (*answer)(std::span<const TaskTiming>, Policy) = nullptr;
  /// Arrivals for which an exact test is exact; one for sporadic arrivals is only sufficient for strictly periodic
  /// ones.
  Arrivals exact_for = Arrivals::Sporadic;
};

/// Of two bounds of each response the smaller one, in the first list. @param others  empty: none
void keep_smaller(std::vector<std::optional<Duration>>& bounds, std::span<const std::optional<Duration>> others);

/// Verdict of a test on tasks to which it applies, with its exactness for their arrivals: a deadline that sporadic
/// arrivals can miss may hold under strictly periodic ones.
[[nodiscard]] Verdict ask(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy);

/// Answer of the first test that decides: for searches, which ask often and need no responses.
[[nodiscard]] Answer answer_of(std::span<const TaskTiming> tasks, Policy policy);

/// Every test, in the order in which they are asked and printed.
[[nodiscard]] std::span<const Analysis> analyses();

}  // namespace tutti::internal
