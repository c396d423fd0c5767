#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/dispatch/due_queue.hpp"
#include "sched/tasks/overrun.hpp"
#include "sched/tasks/ready_queue.hpp"
#include "sched/tasks/release.hpp"
#include "sched/tasks/task_timing.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti::internal {

/// One task as the scheduler knows it.
struct ScheduledTask {
  TaskTiming timing;
  OverrunRule overrun = {};
  ReleaseRule release = {};
  std::size_t buffer_sets = 1;           ///< > 0, jobs of it that can be alive
  std::uint64_t jobs = 0;                ///< to release
  std::uint64_t first_job = 0;           ///< index of the first
  Duration first_arrival{};              ///< from the start of the run
  bool in_order = false;                 ///< each job needs what the one before has left, also where that is late
  std::vector<ScenarioJob> script = {};  ///< the jobs of a scenario, in place of periodic ones

  [[nodiscard]] Duration budget() const { return overrun.budget.value_or(timing.wcet); }
};

/// What became of the triggers of a task.
struct TriggerCounts {
  std::uint64_t seen = 0;      ///< in all
  std::uint64_t deferred = 0;  ///< early: their jobs arrived as soon as the period allowed
  std::uint64_t dropped = 0;   ///< early, by policy or by a period and more: they released no job
  std::uint64_t missing = 0;   ///< so often none came for the time after which one is missing
  std::uint64_t lost = 0;      ///< more came than could be kept until they were seen
  Duration most_early{};       ///< before the period allowed it

  friend bool operator==(const TriggerCounts&, const TriggerCounts&) = default;
};

/// Why a job was dropped before it began.
enum class DropReason : std::uint8_t {
  NoBuffers,  ///< jobs of its task before it have not ended
  Skipped,    ///< the job before it took longer than its budget, and the task says `skip_next`
  NotArmed,   ///< the machine leads the run, and the host had armed none for it
  NoInput,    ///< the same, and the host had not put its input into its buffers
};

/// A task that took longer than its budget too often, and releases no more jobs.
struct Suspension {
  TaskId task;
  Duration at{};
};

/// A job that is ready now: its input can be put into its buffers.
struct DueJob {
  ReadyJob job;
  Duration ready{};                        ///< since when
  std::optional<DropReason> dropped = {};  ///< it has no buffers instead, for this reason
};

/// When the jobs of a run become ready: by the clock, by triggers, or as a scenario says; which buffers they have;
/// which tasks come, go and are suspended. All instants are on the clock of the run, but where another base is named.
///
/// Pure as the schedulers that own one; nothing but `come` allocates.
class JobReleases {
 public:
  /// @param seed  of the jitters
  JobReleases(std::vector<ScheduledTask> tasks, std::uint64_t seed);

  [[nodiscard]] const ScheduledTask& task(TaskId task) const { return tasks_[task.index()]; }
  [[nodiscard]] std::size_t tasks() const { return tasks_.size(); }
  /// Jobs that can be alive at once.
  [[nodiscard]] std::size_t most_alive() const;
  [[nodiscard]] bool follows_scenario() const { return follows_scenario_; }

  /// Starts the time of the run. @pre once, before the first step
  void begin(Duration epoch);
  /// Counts the triggers that are missing by now.
  void note_silence(Duration now);
  /// Takes the next job that is ready by now. Of those that become ready while others are taken none, until
  /// `all_taken`: a release may take longer than a period.
  [[nodiscard]] std::optional<DueJob> take_due(Duration now);
  void all_taken() { taking_by_.reset(); }
  /// When something happens next: a job is ready, or a trigger is missing.
  [[nodiscard]] Duration next_instant() const { return std::min(due_.earliest(), silent_.earliest()); }
  /// The instant from which arrivals count.
  [[nodiscard]] Duration epoch() const { return epoch_; }
  /// Whether a job of a task that the clock releases was dropped, or will never be released. A job is taken as dropped
  /// once 64 others of its task were released after it.
  [[nodiscard]] bool is_left_out(TaskId task, std::uint64_t index) const;
  /// The job that is ready next; nothing where no more come.
  struct NextJob {
    TaskId task;
    std::uint64_t index = 0;
  };
  [[nodiscard]] std::optional<NextJob> next_job() const;
  /// That job, if it is certain: no other is ready then or can become so before, and it has buffers.
  [[nodiscard]] std::optional<NextJob> certain_job() const;

  /// A job has ended, which has its consequence where it took longer than its budget.
  void ended(TaskId task, bool over_budget, Duration now);
  /// A job that has ended needs its buffers no more.
  void buffers_free(const ReadyJob& job);
  /// The buffer set of a job.
  [[nodiscard]] std::size_t buffer_set_of(const ReadyJob& job) const {
    return job.index % tasks_[job.task.index()].set_due.size();
  }
  /// Execution time that a scenario gives a job; nothing outside of scenarios.
  [[nodiscard]] std::optional<Duration> takes_of(const ReadyJob& job) const;

  /// Whether a trigger of a task can be taken: the job of the last one is released.
  [[nodiscard]] bool takes_trigger(TaskId task) const { return !tasks_[task.index()].triggered; }
  /// A trigger of a task whose release is external. Its job arrives the task's jitter before it, or as soon after that
  /// as the period allows: the earliest arrival that explains the triggers so far, and the deadline counts from it.
  ///
  /// Two triggers may thus come closer than the period, by the jitter. What comes earlier is deferred until then, or
  /// dropped.
  ///
  /// @param at  when it came, on the clock of the run; not after now
  /// @pre `takes_trigger`
  /// @source [I371] generic cell rate algorithm, with the period as increment and the jitter as limit
  void trigger(TaskId task, Duration at);
  /// Whether triggers may still release jobs.
  [[nodiscard]] bool awaits_triggers(Duration now) const;
  [[nodiscard]] const TriggerCounts& triggers_of(TaskId task) const { return tasks_[task.index()].triggers; }

  // Tasks that come, go and are suspended.

  /// Whether a job of a task has yet to be released or to end.
  [[nodiscard]] bool is_alive(TaskId task) const;
  /// Tasks that took longer than they may too often, and release no more jobs, in order of time.
  [[nodiscard]] const std::vector<Suspension>& suspensions() const { return suspensions_; }
  /// Latest arrival, from the start of the run, among the jobs of a task that have arrived since it came.
  [[nodiscard]] std::optional<Duration> last_arrival(TaskId task, Duration now) const;
  /// A task releases the job that has arrived, and no more. @param now  from the start of the run
  void leave(TaskId task, Duration now);
  /// A task has its first arrival at once. @param now  from the start of the run
  void come(TaskId task, Duration now);
  /// Nothing arrives from an instant on. @param end  from the start of the run
  void end_arrivals(Duration end) { end_ = end; }

 private:
  struct TaskState : ScheduledTask {
    std::uint64_t released = 0;                    // index of the job that is released next
    std::uint64_t first_index = 0;                 // of the job that arrives at `first_arrival`
    Duration next_ready = kNever;                  // of job `released`
    std::vector<std::optional<Duration>> set_due;  // [sets] when the job that has it is due; nothing: it is free
    std::optional<Duration> triggered;             // arrival, from the start, of the job that a trigger releases next
    Duration triggered_ready{};                    // and when it is ready
    std::optional<Duration> last_triggered;        // arrival of the last one
    TriggerCounts triggers;
    std::uint64_t dropped = 0;  // of the last 64 jobs that were released; bit 0: the last one
    bool skips_next = false;
    bool suspended = false;
    int over_in_a_row = 0;

    [[nodiscard]] Duration arrival_of(std::uint64_t index) const;
  };

  void expect_trigger(std::size_t task, Duration from);
  [[nodiscard]] Duration delay_of(std::size_t task, std::uint64_t index) const;
  void schedule_next(std::size_t task);
  void update_due(std::size_t task);
  [[nodiscard]] std::uint64_t arrived_by(const TaskState& task, Duration now) const;

  std::vector<TaskState> tasks_;
  std::optional<Duration> taking_by_;  // jobs that are ready by then are taken
  std::uint64_t seed_;
  bool follows_scenario_ = false;
  Duration epoch_{};
  Duration end_ = kNever;
  DueQueue due_;                       // when a job of a task is released or dropped
  DueQueue silent_;                    // when a trigger of a task is missing
  std::vector<std::size_t> external_;  // tasks that triggers release
  std::vector<Suspension> suspensions_;
};

}  // namespace tutti::internal
