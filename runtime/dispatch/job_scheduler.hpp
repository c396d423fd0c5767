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
  std::vector<ScenarioJob> script = {};  ///< the jobs of a scenario, in place of periodic ones
};

/// What has happened. All instants are on the clock of the run.
struct Event {
  enum class Kind : std::uint8_t {
    Time,         ///< nothing but that time has passed, or the last action is done
    RegionEnded,  ///< the running job has come to a boundary, and has more to do
    JobEnded,     ///< the running job has done its last region
    JobFailed,    ///< the running job cannot go on
    JobClosed,    ///< the end of the job of the last `Finish` is recorded
  };
  Kind kind = Kind::Time;
  Duration now{};
};

/// What became of the triggers of a task.
struct TriggerCounts {
  std::uint64_t seen = 0;      ///< in all
  std::uint64_t deferred = 0;  ///< early: their jobs arrived as soon as the period allowed
  std::uint64_t dropped = 0;   ///< early, by policy or by a period and more: they released no job
  std::uint64_t missing = 0;   ///< so often none came for the time after which one is missing
  std::uint64_t lost = 0;      ///< more came than could be kept until they were seen
  Duration most_early{};       ///< before the period allowed it

  [[nodiscard]] bool all_in_time() const { return deferred == 0 && dropped == 0 && missing == 0 && lost == 0; }
  friend bool operator==(const TriggerCounts&, const TriggerCounts&) = default;
};

/// Why a job was dropped before it began.
enum class DropReason : std::uint8_t {
  NoBuffers,  ///< jobs of its task before it have not ended
  Skipped,    ///< the job before it took longer than its budget, and the task says `skip_next`
};

/// What is to be done next.
struct Action {
  enum class Kind : std::uint8_t {
    Release,   ///< have the input of `job` put into its buffers, then `Time`; `input_ready` once it is there
    Drop,      ///< record that `job` is dropped for `reason`, then `Time`
    Start,     ///< `job` takes the machine: do its first region, then `RegionEnded`, `JobEnded` or `JobFailed`
    Continue,  ///< the running job does its next region, then as above
    Hold,      ///< let the machine stand until `until`, then `Time`
    Finish,    ///< record the end of the running job (`running()`), then `JobClosed`; `buffers_free` once they are
    Free,      ///< no job has the machine any more: tasks may come and go, then `Time`
    Idle,      ///< nothing to do until `until` (`kNever`: until something comes), then `Time`
  };
  Kind kind = Kind::Idle;
  ReadyJob job = {};
  Duration ready{};  ///< of a release: the instant at which the job was ready
  Duration until{};
  DropReason reason = DropReason::NoBuffers;
};

/// A task that took longer than its budget too often, and releases no more jobs.
struct Suspension {
  TaskId task;
  Duration at{};
};

/// A job that has the machine, or has lent it to a more urgent one.
struct RunningJob {
  ReadyJob job;
  Duration start{};
  Duration elsewhere{};            ///< time without the machine since the start
  std::optional<Duration> finish;  ///< once it has ended
  bool failed = false;
  bool aborted = false;  ///< it was over its budget

  /// Time of the machine that it has had. @pre it has the machine
  [[nodiscard]] Duration own(Duration now) const { return finish.value_or(now) - start - elsewhere; }
};

/// The dispatcher's decisions: which job is released, starts, lends the machine, ends, is dropped or aborted.
///
/// A state machine without clock, thread or user's code: an event goes in with its instant, the next action comes out,
/// and the same events give the same actions. `step` allocates nothing.
///
/// The most urgent ready job goes first, by the policy of the set; jobs past their deadline go after those that can
/// still be met, one of their own task included, in the order in which they were seen to be late. A job gives up the
/// machine only between two of its regions, and only where its task has regions. A scenario is served in the order of
/// the policy alone, late jobs too.
class JobScheduler {
 public:
  /// @param seed  of the jitters
  JobScheduler(Policy policy, Arrivals arrivals, std::vector<ScheduledTask> tasks, std::uint64_t seed);

  /// Starts the time of the run. @pre once, before the first step
  void begin(Duration epoch);
  /// Takes what happened since the last action and says what is next.
  [[nodiscard]] Action step(const Event& event);

  // News that answer no action, between two steps.

  /// The input of a released job is in its buffers.
  void input_ready(const ReadyJob& job) { ready_.push(job); }
  /// A job that has ended needs its buffers no more.
  void buffers_free(const ReadyJob& job);
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

  /// The machine is broken: the jobs that have it fail, and nothing else begins.
  void stop() { stopped_ = true; }

  /// Whether triggers may still release jobs.
  [[nodiscard]] bool awaits_triggers(Duration now) const;
  [[nodiscard]] const TriggerCounts& triggers_of(TaskId task) const { return tasks_[task.index()].triggers; }

  /// Whether no job has the machine.
  [[nodiscard]] bool is_free() const { return running_.empty(); }
  /// The job that has the machine. @pre not free
  [[nodiscard]] const RunningJob& running() const { return running_.back(); }
  /// The buffer set of a job.
  [[nodiscard]] std::size_t buffer_set_of(const ReadyJob& job) const {
    return job.index % tasks_[job.task.index()].set_due.size();
  }
  /// Execution time that a scenario gives a job; nothing outside of scenarios.
  [[nodiscard]] std::optional<Duration> takes_of(const ReadyJob& job) const;

  /// Takes the next job that is ready and has not started, at the end of a run.
  [[nodiscard]] std::optional<ReadyJob> take_unstarted();

  struct NextJob {
    TaskId task;
    std::uint64_t index = 0;
  };
  /// The most urgent ready job, or else the one that is ready next; nothing where no more come.
  [[nodiscard]] std::optional<NextJob> next_job() const;

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
    bool skips_next = false;
    bool suspended = false;
    int over_in_a_row = 0;

    [[nodiscard]] Duration arrival_of(std::uint64_t index) const;
    [[nodiscard]] Duration budget() const { return overrun.budget.value_or(timing.wcet); }
  };
  enum class Phase : std::uint8_t { InRegion, AtBoundary, Ended };
  struct Running : RunningJob {
    Phase phase = Phase::InRegion;
    std::size_t regions = 0;            // done, in a scenario
    Duration had{};                     // in a scenario: time that these have the machine
    std::optional<Duration> lent_from;  // others have the machine since then
  };

  void take(const Event& event);
  void note_silence(Duration now);
  void expect_trigger(std::size_t task, Duration from);
  Action decide(const Event& event);
  void close(Duration now);
  Action decide_free(Duration now);
  Action decide_at_boundary(Running& job, Duration now);
  Action decide_end(Running& job, Duration now);
  [[nodiscard]] std::optional<Action> release_due(Duration now);
  Action start(Duration now);
  ReadyJob take_ready();
  [[nodiscard]] bool has_more_urgent_than(const ReadyJob& job, Duration now);
  [[nodiscard]] bool is_late(const ReadyJob& job, Duration now) const {
    return !follows_scenario_ && job.deadline < now;
  }
  void set_late_aside(Duration now);
  [[nodiscard]] Duration hold_of_regions(Running& job) const;

  [[nodiscard]] Duration delay_of(std::size_t task, std::uint64_t index) const;
  void schedule_next(std::size_t task);
  void update_due(std::size_t task);
  [[nodiscard]] std::uint64_t arrived_by(const TaskState& task, Duration now) const;

  std::vector<TaskState> tasks_;
  std::optional<Duration> releasing_by_;  // jobs that are ready by then are released before anything else is decided
  Arrivals arrivals_;
  std::uint64_t seed_;
  bool follows_scenario_ = false;
  bool stopped_ = false;
  Duration epoch_{};
  Duration end_ = kNever;
  DueQueue due_;                       // when a job of a task is released or dropped
  DueQueue silent_;                    // when a trigger of a task is missing
  std::vector<std::size_t> external_;  // tasks that triggers release
  ReadyQueue ready_;
  std::vector<ReadyJob> late_;    // ready jobs past their deadlines, in the order in which that was seen
  std::vector<Running> running_;  // the last one has the machine
  std::vector<Suspension> suspensions_;
};

}  // namespace tutti::internal
