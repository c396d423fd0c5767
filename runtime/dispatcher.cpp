#include "runtime/dispatcher.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "model/expects.hpp"
#include "model/random.hpp"
#include "sched/ready_queue.hpp"

namespace tutti {
namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr Duration kNever = Duration::max();
/// Where time passes by itself: an interrupt need not wait longer, however far away the next job is.
constexpr Duration kLongestSleep = std::chrono::milliseconds{50};

/// The instant at which one hyperperiod behind the last offset is over; nothing where that is beyond all time.
std::optional<Duration> end_of_hyperperiod(const TaskSet& set) {
  Wide hyperperiod = 1;
  Duration last_offset{};
  for (const Task& task : set.tasks) {
    const auto period = static_cast<Wide>(task.period.count());
    Wide a = hyperperiod;
    for (Wide b = period; b != 0;) a = std::exchange(b, a % b);
    hyperperiod *= period / a;
    last_offset = std::max(last_offset, task.offset);
    if (hyperperiod > static_cast<Wide>(kNever.count() - last_offset.count())) return std::nullopt;
  }
  return last_offset + Duration{static_cast<std::int64_t>(hyperperiod)};
}

/// Jitter of one job, uniform in [0, jitter], from the seed alone.
Duration drawn_jitter(Duration jitter, std::uint64_t seed, std::size_t task, std::uint64_t index) {
  if (jitter <= Duration{0}) return {};
  const std::uint64_t x = Random(seed + 0x9e3779b97f4a7c15U * index + 0xd1b54a32d192ed03U * (task + 1)).next();
  const Wide range = static_cast<Wide>(jitter.count()) + 1;
  return Duration{static_cast<std::int64_t>((static_cast<Wide>(x) * range) >> 64)};
}

/// One task in a run: its next release, and the batches of each of its buffer sets.
struct TaskState {
  const Task* task = nullptr;
  TaskTiming timing;
  TaskProgram* program = nullptr;
  std::uint64_t jobs = 0;  // to release in all
  std::uint64_t released = 0;
  Duration next_ready{};                            // of job `released`
  bool next_is_armed = false;                       // the first batch of that job
  std::vector<std::vector<PreparedBatch>> batches;  // [sets][batches]
  std::vector<bool> set_in_use;                     // [sets]
};

class Run {
 public:
  Run(Executor& executor, const AdmittedTaskSet& admitted, const RunOptions& options)
      : executor_(executor),
        owned_(executor),
        admitted_(admitted),
        options_(options),
        ready_(admitted.tasks().policy, 0) {}

  Expected<void> prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs);
  RunRecord run();

 private:
  Expected<void> prepare_task(TaskState& state, const JobBound& bound);
  [[nodiscard]] Duration arrival_of(const TaskState& state, std::uint64_t index) const {
    return state.task->offset + state.timing.period * static_cast<std::int64_t>(index);
  }
  void schedule_next(std::size_t task);
  /// The task whose next job is ready first; null where no more come.
  [[nodiscard]] TaskState* next_to_release();
  /// Gets the first batch of its next job ready.
  void arm_next_job(TaskState& state);
  /// Until then, or for some time of that.
  void wait_for(Duration release);
  void release_due();
  void release(std::size_t task);
  Job job_of(const ReadyJob& ready);
  void run_job(const ReadyJob& ready);

  Executor& executor_;
  Executor::AdmittedRun owned_;
  const AdmittedTaskSet& admitted_;
  const RunOptions& options_;
  std::vector<TaskState> tasks_;
  ReadyQueue ready_;
  RunRecord record_;
  Duration epoch_{};  // the clock's reading at the start of the run
};

Expected<void> Run::prepare(std::span<TaskProgram* const> programs, std::span<const std::uint64_t> jobs) {
  const TaskSet& set = admitted_.tasks();
  std::size_t alive = 0;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    TaskState& state = tasks_.emplace_back();
    state.task = &set.tasks[i];
    state.timing = admitted_.timings()[i];
    state.program = programs[i];
    state.jobs = jobs[i];
    if (auto ok = prepare_task(state, admitted_.bounds()[i]); !ok) return ok;
    alive += state.batches.size();
    total += state.jobs;
    schedule_next(i);
  }
  ready_ = ReadyQueue(set.policy, alive);
  record_.jobs.reserve(total);
  return {};
}

Expected<void> Run::prepare_task(TaskState& state, const JobBound& bound) {
  const auto sets = static_cast<std::size_t>(std::min<std::uint64_t>(
      static_cast<std::uint64_t>(buffer_sets(state.timing)), std::max<std::uint64_t>(state.jobs, 1)));
  state.set_in_use.assign(sets, false);
  for (std::size_t set = 0; set < sets; ++set) {
    auto& batches = state.batches.emplace_back();
    for (std::size_t step = 0; step < state.task->steps.size(); ++step) {
      const auto* operation = std::get_if<BatchOperation>(&state.task->steps[step]);
      if (operation == nullptr) continue;
      auto prepared =
          state.program->bind(executor_.backend(), *operation, batches.size(), set).and_then([&](auto&& bindings) {
            return owned_.prepare(*operation, *bound.plans[step], std::forward<decltype(bindings)>(bindings),
                                  fmt::format("batch {} of task '{}'", batches.size() + 1, state.task->name));
          });
      if (!prepared) return tl::unexpected(std::move(prepared.error()));
      batches.push_back(*std::move(prepared));
    }
  }
  return {};
}

void Run::schedule_next(std::size_t task) {
  TaskState& state = tasks_[task];
  state.next_ready = kNever;
  state.next_is_armed = false;
  if (state.released == state.jobs) return;
  const Duration arrival = arrival_of(state, state.released);
  const Duration time_left = kNever - epoch_ - arrival;
  if (time_left < state.timing.deadline) return;  // the clock would overflow before it is due
  const Duration jitter = drawn_jitter(state.timing.jitter, options_.seed, task, state.released);
  state.next_ready = epoch_ + arrival + std::min(jitter, time_left);
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
  auto& batches = state.batches[state.released % state.batches.size()];
  if (!batches.empty()) executor_.arm(batches.front());
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
  const ReadyJob ready{TaskId(task), state.released, arrival, deadline, state.timing.period, state.timing.deadline};
  ++state.released;
  schedule_next(task);
  const std::size_t set = ready.index % state.batches.size();
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

Job Run::job_of(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  const std::size_t set = ready.index % state.batches.size();
  Job job(executor_, *state.task, state.batches[set]);
  job.index = ready.index;
  job.arrival = ready.arrival;
  job.deadline = ready.deadline;
  job.buffer_set = set;
  return job;
}

void Run::run_job(const ReadyJob& ready) {
  TaskState& state = tasks_[ready.task.index()];
  Job job = job_of(ready);
  const Duration start = executor_.clock().now();
  const auto result = state.program->run(job);
  const Duration finish = executor_.clock().now();
  // What was admitted under periodic arrivals relies on it: a job that leaves the machine early could make another
  // late.
  if (admitted_.tasks().arrivals == Arrivals::Periodic && result)
    executor_.clock().wait_until(start + state.timing.best_case);
  JobRecord& record = record_.jobs.emplace_back();
  record = {ready.task,   ready.index, ready.arrival - epoch_, start - epoch_, finish - epoch_, ready.deadline - epoch_,
            std::nullopt, job.overruns};
  if (result) state.program->on_finished(job);
  state.set_in_use[job.buffer_set] = false;
  if (result) return;
  record.error = result.error();
  if (result.error().code == ErrorCode::Machine) record_.fatal = result.error();
}

RunRecord Run::run() {
  epoch_ = executor_.clock().now();
  for (std::size_t i = 0; i < tasks_.size(); ++i) schedule_next(i);
  for (;;) {
    if (options_.interrupted != nullptr && options_.interrupted->load(std::memory_order_relaxed)) {
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

Expected<RunRecord> run_tasks(Executor& executor, const AdmittedTaskSet& admitted,
                              std::span<TaskProgram* const> programs, const RunOptions& options) {
  TUTTI_EXPECTS(programs.size() == admitted.tasks().tasks.size(), "each task has its program");
  if (executor.busy())
    return invalid_input("a batch that was issued before is still under way; synchronize it before the run");
  return jobs_per_task(admitted.tasks(), options)
      .and_then([&](const std::vector<std::uint64_t>& jobs) -> Expected<RunRecord> {
        Run run(executor, admitted, options);
        if (auto ok = run.prepare(programs, jobs); !ok) return tl::unexpected(std::move(ok.error()));
        return run.run();
      });
}

}  // namespace tutti
