#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/dispatch/job_releases.hpp"
#include "sched/tasks/critical_window.hpp"
#include "sched/tasks/ready_queue.hpp"

namespace tutti::internal {

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
  Duration until{};  ///< with a start by a time table: the instant at which the table has it
  DropReason reason = DropReason::NoBuffers;
};

/// What is to be done with a job that is ready.
[[nodiscard]] Action release_of(const DueJob& due);

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
/// still be met, one of their own task included, in the order in which they were seen to be late. Where jobs of a task
/// are in order, a late one goes in place of the next one of its task instead, which waits for it. A job gives up the
/// machine only between two of its regions, and only where its task has regions. A scenario is served in the order of
/// the policy alone, late jobs too.
///
/// Under `cw_edf` jobs start in the order of the table that was analysed, late jobs too, none before its instant there.
/// A job that takes too long delays the next ones until the table has caught up; one that was dropped is left out.
class JobScheduler {
 public:
  /// @param seed  of the jitters
  JobScheduler(Policy policy, Arrivals arrivals, std::vector<ScheduledTask> tasks, std::uint64_t seed);

  /// Takes what happened since the last action and says what is next.
  [[nodiscard]] Action step(const Event& event);

  /// When jobs become ready. News of triggers, buffers, tasks that come and go reach it between two steps.
  [[nodiscard]] JobReleases& releases() { return releases_; }
  [[nodiscard]] const JobReleases& releases() const { return releases_; }
  /// The input of a released job is in its buffers.
  void input_ready(const ReadyJob& job) { ready_.push(job); }
  /// The machine is broken: the jobs that have it fail, and nothing else begins.
  void stop() { stopped_ = true; }

  /// Whether no job has the machine.
  [[nodiscard]] bool is_free() const { return running_.empty(); }
  /// The job that has the machine. @pre not free
  [[nodiscard]] const RunningJob& running() const { return running_.back(); }

  /// In a scenario: when the region that the running job begins now is to end. Elsewhere nothing. @pre not free
  [[nodiscard]] std::optional<Duration> region_end() const;

  /// Takes the next job that is ready and has not started, at the end of a run.
  [[nodiscard]] std::optional<ReadyJob> take_unstarted();

  /// The most urgent ready job, or else the one that is ready next; nothing where no more come.
  [[nodiscard]] std::optional<JobReleases::NextJob> next_job() const;
  /// The job that starts when it becomes ready, at the next instant, if that is certain now. @pre none is ready
  [[nodiscard]] std::optional<JobReleases::NextJob> certain_job() const {
    return table_ || stopped_ ? std::nullopt : releases_.certain_job();
  }

 private:
  enum class Phase : std::uint8_t { InRegion, AtBoundary, Ended };
  struct Running : RunningJob {
    Phase phase = Phase::InRegion;
    std::size_t regions = 0;            // done, in a scenario
    Duration had{};                     // in a scenario: time that these have the machine
    std::optional<Duration> lent_from;  // others have the machine since then
  };

  void take(const Event& event);
  Action decide(const Event& event);
  void close(Duration now);
  Action decide_free(Duration now);
  Action decide_by_table(Duration now);
  Action decide_at_boundary(Running& job, Duration now);
  Action decide_end(Running& job, Duration now);
  [[nodiscard]] std::optional<Action> release_due(Duration now);
  Action start(Duration now) { return start(take_ready(), now, {}); }
  Action start(const ReadyJob& job, Duration now, Duration planned);
  void advance_table();
  ReadyJob take_ready();
  [[nodiscard]] bool has_more_urgent_than(const ReadyJob& job, Duration now);
  [[nodiscard]] bool is_late(const ReadyJob& job, Duration now) const {
    return !releases_.follows_scenario() && job.deadline < now;
  }
  void set_late_aside(Duration now);
  [[nodiscard]] bool is_in_order(const ReadyJob& job) const { return releases_.task(job.task).in_order; }
  [[nodiscard]] Duration hold_of_regions(const Running& job) const;

  JobReleases releases_;
  Arrivals arrivals_;
  bool stopped_ = false;
  ReadyQueue ready_;
  std::optional<CriticalWindowTable> table_;  // under `cw_edf`
  std::vector<std::uint64_t> first_jobs_;     // [tasks] indices of the jobs that the table starts with
  TableEntry planned_;                        // the next job of the table
  std::vector<ReadyJob> late_;                // ready jobs past their deadlines, in the order in which that was seen
  std::vector<Running> running_;              // the last one has the machine
};

}  // namespace tutti::internal
