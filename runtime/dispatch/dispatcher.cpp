#include "runtime/dispatch/dispatcher.hpp"

#include <algorithm>
#include <limits>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <time.h>

#include "model/base/expects.hpp"
#include "model/base/random.hpp"
#include "model/base/wide.hpp"
#include "runtime/dispatch/task_state.hpp"
#include "runtime/dispatch/work_log.hpp"
#include "runtime/host/real_time.hpp"
#include "sched/tasks/ready_queue.hpp"

namespace tutti::internal {
namespace {

constexpr Duration kNever = Duration::max();
constexpr std::uint64_t kUntilItLeaves = std::numeric_limits<std::uint64_t>::max();
/// Longest sleep where time passes by itself: an interrupt waits no longer, however far away the next job is.
constexpr Duration kLongestSleep = std::chrono::milliseconds{50};

/// Number of a task's jobs that have arrived: the released ones, and one more that is not ready or waits for buffers.
std::uint64_t arrived_by(const TaskState& state, Duration now) {
  const bool one_more = state.next_ready != kNever && state.arrival_of(state.released) <= now;
  return state.released + (one_more ? 1 : 0);
}

/// Latest arrival among the jobs that have arrived since the task runs.
std::optional<Duration> last_arrival(const TaskState& state, Duration now) {
  const std::uint64_t arrived = arrived_by(state, now);
  return arrived == state.first_index ? std::nullopt : std::optional(state.arrival_of(arrived - 1));
}

/// Processor time of the calling thread.
Duration processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}

/// Jitter of one job, uniform in [0, jitter], from the seed alone.
Duration drawn_jitter(Duration jitter, std::uint64_t seed, std::size_t task, std::uint64_t index) {
  if (jitter <= Duration{0}) return {};
  const std::uint64_t x = Random(seed + 0x9e3779b97f4a7c15U * index + 0xd1b54a32d192ed03U * (task + 1)).next();
  const UnsignedWide range = static_cast<UnsignedWide>(jitter.count()) + 1;
  return Duration{static_cast<std::int64_t>((static_cast<UnsignedWide>(x) * range) >> 64)};
}

class DispatchedRun final : public PreparedRun {
 public:
  DispatchedRun(Executor& executor, const PlannedTaskSet& planned, std::uint64_t seed,
                const std::atomic<bool>* interrupted)
      : executor_(executor),
        owned_(executor),
        planned_(planned),
        seed_(seed),
        interrupted_(interrupted),
        ready_(planned.tasks.policy, 0) {}

  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs);
  /// Releases the jobs of a scenario in place of periodic jobs. @pre prepared for as many
  void follow(const Scenario& scenario);
  /// Reports the end of every job. @param on_job_end  may be empty
  void report_to(std::function<void(const JobRecord&)> on_job_end) { on_job_end_ = std::move(on_job_end); }
  /// Compares jobs and batches with their bounds.
  /// @param bounds  [tasks] of responses, where there are any; empty: batches alone have bounds
  void hold_to(std::span<const std::optional<Duration>> bounds);
  /// Lets tasks come and go as requested, until `end`. @pre prepared for all tasks of the set
  void change_on_request(ChangingTaskSet& set, ChangeRequests& requests, Duration end);
  RunRecord run() override;

 private:
  void run_jobs();
  /// A running job. More urgent jobs run between two of its batches, each to its end, before it goes on.
  struct Running final : JobObserver {
    Running(DispatchedRun& the_run, const ReadyJob& the_job) : run(the_run), job(the_job) {}
    Expected<void> run_more_urgent() override { return run.run_more_urgent(*this); }
    void arm_next() override {
      run.review();
      run.arm_next();
    }

    DispatchedRun& run;
    const ReadyJob& job;
    Duration start{};
    Duration waited{};        ///< until `start`, with no job before it
    Duration elsewhere{};     ///< time without the machine since `start`
    std::size_t regions = 0;  ///< done
    Duration had{};           ///< in a scenario: time that these have the machine
  };

  /// A finished job whose batches' measured times are not read yet. They are read while another job runs or the run is
  /// idle.
  struct Unreviewed {
    std::vector<PreparedBatch>* chunks;  // of its batches
    std::size_t record;                  // its position
    bool late;                           // over its bound
    Duration over;                       // excess over the bound
    Excesses excesses;
  };

  /// Chunks of all batches, of all buffer sets, of all tasks.
  auto all_chunks() { return tasks_ | std::views::transform(&TaskState::chunks) | std::views::join | std::views::join; }
  Expected<void> warm_up();
  /// Time from a job's arrival until it is ready.
  [[nodiscard]] Duration delay_of(const TaskState& state, std::uint64_t index) const;
  void schedule_next(std::size_t task);
  /// The task whose next job is ready first; null where no more come.
  [[nodiscard]] TaskState* next_to_release();
  /// Arms the first batch of the most urgent ready job, or else of the job that is ready next: arming takes longer than
  /// starting an armed batch.
  void arm_next();
  void arm_job(TaskState& state, std::uint64_t index);
  /// Waits until an instant, or for part of that time.
  void wait_for(Duration instant);
  /// Next instant at which the loop has work; nothing where the run is over.
  [[nodiscard]] std::optional<Duration> next_instant();
  /// Answers the next request that is due.
  void answer_request();
  /// Refuses the requests that the run left open.
  void refuse_requests();
  ChangeAnswer answer(const TaskChange& change, Duration now);
  /// @return the instant until which jobs were released.
  Duration release_due();
  /// Whether the next job needs the buffers of a job that has not ended and may wait for it: that job is not late yet,
  /// or belongs to a scenario, where jobs may be late. Waiting changes no order: jobs of one task are served in turn.
  [[nodiscard]] bool waits_for_buffers(const TaskState& state, Duration now) const;
  void release(std::size_t task);
  /// Does and logs the work of a program beside its job's steps.
  /// @return when it was done.
  template <class Work>
  Duration beside(const Work& work);
  /// Reports the last job that ended.
  void report_job_end();
  /// Excesses of a finished job, by cause.
  [[nodiscard]] Excesses excesses_of(const Running& running, const Job& job, const JobRecord& record) const;
  /// Completes the record of the last job: overruns, and whether it exceeded its bound, and why.
  void review();
  /// Attributes slow copies to other users of the devices, where there were any.
  void blame_others();
  Job job_of(const ReadyJob& ready, JobObserver* observer = nullptr);
  void run_job(const ReadyJob& ready);
  Expected<void> run_more_urgent(Running& running);
  void finish_part(Running& running);

  Executor& executor_;
  Executor::AdmittedRun owned_;
  const PlannedTaskSet& planned_;
  std::uint64_t seed_;
  const std::atomic<bool>* interrupted_;
  std::function<void(const JobRecord&)> on_job_end_;
  std::vector<TaskState> tasks_;
  ReadyQueue ready_;
  RunRecord record_;
  Duration epoch_{};  // the clock's reading at the start of the run
  ChangingTaskSet* changing_ = nullptr;
  ChangeRequests* requests_ = nullptr;
  Duration end_ = kNever;  // nothing arrives from then on

  bool promised_ = false;                        // jobs are held against their bounds
  std::vector<std::optional<Duration>> bounds_;  // [tasks] of responses; empty: none are known
  WorkLog beside_;                               // work of programs, beside what tasks declare
  Duration free_since_{};                        // the dispatcher is free since then
  // Since the run was idle last:
  Duration excess_{};         // time that jobs ran beyond their Wcet
  Duration beside_before_{};  // total of `beside_` at that instant
  bool foreign_ = false;      // others used the devices when the run was prepared
  std::optional<Unreviewed> unreviewed_;
};

Expected<void> DispatchedRun::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs) {
  const TaskSet& set = planned_.tasks;
  std::size_t alive = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    auto state = prepare_task(executor_, owned_, planned_, TaskId{i}, *programs[i], jobs[i]);
    if (!state) return tl::unexpected(std::move(state.error()));
    tasks_.push_back(*std::move(state));
    alive += tasks_.back().chunks.size();
    total += jobs[i];
  }
  ready_ = ReadyQueue(set.policy, alive);
  record_.jobs.resize(total);  // the pages are there
  record_.jobs.clear();
  foreign_ = !executor_.backend().foreign_load().empty();
  return executor_.backend().starts_cold() ? warm_up() : Expected<void>{};
}

void DispatchedRun::hold_to(std::span<const std::optional<Duration>> bounds) {
  promised_ = true;
  bounds_.assign(bounds.begin(), bounds.end());
}

/// Runs every batch once, on whatever its buffers hold. A kernel that fails on that says nothing about jobs.
Expected<void> DispatchedRun::warm_up() {
  for (PreparedBatch& chunk : all_chunks()) {
    auto result = executor_.issue(chunk).and_then([&] { return executor_.synchronize(chunk); });
    if (!result && result.error().code != ErrorCode::Kernel) return tl::unexpected(std::move(result.error()));
  }
  return {};
}

void DispatchedRun::change_on_request(ChangingTaskSet& set, ChangeRequests& requests, Duration end) {
  changing_ = &set;
  requests_ = &requests;
  end_ = end;
  for (std::size_t i = 0; i < tasks_.size(); ++i) tasks_[i].jobs = set.runs(TaskId{i}) ? kUntilItLeaves : 0;
}

void DispatchedRun::follow(const Scenario& scenario) {
  for (const ScenarioJob& job : scenario.jobs) tasks_[job.task.index()].script.push_back(job);
}

Duration DispatchedRun::delay_of(const TaskState& state, std::uint64_t index) const {
  if (!state.script.empty()) return state.script[index].ready - state.script[index].arrival;
  return drawn_jitter(state.timing.jitter, seed_, static_cast<std::size_t>(&state - tasks_.data()), index);
}

void DispatchedRun::schedule_next(std::size_t task) {
  TaskState& state = tasks_[task];
  state.next_ready = kNever;
  if (state.released == state.jobs) return;
  if (state.script.empty() && state.released > state.first_index &&
      state.arrival_of(state.released - 1) > kNever - state.timing.period)
    return;
  const Duration arrival = state.arrival_of(state.released);
  if (arrival >= end_) return;
  const Duration time_left = kNever - epoch_ - arrival;
  if (time_left < state.timing.deadline) return;  // the clock would overflow before it is due
  state.next_ready = epoch_ + arrival + std::min(delay_of(state, state.released), time_left);
}

void DispatchedRun::wait_for(Duration instant) {
  Clock& clock = executor_.clock();
  clock.wait_until(clock.runs_by_itself() ? std::min(instant, clock.now() + kLongestSleep) : instant);
}

std::optional<Duration> DispatchedRun::next_instant() {
  const TaskState* const next = next_to_release();
  Duration instant = next == nullptr ? kNever : next->next_ready;
  if (changing_ != nullptr && executor_.clock().now() - epoch_ < end_) {
    const auto on_the_clock = [&](Duration time) { return time > kNever - epoch_ ? kNever : epoch_ + time; };
    instant = std::min(instant, on_the_clock(end_));
    if (const auto request = requests_->next()) instant = std::min(instant, on_the_clock(*request));
  }
  return instant == kNever ? std::nullopt : std::optional(instant);
}

void DispatchedRun::answer_request() {
  const Duration now = executor_.clock().now() - epoch_;
  if (now >= end_) return;
  if (const auto change = requests_->take_due(now)) record_.changes.push_back({*change, now, answer(*change, now)});
}

void DispatchedRun::refuse_requests() {
  const Duration now = executor_.clock().now() - epoch_;
  while (const auto change = requests_->take_due(kNever))
    record_.changes.push_back({*change, now, {Answer::Unknown, "the run ended before"}});
}

/// A task that leaves releases the job that has arrived, and no more; one that comes has its first arrival now.
ChangeAnswer DispatchedRun::answer(const TaskChange& change, Duration now) {
  TaskState* const leaves = change.leaves ? &tasks_[change.leaves->index()] : nullptr;
  TaskState* const comes = change.comes ? &tasks_[change.comes->index()] : nullptr;
  if (comes != nullptr && !changing_->runs(*change.comes) && comes->is_alive())
    return {Answer::Unknown, fmt::format("a job of '{}' from before has not ended", comes->task->name)};
  const auto last = leaves == nullptr ? std::nullopt : last_arrival(*leaves, now);
  const ChangeAnswer answered = changing_->ask(change, now, last);
  if (answered.answer != Answer::Schedulable) return answered;
  if (leaves != nullptr) {
    leaves->jobs = arrived_by(*leaves, now);
    if (leaves->jobs == leaves->released) leaves->next_ready = kNever;
  }
  if (comes != nullptr) {
    comes->jobs = kUntilItLeaves;
    comes->first_index = comes->released;
    comes->first_arrival = now;
    schedule_next(change.comes->index());
  }
  return answered;
}

TaskState* DispatchedRun::next_to_release() {
  const auto next = std::min_element(
      tasks_.begin(), tasks_.end(), [](const TaskState& a, const TaskState& b) { return a.next_ready < b.next_ready; });
  return next == tasks_.end() || next->next_ready == kNever ? nullptr : &*next;
}

void DispatchedRun::arm_next() {
  if (!ready_.empty()) {
    arm_job(tasks_[ready_.next().task.index()], ready_.next().index);
  } else if (TaskState* const next = next_to_release()) {
    arm_job(*next, next->released);
  }
}

void DispatchedRun::arm_job(TaskState& state, std::uint64_t index) {
  auto& chunks = state.chunks_of(index);
  if (!chunks.empty()) executor_.arm(chunks.front());
}

Duration DispatchedRun::release_due() {
  const Duration now = executor_.clock().now();
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    while (tasks_[i].next_ready <= now && tasks_[i].next_ready != kNever && !waits_for_buffers(tasks_[i], now))
      release(i);
  return now;
}

bool DispatchedRun::waits_for_buffers(const TaskState& state, Duration now) const {
  const std::size_t set = state.released % state.chunks.size();
  return state.set_due[set] && (!state.script.empty() || now <= *state.set_due[set]);
}

void DispatchedRun::release(std::size_t task) {
  TaskState& state = tasks_[task];
  const Duration since_ready = executor_.clock().now() - std::max(state.next_ready, free_since_);
  const Duration arrival = epoch_ + state.arrival_of(state.released);
  const Duration deadline = arrival > kNever - state.timing.deadline ? kNever : arrival + state.timing.deadline;
  const ReadyJob ready{TaskId(task),          state.released,       arrival, deadline, state.timing.period,
                       state.timing.deadline, state.timing.priority};
  ++state.released;
  schedule_next(task);
  const std::size_t set = ready.index % state.chunks.size();
  if (state.set_due[set]) {  // only where jobs take longer than admitted: real time, or a broken machine
    record_.jobs.push_back(
        {ready.task, ready.index, arrival - epoch_, arrival - epoch_, std::nullopt, ready.deadline - epoch_,
         Error{ErrorCode::Machine, "no buffer set was free; the jobs before took longer than admitted", {}}});
    Excesses excesses;
    excesses.add(BoundCause::Blocking, excess_);
    excesses.add(BoundCause::Host, beside_.total() - beside_before_);
    if (promised_) record_.jobs.back().broken = BrokenBound{excesses.largest(), {}};
    report_job_end();
    return;
  }
  state.set_due[set] = deadline;
  free_since_ = beside([&] { state.program->on_ready(job_of(ready)); });
  state.releases[set] = {since_ready, free_since_};
  ready_.push(ready);
}

template <class Work>
Duration DispatchedRun::beside(const Work& work) {
  const Duration start = executor_.clock().now();
  work();
  const Duration end = executor_.clock().now();
  beside_.add(start, end);
  return end;
}

void DispatchedRun::report_job_end() {
  if (on_job_end_) beside([&] { on_job_end_(record_.jobs.back()); });
}

Job DispatchedRun::job_of(const ReadyJob& ready, JobObserver* observer) {
  TaskState& state = tasks_[ready.task.index()];
  const std::size_t set = ready.index % state.chunks.size();
  Job job(executor_, *state.task, state.chunks[set], state.first_chunk, observer);
  job.index = ready.index;
  job.arrival = ready.arrival;
  job.deadline = ready.deadline;
  job.buffer_set = set;
  if (!state.script.empty()) job.takes = state.script[ready.index].takes;
  return job;
}

void DispatchedRun::run_job(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  Clock& clock = executor_.clock();
  Running running(*this, ready);
  Job job = job_of(ready, &running);
  if (unreviewed_ && unreviewed_->chunks == &state.chunks_of(ready.index)) review();
  const Duration start = running.start = clock.now();
  running.waited = start - std::max(state.releases[job.buffer_set].done, free_since_);
  const auto result = state.program->run(job);
  if (job.takes) clock.wait_until(start + running.elsewhere + *job.takes);
  const Duration finish = clock.now();
  const Duration programs = beside_.since(ready.arrival);
  // Admission under periodic arrivals relies on this: a job that leaves the machine early could make another late.
  if (planned_.tasks.arrivals == Arrivals::Periodic && result)
    clock.wait_until(start + running.elsewhere + state.timing.best_case);
  const Duration own = finish - start - running.elsewhere;
  review();
  JobRecord& record = record_.jobs.emplace_back();
  record = {ready.task,  ready.index, ready.arrival - epoch_, start - epoch_, finish - epoch_, ready.deadline - epoch_,
            std::nullopt};
  record.late = state.releases[job.buffer_set].late;
  record.programs = programs;
  const auto bound = bounds_.empty() ? std::nullopt : bounds_[ready.task.index()];
  const Duration over = bound ? record.response() - *bound : Duration{0};
  unreviewed_ = {&state.chunks_of(ready.index), record_.jobs.size() - 1, over > executor_.backend().tolerated_lag(),
                 over, excesses_of(running, job, record)};
  excess_ += std::max(own - state.timing.wcet, Duration{0});
  if (!result) record.error = result.error();
  if (!result && result.error().code == ErrorCode::Machine) record_.fatal = result.error();
  if (result) record.after = beside([&] { state.program->on_finished(job); }) - finish;
  state.set_due[job.buffer_set].reset();
  report_job_end();
  free_since_ = clock.now();
}

Excesses DispatchedRun::excesses_of(const Running& running, const Job& job, const JobRecord& record) const {
  const TaskState& state = tasks_[record.task.index()];
  const Release& release = state.releases[job.buffer_set];
  const SetupTimes& costs = executor_.machine().setup();
  const Duration dispatching = static_cast<std::int64_t>(job.times.runs) * costs.dispatch.guaranteed;
  Duration declared = state.task->declared_wcet.value_or(Duration{0});
  for (const JobStep& step : state.task->steps)
    if (const auto* host = std::get_if<HostStep>(&step)) declared += host->time;
  const Duration own = *record.finish - record.start - running.elsewhere;
  Excesses excesses;
  excesses.add(BoundCause::Release, release.late);
  excesses.add(BoundCause::Blocking, excess_);
  excesses.add(BoundCause::Host, own - job.times.in_batches - declared);
  excesses.add(BoundCause::Host, beside_.total() - beside_before_ - record.programs);
  excesses.add(BoundCause::Dispatch, running.waited);
  excesses.add(BoundCause::Dispatch, job.times.in_batches - job.times.batches - dispatching);
  return excesses;
}

void DispatchedRun::review() {
  if (!unreviewed_) return;
  auto& [chunks, position, late, over, excesses] = *unreviewed_;
  JobRecord& record = record_.jobs[position];
  std::optional<BrokenBound> broken;  // of the batch that was furthest over its latest finish
  for (PreparedBatch& chunk : *chunks) {
    const Executor::Review one = executor_.review(chunk);
    record.overruns += one.overruns;
    if (one.broken && (!broken || one.broken->excess > broken->excess)) broken = one.broken;
  }
  if (broken) excesses.add(broken->cause, broken->excess);
  if (promised_ && (late || broken))
    record.broken = BrokenBound{excesses.largest(), std::max(over, broken ? broken->excess : Duration{0})};
  unreviewed_.reset();
}

void DispatchedRun::blame_others() {
  if (!foreign_ && executor_.backend().foreign_load().empty()) return;
  for (JobRecord& job : record_.jobs)
    if (job.broken && job.broken->cause == BoundCause::Transfer) job.broken->cause = BoundCause::Foreign;
}

/// A region of a scenario's job has the machine for its full length, until the job's time is over.
void DispatchedRun::finish_part(Running& running) {
  const TaskState& state = tasks_[running.job.task.index()];
  const std::vector<Duration>& regions = state.timing.regions->each;
  if (state.script.empty() || running.regions == regions.size()) return;
  const Duration rest = state.script[running.job.index].takes - running.had;
  running.had += std::min(regions[running.regions++], rest);
  executor_.clock().wait_until(running.start + running.elsewhere + running.had);
}

Expected<void> DispatchedRun::run_more_urgent(Running& running) {
  if (!tasks_[running.job.task.index()].timing.regions) return {};
  finish_part(running);
  const Duration start = free_since_ = executor_.clock().now();
  for (release_due(); ready_.has_more_urgent_than(running.job); release_due()) {
    run_job(ready_.pop());
    if (record_.fatal) return tl::unexpected(*record_.fatal);
  }
  running.elsewhere += executor_.clock().now() - start;
  return {};
}

RunRecord DispatchedRun::run() {
  std::optional<RealTimeThread> thread;
  if (executor_.clock().runs_by_itself()) thread.emplace(executor_.role());
  const Duration processor_before = processor_time();
  run_jobs();
  if (thread) {
    record_.notes = thread->notes();
    record_.processor = processor_time() - processor_before;
  }
  return std::move(record_);
}

void DispatchedRun::run_jobs() {
  epoch_ = executor_.clock().now();
  for (std::size_t i = 0; i < tasks_.size(); ++i) schedule_next(i);
  for (;;) {
    if (interrupted_ != nullptr && interrupted_->load(std::memory_order_relaxed)) {
      record_.interrupted = true;
      break;
    }
    if (changing_ != nullptr) answer_request();
    const Duration now = release_due();
    if (!ready_.empty()) {
      run_job(ready_.pop());
      if (record_.fatal) break;
      continue;
    }
    if (changing_ != nullptr) changing_->idle_at(now - epoch_);
    const auto next = next_instant();
    if (!next) break;
    review();
    arm_next();
    wait_for(*next);
    excess_ = {};
    beside_before_ = beside_.total();
  }
  review();
  if (changing_ != nullptr) refuse_requests();
  for (PreparedBatch& chunk : all_chunks()) executor_.disarm(chunk);
  blame_others();
}

using PreparedOrError = Expected<std::unique_ptr<PreparedRun>>;

/// @param then  (run): what it does in place of periodic jobs
template <class Then>
PreparedOrError prepare(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                        std::span<const std::uint64_t> jobs, std::uint64_t seed, const std::atomic<bool>* interrupted,
                        const Then& then) {
  TUTTI_EXPECTS(programs.size() == planned.tasks.tasks.size(), "each task has its program");
  TUTTI_EXPECTS(planned.partitions.size() == 1, "an executor runs one partition");
  if (executor.busy())
    return invalid_input("a batch that was issued before is still under way; synchronize it before the run");
  auto run = std::make_unique<DispatchedRun>(executor, planned, seed, interrupted);
  if (auto ok = run->prepare(programs, jobs); !ok) return tl::unexpected(std::move(ok.error()));
  then(*run);
  return run;
}

}  // namespace

PreparedOrError prepare_run(Executor& executor, const AdmittedTaskSet& admitted, std::span<TaskProgram* const> programs,
                            std::span<const std::uint64_t> jobs, const RunOptions& options) {
  return prepare(executor, admitted.planned(), programs, jobs, options.seed, options.interrupted,
                 [&](DispatchedRun& run) {
                   run.hold_to(admitted.worst_responses());
                   run.report_to(options.on_job_end);
                 });
}

PreparedOrError prepare_run(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                            const Scenario& scenario, const std::atomic<bool>* interrupted) {
  std::vector<std::uint64_t> jobs(planned.tasks.tasks.size(), 0);
  for (const ScenarioJob& job : scenario.jobs) ++jobs[job.task.index()];
  return prepare(executor, planned, programs, jobs, 0, interrupted, [&](DispatchedRun& run) { run.follow(scenario); });
}

Expected<RunRecord> run_tasks(Executor& executor, const AdmittedTaskSet& admitted,
                              std::span<TaskProgram* const> programs, const RunOptions& options) {
  return jobs_per_task(admitted.tasks(), options)
      .and_then([&](const std::vector<std::uint64_t>& jobs) {
        return prepare_run(executor, admitted, programs, jobs, options);
      })
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

Expected<RunRecord> run_scenario(Executor& executor, const PlannedTaskSet& planned,
                                 std::span<TaskProgram* const> programs, const Scenario& scenario,
                                 const std::atomic<bool>* interrupted) {
  return prepare_run(executor, planned, programs, scenario, interrupted)
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

Expected<RunRecord> run_changing_tasks(Executor& executor, ChangingTaskSet set, std::span<TaskProgram* const> programs,
                                       ChangeRequests& requests, const RunOptions& options) {
  TUTTI_EXPECTS(options.arrivals_before && !options.jobs, "a run whose tasks change ends at a time");
  TaskSet from_the_start = set.planned().tasks;  // each may come before its offset
  for (Task& task : from_the_start.tasks) task.offset = {};
  return jobs_per_task(from_the_start, options)
      .and_then([&](const std::vector<std::uint64_t>& jobs) {
        return prepare(executor, set.planned(), programs, jobs, options.seed, options.interrupted,
                       [&](DispatchedRun& run) {
                         run.hold_to({});
                         run.report_to(options.on_job_end);
                         run.change_on_request(set, requests, *options.arrivals_before);
                       });
      })
      .map([](const std::unique_ptr<PreparedRun>& run) { return run->run(); });
}

}  // namespace tutti::internal
