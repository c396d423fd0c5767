#include "runtime/dispatch/partitioned_run.hpp"

#include <algorithm>
#include <functional>
#include <future>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "runtime/core/notes.hpp"
#include "runtime/dispatch/replanning.hpp"

namespace tutti::internal {
namespace {

using PreparedRuns = std::vector<std::unique_ptr<PreparedRun>>;

/// Elements [tasks] that belong to a partition's tasks.
template <class T>
std::vector<T> of(const Partition& partition, std::span<const T> all) {
  std::vector<T> own;
  for (const TaskId task : partition.tasks) own.push_back(all[task.index()]);
  return own;
}

/// A scenario's jobs of a partition, with the ids that its tasks have there.
Scenario of(const Partition& partition, const Scenario& whole) {
  Scenario own;
  for (ScenarioJob job : whole.jobs) {
    const auto place = std::ranges::lower_bound(partition.tasks, job.task);
    if (place == partition.tasks.end() || *place != job.task) continue;
    job.task = TaskId{static_cast<std::size_t>(place - partition.tasks.begin())};
    own.jobs.push_back(job);
  }
  return own;
}

/// The options of a partition's run: it reports the ends of jobs with the ids that its tasks have in the whole set.
/// @param triggers  [tasks of the partition] outlives the options
RunOptions of(const Partition& partition, std::size_t place, const RunOptions& whole,
              std::span<TriggerSource* const> triggers) {
  RunOptions own = whole;
  own.names = partition.tasks;
  if (!whole.recorders.empty()) own.recorders = whole.recorders.subspan(place, 1);
  if (!whole.triggers.empty()) own.triggers = triggers;
  if (whole.on_job_end) {
    own.on_job_end = [&partition, &whole](JobRecord job) {
      job.task = partition.tasks[job.task.index()];
      whole.on_job_end(job);
    };
  }
  return own;
}

/// The threads of a run are ready so long after they were let go.
constexpr Duration kUntilStart = std::chrono::milliseconds{10};

/// Runs all, each in a thread of its own: none if the host has no thread for one of them.
/// @param before   called when all threads are there
/// @param run_one  (position) -> RunRecord
Expected<std::vector<RunRecord>> run_in_threads(const PreparedRuns& runs, const std::function<void()>& before,
                                                const std::function<RunRecord(std::size_t)>& run_one) {
  std::vector<std::future<RunRecord>> under_way;
  std::promise<void> start;  // is destroyed before the futures: threads that wait for it end then
  const std::shared_future<void> started(start.get_future());
  try {
    for (std::size_t i = 0; i < runs.size(); ++i)
      under_way.push_back(std::async(std::launch::async, [&run_one, i, started] {
        started.get();
        return run_one(i);
      }));
  } catch (const std::system_error& error) {
    return machine_error(
        fmt::format("the host has no thread for each of the {} partitions: {}", runs.size(), error.what()));
  }
  before();
  start.set_value();
  std::vector<RunRecord> records;
  for (std::future<RunRecord>& run : under_way) records.push_back(run.get());
  return records;
}

/// Runs all at once, from one moment on.
Expected<std::vector<RunRecord>> run_at_once(std::span<Executor* const> executors, const PreparedRuns& runs) {
  std::vector<Duration> starts(runs.size());  // that moment on the clock of each
  const auto find_starts = [&] {
    for (std::size_t i = 0; i < runs.size(); ++i) starts[i] = executors[i]->clock().now() + kUntilStart;
  };
  return run_in_threads(runs, find_starts, [&](std::size_t i) { return runs[i]->run(starts[i]); });
}

/// The turn of a virtual clock, until its run has ended.
class Turn {
 public:
  Turn(TimeTurns& turns, Clock& clock, std::size_t number) : turns_(turns), clock_(clock), number_(number) {
    turns_.begin(number_);
    clock_.join(&turns_, number_);
  }
  Turn(const Turn&) = delete;  // it ends once
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    clock_.join(nullptr, 0);
    turns_.end(number_);
  }

 private:
  TimeTurns& turns_;
  Clock& clock_;
  std::size_t number_;
};

/// Runs all on virtual clocks that advance together.
Expected<std::vector<RunRecord>> run_in_turns(std::span<Executor* const> executors, const PreparedRuns& runs) {
  TimeTurns turns(runs.size());
  return run_in_threads(
      runs, [] {},
      [&](std::size_t i) {
        const Turn turn(turns, executors[i]->clock(), i);
        return runs[i]->run();
      });
}

Expected<std::vector<RunRecord>> run_all(std::span<Executor* const> executors, const PreparedRuns& runs) {
  const auto runs_by_itself = [](const Executor* executor) { return executor->clock().runs_by_itself(); };
  const bool at_once = std::ranges::any_of(executors, runs_by_itself);
  TUTTI_EXPECTS(at_once == std::ranges::all_of(executors, runs_by_itself), "partitions have clocks of one kind");
  if (runs.size() > 1) return at_once ? run_at_once(executors, runs) : run_in_turns(executors, runs);
  std::vector<RunRecord> records;
  for (const auto& run : runs) records.push_back(run->run());
  return records;
}

/// A job with its place among the jobs of all partitions.
struct Ended {
  Duration at{};  ///< its finish; of a job that was never run, that of the job before it
  JobRecord job;
};

RunRecord merged(std::span<const Partition> partitions, std::size_t tasks, std::vector<RunRecord> records) {
  if (records.size() == 1) return std::move(records.front());
  RunRecord whole;
  whole.summaries.resize(tasks);
  whole.loads.resize(tasks);
  whole.triggers.resize(tasks);
  std::vector<Ended> ended;
  for (std::size_t i = 0; i < records.size(); ++i) {
    whole.interrupted = whole.interrupted || records[i].interrupted;
    whole.processor += records[i].processor;
    if (records[i].host_away) whole.host_away = std::min(whole.host_away.value_or(kNever), *records[i].host_away);
    whole.length = std::max(whole.length, records[i].length);
    add_notes(whole.notes, records[i].notes);
    if (!whole.fatal) whole.fatal = std::move(records[i].fatal);
    const auto of_set = [&](TaskId task) { return partitions[i].tasks[task.index()]; };
    for (std::size_t task = 0; task < records[i].summaries.size(); ++task)
      whole.summaries[of_set(TaskId{task}).index()] = std::move(records[i].summaries[task]);
    for (std::size_t task = 0; task < records[i].loads.size(); ++task)
      whole.loads[of_set(TaskId{task}).index()] = records[i].loads[task];
    for (std::size_t task = 0; task < records[i].triggers.size(); ++task)
      whole.triggers[of_set(TaskId{task}).index()] = records[i].triggers[task];
    for (Replanning& replanned : records[i].replanned) {
      for (auto* const some : {&replanned.ended, &replanned.resumed, &replanned.refused})
        std::ranges::transform(*some, some->begin(), of_set);
      whole.replanned.push_back(std::move(replanned));
    }
    for (const auto& [task, suspended_at] : records[i].suspensions)
      whole.suspensions.push_back({of_set(task), suspended_at});
    Duration at{};
    for (JobRecord& job : records[i].jobs) {
      at = std::max(at, job.finish.value_or(at));
      job.task = of_set(job.task);
      if (job.broken && job.broken->by) job.broken->by = of_set(*job.broken->by);
      ended.push_back({at, std::move(job)});
    }
  }
  std::ranges::stable_sort(ended, {}, &Ended::at);
  std::ranges::stable_sort(whole.suspensions, {}, &Suspension::at);
  std::ranges::stable_sort(whole.replanned, {}, &Replanning::at);
  whole.jobs.reserve(ended.size());
  for (Ended& each : ended) whole.jobs.push_back(std::move(each.job));
  return whole;
}

/// @param prepare  (partition) -> Expected<std::unique_ptr<PreparedRun>>
template <class Prepare>
Expected<RunRecord> run(std::span<Executor* const> executors, const PlannedTaskSet& planned,
                        std::span<TaskProgram* const> programs, const Prepare& prepare) {
  TUTTI_EXPECTS(executors.size() == planned.partitions.size(), "each partition has its executor");
  TUTTI_EXPECTS(programs.size() == planned.tasks.tasks.size(), "each task has its program");
  PreparedRuns runs;
  for (std::size_t i = 0; i < executors.size(); ++i) {
    auto prepared = prepare(i);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    runs.push_back(*std::move(prepared));
  }
  return run_all(executors, runs).map([&](std::vector<RunRecord>&& records) {
    return merged(planned.partitions, planned.tasks.tasks.size(), std::move(records));
  });
}

}  // namespace

Expected<RunRecord> run_tasks(std::span<Executor* const> executors, const AdmittedTaskSet& admitted,
                              std::span<TaskProgram* const> programs, const RunOptions& options) {
  const auto jobs = jobs_per_task(admitted.tasks(), options);
  if (!jobs) return tl::unexpected(jobs.error());
  std::vector<AdmittedTaskSet> parts;
  std::vector<std::vector<TriggerSource*>> triggers(admitted.partitions().size());
  for (std::size_t i = 0; i < admitted.partitions().size(); ++i) parts.push_back(admitted.part(i));
  return run(executors, admitted.planned(), programs, [&](std::size_t i) {
    const Partition& partition = admitted.partitions()[i];
    triggers[i] = options.triggers.empty() ? std::vector<TriggerSource*>{} : of(partition, options.triggers);
    const RunOptions own = of(partition, i, options, triggers[i]);
    if (options.spares != nullptr)
      return prepare_replanned_run(*executors[i], parts[i], of(partition, programs), of(partition, std::span(*jobs)),
                                   own, *options.spares, i);
    return prepare_run(*executors[i], parts[i], of(partition, programs), of(partition, std::span(*jobs)), own);
  });
}

Expected<RunRecord> run_scenario(std::span<Executor* const> executors, const PlannedTaskSet& planned,
                                 std::span<TaskProgram* const> programs, const Scenario& scenario,
                                 const RunOptions& options) {
  std::vector<PlannedTaskSet> parts;
  for (std::size_t i = 0; i < planned.partitions.size(); ++i) parts.push_back(part_of(planned, i));
  return run(executors, planned, programs, [&](std::size_t i) {
    const Partition& partition = planned.partitions[i];
    return prepare_run(*executors[i], parts[i], of(partition, programs), of(partition, scenario),
                       of(partition, i, options, {}));
  });
}

}  // namespace tutti::internal
