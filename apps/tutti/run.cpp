#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>

#include <fmt/format.h>

#include "apps/seed.hpp"
#include "apps/tutti/backends.hpp"
#include "apps/tutti/command.hpp"
#include "apps/tutti/kernels.hpp"
#include "apps/tutti/report.hpp"
#include "runtime/dispatcher.hpp"

namespace tutti {
namespace {

std::atomic<bool> interrupted{false};  // the one thing that a signal handler can reach

void on_interrupt(int) { interrupted = true; }

struct RunCommand {
  FileOptions file;
  std::optional<std::int64_t> jobs;
  std::string duration;
  std::string clock = "virtual";
  std::string backend = "sim";
  std::uint64_t seed = 1;
};

Expected<RunOptions> run_options(const RunCommand& command) {
  RunOptions options;
  if (command.jobs) options.jobs = static_cast<std::uint64_t>(*command.jobs);
  options.seed = command.seed;
  options.interrupted = &interrupted;
  if (command.duration.empty()) return options;
  const auto duration = parse_duration(command.duration);
  if (!duration) return invalid_input("--for: " + duration.error().message);
  options.arrivals_before = *duration;
  return options;
}

Expected<std::unique_ptr<Clock>> make_clock(const std::string& name) {
  if (name == "virtual") return std::make_unique<VirtualClock>();
  if (name == "real") return std::make_unique<RealClock>();
  return invalid_input(fmt::format("--clock: there is no clock '{}'; give virtual or real", name));
}

/// @param simulated  a simulated machine keeps to its plan, so what is late there is the host's doing.
int exit_code_of(const RunRecord& record, bool simulated) {
  if (record.interrupted) return kInterrupted;
  const auto any = [&](auto test) { return std::any_of(record.jobs.begin(), record.jobs.end(), test); };
  if (any([](const JobRecord& job) { return job.error.has_value(); })) return kTrouble;
  if (any([](const JobRecord& job) { return job.missed(); })) return simulated ? kTrouble : kNegative;
  return kFine;
}

void print_trouble(const RunRecord& record, const TaskSet& tasks, int exit_code) {
  std::size_t failed = 0;
  for (const JobRecord& job : record.jobs) {
    if (!job.error || ++failed > 10) continue;
    fmt::print(stderr, "job {} of task '{}': {}\n", job.index, tasks.tasks[job.task.index()].name, job.error->message);
  }
  if (failed > 10) fmt::print(stderr, "and {} more failed jobs; --json has them all\n", failed - 10);
  if (record.interrupted) fmt::print(stderr, "interrupted; the report covers what had run\n");
  if (exit_code == kTrouble && failed == 0)
    fmt::print(stderr, "the host is too slow to play this machine in real time; use the virtual clock\n");
}

int run_admitted(const RunCommand& command, const AdmittedTaskSet& admitted, Clock& clock, const RunOptions& options) {
  const KernelRegistry kernels = kernels_of_this_program();
  // A set whose tasks only declare their Wcet needs no machine; any will do for the time to pass on.
  const auto machine = admitted.tasks().machine ? Expected<Topology>(*admitted.tasks().machine) : idle_machine();
  if (!machine) return report_error(machine.error());
  const auto backend = make_backend(command.backend, *machine, kernels, clock);
  if (!backend) return report_error(backend.error());
  std::vector<std::unique_ptr<PatternProgram>> programs;
  std::vector<TaskProgram*> rows;
  for (const Task& task : admitted.tasks().tasks) {
    programs.push_back(std::make_unique<PatternProgram>(*machine, task, command.seed));
    rows.push_back(programs.back().get());
  }
  Executor executor(*machine, admitted.planner(), **backend, clock);
  const auto record = run_tasks(executor, admitted, rows, options);
  if (!record) return report_error(record.error());
  if (command.file.json) {
    fmt::print("{}\n", run_json(admitted, *record, (*backend)->name(), clock.name()).dump(2));
  } else {
    fmt::print("{}", run_text(admitted, *record, (*backend)->name(), clock.name()));
  }
  const int exit_code = exit_code_of(*record, command.backend == "sim");
  print_trouble(*record, admitted.tasks(), exit_code);
  return exit_code;
}

int run(const RunCommand& command) {
  const auto planner = command.file.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto options = run_options(command);
  if (!options) return report_error(options.error());
  const auto clock = make_clock(command.clock);
  if (!clock) return report_error(clock.error());
  const auto tasks = command.file.load_task_set();
  if (!tasks) return report_error(tasks.error());
  const AdmissionVerdict verdict = AdmissionController(**planner).decide(*tasks);
  if (!verdict.admitted) {
    fmt::print(stderr, "not run, since its deadlines are not guaranteed:\n{}", verdict_text(*tasks, verdict));
    return kNegative;
  }
  std::signal(SIGINT, on_interrupt);
  return run_admitted(command, *verdict.admitted, **clock, *options);
}

}  // namespace

void add_run(CLI::App& parser, int& exit_code) {
  CLI::App* command = parser.add_subcommand("run", "runs a task set whose deadlines are guaranteed");
  command->footer("Example:\n  tutti run configs/tasks/wafer-inspection.yaml --jobs 100");
  auto options = std::make_shared<RunCommand>();
  options->file.add_file(*command, "task set");
  options->file.add_planner(*command);
  options->file.add_task_options(*command);
  CLI::Option* jobs =
      command->add_option("--jobs", options->jobs, "so many jobs in all (default: one hyperperiod, at most 1000 jobs)")
          ->check(CLI::Range(std::int64_t{1}, static_cast<std::int64_t>(kMostJobs)));
  command->add_option("--for", options->duration, "all jobs that arrive in this time, like 10s")->excludes(jobs);
  command->add_option("--clock", options->clock, "virtual: as fast as possible; real: in real time")
      ->capture_default_str();
  command->add_option("--backend", options->backend, "sim: a simulated machine that moves real bytes")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "of the release jitter and the data")
      ->check(check_seed)
      ->capture_default_str();
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tutti
