#include <memory>

#include <fmt/format.h>

#include "apps/backends.hpp"
#include "apps/interrupt.hpp"
#include "apps/seed.hpp"
#include "apps/tutti/command.hpp"
#include "apps/tutti/kernels.hpp"
#include "apps/tutti/report.hpp"
#include "runtime/dispatcher.hpp"

namespace tutti {
namespace {

struct RunCommand {
  FileOptions file;
  std::optional<std::int64_t> jobs;
  std::string duration;
  BackendOptions backend;
  std::uint64_t seed = 1;
};

Expected<RunOptions> run_options(const RunCommand& command) {
  RunOptions options;
  if (command.jobs) options.jobs = static_cast<std::uint64_t>(*command.jobs);
  options.seed = command.seed;
  if (command.duration.empty()) return options;
  const auto duration = parse_duration(command.duration);
  if (!duration) return invalid_input("--for: " + duration.error().message);
  options.arrivals_before = *duration;
  return options;
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
    fmt::print("{}\n", run_json(admitted, *record, **backend, clock).dump(2));
  } else {
    fmt::print("{}", run_text(admitted, *record, **backend, clock));
  }
  const ExitCode exit_code = exit_code_of(*record, command.backend.simulated());
  print_remarks(*record, admitted.tasks(), **backend, exit_code);
  return exit_code;
}

int run(const RunCommand& command) {
  const auto planner = command.file.chosen_planner();
  if (!planner) return report_error(planner.error());
  auto options = run_options(command);
  if (!options) return report_error(options.error());
  const auto clock = make_clock(command.backend);
  if (!clock) return report_error(clock.error());
  const auto tasks = command.file.load_task_set(command.backend.no_peer);
  if (!tasks) return report_error(tasks.error());
  const AdmissionVerdict verdict = AdmissionController(**planner).decide(*tasks);
  if (!verdict.admitted) {
    fmt::print(stderr, "not run, since its deadlines are not guaranteed:\n{}", verdict_text(*tasks, verdict));
    return kNegative;
  }
  options->interrupted = &watch_for_interrupt();
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
  add_backend_options(*command, options->backend);
  command->add_option("--seed", options->seed, "of the release jitter and the data")
      ->check(check_seed)
      ->capture_default_str();
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace tutti
