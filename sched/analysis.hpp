#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ids.hpp"
#include "model/units.hpp"
#include "sched/arrivals.hpp"
#include "sched/executed_job.hpp"
#include "sched/policy.hpp"
#include "sched/wcet.hpp"

namespace tutti {

/// The non-preemptive regions of a job: more urgent jobs may take the machine between them.
struct JobRegions {
  Duration longest{};               ///< the longest one
  Duration last{};                  ///< the last one, behind which there is no such place
  std::vector<Duration> each = {};  ///< all of them in order, where they are known: runs are made of these, no answers

  /// @pre  `each` is not empty.
  [[nodiscard]] static JobRegions of(std::vector<Duration> each) {
    return {*std::max_element(each.begin(), each.end()), each.back(), std::move(each)};
  }
  friend bool operator==(const JobRegions&, const JobRegions&) = default;
};

/// All that a schedulability test may look at, in plain nanoseconds. One entry a task, in the order of the file.
struct TaskTiming {
  Duration wcet{};       ///< >= 0
  Duration period{};     ///< > 0
  Duration deadline{};   ///< > 0, from the arrival
  Duration jitter{};     ///< >= 0, from the arrival to ready, at most
  int priority = 0;      ///< under `given`: smaller is more urgent, of equal ones the earlier in the file
  Duration offset{};     ///< >= 0, first arrival; counts where arrivals are periodic
  Duration best_case{};  ///< 0 <= best case <= wcet; counts where arrivals are periodic
  Arrivals arrivals = Arrivals::Sporadic;  ///< of the whole set
  std::optional<JobRegions> regions = {};  ///< absent: nobody takes the machine from its jobs

  /// For so long a job of the task can keep the machine from a more urgent one.
  [[nodiscard]] Duration longest_region() const { return regions ? regions->longest : wcet; }
  /// At its end a job has the machine for itself for so long.
  [[nodiscard]] Duration last_region() const { return regions ? regions->last : wcet; }

  friend bool operator==(const TaskTiming&, const TaskTiming&) = default;
};

/// How an answer relates to the truth.
enum class Exactness : std::uint8_t {
  Exact,       ///< says schedulable if and only if it is
  Sufficient,  ///< "schedulable" is a proof; otherwise the answer is unknown
  Necessary,   ///< "not schedulable" is a proof; otherwise the answer is unknown
};

enum class Answer : std::uint8_t { Schedulable, NotSchedulable, Unknown };

/// Work of one task inside an interval.
struct TaskLoad {
  TaskId task;
  Duration load{};

  friend bool operator==(const TaskLoad&, const TaskLoad&) = default;
};

/// Why a set is not schedulable: an interval in which more must be done than there is time.
struct Witness {
  std::optional<TaskId> task;     ///< whose deadline ends the interval, where one task can be named
  Duration interval{};            ///< the smallest interval that fails; its length
  Duration load{};                ///< all that must be done in it, blocking included
  Duration blocking{};            ///< of that: the job that had started before
  std::optional<TaskId> blocker;  ///< whose job that is
  std::vector<TaskLoad> by_task;  ///< demand, tasks with none left out; without the blocker's share

  friend bool operator==(const Witness&, const Witness&) = default;
};

/// What one test says about one task set.
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
  /// Of the set, that the controller asked about; nothing: all of it.
  std::optional<std::size_t> partition = {};
};

/// A schedulability test: a row of the table `analyses()`.
///
/// To add one: write `Verdict f(std::span<const TaskTiming>, Policy)` in a new file of `sched/analyses/`, state its
/// source and
/// `@exact`, `@sufficient` or `@necessary`, and add a row in `sched/analyses.cpp`; the conformance suite of the
/// tests picks the row up and holds it against a brute-force adversary.
struct Analysis {
  std::string_view name;
  Exactness exactness;
  /// Whether the test says anything about this set under this policy (say, only where D = T).
  bool (*applies)(std::span<const TaskTiming>, Policy);
  Verdict (*decide)(std::span<const TaskTiming>, Policy);
  /// What `decide` answers, where that alone takes far less; or null.
  Answer (*answer)(std::span<const TaskTiming>, Policy) = nullptr;
  /// What an exact test is exact for; of strictly periodic arrivals one for sporadic arrivals is only sufficient.
  Arrivals exact_for = Arrivals::Sporadic;
};

/// What a test says about tasks to which it applies, with what it proves for their arrivals: a deadline that sporadic
/// arrivals can miss may hold under strictly periodic ones.
[[nodiscard]] Verdict ask(const Analysis& analysis, std::span<const TaskTiming> tasks, Policy policy);

/// What the first test says that can tell: for searches, which ask often and want no responses.
[[nodiscard]] Answer answer_of(std::span<const TaskTiming> tasks, Policy policy);

/// Every test, in the order in which they are asked and printed.
[[nodiscard]] std::span<const Analysis> analyses();

}  // namespace tutti
