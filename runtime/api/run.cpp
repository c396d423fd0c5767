#include "runtime/api/run.hpp"

#include <algorithm>
#include <limits>

#include "runtime/api/handles.hpp"
#include "runtime/api/user_program.hpp"
#include "runtime/dispatch/partition_machines.hpp"
#include "runtime/dispatch/partitioned_run.hpp"
#include "runtime/dispatch/run_chains.hpp"
#include "runtime/dispatch/run_journal.hpp"
#include "runtime/triggers/trigger_sources.hpp"
#include "sched/admission/known_bounds.hpp"
#include "sched/tasks/compile_tasks.hpp"

namespace tutti {

struct internal::ChangeRequestsState {
  std::shared_ptr<const TaskStudy> set;
  ChangeRequests requests;
  std::atomic<bool> taken = false;  // by a run

  /// @errors InvalidInput: there is no such task.
  [[nodiscard]] Expected<TaskId> find(std::string_view name) const {
    const auto& tasks = set->tasks.tasks;
    const auto found = std::ranges::find(tasks, name, &Task::name);
    if (found == tasks.end())
      return invalid_input(fmt::format("the set has no task '{:.80}'; name one of its tasks", name));
    return TaskId{static_cast<std::size_t>(found - tasks.begin())};
  }
};

namespace {

using internal::Handles;
using internal::record_of;

TaskSummary summary_of(const internal::JobSummary& jobs) {
  using Verdict = internal::JobVerdict;
  TaskSummary summary;
  summary.jobs = jobs.jobs();
  summary.met = jobs.with(Verdict::Met);
  summary.missed = jobs.with(Verdict::Missed);
  summary.aborted = jobs.with(Verdict::Aborted);
  summary.failed = jobs.with(Verdict::Failed);
  summary.dropped = jobs.with(Verdict::Dropped);
  summary.skipped = jobs.with(Verdict::Skipped);
  summary.never_run = jobs.with(Verdict::NeverRun);
  summary.over_bound = jobs.over_bound();
  summary.worst_response = jobs.responses().largest();
  summary.worst_lateness = jobs.lateness().largest();
  summary.overwritten = jobs.overwritten();
  summary.reused_input = jobs.reused_input();
  summary.worst_response_at_host = jobs.worst_at_host();
  return summary;
}

/// One run: the machines of the partitions, the programs, and what stops it.
class UserRun {
 public:
  /// What is passed in outlives the run.
  UserRun(const internal::PlannedTaskSet& planned, const internal::KernelRegistry& kernels,
          const TaskPrograms& programs, const RunOptions& options)
      : planned_(planned),
        kernels_(kernels),
        programs_(programs),
        options_(options),
        guard_(options.stop != nullptr ? *options.stop : own_stop_) {}

  /// @param execute  (executors, programs, options) -> Expected<internal::RunRecord>
  /// @param bounds   [tasks] of responses; empty: none are known
  /// @param chains   [chains] of latencies; empty: none are known
  template <class Execute>
  Expected<RunRecord> run(internal::KnownBounds bounds, internal::KnownBounds chains, const Execute& execute) {
    if (options_.endless && (options_.jobs || options_.arrivals_before))
      return internal::invalid_input("an endless run has no number of jobs and no time; give one of the three");
    if (auto ok = internal::check_programs(planned_.tasks, programs_); !ok)
      return tl::unexpected(std::move(ok.error()));
    internal::TakenRings rings;
    if (auto ok = rings.take(programs_); !ok) return tl::unexpected(std::move(ok.error()));
    if (!planned_.tasks.machine)
      return internal::invalid_input("no task of the set has a batch, so there is nothing to run; give one a job");
    auto machines = internal::PartitionMachines::make(options_.backend, planned_, *planned_.tasks.machine, kernels_);
    if (!machines) return tl::unexpected(machines.error());
    auto journal = internal::RunJournal::open({options_.journal, options_.journal_size, options_.journal_files},
                                              planned_, bounds, chains, machines->place());
    if (!journal) return tl::unexpected(std::move(journal.error()));
    const auto triggers = internal::TriggerSources::make(planned_.tasks, trigger_origins(machines->place()));
    if (!triggers) return tl::unexpected(triggers.error());
    const internal::UserPrograms users(planned_.tasks, programs_, options_.seed, guard_);
    internal::RunOptions length = internal_options();
    length.recorders = journal->recorders();
    length.triggers = triggers->table();
    length.spares = &*machines;
    auto record = execute(machines->executors(), users.table(), length);
    if (!record) return tl::unexpected(std::move(record.error()));
    journal->close(record->notes);
    if (guard_.error()) return tl::unexpected(*guard_.error());
    RunRecord found = record_of_run(*std::move(record), chains);
    for (std::string& note : machines->place().notes) found.notes.push_back(std::move(note));
    for (std::string& note : users.notes()) found.notes.push_back(std::move(note));
    return found;
  }

 private:
  [[nodiscard]] internal::TriggerOrigins trigger_origins(const internal::RunPlace& place) const {
    internal::TriggerOrigins origins;
    for (const auto& [task, trigger] : options_.triggers) origins.handles.emplace(task, Handles::state(trigger));
    origins.simulated = place.clock == "virtual";
    origins.seed = options_.seed;
    return origins;
  }

  [[nodiscard]] internal::RunOptions internal_options() {
    internal::RunOptions options;
    options.jobs = options_.jobs;
    options.arrivals_before = options_.arrivals_before;
    options.endless = options_.endless;
    options.keeps_jobs = !options_.endless;
    options.seed = options_.seed;
    options.conductor = planned_.tasks.led_by_gpu ? ConductorKind::Gpu : ConductorKind::Host;
    options.host_away = planned_.tasks.host_away;
    options.interrupted = options_.stop != nullptr ? options_.stop : &own_stop_;
    if (options_.on_job_end) {
      options.on_job_end = [this](const internal::JobRecord& job) {
        const internal::Task& task = planned_.tasks.tasks[job.task.index()];
        guard_.call_or_stop("on_job_end", task.name, [&] { options_.on_job_end(record_of(job, task)); });
      };
    }
    return options;
  }

  [[nodiscard]] const std::string& name_of(internal::TaskId task) const {
    return planned_.tasks.tasks[task.index()].name;
  }

  [[nodiscard]] std::vector<std::string> names_of(const std::vector<internal::TaskId>& tasks) const {
    std::vector<std::string> names;
    for (const internal::TaskId task : tasks) names.push_back(name_of(task));
    return names;
  }

  [[nodiscard]] Replanning users_replanning(internal::Replanning found) const {
    Replanning users{found.at,
                     {},
                     names_of(found.ended),
                     names_of(found.resumed),
                     found.resumed_at,
                     names_of(found.refused),
                     std::move(found.reason)};
    for (const internal::VertexId gpu : found.gpus) users.gpus.push_back(planned_.tasks.machine->vertex(gpu).name);
    return users;
  }

  [[nodiscard]] std::vector<ChainSummary> chains_of(const internal::RunRecord& record,
                                                    internal::KnownBounds bounds) const {
    std::vector<ChainSummary> summaries;
    if (options_.endless) return summaries;
    const auto measured = internal::measure_chains(planned_.tasks, bounds, record);
    for (std::size_t i = 0; i < measured.size(); ++i)
      summaries.push_back({planned_.tasks.chains[i].name, measured[i].reactions, measured[i].worst_reaction,
                           measured[i].worst_data_age, internal::bound_of(bounds, i), measured[i].over_bound,
                           measured[i].over_deadline});
    return summaries;
  }

  /// @param chains  as of `run`
  [[nodiscard]] RunRecord record_of_run(internal::RunRecord record, internal::KnownBounds chains) const {
    RunRecord users;
    users.chains = chains_of(record, chains);
    for (const internal::JobRecord& job : record.jobs)
      users.jobs.push_back(record_of(job, planned_.tasks.tasks[job.task.index()]));
    for (const internal::JobSummary& summary : record.summaries) users.summaries.push_back(summary_of(summary));
    for (std::size_t i = 0; i < record.triggers.size(); ++i) {
      const internal::TriggerCounts& of_task = record.triggers[i];
      users.summaries[i].triggers = {of_task.seen,    of_task.deferred, of_task.dropped,
                                     of_task.missing, of_task.lost,     of_task.most_early};
    }
    users.interrupted = record.interrupted;
    users.host_away = record.host_away;
    users.start_on_gpu = record.start_on_gpu;
    users.fatal = std::move(record.fatal);
    users.notes = std::move(record.notes);
    for (internal::Replanning& replanned : record.replanned)
      users.replanned.push_back(users_replanning(std::move(replanned)));
    for (const internal::ChangeRecord& change : record.changes) {
      TaskChange asked{change.change.at, "", ""};
      if (change.change.leaves) asked.leaves = name_of(*change.change.leaves);
      if (change.change.comes) asked.comes = name_of(*change.change.comes);
      users.changes.push_back(
          {std::move(asked), change.answered, static_cast<Answer>(change.answer.answer), change.answer.reason});
    }
    return users;
  }

  const internal::PlannedTaskSet& planned_;
  const internal::KernelRegistry& kernels_;
  const TaskPrograms& programs_;
  const RunOptions& options_;
  std::atomic<bool> own_stop_ = false;
  internal::CallbackGuard guard_;
};

}  // namespace

Expected<RunRecord> run(const AdmittedTaskSet& set, const Kernels& kernels, const TaskPrograms& programs,
                        const RunOptions& options) {
  const auto& admitted = Handles::state(set);
  const auto& registry = Handles::state(kernels);
  if (!admitted) return internal::empty_handle("admitted task set");
  if (!registry) return internal::empty_handle("kernel table");
  return UserRun(admitted->planned(), *registry, programs, options)
      .run(admitted->worst_responses(), admitted->chain_latencies(),
           [&](std::span<internal::Executor* const> executors, std::span<internal::TaskProgram* const> rows,
               const internal::RunOptions& length) { return run_tasks(executors, *admitted, rows, length); });
}

Expected<ChangeRequests> ChangeRequests::make(const TaskSet& set) {
  const auto& state = Handles::state(set);
  if (!state) return internal::empty_handle("task set");
  auto led = internal::led_by_host(*state, "tasks come and go while the host leads; write 'conductor: host'");
  if (!led) return tl::unexpected(std::move(led.error()));
  auto requests = std::make_shared<State>();
  requests->set = std::make_shared<const internal::TaskStudy>(*std::move(led));
  return ChangeRequests(std::move(requests));
}

Expected<void> ChangeRequests::post(const TaskChange& change) {
  if (!state_) return internal::empty_handle("request list");
  if (change.leaves == change.comes)
    return internal::invalid_input("a change names no task, or one task twice; name one that leaves or one that comes");
  internal::TaskChange asked{change.at, {}, {}};
  for (const auto& [name, id] : {std::pair(&change.leaves, &asked.leaves), std::pair(&change.comes, &asked.comes)}) {
    if (name->empty()) continue;
    const auto task = state_->find(*name);
    if (!task) return tl::unexpected(task.error());
    *id = *task;
  }
  state_->requests.post(asked);
  return {};
}

Expected<RunRecord> run_changing(const ChangeRequests& requests, const std::vector<std::string>& running,
                                 const Kernels& kernels, const TaskPrograms& programs, const RunOptions& options,
                                 std::string_view planner) {
  const auto& state = Handles::state(requests);
  const auto& registry = Handles::state(kernels);
  if (!state) return internal::empty_handle("request list");
  if (!registry) return internal::empty_handle("kernel table");
  if (!options.arrivals_before || options.jobs)
    return internal::invalid_input("a run whose tasks change ends at a time; give arrivals_before, and no jobs");
  std::vector<internal::TaskId> from_start;
  for (const std::string& name : running) {
    const auto task = state->find(name);
    if (!task) return tl::unexpected(task.error());
    from_start.push_back(*task);
  }
  std::ranges::sort(from_start);
  if (std::ranges::adjacent_find(from_start) != from_start.end())
    return internal::invalid_input("a task is named twice among those that run from the start; name each once");
  const internal::TaskSet& tasks = state->set->tasks;
  const auto chosen = internal::planner_of(planner, tasks.planner);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto changing = internal::ChangingTaskSet::make(internal::AdmissionController(**chosen), tasks, from_start);
  if (!changing) return tl::unexpected(changing.error());
  if (state->taken.exchange(true))
    return internal::invalid_input("a run has these requests already; make new ones for each run");
  return UserRun(changing->planned(), *registry, programs, options)
      .run({}, {},
           [&](std::span<internal::Executor* const> executors, std::span<internal::TaskProgram* const> rows,
               const internal::RunOptions& length) {
             return run_changing_tasks(*executors.front(), *changing, rows, state->requests, length);
           });
}

}  // namespace tutti
