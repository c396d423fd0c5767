#include "runtime/dispatch/led_task_run.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/core/led_run.hpp"
#include "runtime/dispatch/blocking_log.hpp"
#include "runtime/dispatch/led_ways.hpp"
#include "runtime/dispatch/region_bindings.hpp"
#include "runtime/dispatch/task_run.hpp"
#include "runtime/dispatch/task_state.hpp"

namespace tutti::internal {
namespace {

/// How long before its start a run is given to the machine, so that a pause of the host makes no first job late.
constexpr Duration kLeadTime = std::chrono::milliseconds{20};

/// @param jobs  number of its jobs @param sets  buffer sets of its own
LedTask led_task(const PlannedTaskSet& planned, TaskId id, std::uint64_t jobs, std::size_t sets) {
  const TaskTiming& timing = planned.timings[id.index()];
  const Task& of = planned.tasks.tasks[id.index()];
  const Policy policy = planned.tasks.policy;
  LedTask task;
  task.first_arrival = of.offset.count();
  task.period = timing.period.count();
  task.deadline = timing.deadline.count();
  task.budget = of.overrun.budget.value_or(planned.overlap ? kNever : timing.wcet).count();
  task.shortest = timing.arrivals == Arrivals::Periodic ? timing.best_case.count() : 0;
  task.rank = policy == Policy::Rm ? task.period : policy == Policy::Dm ? task.deadline : timing.priority;
  task.jobs = jobs;
  task.sets = static_cast<std::uint32_t>(sets);
  if (!planned.overlap) task.batches = static_cast<std::uint32_t>(planned.bounds[id.index()].plans.size());
  task.suspend_after = static_cast<std::uint32_t>(of.overrun.suspend_after);
  task.skips = of.overrun.policy == OverrunPolicy::SkipNext;
  return task;
}

/// The jobs of a set that overlap: how, with the latest finish of each region.
void overlap(LedSet& set, const PlannedTaskSet& planned) {
  const OverlapPlan& plan = *planned.overlap;
  set.ways = led_ways(plan.operations, plan.deadlines, planned.tasks.policy, set.tasks);
  for (const Operation& operation : plan.operations.operations)
    for (const Duration longest : operation.regions()) set.batches.push_back({longest.count(), kNoInstant});
}

/// @param each  called with the plan of each region of a task's operations
template <class Each>
void each_region(const OverlapPlan& plan, TaskId task, const Each& each) {
  for (std::size_t o = 0; o < plan.plans.size(); ++o)
    if (plan.operations.operations[o].task == task)
      for (const auto& regions : plan.plans[o]) std::ranges::for_each(regions, each);
}

/// Of a job that was on its way when another one's batch was given up.
Error machine_is_gone() {
  return {ErrorCode::Machine, "the run has ended, since a batch of another job has not within its limit", {}};
}

class LedTaskRun final : public TaskRun {
 public:
  using TaskRun::TaskRun;

  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs,
                         const RunOptions& options);
  void make_room(std::span<const std::uint64_t> jobs) override;

 protected:
  JobReleases& releases() override { return *releases_; }
  void release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) override;
  void input_ready(const ReadyJob& job) override;
  void stop() override { led_->stop(); }
  std::optional<ReadyJob> take_unstarted() override { return std::nullopt; }
  Duration lead_time() const override { return kLeadTime; }
  void expect_start(Duration epoch) override {
    led_->begin(epoch);
    record_.start_on_gpu = led_->start_on_gpu();
  }
  void buffers_freed(const ReadyJob& ready) override;
  void run_jobs() override;
  const BlockingLog& blocking() const override { return blocking_; }

 private:
  /// The input that the host puts into the buffers of a task's runs.
  struct Inputs {
    std::uint64_t next = 0;              ///< run whose input comes next, or is coming
    std::uint64_t ended = 0;             ///< runs whose jobs have ended
    std::vector<std::uint32_t> readers;  ///< [sets] jobs whose callbacks have not ended
  };

  [[nodiscard]] LedSet make_set(std::span<const std::uint64_t> jobs, const RunOptions& options);
  void add_batches(LedSet& set, std::size_t task);
  Expected<void> prepare_regions(TaskId task);
  [[nodiscard]] bool overlaps() const { return planned_.overlap.has_value(); }
  [[nodiscard]] ReadyJob ready_job(std::uint32_t task, std::uint64_t index) const;
  [[nodiscard]] std::optional<ReadyJob> wants_input(std::uint32_t task) const;
  void put_next_input();
  void put_first_inputs();
  void take_records();
  void take(const LedRecord& record);
  void drop_unrecorded(std::uint32_t task, std::uint64_t until);
  void drop_at_release(const ReadyJob& job, DropReason reason);
  void drop_the_rest();
  [[nodiscard]] bool is_suspended(TaskId task) const;
  void take_buffers_of(const LedRecord& record);
  void end(const LedRecord& record);

  std::unique_ptr<LedRun> led_;
  std::optional<JobReleases> releases_;  // releases none: the buffers of jobs pass through it
  std::vector<LedTask> led_tasks_;
  std::vector<std::uint64_t> next_;                // [tasks] index of the first job that nothing is known of
  std::vector<std::vector<std::uint64_t>> ahead_;  // [tasks] indices from there on of jobs that are known to be dropped
  std::vector<Inputs> inputs_;                     // [tasks]
  std::uint32_t next_input_ = 0;                   // task that is asked first whether it wants some
  BlockingLog blocking_;
};

// ---- preparing

Expected<void> LedTaskRun::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs,
                                   const RunOptions& options) {
  auto states = make_memory(executor_, planned_, programs, jobs);
  if (!states) return tl::unexpected(std::move(states.error()));
  tasks_ = *std::move(states);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    tasks_[i].keeps_bound = true;
    auto ok = overlaps() ? prepare_regions(TaskId{i}) : prepare_task(executor_, owned_, planned_, TaskId{i}, tasks_[i]);
    if (!ok) return ok;
  }
  blocking_ = BlockingLog(tasks_.size());
  return make_ready().and_then([&] {
    LedSet set = make_set(jobs, options);
    led_tasks_ = set.tasks;
    return executor_.backend().lead(std::move(set)).map([&](std::unique_ptr<LedRun>&& led) { led_ = std::move(led); });
  });
}

/// What is prepared here runs once at most, before the run: by itself, so it needs no stream of its own.
Expected<void> LedTaskRun::prepare_regions(TaskId task) {
  TaskState& state = tasks_[task.index()];
  RegionBindings bindings(executor_, *planned_.overlap);
  state.places = bindings.places(task, *state.task);
  for (std::size_t choice = 0; choice < state.chunks.size(); ++choice) {
    auto regions = bindings.bind(task, state, choice);
    if (!regions) return tl::unexpected(std::move(regions.error()));
    for (const BoundPlan& region : *regions) {
      auto prepared = owned_.prepare(region.plan, region.bindings, region.name);
      if (!prepared) return tl::unexpected(std::move(prepared.error()));
      state.chunks[choice].push_back(*std::move(prepared));
    }
    state.bound.push_back(*std::move(regions));
  }
  return {};
}

LedSet LedTaskRun::make_set(std::span<const std::uint64_t> jobs, const RunOptions& options) {
  LedSet set;
  set.by_deadline = planned_.tasks.policy == Policy::Edf;
  set.host_away = options.host_away;
  std::uint32_t sets = 0;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    LedTask& task = set.tasks.emplace_back(led_task(planned_, TaskId{i}, jobs[i], tasks_[i].bound.size()));
    const TaskProgram& program = *tasks_[i].program;
    task.is_read = program.hears_of_end() || (options.on_job_end != nullptr && program.is_reached());
    task.overwrites = task.is_read && tasks_[i].task->late_consumer == LateConsumer::Overwrite;
    task.is_filled = tasks_[i].program->fills_input();
    task.reuses = task.is_filled && tasks_[i].task->late_input == LateInput::Reuse;
    task.first_set = std::exchange(sets, sets + task.sets);
    task.first_batch = static_cast<std::uint32_t>(set.batches.size());
    add_batches(set, i);
  }
  if (overlaps()) overlap(set, planned_);
  return set;
}

/// The batches of a task's jobs, bound to each of its buffer sets. The conductor measures a batch from before its gates
/// until its end is seen, so with its own time.
void LedTaskRun::add_batches(LedSet& set, std::size_t task) {
  auto& bound = tasks_[task].bound;
  if (!overlaps())
    for (const BoundPlan& batch : bound.front()) {
      const Duration own = batch.plan.machine().setup().dispatch.guaranteed;
      set.batches.push_back({add_saturating(batch.plan.latest->alone(), own).count(), kNoInstant});
    }
  set.plans.push_back(std::exchange(bound, {}));
}

void LedTaskRun::release_jobs(std::span<const std::uint64_t> jobs, const RunOptions& options) {
  const std::vector<std::uint64_t> none(jobs.size());
  releases_.emplace(scheduled(none), options.seed);
  release_by(options);
}

/// The last step before the run: queues are full afterwards, and buffers have input.
void LedTaskRun::make_room(std::span<const std::uint64_t> jobs) {
  TaskRun::make_room(jobs);
  next_.assign(tasks_.size(), 0);
  ahead_.assign(tasks_.size(), {});
  record_.suspensions.reserve(tasks_.size());
  inputs_.resize(tasks_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) inputs_[i].readers.assign(led_tasks_[i].sets, 0);
  record_.host_away = led_->host_away();
  led_->arm();
  put_first_inputs();
}

// ---- input

/// The job that is expected to have the input that a task's program can be called for; nothing: it has no free buffers,
/// or no job comes. A later job has that input where one before it is dropped.
std::optional<ReadyJob> LedTaskRun::wants_input(std::uint32_t task) const {
  const LedTask& led = led_tasks_[task];
  const Inputs& inputs = inputs_[task];
  const bool is_free = inputs.next < inputs.ended + led.sets && inputs.readers[inputs.next % led.sets] == 0;
  const std::uint64_t index = next_[task] + ahead_[task].size() + (inputs.next - inputs.ended);
  return led.is_filled && is_free && index < led.jobs ? std::optional(ready_job(task, index)) : std::nullopt;
}

/// One at a time, once no other callback waits: so it begins at once. Tasks take turns.
void LedTaskRun::put_next_input() {
  if (record_.fatal || record_.interrupted || next_news().may_come) return;
  const auto tasks = static_cast<std::uint32_t>(led_tasks_.size());
  for (std::uint32_t tried = 0; tried < tasks; ++tried) {
    const std::uint32_t task = (next_input_ + tried) % tasks;
    const auto ready = wants_input(task);
    const std::uint64_t run = inputs_[task].next;
    if (!ready || !led_->begin_input(task, run)) continue;
    Job job = job_of(*ready);
    job.buffer_set = job.own_choice = run % led_tasks_[task].sets;
    job.choice = job.buffer_set;
    next_input_ = task + 1;
    return call_for_input(*ready, job);
  }
}

/// Before the run, whose start is not known yet: arrivals count from there.
void LedTaskRun::put_first_inputs() {
  for (put_next_input(); next_news().may_come && !was_interrupted(); put_next_input()) {
    wait_for(next_news().at);
    take_news();
  }
  if (record_.interrupted) led_->stop();
}

/// What a program has put there that threw is no input.
void LedTaskRun::input_ready(const ReadyJob& job) {
  const auto task = static_cast<std::uint32_t>(job.task.index());
  if (!record_.fatal) led_->end_input(task, inputs_[task].next++);
}

// ---- the run

void LedTaskRun::run_jobs() {
  for (bool over = false;;) {
    take_news();
    decided_at_ = free_since_ = executor_.clock().now();
    take_records();
    if (const auto fault = led_->fault()) {
      end_by(*fault);
      return;
    }
    if (over) return drop_the_rest();
    put_next_input();
    if (!record_.interrupted && was_interrupted()) led_->stop();
    if (led_->arm_some()) continue;  // ends are seen meanwhile
    over = led_->is_over();
    if (over) continue;  // its last records
    ledger_.review();
    wait_for(std::min(led_->next_look(), next_news().at));
  }
}

/// All jobs were released, unless the run or their task was stopped: then those up to the last one with a record. The
/// records of the last ones may have found no room.
void LedTaskRun::drop_the_rest() {
  for (std::uint32_t task = 0; task < led_tasks_.size(); ++task) {
    const bool is_stopped = record_.interrupted || record_.fatal || is_suspended(TaskId{task});
    const std::uint64_t last = ahead_[task].empty() ? next_[task] : ahead_[task].back();
    drop_unrecorded(task, is_stopped ? last : led_tasks_[task].jobs);
  }
}

bool LedTaskRun::is_suspended(TaskId task) const {
  return std::ranges::find(record_.suspensions, task, &Suspension::task) != record_.suspensions.end();
}

void LedTaskRun::take_records() {
  while (const auto record = led_->take()) take(*record);
}

void LedTaskRun::take(const LedRecord& record) {
  const ReadyJob job = ready_job(record.task, record.index);
  if (record.kind == LedRecord::Kind::DropSkipped) return drop_at_release(job, DropReason::Skipped);
  if (record.kind == LedRecord::Kind::DropNoSet) return drop_at_release(job, DropReason::NoBuffers);
  const std::optional<DropReason> host =
      record.kind == LedRecord::Kind::DropNotArmed  ? std::optional(DropReason::NotArmed)
      : record.kind == LedRecord::Kind::DropNoInput ? std::optional(DropReason::NoInput)
                                                    : std::nullopt;
  if (host && overlaps()) return drop_at_release(job, *host);
  drop_unrecorded(record.task, record.index);
  next_[record.task] = record.index + 1;
  if (host) return drop(job, job.arrival, *host);
  end(record);
}

/// Jobs before it may still wait for the machine, or be on their way.
void LedTaskRun::drop_at_release(const ReadyJob& job, DropReason reason) {
  ahead_[job.task.index()].push_back(job.index);
  drop(job, job.arrival, reason);
}

/// The jobs of a task up to one whose turn it was, or all of them at the end: those without a record were dropped, and
/// their records found no room. None ran, since what is armed has room.
void LedTaskRun::drop_unrecorded(std::uint32_t task, std::uint64_t until) {
  std::vector<std::uint64_t>& ahead = ahead_[task];
  const auto beyond = std::ranges::lower_bound(ahead, until);
  auto known = ahead.begin();
  for (std::uint64_t index = next_[task]; index < until; ++index) {
    if (known != beyond && *known == index) {
      ++known;
      continue;
    }
    const ReadyJob job = ready_job(task, index);
    drop(job, job.arrival, DropReason::NotArmed);
  }
  ahead.erase(ahead.begin(), beyond);
}

ReadyJob LedTaskRun::ready_job(std::uint32_t task, std::uint64_t index) const {
  const LedTask& led = led_tasks_[task];
  ReadyJob job{TaskId{task},
               index,
               epoch_ + Duration{led.first_arrival + static_cast<Ns>(index) * led.period},
               {},
               Duration{led.period},
               Duration{led.deadline},
               planned_.timings[task].priority};
  job.deadline = job.arrival + Duration{led.deadline};
  return job;
}

void LedTaskRun::take_buffers_of(const LedRecord& record) {
  JobBuffers& buffers = tasks_[record.task].buffers_of(record.index);
  buffers.index = record.index;
  buffers.own = record.run % led_tasks_[record.task].sets;
  buffers.choice = buffers.own;
}

/// All instants are the machine's. Where jobs overwrite, callbacks may still be about the job that had the place of
/// this one: then its results are passed over. It is idle where a job arrives after the one before it has ended.
void LedTaskRun::end(const LedRecord& record) {
  const ReadyJob ready = ready_job(record.task, record.index);
  const Duration start = epoch_ + Duration{record.start}, finish = epoch_ + Duration{record.finish};
  if (record.ready == record.arrival) blocking_.clear();
  TaskState& state = tasks_[record.task];
  state.release_of(ready.index) = {
      ready.arrival, Duration{record.start - record.ready}, ready.arrival, ready.arrival, {}};
  const LedTask& led = led_tasks_[record.task];
  Inputs& inputs = inputs_[record.task];
  inputs.ended = record.run + 1;
  inputs.next = std::max(inputs.next, inputs.ended);  // it was reused
  const bool passed_over = led.overwrites && state.hold_of(ready.index).until == kNever;
  if (!passed_over) take_buffers_of(record);
  std::optional<Error> error;
  if (record.kind != LedRecord::Kind::Ended) error = led_->fault().value_or(machine_is_gone());
  EndedJob ended = ended_job(ready, start, finish, std::move(error), false);
  ended.record.seen = Duration{led_->now()};
  ended.record.reused_input = record.reused;
  ended.chunks = nullptr;  // what the conductor has measured of its batches is in the record
  if (record.excess > 0) ended.broken = BrokenBound{BoundCause::Transfer, Duration{record.excess}, {}};
  ended.excesses.add(BoundCause::Blocking, blocking_.total());
  const Duration between{record.finish - record.start - record.in_batches};  // where jobs overlap: others' time, too
  ended.excesses.add(BoundCause::Dispatch, Duration{record.late});
  if (!overlaps()) ended.excesses.add(BoundCause::Dispatch, between);
  ended.blocker = blocking_.worst();
  ended.record.load = load_of(state.release_of(ready.index), finish - start, Duration{record.in_batches},
                              overlaps() ? Duration{record.late} : between);
  if (record.suspends) record_.suspensions.push_back({ready.task, Duration{record.finish}});
  blocking_.add(ready.task, overlaps() ? Duration{record.excess} : finish - start - planned_.timings[record.task].wcet);
  if (passed_over) {
    ended.record.overwritten = true;
    ended.place = ledger_.claim();
    return report_unread(std::move(ended), ready);
  }
  Job job = job_of(ready);
  if (led.overwrites) {
    job.taken = led_->runs_taken(record.task);
    job.whole_until = record.run + led.sets;
  }
  ++inputs.readers[record.run % led.sets];
  end_job(std::move(ended), ready, job, finish);
}

void LedTaskRun::buffers_freed(const ReadyJob& ready) {
  TaskRun::buffers_freed(ready);
  const std::size_t task = ready.task.index();
  --inputs_[task].readers[tasks_[task].buffers_of(ready.index).own];
  if (led_tasks_[task].is_read) led_->give_back(static_cast<std::uint32_t>(task));
}

}  // namespace

Expected<std::optional<Duration>> host_may_be_away(const PlannedTaskSet& planned) {
  if (!planned.tasks.led_by_gpu) return std::optional<Duration>();
  LedSet set;
  set.host_away = planned.tasks.host_away;
  for (std::size_t i = 0; i < planned.bounds.size(); ++i) {
    const auto sets = static_cast<std::size_t>(buffer_sets(planned.tasks.tasks[i], planned.timings[i]));
    set.tasks.push_back(led_task(planned, TaskId{i}, UINT64_MAX, sets));
    std::vector<BoundPlan>& batches = set.plans.emplace_back().emplace_back();
    const auto add = [&](const ExecutionPlan& plan) {
      batches.push_back({plan, batch_name(planned.tasks.tasks[i], batches.size()), {}});
    };
    if (planned.overlap)
      each_region(*planned.overlap, TaskId{i}, add);
    else
      for (const auto& chunks : planned.bounds[i].plans) add(chunks.front());
  }
  if (planned.overlap) overlap(set, planned);
  return runs_ahead(set, most_armed(set)).map([&](const std::vector<std::uint64_t>& ahead) {
    return std::optional(host_away(set, ahead));
  });
}

Expected<std::unique_ptr<PreparedRun>> prepare_led_run(Executor& executor, const AdmittedTaskSet& admitted,
                                                       std::span<TaskProgram* const> programs,
                                                       std::span<const std::uint64_t> jobs, const RunOptions& options) {
  for (TaskProgram* const program : programs) {
    if (const NamedMemory* const memory = program->memory(); memory != nullptr && !memory->rings().empty())
      return invalid_input(
          "a job takes the newest slot of a ring as it is released, and the host chooses it; with --conductor host the "
          "host leads the run, or give the slots as 'memory', which jobs take in turn");
  }
  return prepared_by<LedTaskRun>(
      executor, admitted.planned(), programs, options.interrupted,
      [&](LedTaskRun& run) { return run.prepare(programs, jobs, options); },
      [&](LedTaskRun& run) { run.make_ready(jobs, jobs, admitted.worst_responses(), options); });
}

}  // namespace tutti::internal
