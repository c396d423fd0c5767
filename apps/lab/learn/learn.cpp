#include "apps/lab/learn/learn.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "apps/lab/learn/find_tasks.hpp"
#include "apps/lab/learn/job_order.hpp"
#include "apps/lab/learn/learned_tasks.hpp"
#include "apps/lab/learn/replay.hpp"
#include "model/base/quantile.hpp"
#include "model/sharing/compile_machine.hpp"
#include "sched/tasks/compile_tasks.hpp"
#include "sched/tasks/wcet.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kFolds = 10;
/// Kernels of a GPU that run side by side are worth a note from this share on.
constexpr double kWorthANote = 0.01;

void count_recognised(const RecordedTrace& trace, LearnedTrace& learned) {
  std::vector<bool> in_task(trace.operations.size());
  for (const LearnedTask& task : learned.tasks)
    for (const auto& job : task.jobs)
      for (const std::uint32_t place : job)
        if (place != kMissing) in_task[place] = true;
  learned.operations = trace.operations.size();
  for (std::size_t i = 0; i < in_task.size(); ++i) {
    const RecordedOperation& operation = trace.operations[i];
    RecognisedShare& share = is_copy(operation.kind) ? learned.bytes : learned.kernel_time;
    const auto amount = static_cast<double>(is_copy(operation.kind) ? operation.bytes : operation.length());
    share.all += amount;
    if (in_task[i])
      share.recognised += amount;
    else
      ++learned.unassigned;
  }
}

/// Operations of the jobs that a fold leaves out.
std::vector<bool> left_out(const RecordedTrace& trace, const std::vector<LearnedTask>& tasks, Fold fold) {
  std::vector<bool> is_out(trace.operations.size());
  for (const LearnedTask& task : tasks)
    for (std::size_t job = 0; job < task.jobs.size(); ++job)
      if (fold.leaves_out(job))
        for (const std::uint32_t place : task.jobs[job])
          if (place != kMissing) is_out[place] = true;
  return is_out;
}

void add_errors(const RecordedTrace& trace, const std::vector<LearnedTask>& tasks, Fold fold,
                std::span<const std::int64_t> ends, std::vector<double>& errors) {
  for (const LearnedTask& task : tasks)
    for (std::size_t job = 0; job < task.jobs.size(); ++job) {
      if (!fold.leaves_out(job)) continue;
      for (const std::uint32_t place : task.jobs[job]) {
        if (place == kMissing) continue;
        const std::int64_t recorded = trace.operations[place].end;
        const auto since = static_cast<double>(std::max<std::int64_t>(1, recorded - task.starts[job]));
        errors.push_back(std::abs(static_cast<double>(ends[place] - recorded)) / since);
      }
    }
}

int cores_of_tasks(const std::vector<LearnedTask>& tasks) {
  return static_cast<int>(std::clamp<std::size_t>(tasks.size(), 1, 1024));
}

/// Tasks come with the times of all jobs, and leave with these.
Expected<ReplayError> judge(const RecordedTrace& trace, const RateFinder& finder, std::vector<LearnedTask>& tasks) {
  const std::vector<std::int64_t> free_before = engine_free_before(trace);
  std::vector<double> errors;
  for (std::size_t left = 0; left < kFolds; ++left) {
    const Fold fold{kFolds, left};
    for (LearnedTask& task : tasks) find_times(trace, free_before, fold, task);
    const TraceRates rates = finder.find(left_out(trace, tasks, fold));
    const auto machine = compile(learned_machine(rates, trace.gpus, cores_of_tasks(tasks)).spec);
    if (!machine) return tl::unexpected(machine.error());
    add_errors(trace, tasks, fold, replayed_ends(trace, tasks, *machine), errors);
  }
  for (LearnedTask& task : tasks) find_times(trace, free_before, {}, task);
  return ReplayError{errors.size(), median(errors), quantile(errors, 0.95), quantile(errors, 1)};
}

/// Of each task, the longest job beside which nothing else ran, ns; 0: there is none.
std::vector<std::int64_t> longest_undisturbed(const RecordedTrace& trace, const std::vector<LearnedTask>& tasks) {
  const std::vector<RecordedOperation>& operations = trace.operations;  // by start
  std::vector<std::int64_t> ended(operations.size() + 1, std::numeric_limits<std::int64_t>::min());
  for (std::size_t i = 0; i < operations.size(); ++i) ended[i + 1] = std::max(ended[i], operations[i].end);
  std::vector<std::int64_t> longest(tasks.size());
  for (std::size_t task = 0; task < tasks.size(); ++task)
    for (std::vector<std::uint32_t> job : tasks[task].jobs) {
      std::erase(job, kMissing);
      if (job.empty()) continue;
      std::ranges::sort(job);
      std::int64_t end = 0;
      for (const std::uint32_t place : job) end = std::max(end, operations[place].end);
      const std::size_t first = job.front(), past = job.back() + 1;
      const bool is_alone = past - first == job.size() && ended[first] <= operations[first].start &&
                            (past == operations.size() || operations[past].start >= end);
      if (is_alone) longest[task] = std::max(longest[task], end - operations[first].start);
    }
  return longest;
}

/// Finds what the longest undisturbed job of each task took beyond the model, and what the model then promises of it.
Expected<void> find_beyond(const RecordedTrace& trace, LearnedTrace& learned) {
  const auto machine = compile(learned.machine.spec);
  if (!machine) return tl::unexpected(machine.error());
  const auto set = compile(learned_task_set(trace, learned.tasks, ""), *machine);
  if (!set) return tl::unexpected(set.error());
  const Planner& planner = planners().front();
  const std::vector<std::int64_t> longest = longest_undisturbed(trace, learned.tasks);
  for (std::size_t i = 0; i < learned.tasks.size(); ++i) {
    LearnedTask& task = learned.tasks[i];
    const std::int64_t promised = bound_job(set->tasks[i], *machine, planner).wcet.bound().count();
    task.beyond = std::max<std::int64_t>(0, longest[i] - promised);
    task.promised = promised + task.beyond;
  }
  return {};
}

/// What the model of a machine does not have.
std::vector<std::string> notes_of(const RecordedTrace& trace, const TraceRates& rates) {
  std::vector<std::string> notes;
  if (rates.ports.empty())
    notes.emplace_back("the trace has no copy between host and GPU; the machine's links are guesses");
  if (rates.overlapping > 0)
    notes.push_back(
        fmt::format("{} copies began while another one of their GPU and direction was active: a driver that splits "
                    "copies, GPUs with more "
                    "engines, or clocks of several hosts; the model runs one at a time",
                    rates.overlapping));
  std::int64_t side_by_side = 0, all = 0;
  const std::vector<std::int64_t> free_before = engine_free_before(trace);
  for (std::size_t i = 0; i < free_before.size(); ++i) {
    const RecordedOperation& operation = trace.operations[i];
    if (is_copy(operation.kind)) continue;
    all += operation.length();
    side_by_side += std::clamp(free_before[i], operation.start, operation.end) - operation.start;
  }
  if (static_cast<double>(side_by_side) > kWorthANote * static_cast<double>(all))
    notes.push_back(fmt::format(
        "kernels ran beside other kernels of their GPU for {:.1f} % of their time; the model runs one at a time",
        100.0 * static_cast<double>(side_by_side) / static_cast<double>(all)));
  const bool pageable = std::ranges::any_of(rates.ports, &RecordedPort::pageable);
  if (pageable)
    notes.emplace_back(
        "copies from and to ordinary memory are copies of a memory of their own, 'heap0', at the rates that were seen; "
        "the threads that copy for them are not in the model");
  return notes;
}

}  // namespace

Expected<LearnedTrace> learn(const RecordedTrace& trace, const std::string& path) {
  LearnedTrace learned;
  learned.tasks = find_tasks(trace);
  if (learned.tasks.empty())
    return invalid_input(fmt::format("none of its {} copies and kernels is work that comes {} times by a clock or in a "
                                     "closed loop, so there is no task in it; record more rounds of the program's "
                                     "work (what events at irregular times start is not learned)",
                                     trace.operations.size(), kLeastOccurrences),
                         {path, 0, 0});
  count_recognised(trace, learned);
  const RateFinder finder(trace);
  learned.rates = finder.find();
  learned.machine = learned_machine(learned.rates, trace.gpus, cores_of_tasks(learned.tasks));
  const auto replay = judge(trace, finder, learned.tasks);
  if (!replay) return tl::unexpected(replay.error());
  learned.replay = *replay;
  if (const auto found = find_beyond(trace, learned); !found) return tl::unexpected(found.error());
  learned.notes = trace.notes;
  std::ranges::move(notes_of(trace, learned.rates), std::back_inserter(learned.notes));
  return learned;
}

}  // namespace tutti::internal
