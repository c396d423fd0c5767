#include "runtime/dispatcher.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "model/expects.hpp"
#include "model/random.hpp"
#include "sched/analyses/wide.hpp"
#include "sched/cut.hpp"
#include "sched/ready_queue.hpp"

namespace tutti {
namespace {

constexpr Duration kNever = Duration::max();
/// Where time passes by itself: an interrupt need not wait longer, however far away the next job is.
constexpr Duration kLongestSleep = std::chrono::milliseconds{50};

/// The instant at which one hyperperiod behind the last offset is over; nothing where that is beyond all time.
std::optional<Duration> end_of_hyperperiod(const TaskSet& set) {
  Wide hyperperiod = 1;
  Duration last_offset{};
  for (const Task& task : set.tasks) {
    hyperperiod = common_multiple(hyperperiod, task.period.count());
    last_offset = std::max(last_offset, task.offset);
  }
  if (hyperperiod > kNever.count() - last_offset.count()) return std::nullopt;
  return last_offset + Duration{static_cast<std::int64_t>(hyperperiod)};
}

/// Jitter of one job, uniform in [0, jitter], from the seed alone.
Duration drawn_jitter(Duration jitter, std::uint64_t seed, std::size_t task, std::uint64_t index) {
  if (jitter <= Duration{0}) return {};
  const std::uint64_t x = Random(seed + 0x9e3779b97f4a7c15U * index + 0xd1b54a32d192ed03U * (task + 1)).next();
  const UnsignedWide range = static_cast<UnsignedWide>(jitter.count()) + 1;
  return Duration{static_cast<std::int64_t>((static_cast<UnsignedWide>(x) * range) >> 64)};
}

/// The bindings of a piece of a batch that was cut. Kernels, all in the last piece, work on what all pieces bring.
std::vector<StreamBinding> piece_of(const BatchOperation& whole, std::span<const StreamBinding> bindings,
                                    std::size_t piece, std::size_t pieces) {
  std::vector<StreamBinding> cut;
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const std::optional<Transfer>& transfer = whole.streams()[s].transfer;
    const bool is_last = piece + 1 == pieces;
    if (!transfer && !is_last) continue;  // a kernel alone
    StreamBinding& binding = cut.emplace_back(is_last ? bindings[s] : StreamBinding{});
    if (!transfer) continue;
    const Bytes start = piece_start(transfer->size, piece, pieces);
    const Bytes size = piece_start(transfer->size, piece + 1, pieces) - start;
    binding.source = bindings[s].source.part(start, size);
    binding.destination = bindings[s].destination.part(start, size);
  }
  return cut;
}

/// One task in a run: its next release, and the batches of each of its buffer sets.
struct TaskState {
  const Task* task = nullptr;
  TaskTiming timing;
  TaskProgram* program = nullptr;
  std::vector<ScenarioJob> script;  // the jobs of a scenario, in place of periodic ones
  std::uint64_t jobs = 0;           // to release in all
  std::uint64_t released = 0;
  Duration next_ready{};                           // of job `released`
  bool next_is_armed = false;                      // the first batch of that job
  std::vector<std::vector<PreparedBatch>> pieces;  // [sets][pieces of all batches]
  std::vector<std::size_t> first_piece{0};         // [batches + 1]
  std::vector<bool> set_in_use;                    // [sets]
};

class Run final : public PreparedRun {
 public:
  Run(Executor& executor, const PlannedTaskSet& planned, std::uint64_t seed, const std::atomic<bool>* interrupted)
      : executor_(executor),
        owned_(executor),
        planned_(planned),
        seed_(seed),
        interrupted_(interrupted),
        ready_(planned.tasks.policy, 0) {}

  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs);
  /// In place of periodic jobs. @pre prepared for as many
  void follow(const Scenario& scenario);
  RunRecord run() override;

 private:
  /// Between two batches of a job: others that are more urgent run, and run to their end, before it goes on.
  struct Boundary final : PreemptionPoint {
    Boundary(Run& the_run, const ReadyJob& the_job) : run(the_run), job(the_job) {}
    Expected<void> run_more_urgent() override { return run.run_more_urgent(*this); }

    Run& run;
    const ReadyJob& job;
    Duration elsewhere{};  ///< for so long the job did not have the machine
  };

  Expected<void> prepare_task(TaskState& state, const JobBound& bound);
  Expected<void> prepare_batch(TaskState& state, const std::vector<PlannedBatch>& pieces, std::size_t batch,
                               std::size_t set);
  [[nodiscard]] Duration arrival_of(const TaskState& state, std::uint64_t index) const;
  /// From the arrival until it is ready.
  [[nodiscard]] Duration delay_of(const TaskState& state, std::uint64_t index) const;
  void schedule_next(std::size_t task);
  /// The task whose next job is ready first; null where no more come.
  [[nodiscard]] TaskState* next_to_release();
  /// Gets the first batch of its next job ready.
  void arm_next_job(TaskState& state);
  /// Until then, or for some time of that.
  void wait_for(Duration release);
  void release_due();
  void release(std::size_t task);
  Job job_of(const ReadyJob& ready, PreemptionPoint* between_batches = nullptr);
  void run_job(const ReadyJob& ready);
  Expected<void> run_more_urgent(Boundary& boundary);

  Executor& executor_;
  Executor::AdmittedRun owned_;
  const PlannedTaskSet& planned_;
  std::uint64_t seed_;
  const std::atomic<bool>* interrupted_;
  std::vector<TaskState> tasks_;
  ReadyQueue ready_;
  RunRecord record_;
  Duration epoch_{};  // the clock's reading at the start of the run
};

Expected<void> Run::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs) {
  const TaskSet& set = planned_.tasks;
  std::size_t alive = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    TaskState& state = tasks_.emplace_back();
    state.task = &set.tasks[i];
    state.timing = planned_.timings[i];
    state.program = programs[i];
    state.jobs = jobs[i];
    if (auto ok = prepare_task(state, planned_.bounds[i]); !ok) return ok;
    alive += state.pieces.size();
    total += state.jobs;
  }
  ready_ = ReadyQueue(set.policy, alive);
  record_.jobs.reserve(total);
  return {};
}

void Run::follow(const Scenario& scenario) {
  for (const ScenarioJob& job : scenario.jobs) tasks_[job.task.index()].script.push_back(job);
}

Expected<void> Run::prepare_task(TaskState& state, const JobBound& bound) {
  const auto sets = static_cast<std::size_t>(std::min<std::uint64_t>(
      static_cast<std::uint64_t>(buffer_sets(state.timing)), std::max<std::uint64_t>(state.jobs, 1)));
  state.set_in_use.assign(sets, false);
  for (const auto& pieces : bound.batches) state.first_piece.push_back(state.first_piece.back() + pieces.size());
  for (std::size_t set = 0; set < sets; ++set) {
    state.pieces.emplace_back();
    for (std::size_t batch = 0; batch < bound.batches.size(); ++batch)
      if (auto ok = prepare_batch(state, bound.batches[batch], batch, set); !ok) return ok;
  }
  return {};
}

Expected<void> Run::prepare_batch(TaskState& state, const std::vector<PlannedBatch>& pieces, std::size_t batch,
                                  std::size_t set) {
  const BatchOperation& whole = *batches_of(*state.task)[batch];
  const std::string name = fmt::format("batch {} of task '{}'", batch + 1, state.task->name);
  const auto prepare = [&](std::size_t piece, std::vector<StreamBinding> bindings, std::string piece_name) {
    return owned_.prepare(pieces[piece].operation, pieces[piece].plan, std::move(bindings), std::move(piece_name))
        .map([&](PreparedBatch&& prepared) { state.pieces.back().push_back(std::move(prepared)); });
  };
  auto bindings = state.program->bind(executor_.backend(), whole, batch, set);
  if (!bindings) return tl::unexpected(std::move(bindings.error()));
  if (pieces.size() == 1) return prepare(0, *std::move(bindings), name);
  ExecutableBatch all{whole, {}, name, {}, *std::move(bindings)};
  if (auto ok = check_bindings(executor_.machine(), all); !ok) return ok;
  fill_kernel_inputs(executor_.machine(), all);
  for (std::size_t piece = 0; piece < pieces.size(); ++piece)
    if (auto ok = prepare(piece, piece_of(whole, all.bindings, piece, pieces.size()),
                          fmt::format("piece {} of {}", piece + 1, name));
        !ok)
      return ok;
  return {};
}

Duration Run::arrival_of(const TaskState& state, std::uint64_t index) const {
  if (!state.script.empty()) return state.script[index].arrival;
  return state.task->offset + state.timing.period * static_cast<std::int64_t>(index);
}

Duration Run::delay_of(const TaskState& state, std::uint64_t index) const {
  if (!state.script.empty()) return state.script[index].ready - state.script[index].arrival;
  return drawn_jitter(state.timing.jitter, seed_, static_cast<std::size_t>(&state - tasks_.data()), index);
}

void Run::schedule_next(std::size_t task) {
  TaskState& state = tasks_[task];
  state.next_ready = kNever;
  state.next_is_armed = false;
  if (state.released == state.jobs) return;
  const Duration arrival = arrival_of(state, state.released);
  const Duration time_left = kNever - epoch_ - arrival;
  if (time_left < state.timing.deadline) return;  // the clock would overflow before it is due
  state.next_ready = epoch_ + arrival + std::min(delay_of(state, state.released), time_left);
}

void Run::wait_for(Duration release) {
  Clock& clock = executor_.clock();
  clock.wait_until(clock.runs_by_itself() ? std::min(release, clock.now() + kLongestSleep) : release);
}

TaskState* Run::next_to_release() {
  const auto next = std::min_element(
      tasks_.begin(), tasks_.end(), [](const TaskState& a, const TaskState& b) { return a.next_ready < b.next_ready; });
  return next == tasks_.end() || next->next_ready == kNever ? nullptr : &*next;
}

void Run::arm_next_job(TaskState& state) {
  if (std::exchange(state.next_is_armed, true)) return;
  auto& pieces = state.pieces[state.released % state.pieces.size()];
  if (!pieces.empty()) executor_.arm(pieces.front());
}

void Run::release_due() {
  const Duration now = executor_.clock().now();
  for (std::size_t i = 0; i < tasks_.size(); ++i)
    while (tasks_[i].next_ready <= now && tasks_[i].next_ready != kNever) release(i);
}

void Run::release(std::size_t task) {
  TaskState& state = tasks_[task];
  const Duration arrival = epoch_ + arrival_of(state, state.released);
  const Duration deadline = arrival > kNever - state.timing.deadline ? kNever : arrival + state.timing.deadline;
  const ReadyJob ready{TaskId(task),          state.released,       arrival, deadline, state.timing.period,
                       state.timing.deadline, state.timing.priority};
  ++state.released;
  schedule_next(task);
  const std::size_t set = ready.index % state.pieces.size();
  if (state.set_in_use[set]) {  // only where jobs take longer than admitted: real time, or a broken machine
    record_.jobs.push_back(
        {ready.task, ready.index, arrival - epoch_, arrival - epoch_, std::nullopt, ready.deadline - epoch_,
         Error{ErrorCode::Machine, "no buffer set was free; the jobs before took longer than admitted", {}}});
    return;
  }
  state.set_in_use[set] = true;
  state.program->on_ready(job_of(ready));
  ready_.push(ready);
}

Job Run::job_of(const ReadyJob& ready, PreemptionPoint* between_batches) {
  TaskState& state = tasks_[ready.task.index()];
  const std::size_t set = ready.index % state.pieces.size();
  Job job(executor_, *state.task, state.pieces[set], state.first_piece, between_batches);
  job.index = ready.index;
  job.arrival = ready.arrival;
  job.deadline = ready.deadline;
  job.buffer_set = set;
  if (!state.script.empty()) job.takes = state.script[ready.index].takes;
  return job;
}

void Run::run_job(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  Clock& clock = executor_.clock();
  Boundary boundary(*this, ready);
  Job job = job_of(ready, state.timing.parts ? &boundary : nullptr);
  const Duration start = clock.now();
  const auto result = state.program->run(job);
  if (job.takes) clock.wait_until(start + boundary.elsewhere + *job.takes);
  const Duration finish = clock.now();
  // What was admitted under periodic arrivals relies on it: a job that leaves the machine early could make another
  // late.
  if (planned_.tasks.arrivals == Arrivals::Periodic && result)
    clock.wait_until(start + boundary.elsewhere + state.timing.best_case);
  JobRecord& record = record_.jobs.emplace_back();
  record = {ready.task,   ready.index, ready.arrival - epoch_, start - epoch_, finish - epoch_, ready.deadline - epoch_,
            std::nullopt, job.overruns};
  if (!result) record.error = result.error();
  if (!result && result.error().code == ErrorCode::Machine) record_.fatal = result.error();
  if (result) state.program->on_finished(job);
  state.set_in_use[job.buffer_set] = false;
}

Expected<void> Run::run_more_urgent(Boundary& boundary) {
  const Duration start = executor_.clock().now();
  for (release_due(); ready_.has_more_urgent_than(boundary.job); release_due()) {
    run_job(ready_.pop());
    if (record_.fatal) return tl::unexpected(*record_.fatal);
  }
  boundary.elsewhere += executor_.clock().now() - start;
  return {};
}

RunRecord Run::run() {
  epoch_ = executor_.clock().now();
  for (std::size_t i = 0; i < tasks_.size(); ++i) schedule_next(i);
  for (;;) {
    if (interrupted_ != nullptr && interrupted_->load(std::memory_order_relaxed)) {
      record_.interrupted = true;
      break;
    }
    release_due();
    if (!ready_.empty()) {
      run_job(ready_.pop());
      if (record_.fatal) break;
      continue;
    }
    TaskState* const next = next_to_release();
    if (next == nullptr) break;
    arm_next_job(*next);
    wait_for(next->next_ready);
  }
  return std::move(record_);
}

using PreparedOrError = Expected<std::unique_ptr<PreparedRun>>;

PreparedOrError prepare(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                        std::span<const std::uint64_t> jobs, const Scenario* scenario, std::uint64_t seed,
                        const std::atomic<bool>* interrupted) {
  TUTTI_EXPECTS(programs.size() == planned.tasks.tasks.size(), "each task has its program");
  TUTTI_EXPECTS(planned.partitions.size() == 1, "an executor runs one partition");
  if (executor.busy())
    return invalid_input("a batch that was issued before is still under way; synchronize it before the run");
  auto run = std::make_unique<Run>(executor, planned, seed, interrupted);
  if (auto ok = run->prepare(programs, jobs); !ok) return tl::unexpected(std::move(ok.error()));
  if (scenario != nullptr) run->follow(*scenario);
  return run;
}

}  // namespace

Expected<std::vector<std::uint64_t>> jobs_per_task(const TaskSet& set, const RunOptions& options) {
  std::vector<std::uint64_t> jobs(set.tasks.size(), 0);
  std::uint64_t most = options.jobs.value_or(kMostJobs + 1);
  Duration end = options.arrivals_before.value_or(kNever);
  if (!options.jobs && !options.arrivals_before) {
    most = kDefaultJobs;
    end = end_of_hyperperiod(set).value_or(kNever);
  }
  const auto within_time = [](const Task& task, Duration arrival) {
    return arrival > kNever - task.deadline ? kNever : arrival;
  };
  std::vector<Duration> next;
  for (const Task& task : set.tasks) next.push_back(within_time(task, task.offset));
  for (std::uint64_t total = 0; total < most && !next.empty(); ++total) {
    const auto first = std::min_element(next.begin(), next.end());
    if (*first >= end) break;
    if (total >= kMostJobs) {
      return invalid_input(fmt::format(
          "a run of more than {} jobs keeps too many records; ask for fewer with --jobs or --for", kMostJobs));
    }
    const auto task = static_cast<std::size_t>(first - next.begin());
    ++jobs[task];
    const Duration period = set.tasks[task].period;
    *first = *first > kNever - period ? kNever : within_time(set.tasks[task], *first + period);
  }
  return jobs;
}

PreparedOrError prepare_run(Executor& executor, const AdmittedTaskSet& admitted, std::span<TaskProgram* const> programs,
                            std::span<const std::uint64_t> jobs, const RunOptions& options) {
  return prepare(executor, admitted.planned(), programs, jobs, nullptr, options.seed, options.interrupted);
}

PreparedOrError prepare_run(Executor& executor, const PlannedTaskSet& planned, std::span<TaskProgram* const> programs,
                            const Scenario& scenario, const std::atomic<bool>* interrupted) {
  std::vector<std::uint64_t> jobs(planned.tasks.tasks.size(), 0);
  for (const ScenarioJob& job : scenario.jobs) ++jobs[job.task.index()];
  return prepare(executor, planned, programs, jobs, &scenario, 0, interrupted);
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

}  // namespace tutti
