#include "runtime/dispatch/replanning.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "runtime/core/notes.hpp"
#include "sched/tasks/shared_buffers.hpp"

namespace tutti::internal {
namespace {

/// Elements [tasks] of some of the tasks; none where there are none of any.
template <class T>
std::vector<T> picked(std::span<const TaskId> tasks, std::span<const T> all) {
  std::vector<T> some;
  for (const TaskId task : tasks)
    if (!all.empty()) some.push_back(all[task.index()]);
  return some;
}

bool uses_any(const TaskSet& set, TaskId task, std::span<const VertexId> gpus) {
  const std::vector<VertexId> own = gpus_of(set, {{task}});
  return std::ranges::any_of(own, [&](VertexId gpu) { return std::ranges::find(gpus, gpu) != gpus.end(); });
}

/// Ends the tasks that read buffers of tasks that do not go on.
void end_readers(const TaskSet& set, Replanning& replanned) {
  const auto goes_on = [&](TaskId task) {
    return std::ranges::find(replanned.resumed, task) != replanned.resumed.end();
  };
  const auto lacks_one = [&](TaskId task) {
    return std::ranges::any_of(set.tasks[task.index()].buffers, [&](const NamedBuffer& buffer) {
      const auto owner = owner_of(set, buffer);
      return owner && !goes_on(*owner);
    });
  };
  for (;;) {
    const auto found = std::ranges::find_if(replanned.resumed, lacks_one);
    if (found == replanned.resumed.end()) return;
    replanned.ended.push_back(*found);
    replanned.resumed.erase(found);
  }
}

/// Some tasks of the partition between two losses: what their run reads.
struct Stage {
  std::vector<TaskId> tasks;  ///< in the partition
  AdmittedTaskSet admitted;   ///< of these alone
  Executor* executor = nullptr;
  std::vector<TaskProgram*> programs;
  std::vector<TaskId> names;
  std::vector<TriggerSource*> triggers;
  std::unique_ptr<PreparedRun> run = nullptr;  // goes first
};

class ReplannedRun final : public PreparedRun {
 public:
  ReplannedRun(AdmittedTaskSet admitted, std::vector<TaskProgram*> programs, std::vector<std::uint64_t> jobs,
               const RunOptions& options, SpareMachines& spares, std::size_t partition)
      : admitted_(std::move(admitted)),
        programs_(std::move(programs)),
        jobs_(std::move(jobs)),
        options_(options),
        names_(options.names.begin(), options.names.end()),
        triggers_(options.triggers.begin(), options.triggers.end()),
        spares_(spares),
        partition_(partition) {}

  /// Prepares the run up to the first loss.
  Expected<void> prepare(Executor& executor) {
    std::vector<TaskId> all;
    for (std::size_t task = 0; task < tasks().tasks.size(); ++task) all.emplace_back(task);
    return begin(executor, std::move(all), admitted_, jobs_, {});
  }
  using PreparedRun::run;
  RunRecord run(std::optional<Duration> start) override;

 private:
  [[nodiscard]] const TaskSet& tasks() const { return admitted_.tasks(); }
  [[nodiscard]] Stage& stage() { return *stages_.back(); }

  /// Prepares a stage, and makes it the current one. @param jobs  [tasks] to release in it
  Expected<void> begin(Executor& executor, std::vector<TaskId> tasks, AdmittedTaskSet admitted,
                       std::span<const std::uint64_t> jobs, std::optional<EarlierRun> earlier);
  /// What came of the GPUs that an error of the current stage shows to be lost; nothing: it ends the run.
  std::optional<Replanning> replan(const std::optional<Error>& error, const RunRecord& so_far);
  Expected<void> go_on_with(std::vector<TaskId> left, const RunRecord& so_far);
  [[nodiscard]] std::uint64_t jobs_left(TaskId task, const RunRecord& so_far) const;
  /// Adds the record of the current stage.
  void append(RunRecord& whole, RunRecord record);

  AdmittedTaskSet admitted_;
  std::vector<TaskProgram*> programs_;
  std::vector<std::uint64_t> jobs_;
  RunOptions options_;
  std::vector<TaskId> names_;
  std::vector<TriggerSource*> triggers_;
  SpareMachines& spares_;
  std::size_t partition_;
  std::vector<VertexId> lost_;                  // so far
  std::vector<std::unique_ptr<Stage>> stages_;  // kept to the end: freeing memory may wait for other partitions
};

Expected<void> ReplannedRun::begin(Executor& executor, std::vector<TaskId> tasks, AdmittedTaskSet admitted,
                                   std::span<const std::uint64_t> jobs, std::optional<EarlierRun> earlier) {
  auto made = std::make_unique<Stage>(Stage{std::move(tasks), std::move(admitted), &executor, {}, {}, {}});
  Stage& next = *made;
  next.programs = picked<TaskProgram*>(next.tasks, programs_);
  next.names = names_.empty() ? next.tasks : picked<TaskId>(next.tasks, names_);
  next.triggers = picked<TriggerSource*>(next.tasks, triggers_);
  RunOptions options = options_;
  options.names = next.names;
  options.triggers = next.triggers;
  options.earlier = std::move(earlier);
  if (options_.on_job_end) {
    options.on_job_end = [this, &next](JobRecord job) {
      job.task = next.tasks[job.task.index()];
      options_.on_job_end(job);
    };
  }
  return prepare_run(executor, next.admitted, next.programs, jobs, options)
      .map([&](std::unique_ptr<PreparedRun>&& prepared) {
        next.run = std::move(prepared);
        stages_.push_back(std::move(made));
      });
}

RunRecord ReplannedRun::run(std::optional<Duration> start) {
  RunRecord whole = stage().run->run(start);
  std::optional<Error> error = whole.fatal;
  while (auto replanned = replan(error, whole)) {
    error.reset();
    add_notes(whole.notes, std::vector{text_of(*replanned, tasks(), stage().executor->machine())});
    whole.replanned.push_back(*std::move(replanned));
    if (!whole.replanned.back().resumed_at) break;
    RunRecord record = stage().run->run();
    error = record.fatal;
    append(whole, std::move(record));
  }
  if (error && !whole.replanned.empty()) add_notes(whole.notes, std::vector{error->message});  // `fatal` is the first
  return whole;
}

std::optional<Replanning> ReplannedRun::replan(const std::optional<Error>& error, const RunRecord& so_far) {
  if (!error || error->code != ErrorCode::Machine || so_far.interrupted) return std::nullopt;
  Replanning replanned{so_far.length, stage().executor->backend().lost_gpus(), {}, {}};
  if (replanned.gpus.empty()) return std::nullopt;
  lost_.insert(lost_.end(), replanned.gpus.begin(), replanned.gpus.end());
  for (const TaskId task : stage().tasks) {
    if (uses_any(tasks(), task, replanned.gpus)) {
      replanned.ended.push_back(task);
    } else if (jobs_left(task, so_far) > 0) {
      replanned.resumed.push_back(task);
    }
  }
  end_readers(tasks(), replanned);
  if (replanned.resumed.empty()) return replanned;
  Executor& before = *stage().executor;
  if (auto ok = go_on_with(replanned.resumed, so_far); ok) {
    replanned.resumed_at = before.clock().now() - so_far.start;
  } else {
    replanned.refused = std::exchange(replanned.resumed, {});
    replanned.reason = std::move(ok.error().message);
  }
  return replanned;
}

Expected<void> ReplannedRun::go_on_with(std::vector<TaskId> left, const RunRecord& so_far) {
  TaskSet set = tasks();
  set.tasks = picked<Task>(left, tasks().tasks);
  const AdmissionController controller(admitted_.planner());
  const bool overlaps = admitted_.planned().overlap.has_value();  // they go on as they were
  set.overlap = overlaps ? Overlap::On : Overlap::Off;
  AdmissionVerdict verdict = overlaps ? controller.decide(set) : controller.decide_as_one(set);
  if (!verdict.admitted)
    return machine_error("their deadlines are not guaranteed without the others: " + joined(verdict.reasons));
  EarlierRun earlier{so_far.start, {}};
  std::vector<std::uint64_t> jobs;
  for (const TaskId task : left) {
    earlier.released.push_back(so_far.summaries[task.index()].jobs());
    jobs.push_back(jobs_left(task, so_far));
  }
  return spares_.without(partition_, lost_).and_then([&](Executor* executor) {
    return begin(*executor, std::move(left), *std::move(verdict.admitted), jobs, std::move(earlier));
  });
}

/// Jobs that a task can still release. One that was suspended has none.
std::uint64_t ReplannedRun::jobs_left(TaskId task, const RunRecord& so_far) const {
  if (std::ranges::find(so_far.suspensions, task, &Suspension::task) != so_far.suspensions.end()) return 0;
  const std::uint64_t of_number = jobs_[task.index()] - so_far.summaries[task.index()].jobs();
  if (!options_.arrivals_before || options_.endless) return of_number;
  const Task& of = tasks().tasks[task.index()];
  const Duration time = *options_.arrivals_before - so_far.length - of.offset;  // in which they arrive
  if (time <= Duration{0}) return 0;
  const auto in_time = static_cast<std::uint64_t>((time - Duration{1}) / of.period) + 1;
  return options_.jobs ? std::min(of_number, in_time) : in_time;
}

void add(TriggerCounts& whole, const TriggerCounts& more) {
  whole.seen += more.seen;
  whole.deferred += more.deferred;
  whole.dropped += more.dropped;
  whole.missing += more.missing;
  whole.lost += more.lost;
  whole.most_early = std::max(whole.most_early, more.most_early);
}

void ReplannedRun::append(RunRecord& whole, RunRecord record) {
  const auto in_partition = [&](TaskId task) { return stage().tasks[task.index()]; };
  for (JobRecord& job : record.jobs) {
    job.task = in_partition(job.task);
    if (job.broken && job.broken->by) job.broken->by = in_partition(*job.broken->by);
    whole.jobs.push_back(std::move(job));
  }
  for (std::size_t i = 0; i < record.summaries.size(); ++i) {
    const std::size_t task = in_partition(TaskId{i}).index();
    whole.summaries[task].merge(record.summaries[i]);
    whole.loads[task] += record.loads[i];
    add(whole.triggers[task], record.triggers[i]);
  }
  for (const auto& [task, at] : record.suspensions) whole.suspensions.push_back({in_partition(task), at});
  whole.interrupted = record.interrupted;
  whole.length = record.length;
  whole.processor += record.processor;
  add_notes(whole.notes, record.notes);
}

// ---- the sentence

/// "'a', 'b'"
std::string names_of(std::span<const TaskId> tasks, const TaskSet& set) {
  std::vector<std::string> names;
  for (const TaskId task : tasks) names.push_back(fmt::format("'{}'", set.tasks[task.index()].name));
  return joined(names);
}

/// The form of a verb for so many subjects.
std::string_view form(std::size_t subjects, std::string_view of_one, std::string_view of_several) {
  return subjects == 1 ? of_one : of_several;
}

std::string fate_of_others(const Replanning& replanning, const TaskSet& tasks) {
  const std::size_t resumed = replanning.resumed.size(), refused = replanning.refused.size();
  if (refused > 0)
    return fmt::format("{} {} not go on: {}", names_of(replanning.refused, tasks), form(refused, "does", "do"),
                       replanning.reason);
  if (resumed == 0) return "no other task has jobs left";
  const Duration took = *replanning.resumed_at - replanning.at;
  return fmt::format("{} {} on, admitted anew{}", names_of(replanning.resumed, tasks), form(resumed, "goes", "go"),
                     took > Duration{0} ? " after " + to_string(took) : "");
}

}  // namespace

std::string text_of(const Replanning& replanning, const TaskSet& tasks, const Topology& machine) {
  std::vector<std::string> gpus;
  for (const VertexId gpu : replanning.gpus) gpus.push_back(machine.vertex(gpu).name);
  const std::size_t ended = replanning.ended.size();
  const std::string fate = ended == 0 ? "no task needs it"
                                      : fmt::format("{} {} it and {} ended", names_of(replanning.ended, tasks),
                                                    form(ended, "needs", "need"), form(ended, "has", "have"));
  return fmt::format("{} {} lost at {}: {}; {}", joined(gpus), form(gpus.size(), "was", "were"),
                     to_string(replanning.at), fate, fate_of_others(replanning, tasks));
}

Expected<std::unique_ptr<PreparedRun>> prepare_replanned_run(Executor& executor, AdmittedTaskSet admitted,
                                                             std::vector<TaskProgram*> programs,
                                                             std::vector<std::uint64_t> jobs, const RunOptions& options,
                                                             SpareMachines& spares, std::size_t partition) {
  auto run = std::make_unique<ReplannedRun>(std::move(admitted), std::move(programs), std::move(jobs), options, spares,
                                            partition);
  return run->prepare(executor).map([&]() -> std::unique_ptr<PreparedRun> { return std::move(run); });
}

}  // namespace tutti::internal
