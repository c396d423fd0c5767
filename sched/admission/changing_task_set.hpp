#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sched/admission/admission.hpp"
#include "sched/admission/online_admission.hpp"

namespace tutti::internal {

/// A request to a task set that runs: one task leaves, one comes, or one takes the place of another.
struct TaskChange {
  Duration at{};  ///< from the start of the run; it is answered then or soon after
  std::optional<TaskId> leaves, comes;

  friend bool operator==(const TaskChange&, const TaskChange&) = default;
};

/// Answer to a request.
struct ChangeAnswer {
  Answer answer = Answer::Unknown;  ///< only `Schedulable` changed something
  std::string reason;               ///< why not, in a sentence
};

/// An admitted task set that changes while it runs: all tasks that may ever run, with their plans, and which of them
/// run. Every deadline is guaranteed at every moment, whatever is asked.
///
/// Plans are made beforehand, so that nothing is prepared while deadlines run. Arrivals are sporadic. The whole machine
/// is one partition, since a task that comes may join others.
///
/// Jobs overlap, all the time, where the set says `overlap: on`; `auto` is one job at a time. All tasks that may ever
/// run are then admitted together: any of them keep their deadlines with the local deadlines of all.
class ChangingTaskSet {
 public:
  /// @param running  the tasks that run from the start, ascending
  /// @errors InvalidInput: these are not schedulable, where jobs overlap not all together; the buffers of all do not
  ///         fit; arrivals are strictly periodic.
  [[nodiscard]] static Expected<ChangingTaskSet> make(const AdmissionController& controller, const TaskSet& all,
                                                      std::span<const TaskId> running);

  /// Plans of all tasks, running or not.
  [[nodiscard]] const PlannedTaskSet& planned() const { return planned_; }
  [[nodiscard]] bool runs(TaskId task) const { return entries_[task.index()].has_value(); }
  /// [tasks] whatever runs; empty where jobs run one at a time.
  [[nodiscard]] std::span<const std::optional<Duration>> worst_responses() const { return worst_responses_; }

  /// Answers a request as the policy's full test does for all tasks that count: the running ones, and those that have
  /// left but can still delay others (`OnlineAdmission`). A refusal changes nothing.
  /// @param now           the time, never earlier than in a call before
  /// @param last_arrival  of the jobs of the task that leaves; nothing where none arrived
  [[nodiscard]] ChangeAnswer ask(const TaskChange& change, Duration now, std::optional<Duration> last_arrival);

  /// Records an idle moment: no job was ready or running then.
  void idle_at(Duration moment) { online_.idle_at(moment); }

 private:
  ChangingTaskSet(PlannedTaskSet planned)
      : planned_(std::move(planned)),
        online_(planned_.tasks.policy),
        entries_(planned_.tasks.tasks.size()),
        last_arrivals_(entries_.size()) {}

  static Expected<ChangingTaskSet> make_overlapping(const AdmissionController& controller, const TaskSet& all,
                                                    std::span<const TaskId> running);
  [[nodiscard]] std::string refusal(const TaskChange& change) const;
  [[nodiscard]] std::string lack_after(const TaskChange& change) const;
  [[nodiscard]] ChangeAnswer admit(const TaskChange& change, Duration now, std::optional<Duration> last_arrival);
  [[nodiscard]] ChangeAnswer ask_overlapping(const TaskChange& change, Duration now,
                                             std::optional<Duration> last_arrival);
  OnlineAdmission::Outcome change(const TaskChange& change, Duration now, std::optional<Duration> last_arrival);

  PlannedTaskSet planned_;
  OnlineAdmission online_;
  /// [tasks] id of a running task in `online_`; its own where jobs overlap
  std::vector<std::optional<TaskId>> entries_;
  std::vector<std::optional<Duration>> worst_responses_;
  std::vector<std::optional<Duration>> last_arrivals_;  ///< [tasks] where jobs overlap: of those that have left
};

}  // namespace tutti::internal
