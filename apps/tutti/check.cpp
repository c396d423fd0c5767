#include <memory>

#include <fmt/format.h>

#include "apps/tutti/command.hpp"
#include "apps/tutti/report.hpp"

namespace tutti {
namespace {

int check(const FileOptions& options) {
  const auto planner = options.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto tasks =
      options.overrides().and_then([&](const auto& overrides) { return load_tasks(options.path, overrides); });
  if (!tasks) return report_error(tasks.error());
  const AdmissionVerdict verdict = AdmissionController(**planner).decide(*tasks);
  if (options.json) {
    fmt::print("{}\n", verdict_json(*tasks, verdict).dump(2));
  } else {
    fmt::print("{}", verdict_text(*tasks, verdict));
  }
  return verdict.answer == Answer::Schedulable ? kFine : kNegative;
}

}  // namespace

void add_check(CLI::App& parser, int& exit_code) {
  CLI::App* command = parser.add_subcommand("check", "whether a task set always meets its deadlines, and why");
  command->footer("Example:\n  tutti check configs/tasks/wafer-inspection.yaml --set image=200MB");
  auto options = std::make_shared<FileOptions>();
  options->add_file(*command, "task set");
  options->add_planner(*command);
  options->add_task_options(*command);
  command->callback([options, &exit_code] { exit_code = check(*options); });
}

}  // namespace tutti
