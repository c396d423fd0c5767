#include "runtime/dispatch/overlapped_run.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/core/notes.hpp"
#include "runtime/dispatch/operation_scheduler.hpp"
#include "runtime/dispatch/region_bindings.hpp"
#include "runtime/dispatch/task_run.hpp"

namespace tutti::internal {
namespace {

/// Operations of several jobs at a time: does what an `OperationScheduler` decides.
class OverlappedRun final : public TaskRun {
 public:
  OverlappedRun(Executor& executor, const PlannedTaskSet& planned, const std::atomic<bool>* interrupted)
      : TaskRun(executor, planned, interrupted),
        plan_(*planned.overlap),
        bindings_(executor, plan_),
        resources_(plan_.operations.resources.size()) {}

  /// Prepares every region of every operation, and where the backend starts cold runs each once.
  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs);
  /// Releases the jobs of a scenario instead. @pre prepared for as many
  void follow(const Scenario& scenario);
  void make_room(std::span<const std::uint64_t> jobs) override;

 protected:
  JobReleases& releases() override { return scheduler_->releases(); }
  void release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) override;
  void input_ready(const ReadyJob& job) override;
  void stop() override { scheduler_->stop(executor_.clock().now()); }
  std::optional<ReadyJob> take_unstarted() override { return scheduler_->take_unstarted(); }
  void run_jobs() override;
  const BlockingLog& blocking() const override { return all_; }
  int callbacks_below() const override { return 2; }  // host steps, which bounds cover, go before them

 private:
  /// Does what comes next, until no job comes any more or the run cannot go on.
  void lead_jobs();

  /// What a job has seen of a resource's log.
  struct Seen {
    std::uint64_t of = 0;  ///< `Resource::idled` then: what was before is over
    Duration own{};        ///< excess of its own
    Duration counted{};    ///< excess that has blocked it already
  };
  /// What of a job is under way, and for how long so far.
  struct UnderWay {
    int batches = 0, host_steps = 0;
    Duration since{};        ///< of the last change
    Duration in_batches{};   ///< time with at least one batch
    Duration dispatching{};  ///< of the batches, before their start and behind their finish
    Duration on_host{};      ///< time with host steps alone

    void change(Duration now, int more_batches, int more_host_steps) {
      (batches > 0 ? in_batches : on_host) += batches > 0 || host_steps > 0 ? now - since : Duration{0};
      since = now;
      batches += more_batches;
      host_steps += more_host_steps;
    }
  };
  /// What is known of a job on its way.
  struct Progress {
    std::optional<Job> job;
    bool begun = false;
    std::optional<Error> error;
    std::vector<Seen> seen;         ///< [resources]
    Duration blocked{};             ///< what went before its regions was over its longest times by this
    std::optional<TaskId> blocker;  ///< whose took the most
    Duration most_blocked{};
    Duration host{};      ///< by how much its host steps were
    Duration dispatch{};  ///< time that went by between the dispatcher and its batches
    UnderWay under_way;
    std::uint64_t shown = 0;  ///< as `DeviceBackend::begin_job`
  };
  struct Resource {
    BlockingLog log;                       // since it was idle last
    std::uint64_t idled = 0;               // so often
    Duration noted{};                      // excess of the region under way that is in the log of all
    PreparedBatch* batch = nullptr;        // under way
    std::optional<CallbackWorker> worker;  // where it has host steps
    std::optional<Error> failed;           // the host step, by what it returned
    std::optional<Error> thrown;           // or threw
  };

  /// The batches of a task for one choice of memory.
  Expected<void> prepare_choice(TaskId task, std::size_t choice);
  void number_chunks(TaskId task);
  /// The program's batch of a region.
  [[nodiscard]] std::size_t chunk_of(const RegionRun& run) const;
  [[nodiscard]] Progress& progress_of(const ReadyJob& job) {
    return progress_[job.task.index()][releases().buffer_set_of(job)];
  }
  [[nodiscard]] const OperationPart& part_of(const RegionRun& run) const {
    return plan_.operations.operations[run.operation].parts[run.part];
  }
  [[nodiscard]] Seen& seen_by(const RegionRun& run);
  void add_excess(const RegionRun& run, Duration excess);
  void note_blocking(const RegionRun& run);
  void note_running();
  void begin(const RegionRun& run);
  void do_host_step(std::size_t resource);
  /// Tells the scheduler of regions that are over. @return whether there were any
  bool take_ended();
  void end_batch(std::size_t resource);
  void end_region(std::size_t resource, std::optional<Error> error, Duration in_batch);
  void finish(const ReadyJob& ready);
  /// Requests of the threads for host steps that the host refused.
  void add_notes_of_workers();
  /// Waits for whatever comes next; whether something may.
  bool idle(Duration until);

  const OverlapPlan& plan_;
  RegionBindings bindings_;
  std::optional<OperationScheduler> scheduler_;
  std::vector<std::vector<std::size_t>> first_chunk_;  // [operations][parts] of the task's chunks
  std::vector<std::vector<Progress>> progress_;        // [tasks][places]
  std::vector<Resource> resources_;
  BlockingLog all_;  // of all resources, since the run was idle
};

// ---- preparing

Expected<void> OverlappedRun::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs) {
  first_chunk_.resize(plan_.operations.operations.size());
  auto states = make_memory(executor_, planned_, programs, jobs);
  if (!states) return tl::unexpected(std::move(states.error()));
  tasks_ = *std::move(states);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    TaskState& state = tasks_[i];
    number_chunks(TaskId{i});
    state.places = bindings_.places(TaskId{i}, *state.task);
    for (std::size_t choice = 0; choice < state.chunks.size(); ++choice)
      if (auto ok = prepare_choice(TaskId{i}, choice); !ok) return ok;
    progress_.emplace_back(state.releases.size());
    for (Progress& progress : progress_.back()) progress.seen.resize(resources_.size());
  }
  return make_ready();
}

Expected<void> OverlappedRun::prepare_choice(TaskId task, std::size_t choice) {
  TaskState& state = tasks_[task.index()];
  auto regions = bindings_.bind(task, state, choice);
  if (!regions) return tl::unexpected(std::move(regions.error()));
  for (BoundPlan& region : *regions) {
    auto prepared = owned_.prepare(region.plan, std::move(region.bindings), std::move(region.name), true);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    state.chunks[choice].push_back(*std::move(prepared));
  }
  return {};
}

/// The chunks of a task are the regions of its operations, one operation after the other.
void OverlappedRun::number_chunks(TaskId task) {
  std::size_t next = 0;
  const auto& operations = plan_.operations.operations;
  for (std::size_t o = 0; o < operations.size(); ++o) {
    if (operations[o].task != task) continue;
    for (const auto& regions : plan_.plans[o]) {
      first_chunk_[o].push_back(next);
      next += regions.size();
    }
  }
}

void OverlappedRun::release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) {
  scheduler_.emplace(planned_.tasks.policy, plan_.operations, plan_.deadlines, scheduled(jobs, options.earlier),
                     options.seed);
  release_by(options);
}

void OverlappedRun::follow(const Scenario& scenario) {
  scheduler_.emplace(planned_.tasks.policy, plan_.operations, plan_.deadlines, scheduled(scenario), 0);
}

void OverlappedRun::make_room(std::span<const std::uint64_t> jobs) {
  TaskRun::make_room(jobs);
  ThreadRole role = executor_.role();
  role.spins = false;
  if (role.priority > 1) --role.priority;  // the dispatcher goes before it
  all_ = BlockingLog(tasks_.size());
  for (Resource& resource : resources_) resource.log = BlockingLog(tasks_.size());
  for (const Operation& operation : plan_.operations.operations) {
    auto& worker = resources_[operation.resource].worker;
    const auto is_host = [](const OperationPart& part) { return part.kind == OperationPart::Kind::Host; };
    if (worker || !std::ranges::any_of(operation.parts, is_host)) continue;
    worker.emplace(
        executor_.clock(), 1, [this](std::size_t resource) { do_host_step(resource); }, role, waker_);
  }
}

// ---- the loop

void OverlappedRun::run_jobs() {
  executor_.backend().begin_overlapping(waker_);
  lead_jobs();
  executor_.backend().end_overlapping();
  add_notes_of_workers();
}

void OverlappedRun::lead_jobs() {
  for (;;) {
    if (was_interrupted()) scheduler_->drain();
    if (!record_.fatal && !record_.interrupted) answer_request();
    take_news();
    while (take_ended()) {  // time may pass meanwhile, and end others
    }
    decided_at_ = executor_.clock().now();
    const OverlapAction action = scheduler_->step(decided_at_);
    switch (action.kind) {
      case OverlapAction::Kind::Release: release(action.due.job, action.due.ready); break;
      case OverlapAction::Kind::Drop:
        note_running();
        drop(action.due.job, action.due.ready, *action.due.dropped);
        break;
      case OverlapAction::Kind::Begin: begin(action.region); break;
      case OverlapAction::Kind::Finish: finish(action.job); break;
      case OverlapAction::Kind::Idle:
        if (!idle(action.until)) return;
        break;
    }
  }
}

void OverlappedRun::add_notes_of_workers() {
  for (const Resource& resource : resources_)
    if (resource.worker) add_notes(record_.notes, resource.worker->notes());
}

void OverlappedRun::input_ready(const ReadyJob& job) {
  Progress& progress = progress_of(job);
  std::vector<Seen> seen = std::move(progress.seen);  // its memory stays
  std::ranges::fill(seen, Seen{UINT64_MAX, {}, {}});
  progress = Progress{job_of(job), false, {}, std::move(seen), {}, {}, {}, {}, {}, {}, 0};
  scheduler_->input_ready(job, executor_.clock().now());
}

OverlappedRun::Seen& OverlappedRun::seen_by(const RegionRun& run) {
  Seen& seen = progress_of(run.job).seen[run.resource];
  const std::uint64_t idled = resources_[run.resource].idled;
  if (seen.of != idled) seen = {idled, {}, {}};
  return seen;
}

/// Time that an operation takes from those behind it on its resource.
void OverlappedRun::add_excess(const RegionRun& run, Duration excess) {
  resources_[run.resource].log.add(run.job.task, excess);
  seen_by(run).own += std::max(excess, Duration{0});
}

/// What regions under way have taken too long by now.
void OverlappedRun::note_running() {
  const Duration now = executor_.clock().now();
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    const RegionRun* const run = scheduler_->running(r);
    if (run == nullptr) continue;
    const Duration excess = now - run->begin - part_of(*run).regions[run->region];
    if (excess <= resources_[r].noted) continue;
    all_.add(run->job.task, excess - std::exchange(resources_[r].noted, excess));
  }
}

/// What the log of its resource has of others counts once for a job. An operation that comes late, since the one before
/// it was, comes nearer to the next one of its task than the analysis knows.
void OverlappedRun::note_blocking(const RegionRun& run) {
  Progress& progress = progress_of(run.job);
  const BlockingLog& log = resources_[run.resource].log;
  Seen& seen = seen_by(run);
  const Duration blocked = log.total() - seen.own - seen.counted;
  if (blocked > progress.most_blocked) {
    progress.most_blocked = blocked;
    progress.blocker = log.worst_beside(run.job.task, seen.own);
  }
  progress.blocked += std::max(blocked, Duration{0});
  seen.counted += std::max(blocked, Duration{0});
  add_excess(run, std::min(run.released_late, plan_.operations.operations[run.operation].worst()));
}

std::size_t OverlappedRun::chunk_of(const RegionRun& run) const {
  return first_chunk_[run.operation][run.part] + run.region;
}

void OverlappedRun::begin(const RegionRun& run) {
  Resource& resource = resources_[run.resource];
  Progress& progress = progress_of(run.job);
  TaskState& state = tasks_[run.job.task.index()];
  if (!std::exchange(progress.begun, true)) {
    begin_reading(run.job);
    progress.job->choice = state.buffers_of(run.job.index).choice;
    ledger_.review_those_of(state.chunks[*progress.job->choice]);  // they may have been of a job before
    progress.shown = executor_.backend().begin_job({state.task->name, run.job.index});
  }
  if (run.after_idle) resource.log.clear(), ++resource.idled;
  note_blocking(run);
  const bool on_host = part_of(run).kind == OperationPart::Kind::Host;
  progress.under_way.change(run.begin, on_host ? 0 : 1, on_host ? 1 : 0);
  if (on_host) return resource.worker->post(run.resource);
  PreparedBatch& batch = state.chunks[*progress.job->choice][chunk_of(run)];
  resource.batch = &batch;
  if (auto issued = executor_.issue(batch, {state.task->name, run.job.index}); !issued) {
    resource.batch = nullptr;
    end_region(run.resource, std::move(issued.error()), {});
  }
}

/// On a virtual clock work takes no time, so its declared time passes as well. In the worker's thread.
void OverlappedRun::do_host_step(std::size_t place) {
  Resource& resource = resources_[place];
  const RegionRun& run = *scheduler_->running(place);
  const std::size_t step = part_of(run).step;
  Job& job = *progress_of(run.job).job;
  Clock& clock = executor_.clock();
  const Duration start = clock.now();
  resource.failed.reset();
  resource.thrown = caught("the job", run.job.task, [&] {
    auto done = tasks_[run.job.task.index()].program->on_host_step(job, step);
    if (!done) resource.failed = std::move(done.error());
  });
  if (!clock.runs_by_itself()) clock.wait_until(start + std::get<HostStep>(job.task().steps[step]).time);
}

bool OverlappedRun::take_ended() {
  bool any = false;
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    Resource& resource = resources_[r];
    if (resource.batch != nullptr && executor_.query(*resource.batch)) end_batch(r), any = true;
    if (!resource.worker || resource.worker->is_idle()) continue;
    if (!resource.worker->take_done(executor_.clock().now())) continue;
    any = true;
    if (resource.thrown) end_by(*resource.thrown);
    end_region(r, resource.thrown ? std::exchange(resource.thrown, {}) : std::exchange(resource.failed, {}), {});
  }
  return any;
}

void OverlappedRun::end_batch(std::size_t place) {
  PreparedBatch& batch = *std::exchange(resources_[place].batch, nullptr);
  auto result = executor_.wait_for(batch);
  if (result) return end_region(place, {}, result->finish - result->start);
  end_region(place, std::move(result.error()), {});
}

/// @param in_batch  that its batch took; 0: it had none, or failed
void OverlappedRun::end_region(std::size_t place, std::optional<Error> error, Duration in_batch) {
  const Duration now = executor_.clock().now();
  const RegionRun run = *scheduler_->running(place);
  Progress& progress = progress_of(run.job);
  const OperationPart& part = part_of(run);
  const Duration took = now - run.begin;
  const Duration excess = took - part.regions[run.region];
  const bool on_host = part.kind == OperationPart::Kind::Host;
  progress.under_way.change(now, on_host ? 0 : -1, on_host ? -1 : 0);
  if (in_batch > Duration{0}) progress.under_way.dispatching += took - in_batch;
  add_excess(run, excess);
  all_.add(run.job.task, excess - std::exchange(resources_[place].noted, Duration{0}));
  if (on_host) progress.host += std::max(excess, Duration{0});
  if (in_batch > Duration{0})
    progress.dispatch += std::max(took - in_batch - plan_.operations.dispatching, Duration{0});
  if (!error) {
    scheduler_->region_ended(place, now);
  } else {
    if (!progress.error) progress.error = error;
    scheduler_->region_failed(place, now);
    if (error->code == ErrorCode::Machine) end_by(*error);
  }
  free_since_ = executor_.clock().now();
}

void OverlappedRun::finish(const ReadyJob& ready) {
  const OverlappedJob job = scheduler_->job(ready);
  Progress& progress = progress_of(ready);
  TaskState& state = tasks_[ready.task.index()];
  EndedJob ended = ended_job(ready, job.start.value_or(*job.finish), *job.finish,
                             progress.error || !job.failed ? std::move(progress.error) : record_.fatal, job.aborted);
  const Release& release = state.release_of(ready.index);
  const UnderWay& went = progress.under_way;
  const Duration dispatching = std::min(went.dispatching, went.in_batches);
  ended.record.load = load_of(release, *job.finish - job.start.value_or(*job.finish), went.in_batches - dispatching,
                              went.on_host + dispatching + job.dispatch_late);
  ended.excesses.add(state.task->release.is_external() ? BoundCause::Trigger : BoundCause::Release, release.late);
  ended.excesses.add(BoundCause::Blocking, progress.blocked);
  ended.excesses.add(BoundCause::Host, progress.host);
  ended.excesses.add(BoundCause::Dispatch, progress.dispatch + job.dispatch_late);
  ended.blocker = progress.blocker;
  executor_.backend().end_job(progress.shown);
  const Job of_user = *progress.job;
  scheduler_->closed(ready, executor_.clock().now());
  end_job(std::move(ended), ready, of_user, *job.finish);
}

bool OverlappedRun::idle(Duration until) {
  const NextNews news = next_news();
  Duration instant = std::min({until, news.at, executor_.backend().next_event()});
  bool works = false;
  for (Resource& resource : resources_) {
    works = works || resource.batch != nullptr || (resource.worker && !resource.worker->is_idle());
    if (resource.worker) instant = std::min(instant, resource.worker->next_done());
  }
  if (!works && until == kNever && (record_.fatal || record_.interrupted)) return false;
  if (instant == kNever && !((news.may_come || works) && executor_.clock().runs_by_itself())) return false;
  if (!works) ledger_.review();
  if (ledger_.review_next()) return true;  // one at a time: an end that is seen late makes others late
  wait_for(instant);
  if (!works) all_.clear();
  return true;
}

}  // namespace

Expected<std::unique_ptr<PreparedRun>> prepare_overlapped_run(Executor& executor, const AdmittedTaskSet& admitted,
                                                              std::span<TaskProgram* const> programs,
                                                              std::span<const std::uint64_t> jobs,
                                                              const RunOptions& options) {
  return prepared_by<OverlappedRun>(
      executor, admitted.planned(), programs, options.interrupted,
      [&](OverlappedRun& run) { return run.prepare(programs, jobs); },
      [&](OverlappedRun& run) { run.make_ready(jobs, jobs, admitted.worst_responses(), options); });
}

Expected<std::unique_ptr<PreparedRun>> prepare_overlapped_run(Executor& executor, const PlannedTaskSet& planned,
                                                              std::span<TaskProgram* const> programs,
                                                              std::span<const std::uint64_t> jobs,
                                                              const Scenario& scenario, const RunOptions& options) {
  return prepared_by<OverlappedRun>(
      executor, planned, programs, options.interrupted, [&](OverlappedRun& run) { return run.prepare(programs, jobs); },
      [&](OverlappedRun& run) {
        run.follow(scenario);
        run.report_to(options);
        run.make_room(jobs);
      });
}

Expected<std::unique_ptr<PreparedRun>> prepare_changing_overlapped_run(Executor& executor, ChangingTaskSet& set,
                                                                       std::span<TaskProgram* const> programs,
                                                                       std::span<const std::uint64_t> jobs,
                                                                       ChangeRequests& requests,
                                                                       const RunOptions& options) {
  return prepared_by<OverlappedRun>(
      executor, set.planned(), programs, options.interrupted,
      [&](OverlappedRun& run) { return run.prepare(programs, jobs); },
      [&](OverlappedRun& run) { run.make_ready_to_change(set, requests, jobs, options); });
}

}  // namespace tutti::internal
