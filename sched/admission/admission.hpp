#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/planners/planner.hpp"
#include "sched/analyses/analysis.hpp"
#include "sched/overlap/operation_plans.hpp"
#include "sched/overlap/overlap_verdict.hpp"
#include "sched/tasks/partition.hpp"
#include "sched/tasks/task.hpp"
#include "sched/tasks/wcet.hpp"

namespace tutti::internal {

/// A task set with the plans by which its jobs run, whether it keeps its deadlines or not.
struct PlannedTaskSet {
  TaskSet tasks;
  const Planner* planner = nullptr;
  std::vector<TaskTiming> timings;  ///< [n] the input of the analyses
  std::vector<JobBound> bounds;     ///< [n] the plans of each task's batches; where jobs overlap, none
  /// Groups that run independently of each other, at least one. Inside one, jobs run one at a time.
  std::vector<Partition> partitions;
  /// Where jobs overlap: the plans of their operations in place of those of batches. All tasks are one partition then.
  std::optional<OverlapPlan> overlap = {};
};

/// The planned set of one partition's tasks alone; it has one partition.
[[nodiscard]] PlannedTaskSet part_of(const PlannedTaskSet& planned, std::size_t partition);

/// A task set whose every deadline is guaranteed, with the plans on which the guarantee rests. Only
/// `AdmissionController` makes one, and the dispatcher takes nothing else.
class AdmittedTaskSet {
 public:
  [[nodiscard]] const PlannedTaskSet& planned() const { return planned_; }
  [[nodiscard]] const TaskSet& tasks() const { return planned_.tasks; }
  [[nodiscard]] const Planner& planner() const { return *planned_.planner; }
  [[nodiscard]] std::span<const TaskTiming> timings() const { return planned_.timings; }
  /// At least one partition. The guarantee holds where each runs independently of the others.
  [[nodiscard]] std::span<const Partition> partitions() const { return planned_.partitions; }
  /// [n] bound on the response from the arrival; the deadline where no test gives a response.
  [[nodiscard]] std::span<const std::optional<Duration>> worst_responses() const { return worst_responses_; }
  /// [chains] bounds on reaction time and data age; empty where there are none.
  [[nodiscard]] std::span<const std::optional<Duration>> chain_latencies() const { return chain_latencies_; }
  /// The admitted set of one partition's tasks alone; it has one partition.
  [[nodiscard]] AdmittedTaskSet part(std::size_t partition) const;

 private:
  friend class AdmissionController;
  friend struct AdmissionVerdict with_chains(struct AdmissionVerdict verdict, const TaskSet& set);
  AdmittedTaskSet() = default;

  PlannedTaskSet planned_;
  std::vector<std::optional<Duration>> worst_responses_;
  std::vector<std::optional<Duration>> chain_latencies_;
};

/// Planner effort for each plan of a set; all batches, and the chunks into which they are cut, share the total.
[[nodiscard]] Effort effort_of(const TaskSet& set);

/// The largest pieces into which a set, or one of its tasks, is cut.
struct CutSize {
  std::optional<TaskId> task = {};  ///< that has a `cut` of its own
  Bytes size;
};

/// The answer to "does this always meet its deadlines?", with reasons.
struct AdmissionVerdict {
  Answer answer = Answer::Unknown;
  const Planner* planner = nullptr;  ///< of the plans that were tested; null where jobs overlap
  std::vector<TaskTiming> timings;   ///< [n]
  /// [n] bound on the response from the arrival; of a schedulable set, the deadline where no test gives a response.
  std::vector<std::optional<Duration>> worst_responses;
  std::vector<Partition> partitions;  ///< at least one; none where jobs overlap
  /// Verdicts of all tests, by partition, then in the order of `analyses()`; task ids are those of the whole set.
  std::vector<Verdict> tests;
  double utilization = 0;                   ///< the largest of any partition; rounded, for display only
  std::vector<std::string> reasons;         ///< why not; one sentence each; empty where schedulable
  std::optional<AdmittedTaskSet> admitted;  ///< with Schedulable, and only then
  /// Where jobs overlap: what the answer rests on. The Wcet of a task is then that of a job's longest way through its
  /// operations, and the utilization that of the fullest resource.
  std::optional<OverlapVerdict> overlap = {};
  /// [chains] bound on reaction time and data age, where every deadline of a task is guaranteed.
  std::vector<std::optional<Duration>> chain_latencies = {};
  std::vector<CutSize> cuts = {};  ///< where the set holds cut into smaller pieces than it says
};

/// An answer in a search, and how often to cut the next set further first.
struct CutAnswer {
  Answer answer;
  int further = 0;  ///< as often as the last one that held only so
};

/// Whether the buffers of all tasks fit into every GPU whose memory is known.
/// @param timings  [n] of the tasks
/// @necessary
[[nodiscard]] Verdict check_device_memory(const TaskSet& set, std::span<const TaskTiming> timings);

/// How many sets of buffers a task needs: one for each job that can be alive, and for each slot.
[[nodiscard]] std::int64_t buffer_sets(const Task& task, const TaskTiming& timing);

/// Whether the tasks of some partition ask for more than all the time. @param timings  [n] of the tasks
[[nodiscard]] bool ask_for_too_much(std::span<const Partition> partitions, std::span<const TaskTiming> timings);

/// Decides whether a task set may run, by every analysis that applies to it; where its jobs overlap, by local deadlines
/// (`decide_overlapping`).
///
/// Partitions share nothing of the machine, so each is tested alone, as it runs; the set is schedulable where all are.
/// GPU memory is counted for the whole set; each GPU belongs to one partition, so the result is the same. A chain with
/// a deadline below its bound (`worst_case_latency`) leaves the answer unknown.
class AdmissionController {
 public:
  explicit AdmissionController(const Planner& planner) : planner_(&planner) {}

  /// Refuses on any proof that a deadline can be missed; otherwise admits on any proof that none can. All buffers of
  /// all tasks must also fit into device memory.
  ///
  /// A set whose `cut` leaves too large pieces is cut further: 29 MB are one piece of 40 MB at most, 41 MB two of 20.5,
  /// and what holds for the larger image holds for the smaller one in as many pieces.
  [[nodiscard]] AdmissionVerdict decide(const TaskSet& tasks) const;

  /// Decides in the same way for tasks that run one job at a time although some may share nothing: one partition. Their
  /// chains do not count.
  [[nodiscard]] AdmissionVerdict decide_as_one(const TaskSet& tasks) const;

  /// Decides for jobs that overlap, whatever the set says. Their chains do not count.
  [[nodiscard]] AdmissionVerdict decide_overlap(const TaskSet& tasks) const;

  /// The answer of `decide` alone, which takes far less time.
  [[nodiscard]] Answer answer(const TaskSet& tasks) const;
  /// The same in a search through sets that differ in one number: mostly as many more pieces help as last time.
  /// @param further  `CutAnswer::further` of the set before; 0 for the first
  [[nodiscard]] CutAnswer answer_after(const TaskSet& tasks, int further) const;
  /// The same where the set is cut as it says, and no further.
  [[nodiscard]] Answer answer_as_cut(const TaskSet& tasks) const;

  /// The plans and Wcets that the decision rests on.
  [[nodiscard]] PlannedTaskSet plan(const TaskSet& tasks) const;

  /// The plans of jobs that overlap, by the local deadlines of the decision; where it found none, by such that divide
  /// each deadline in proportion to longest times.
  /// @errors as `operations_of`
  [[nodiscard]] Expected<PlannedTaskSet> plan_overlap(const TaskSet& tasks) const;

 private:
  [[nodiscard]] AdmissionVerdict decide(PlannedTaskSet planned) const;
  [[nodiscard]] AdmissionVerdict decide_as_cut(const TaskSet& tasks) const;
  /// As `decide_as_cut`, but no more than the answer, and timings and partitions of jobs that do not overlap.
  [[nodiscard]] AdmissionVerdict short_verdict(const TaskSet& tasks) const;
  /// How often a refused set is cut further until it holds; nothing: it does not with a few more pieces.
  /// @param first  tried first; then more, then fewer
  [[nodiscard]] std::optional<int> times_to_cut_further(const TaskSet& tasks, const AdmissionVerdict& refused,
                                                        int first) const;

  const Planner* planner_;
};

}  // namespace tutti::internal
