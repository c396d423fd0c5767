#include <memory>

#include "apps/output_file.hpp"
#include "apps/tutti/commands/capacity_search.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/capacity_report.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti::internal {
namespace {

int capacity(const CapacityCommand& command) {
  const bool of_task = !command.task.empty() && !command.of.empty();
  if (command.parameter.empty() ? !of_task : !(command.task.empty() && command.of.empty()))
    return report_error(
        {ErrorCode::InvalidInput, "give either --parameter NAME, or --task NAME with --of period|deadline|wcet", {}});
  if (!command.svg.empty())
    if (const auto writable = programs::check_writable(command.svg); !writable) return report_error(writable.error());
  const auto answer = search_capacity(command);
  if (!answer) return report_error(answer.error());
  if (!command.svg.empty())
    if (const auto written = programs::write_file(command.svg, capacity_svg(*answer)); !written)
      return report_error(written.error());
  if (command.file.json) {
    programs::print("{}", json_report(json_of(capacity_output(*answer))));
  } else {
    programs::print("{}", capacity_text(*answer));
  }
  return kOk;
}

}  // namespace

void add_capacity(programs::CommandLine& program) {
  programs::CommandLine command =
      program.command("capacity", "how far a size, period or deadline can go with every deadline guaranteed");
  command.footer("Example:\n  tutti capacity configs/tasks/wafer-inspection.yaml --parameter image --svg image.svg");
  auto options = std::make_shared<CapacityCommand>();
  options->file.add_file(command, "task set", {FileKind::TaskSet});
  options->file.add_task_options(command);
  options->file.add_overlap(command);
  options->file.add_conductor(command);
  command
      .add("--planner", &options->file.planner,
           "one planner only; without it that of the set, and all others but those that search: they take long")
      .words(names_of_planners());
  command.add("--parameter", &options->parameter, "the largest size of this parameter of the file");
  command.add("--task", &options->task, "of this task:");
  command.add("--of", &options->of, "its smallest period or deadline, or its largest wcet")
      .words({"period", "deadline", "wcet"});
  command.add("--svg", &options->svg, "draw utilisation and margin over the values into this file").output();
  command
      .add("--points", &options->points,
           "of a curve of utilisation and margin in --json, and of the drawing, which has 50 without it")
      .between(2, 10'000);
  command.runs([options] { return capacity(*options); });
}

}  // namespace tutti::internal
