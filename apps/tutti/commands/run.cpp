#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "apps/backend_words.hpp"
#include "apps/interrupt.hpp"
#include "apps/output_file.hpp"
#include "apps/seed.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/commands/kernels.hpp"
#include "apps/tutti/commands/self_test.hpp"
#include "apps/tutti/formats/journal_recording.hpp"
#include "apps/tutti/formats/trace_file.hpp"
#include "apps/tutti/reports/chains_report.hpp"
#include "apps/tutti/reports/faults_report.hpp"
#include "apps/tutti/reports/live_run.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/responses_svg.hpp"
#include "apps/tutti/reports/run_report.hpp"
#include "runtime/dispatch/faulty_machines.hpp"
#include "runtime/dispatch/journal_plan.hpp"
#include "runtime/dispatch/partitioned_run.hpp"
#include "runtime/dispatch/run_chains.hpp"
#include "runtime/dispatch/run_journal.hpp"
#include "runtime/triggers/trigger_sources.hpp"
#include "sched/admission/task_changes_yaml.hpp"
#include "sched/tasks/led_set.hpp"
#include "sched/whatif/run_faults_yaml.hpp"
#include "sched/whatif/scenario_yaml.hpp"

namespace tutti::internal {
namespace {

/// Of a file of `--journal-size`: its first record alone takes some kB.
constexpr Bytes kLeastJournal{4096};

struct RunCommand {
  FileOptions file;
  std::optional<std::int64_t> jobs;
  std::string duration;
  std::string scenario;
  std::string changes;
  std::string faults;
  std::string journal;
  std::string journal_size;
  std::optional<std::int64_t> journal_files;
  std::string trace;
  std::string metrics;
  std::optional<std::string> metrics_listen;
  std::string svg;
  bool endless = false;
  programs::BackendWords backend;
  std::uint64_t seed = 1;
  std::string self_test;
  bool bound_by = false;
};

Expected<RunOptions> run_options(const RunCommand& command) {
  RunOptions options;
  if (command.jobs) options.jobs = static_cast<std::uint64_t>(*command.jobs);
  options.seed = command.seed;
  options.endless = command.endless;
  options.keeps_jobs = !command.endless;
  if (command.duration.empty()) return options;
  const auto duration = parse_duration(command.duration);
  if (!duration) return invalid_input("--for: " + duration.error().message);
  if (*duration <= Duration{0}) return invalid_input("--for: no job arrives in no time; give a time like 10s");
  options.arrivals_before = *duration;
  return options;
}

/// What a run needs beside its executors and programs.
struct RunParts {
  std::span<JobRecorder* const> recorders;   ///< [partitions]
  std::span<TriggerSource* const> triggers;  ///< [tasks]
  SpareMachines* spares = nullptr;

  [[nodiscard]] RunOptions in(RunOptions options) const {
    options.recorders = recorders;
    options.triggers = triggers;
    options.spares = spares;
    return options;
  }
};

/// Where the journal of a run lies that is not asked for: beside its trace, which is written from it.
std::string scratch_journal(const std::string& trace) {
  namespace fs = std::filesystem;
  const bool is_device = fs::exists(trace) && !fs::is_regular_file(trace);
  return fmt::format("{}.{}.journal", is_device ? (fs::temp_directory_path() / "tutti").string() : trace, getpid());
}

/// A file that is removed when its owner is.
struct ScratchFile {
  explicit ScratchFile(std::string name) : path(std::move(name)) {}
  ScratchFile(const ScratchFile&) = delete;  // it is removed once
  ScratchFile& operator=(const ScratchFile&) = delete;
  ~ScratchFile() {
    if (!path.empty()) unlink(path.c_str());
  }

  std::string path;
};

/// Writes the trace from the journal of the run.
/// @return what is wrong
std::optional<Error> write_run_trace(const RunCommand& command) {
  if (command.trace.empty()) return std::nullopt;
  const std::string journal = command.journal.empty() ? scratch_journal(command.trace) : command.journal;
  const auto written = write_trace(command.trace, [&](RecordingSink& sink) -> Expected<void> {
    auto reader = JournalReader::open(journal);
    if (!reader) return tl::unexpected(std::move(reader.error()));
    record_journal(*std::move(reader), command.file.path, sink);
    return {};
  });
  return written ? std::nullopt : std::optional(written.error());
}

/// The journal that the command asks for.
Expected<RunJournal> open_journal(const RunCommand& command, const PlannedTaskSet& planned,
                                  const WorstResponses& bounds, const ChainBounds& chains, const RunPlace& place,
                                  JournalObserver* observer) {
  if (command.journal.empty() && !command.trace.empty())
    return RunJournal::open({scratch_journal(command.trace)}, planned, bounds, chains, place, observer);
  JournalFiles files{command.journal};
  if (command.journal_files) files.keep = static_cast<std::size_t>(*command.journal_files);
  if (!command.journal_size.empty()) {
    const auto size = parse_bytes(command.journal_size);
    if (!size) return invalid_input("--journal-size: " + size.error().message);
    if (*size < kLeastJournal)
      return invalid_input(fmt::format("--journal-size: files of {} would be too many; give {} or more",
                                       to_string(*size), to_string(kLeastJournal)));
    files.rotate_at = *size;
  }
  return RunJournal::open(files, planned, bounds, chains, place, observer);
}

std::vector<MeasuredTask> measured_tasks(const PlannedTaskSet& planned, const WorstResponses& bounds) {
  std::vector<MeasuredTask> tasks;
  for (std::size_t i = 0; i < planned.tasks.tasks.size(); ++i)
    tasks.push_back({planned.tasks.tasks[i].name, planned.tasks.tasks[i].deadline, bound_of(bounds, i),
                     predicted_length(planned, TaskId(i)), bound_at_host(planned.tasks, bound_of(bounds, i))});
  return tasks;
}

/// The responses of each task; none where the run kept no jobs.
std::vector<std::vector<Duration>> responses_of(const RunRecord& record) {
  std::vector<std::vector<Duration>> responses(record.summaries.size());
  for (const JobRecord& job : record.jobs)
    if (entry_of(job).completed()) responses[job.task.index()].push_back(job.response());
  return responses;
}

/// The endpoint of metrics that the command asks for, or null.
Expected<std::unique_ptr<MetricsEndpoint>> metrics_endpoint(const RunCommand& command) {
  if (!command.metrics_listen) return nullptr;
  auto opened = parse_listen_address(*command.metrics_listen).and_then([](const ListenAddress& address) {
    return MetricsEndpoint::open(address);
  });
  if (!opened) opened.error().message.insert(0, "--metrics-listen: ");
  return opened;
}

/// Lines on a terminal, and metrics, where somebody reads them; else null. A virtual clock is sooner done than read.
Expected<std::unique_ptr<LiveRun>> live_run(const RunCommand& command, const PlannedTaskSet& planned,
                                            const WorstResponses& bounds, const RunPlace& place) {
  const bool is_read = !programs::is_quiet() && (programs::shows_live() || place.clock == "real");
  auto endpoint = metrics_endpoint(command);
  if (!endpoint) return tl::unexpected(std::move(endpoint.error()));
  if (command.metrics.empty() && !*endpoint && !is_read) return nullptr;
  if (*endpoint) programs::print_note("metrics are at " + (*endpoint)->url());
  return std::make_unique<LiveRun>(measured_tasks(planned, bounds), command.metrics, *std::move(endpoint));
}

/// The sources of the triggers that release jobs. On the virtual clock, and where faults meet triggers, a simulated
/// device fires them; the jobs of a scenario need none.
/// @param faulty  null: nothing goes wrong
Expected<TriggerSources> triggers_of(const RunCommand& command, const TaskSet& tasks, const RunPlace& place,
                                     const std::optional<RunFaults>& faults, const FaultyMachines* faulty) {
  TriggerOrigins origins;
  origins.simulated = place.clock == "virtual" || !command.scenario.empty();
  origins.seed = command.seed;
  if (faults && FaultScript::has_triggers(*faults)) {
    origins.simulated = true;
    origins.faults = [faulty](TaskId task, std::uint64_t number, Duration at) {
      return faulty->trigger(task, number, at);
    };
  }
  return TriggerSources::make(tasks, origins);
}

/// Runs a task set on the backends of its partitions and prints the report.
/// @param bounds      of responses, where they are known
/// @param chains      bounds of chains
/// @param guaranteed  whether every deadline is guaranteed; if not, a missed one is not the host's fault
/// @param faults      that meet the run, where there are any
/// @param execute (executors, programs, parts) -> Expected<RunRecord>
template <class Execute>
int run_and_report(const RunCommand& command, const PlannedTaskSet& planned, const WorstResponses& bounds,
                   const ChainBounds& chains, bool guaranteed, const std::optional<RunFaults>& faults,
                   const Execute& execute) {
  const KernelRegistry kernels = kernels_of_this_program();
  // A set whose tasks only declare their Wcet needs no machine; any machine can let time pass.
  const auto machine = planned.tasks.machine ? Expected<Topology>(*planned.tasks.machine) : idle_machine();
  if (!machine) return report_error(machine.error());
  const auto options = backend_options(command.backend);
  if (!options) return report_error(options.error());
  auto machines = PartitionMachines::make(*options, planned, *machine, kernels);
  if (!machines) return report_error(machines.error());
  std::vector<std::unique_ptr<PatternProgram>> programs;
  std::vector<TaskProgram*> rows;
  for (const Task& task : planned.tasks.tasks) {
    programs.push_back(std::make_unique<PatternProgram>(*machine, task, command.seed));
    rows.push_back(programs.back().get());
  }
  const auto watched = live_run(command, planned, bounds, machines->place());
  if (!watched) return report_error(watched.error());
  const std::unique_ptr<LiveRun>& live = *watched;
  auto journal = open_journal(command, planned, bounds, chains, machines->place(), live.get());
  if (!journal) return report_error(journal.error());
  const auto self_test = self_test_of_run(command.self_test, *options, machines->executors().front()->role(), *machine);
  std::optional<FaultyMachines> faulty;
  if (faults)
    faulty.emplace(machines->executors(), rows, planned, *faults, options->watchdog, command.seed, &*machines);
  const auto triggers = triggers_of(command, planned.tasks, machines->place(), faults, faulty ? &*faulty : nullptr);
  if (!triggers) return report_error(triggers.error());
  SpareMachines& spares = faulty ? static_cast<SpareMachines&>(*faulty) : *machines;
  const RunParts parts{journal->recorders(), triggers->table(), &spares};
  const ScratchFile scratch(command.journal.empty() && !command.trace.empty() ? scratch_journal(command.trace) : "");
  const Expected<RunRecord> record =
      faulty ? execute(faulty->executors(), faulty->programs(), parts) : execute(machines->executors(), rows, parts);
  RunPlace place = machines->place();
  journal->close(place.notes);
  if (!command.journal.empty()) programs::print_written(command.journal);
  const auto unwritten = live ? live->end() : std::nullopt;
  if (!record) return report_error(record.error());
  place.notes.insert(place.notes.end(), record->notes.begin(), record->notes.end());
  if (command.endless && command.journal.empty() && !planned.tasks.chains.empty())
    place.notes.emplace_back("an endless run keeps no jobs to measure chains by; 'tutti report' does from a --journal");
  add_lateness_note(self_test, place.notes);
  const bool simulates_guarantee = command.backend.simulated() && guaranteed && !faults;
  const std::vector<ChainLatencies> measured = measure_chains(planned.tasks, chains, *record);
  const bool shows_bound_by = command.bound_by || place.clock == "real";
  if (command.file.json) {
    RunOutput output = run_output(planned.tasks, bounds, *record, place);
    output.chains = measured_chains_output(planned.tasks, chains, measured);
    output.self_test = self_test_output(self_test);
    if (faulty) output.faults = faults_output(*faults, planned.tasks, faulty->counts());
    if (shows_bound_by) output.bound_by = bound_by_output(planned.tasks, *record);
    programs::print("{}", json_report(json_of(output)));
  } else {
    programs::print("{}{}", run_text(planned.tasks, bounds, *record, place),
                    measured_chains_text(planned.tasks, chains, measured));
    if (shows_bound_by) programs::print("{}", bound_by_text(planned.tasks, *record));
    if (faulty) programs::print("\n{}", faults_text(*faults, planned.tasks, faulty->counts()));
    if (self_test) programs::print("\n{}", self_test_text(*self_test));
  }
  if (unwritten) return report_error(*unwritten);
  if (!command.svg.empty()) {
    const auto drawn = programs::write_file(
        command.svg, responses_svg(measured_tasks(planned, bounds), record->summaries, responses_of(*record)));
    if (!drawn) return report_error(drawn.error());
  }
  if (const auto fault = write_run_trace(command)) return report_error(*fault);
  const ExitCode exit_code = command.backend.serialize ? exit_code_without_times(*record)
                                                       : exit_code_of(*record, simulates_guarantee, measured);
  print_remarks(*record, planned.tasks, place.notes, exit_code);
  for (const std::string& broken : broken_chains(planned.tasks, chains, measured)) programs::print_error(broken);
  return exit_code;
}

int run_guaranteed(const RunCommand& command, const Planner& planner, TaskStudy study,
                   const std::optional<RunFaults>& faults, RunOptions options) {
  const ConductorChoice choice = decide_aloud(planner, std::move(study));
  const TaskSet& tasks = choice.study.tasks;
  const AdmissionVerdict& verdict = choice.verdict;
  if (!verdict.admitted) {
    programs::print_error("not run, since its deadlines are not guaranteed:\n" + verdict_text(tasks, verdict));
    return kRefused;
  }
  options.interrupted = &programs::watch_for_interrupt();
  options.conductor = tasks.led_by_gpu ? ConductorKind::Gpu : ConductorKind::Host;
  options.host_away = tasks.host_away;
  return run_and_report(
      command, verdict.admitted->planned(), verdict.admitted->worst_responses(), verdict.chain_latencies, true, faults,
      [&](std::span<Executor* const> executors, std::span<TaskProgram* const> programs, const RunParts& parts) {
        return run_tasks(executors, *verdict.admitted, programs, parts.in(options));
      });
}

int replay(const RunCommand& command, const AdmissionController& controller, const TaskSet& tasks,
           const std::optional<RunFaults>& faults, RunOptions options) {
  const auto scenario = load_scenario(command.scenario, tasks);
  if (!scenario) return report_error(scenario.error());
  const auto planned = tasks.overlap == Overlap::On ? controller.plan_overlap(tasks) : controller.plan(tasks);
  if (!planned) return report_error(planned.error());
  options.interrupted = &programs::watch_for_interrupt();
  return run_and_report(
      command, *planned, {}, {}, false, faults,
      [&](std::span<Executor* const> executors, std::span<TaskProgram* const> programs, const RunParts& parts) {
        return run_scenario(executors, *planned, programs, *scenario, parts.in(options));
      });
}

int run_changing(const RunCommand& command, const AdmissionController& controller, const TaskSet& tasks,
                 const std::optional<RunFaults>& faults, RunOptions options) {
  const auto changes = load_task_changes(command.changes, tasks);
  if (!changes) return report_error(changes.error());
  auto set = ChangingTaskSet::make(controller, tasks, changes->running);
  if (!set && tasks.arrivals == Arrivals::Periodic) return report_error(set.error());
  if (!set) {
    programs::print_error(
        fmt::format("not run: {}{}", set.error().message,
                    tasks.overlap == Overlap::Auto
                        ? "; one job at a time, since jobs of a run with --changes overlap with --overlap on alone"
                        : ""));
    return kRefused;
  }
  ChangeRequests requests;
  for (const TaskChange& change : changes->changes) requests.post(change);
  options.interrupted = &programs::watch_for_interrupt();
  return run_and_report(
      command, set->planned(), set->worst_responses(), {}, true, faults,
      [&](std::span<Executor* const> executors, std::span<TaskProgram* const> programs, const RunParts& parts) {
        return run_changing_tasks(*executors.front(), *set, programs, requests, parts.in(options));
      });
}

/// Why the host leads the run whatever its file says; empty: nothing.
std::string only_host(const RunCommand& command) {
  if (!command.scenario.empty())
    return "with --scenario the host releases each job at its instant; leave one of them out";
  if (!command.changes.empty()) return "with --changes the host admits tasks that come and go; leave one of them out";
  if (command.backend.simulated() && command.backend.clock_name() == "real")
    return "the simulated machine leads runs on its virtual clock alone; leave '--clock real' out";
  return {};
}

/// Why the host leads a run that these faults meet; empty: nothing.
std::string only_host(const RunFaults& faults) {
  for (const RunFault& fault : faults.faults)
    if (fault.kind != FaultKind::HostStall)
      return fmt::format("of faults a GPU that leads meets '{}' alone, and there is '{}'; leave one of them out",
                         to_string(FaultKind::HostStall), to_string(fault.kind));
  return {};
}

int run(const RunCommand& command) {
  if (const auto given = command.file.given_planner(); !given) return report_error(given.error());
  const auto options = run_options(command);
  if (!options) return report_error(options.error());
  if (const auto checked = backend_options(command.backend); !checked) return report_error(checked.error());
  for (const std::string& path : {command.trace, command.metrics, command.svg})
    if (!path.empty())
      if (const auto writable = programs::check_writable(path); !writable) return report_error(writable.error());
  if (command.metrics_listen)
    if (const auto address = parse_listen_address(*command.metrics_listen); !address)
      return report_error({ErrorCode::InvalidInput, "--metrics-listen: " + address.error().message});
  if (const auto checked = check_self_test(command.self_test, command.backend); !checked)
    return report_error(checked.error());
  auto study = command.file.load_study(command.backend.no_peer, only_host(command));
  if (!study) return report_error(study.error());
  if (!command.scenario.empty() && study->tasks.overlap == Overlap::Auto) study->tasks.overlap = Overlap::Off;
  const auto planner = command.file.chosen_planner(&study->tasks);
  if (!planner) return report_error(planner.error());
  const AdmissionController controller(**planner);
  std::optional<RunFaults> faults;
  if (!command.faults.empty()) {
    if (!command.backend.simulated())
      return report_error(
          {ErrorCode::InvalidInput, "--faults: only the simulated machine has faults; give --backend sim"});
    auto loaded = load_run_faults(command.faults, study->tasks);
    if (!loaded) return report_error(loaded.error());
    faults = *std::move(loaded);
    if (const std::string why = only_host(*faults); study->tasks.led_by_gpu && !why.empty())
      study = command.file.load_study(command.backend.no_peer, why);
    if (!study) return report_error(study.error());
  }
  if (!command.scenario.empty()) return replay(command, controller, study->tasks, faults, *options);
  if (!command.changes.empty()) return run_changing(command, controller, study->tasks, faults, *options);
  return run_guaranteed(command, **planner, *std::move(study), faults, *options);
}

}  // namespace

void add_run(programs::CommandLine& program) {
  programs::CommandLine command = program.command("run", "runs a task set whose deadlines are guaranteed");
  command.footer(
      "Examples:\n  tutti run configs/tasks/wafer-inspection.yaml --jobs 100\n"
      "  tutti run configs/tasks/wafer-inspection.yaml --jobs 100 --trace run.json.gz\n"
      "A job is over its bound when its response exceeds the bound that admission gave it, or a batch of it its "
      "latest\n"
      "finish; --json names the cause of each: trigger, release, gate, blocking, transfer, kernel, host, dispatch,\n"
      "foreign or unknown. --faults makes such jobs on purpose. The response leaves out what programs do beside their "
      "jobs' steps; end to end has it.\n"
      "Exit code: 0 fine, 1 a deadline missed, 3 machine or host trouble, or a job or a chain over its bound,\n"
      "130 interrupted.");
  auto options = std::make_shared<RunCommand>();
  options->file.add_file(command, "task set", {FileKind::TaskSet});
  options->file.add_planner(command);
  options->file.add_task_options(command);
  options->file.add_overlap(command);
  options->file.add_conductor(command);
  programs::Option jobs =
      command.add("--jobs", &options->jobs, "so many jobs in all (default: one hyperperiod, at most 1000 jobs)")
          .between(1, kMostJobs);
  programs::Option duration =
      command.add("--for", &options->duration, "all jobs that arrive in this time, like 10s").excludes(jobs);
  programs::Option scenario =
      reads(command.add("--scenario", &options->scenario,
                        "these jobs, guaranteed or not: a file like the one that 'check --counter-example' writes"),
            {FileKind::Scenario})
          .excludes(jobs)
          .excludes(duration);
  reads(command.add("--changes", &options->changes,
                    "tasks come and go while it runs: a file with the tasks that start, and what is asked when"),
        {FileKind::Changes})
      .excludes(jobs)
      .needs(duration);
  reads(command.add("--faults", &options->faults,
                    "what goes wrong on the simulated machine and its host, like configs/faults/slow-link.yaml; draws "
                    "are of --seed"),
        {FileKind::Faults});
  command
      .add("--endless", &options->endless,
           "until it is interrupted, in bounded memory: no list of jobs, but their counts and worst times")
      .excludes(jobs)
      .excludes(duration)
      .excludes(scenario);
  programs::Option journal =
      command
          .add("--journal", &options->journal,
               "writes each job into FILE while it runs; 'tutti report FILE' reads it, whole or torn")
          .output();
  programs::Option journal_size =
      command.add("--journal-size", &options->journal_size, "a file of that size is followed by another, like 100 MB")
          .needs(journal);
  command
      .add("--journal-files", &options->journal_files,
           "keeps the newest so many files of the run, and deletes older ones; without it all are kept")
      .between(1, 1'000'000)
      .needs(journal_size);
  command.add("--trace", &options->trace, kTraceOption).output().excludes(journal_size);
  command.add("--svg", &options->svg, "draw the responses of each task beside bound and deadline into this file")
      .output();
  command
      .add("--metrics", &options->metrics,
           "text file for Prometheus, replaced every second: jobs, misses, causes, responses, release lateness, model "
           "error")
      .output();
  command.add("--metrics-listen", &options->metrics_listen,
              "serves the same text over HTTP at /metrics while it runs; [ADDRESS:]PORT, a port alone is on 127.0.0.1, "
              "port "
              "0 is a free one");
  programs::add_backend_options(command, options->backend);
  programs::add_serialize_option(command, options->backend);
  command.add("--seed", &options->seed, "of the release jitter, the data and the faults")
      .check(programs::check_seed)
      .shows_default();
  command.add("--bound-by", &options->bound_by,
              "whether the CPU or the GPUs bound each task, and by what overlapping the two could gain at most; with "
              "--clock real always");
  add_self_test_option(command, options->self_test);
  command.runs([options] { return run(*options); });
}

}  // namespace tutti::internal
