#include <memory>
#include <set>

#include <fmt/format.h>

#include "apps/tutti/check_jobs.hpp"
#include "apps/tutti/command.hpp"
#include "apps/tutti/kernels.hpp"
#include "apps/tutti/report.hpp"

namespace tutti {
namespace {

/// A kernel's name is known only to the program that runs it, which need not be this one.
void note_unknown_kernels(const TaskSet& set) {
  const KernelRegistry kernels = kernels_of_this_program();
  std::set<std::string> unknown;
  for (const Task& task : set.tasks)
    for (const BatchOperation* batch : batches_of(task))
      for (const CommandStream& stream : batch->streams())
        if (stream.kernel && kernels.find(stream.kernel->name) == nullptr) unknown.insert(stream.kernel->name);
  for (const std::string& name : unknown)
    fmt::print(stderr, "note: 'tutti run' knows no kernel '{}'; it would refuse this set\n", name);
}

int check(const FileOptions& options) {
  if (options.path.empty())
    return report_error(
        {ErrorCode::InvalidInput, "there is nothing to check; give a task set, or a job set with --jobs", {}});
  const auto planner = options.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto tasks = options.load_task_set();
  if (!tasks) return report_error(tasks.error());
  const AdmissionVerdict verdict = AdmissionController(**planner).decide(*tasks);
  if (options.json) {
    fmt::print("{}\n", verdict_json(*tasks, verdict).dump(2));
  } else {
    fmt::print("{}", verdict_text(*tasks, verdict));
  }
  note_unknown_kernels(*tasks);
  return verdict.answer == Answer::Schedulable ? kFine : kNegative;
}

}  // namespace

void add_check(CLI::App& parser, int& exit_code) {
  CLI::App* command = parser.add_subcommand("check", "whether a task set always meets its deadlines, and why");
  command->footer(
      "Example:\n  tutti check configs/tasks/wafer-inspection.yaml --set image=200MB\n"
      "  tutti tasks expand configs/tasks/periodic-offsets.yaml --out jobs.csv && tutti check --jobs jobs.csv");
  auto options = std::make_shared<FileOptions>();
  auto jobs = std::make_shared<std::string>();
  options->add_file(*command, "task set");
  CLI::Option* const file = command->get_option("file")->required(false);
  command->add_option("--jobs", *jobs, "a job set (CSV of np-schedulability-analysis, in ns) in place of a task set")
      ->excludes(file);
  options->add_planner(*command);
  options->add_task_options(*command);
  command->callback(
      [options, jobs, &exit_code] { exit_code = jobs->empty() ? check(*options) : check_jobs(*jobs, options->json); });
}

}  // namespace tutti
