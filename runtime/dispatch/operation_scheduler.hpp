#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/dispatch/job_releases.hpp"
#include "sched/overlap/local_deadlines.hpp"

namespace tutti::internal {

/// A region of an operation that has its resource.
struct RegionRun {
  std::size_t resource = 0;   ///< position in `OperationSet::resources`
  std::size_t operation = 0;  ///< position in `OperationSet::operations`
  std::size_t part = 0;       ///< of the operation
  std::size_t region = 0;     ///< of the part
  ReadyJob job;
  Duration begin{};
  Duration could_begin{};    ///< since when it could have begun: it was ready, and the resource free
  Duration released_late{};  ///< its operation was ready so long after its guard; of a first one, beyond the jitter
  bool after_idle = false;   ///< nothing wanted the resource before it was ready
};

/// What is to be done next where jobs overlap.
struct OverlapAction {
  enum class Kind : std::uint8_t {
    Release,  ///< have the input of `due.job` put into its buffers; `input_ready` once it is there
    Drop,     ///< record that `due.job` is dropped
    Begin,    ///< begin `region` without waiting for it; `region_ended` or `region_failed` once it is over
    Finish,   ///< record the end of `job`, then `closed`; `buffers_free` once they are
    Idle,     ///< nothing to do until `until` (`kNever`: until something comes)
  };
  Kind kind = Kind::Idle;
  DueJob due = {};
  RegionRun region = {};
  ReadyJob job = {};
  Duration until{};
};

/// A job that overlaps others, from its first region to its end.
struct OverlappedJob {
  ReadyJob job;
  std::optional<Duration> start = {};   ///< of its first region
  std::optional<Duration> finish = {};  ///< once it has ended
  bool failed = false;
  bool aborted = false;      ///< it was over its budget
  bool over_budget = false;  ///< the time of its operations, or of one of them, is beyond what is declared
  Duration dispatch_late{};  ///< sum of what its regions began after they could
};

/// The dispatcher's decisions where jobs overlap: each resource serves one region at a time, of the operation that is
/// due first, or has the shortest local deadline, among those that are past their guards.
///
/// A state machine without clock, thread or user's code, as `JobScheduler`: news go in with their instants, `step` says
/// what is next, the same news give the same actions, and nothing is allocated.
///
/// An operation waits for its guard where it is held, for the operation before it and for its resource, and for nothing
/// else: no resource is idle while an operation wants it that waits for neither. Of several that could begin, the one
/// whose resource has been free longest does. Operations of one task on one resource
/// go in the order of its jobs, but those of a job past its deadline after all that can still be met, in the order in
/// which they were seen to be late. Where jobs of a task are in order, an operation of a late one goes in place of that
/// of the next one, which waits for it.
/// @source [SL96] release guards
class OperationScheduler {
 public:
  /// What is passed by reference outlives the scheduler.
  /// @param seed  of the jitters
  OperationScheduler(Policy policy, const OperationSet& operations, const LocalDeadlines& deadlines,
                     std::vector<ScheduledTask> tasks, std::uint64_t seed);

  /// When jobs become ready. News of triggers and buffers reach it between two steps.
  [[nodiscard]] JobReleases& releases() { return releases_; }
  [[nodiscard]] const JobReleases& releases() const { return releases_; }

  /// The input of a released job is in its buffers.
  void input_ready(const ReadyJob& job, Duration now);
  /// The region that has a resource is over.
  void region_ended(std::size_t resource, Duration now);
  /// Its job cannot go on: what is under way of it ends, nothing else of it begins.
  void region_failed(std::size_t resource, Duration now);
  /// The end of the job of the last `Finish` is recorded.
  void closed(const ReadyJob& job, Duration now);
  /// No job is released any more, and none begins that has not; those that have go on to their end.
  void drain();
  /// The machine is broken: nothing else begins, and the jobs that have begun fail.
  void stop(Duration now);

  [[nodiscard]] OverlapAction step(Duration now);

  /// The region that has a resource; null: it is free.
  [[nodiscard]] const RegionRun* running(std::size_t resource) const {
    return resources_[resource].runs ? &resources_[resource].run : nullptr;
  }
  /// A job whose input is ready and that is not closed.
  [[nodiscard]] const OverlappedJob& job(const ReadyJob& job) const { return slots_[slot_of(job)].job; }
  /// Takes a job that is ready and has not started, at the end of a run.
  [[nodiscard]] std::optional<ReadyJob> take_unstarted();

 private:
  /// A buffer set of a task, and the job that has it.
  struct Slot {
    OverlappedJob job;
    bool alive = false;
    bool cancelled = false;      // nothing of it begins any more
    std::size_t step = 0;        // of the job
    std::size_t open = 0;        // streams of the step that are not over
    std::size_t under_way = 0;   // regions
    std::vector<Duration> took;  // [operations of the task]
  };
  /// An operation past its guard.
  struct Waiting {
    bool late = false;  // its job is
    Duration key{};     // when it is due, or its local deadline; of a late job: the number of its setting aside
    Duration since{};   // it waits
    std::size_t operation = 0;
    ReadyJob job;
    std::size_t part = 0, region = 0;  // to do next
  };
  struct Resource {
    bool runs = false;
    RegionRun run;
    Waiting doing;  // of `run`
    Duration free_since{};
    bool was_idle = true;          // since `free_since` nothing wanted it
    std::vector<Waiting> waiting;  // a heap, the first to be served in front
  };

  [[nodiscard]] std::size_t slot_of(const ReadyJob& job) const {
    return first_slot_[job.task.index()] + releases_.buffer_set_of(job);
  }
  [[nodiscard]] std::size_t instance(std::size_t slot, std::size_t operation) const;
  [[nodiscard]] static bool goes_behind(const Waiting& a, const Waiting& b);

  void begin_step(std::size_t slot, Duration now);
  /// An operation whose predecessors are over waits for its guard.
  void await_guard(std::size_t slot, std::size_t operation, Duration now);
  void pass_guards(Duration now);
  static void wait(Resource& resource, const Waiting& waiting);
  [[nodiscard]] Waiting take_next(Resource& resource, Duration now);
  /// The operation of a job that is set aside in place of that of a later job of its task, where they are in order.
  [[nodiscard]] Waiting in_place_of(const Waiting& next, Resource& resource) const;
  /// Of the resources that are free and wanted, the one that has been free longest.
  [[nodiscard]] std::optional<std::size_t> longest_free() const;
  OverlapAction begin(std::size_t resource, Duration now);
  /// Ends the region of a resource. @return whose it was
  std::size_t leave(Resource& resource, Duration now);
  void end_operation(std::size_t slot, std::size_t operation, Duration now);
  [[nodiscard]] bool is_over_budget(const Slot& slot, std::size_t operation) const;
  /// The longest way through a job, by what its operations have taken.
  [[nodiscard]] Duration way_of(const Slot& slot) const;
  /// Nothing else of a job begins.
  void cancel(std::size_t slot);
  void end_if_cancelled(std::size_t slot, Duration now);
  void end(std::size_t slot, Duration now);

  Policy policy_;
  const OperationSet& operations_;
  const LocalDeadlines& deadlines_;
  JobReleases releases_;
  std::vector<Duration> worst_;                       // [operations]
  std::vector<std::optional<std::size_t>> follower_;  // [operations] the next one in its stream
  std::vector<std::size_t> first_operation_;          // [tasks]
  std::vector<std::size_t> first_slot_;               // [tasks]
  std::vector<std::size_t> first_instance_;           // [slots] of their operations, one after the other
  std::vector<std::size_t> slot_of_instance_;         // [instances]
  std::vector<Slot> slots_;
  std::vector<Resource> resources_;
  std::vector<std::size_t> ended_;  // slots whose jobs have ended, oldest first
  DueQueue guards_;                 // [instances] when an operation passes its guard
  std::int64_t set_aside_ = 0;      // operations of late jobs, so far
  bool draining_ = false;
};

}  // namespace tutti::internal
