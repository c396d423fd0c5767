#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/timeline_svg.hpp"
#include "model/base/document.hpp"
#include "model/batch/batch_yaml.hpp"

namespace tutti::internal {
namespace {

struct CompareCommand {
  FileOptions file;
  std::vector<std::string> planners;  ///< names; none: all planners
  std::string svg;
};

/// The planners to compare, in the order in which they were named.
Expected<std::vector<const Planner*>> planners_to_compare(const CompareCommand& command) {
  std::vector<const Planner*> chosen;
  for (const std::string& name : command.planners) {
    const auto planner = named_planner(name);
    if (!planner) return tl::unexpected(planner.error());
    chosen.push_back(*planner);
  }
  if (chosen.empty())
    for (const Planner& planner : planners()) chosen.push_back(&planner);
  return chosen;
}

int compare_batch(const CompareCommand& command, std::span<const Planner* const> chosen) {
  if (!command.file.parameters.empty() || !command.file.policy.empty())
    return report_error(
        {ErrorCode::InvalidInput,
         fmt::format("--set and --policy are for task sets, and {} is a batch; leave them out", command.file.path),
         {}});
  const auto batch = load_batch_aloud(command.file.path, command.file.machine);
  if (!batch) return report_error(batch.error());
  std::vector<Prediction> predictions;
  for (const Planner* planner : chosen) predictions.push_back(predict_under(*planner, *batch));
  if (!command.svg.empty())
    if (const auto written = programs::write_file(command.svg, timelines_svg(*batch, predictions)); !written)
      return report_error(written.error());
  const double first = to_ms(predictions.front().timeline.latency);
  CompareBatchOutput output;
  programs::Table table({"planner", "batch ms", "against the first", "at the latest ms"});
  for (const auto& [planner, timeline, latest] : predictions) {
    output.planners.push_back(batch_output(*planner, batch->machine(), timeline, latest));
    table.add({std::string(planner->name), fmt::format("{:.3f}", to_ms(timeline.latency)),
               first > 0 ? fmt::format("{:.3f}", to_ms(timeline.latency) / first) : "-",
               fmt::format("{:.3f}", to_ms(latest.alone()))});
  }
  if (command.file.json) {
    programs::print("{}", json_report(json_of(output)));
  } else {
    programs::print("{}", table.text());
  }
  return kOk;
}

int compare_tasks(const FileOptions& options, std::span<const Planner* const> chosen) {
  auto tasks = options.load_task_set();
  if (!tasks) return report_error(tasks.error());
  tasks->overlap = Overlap::Off;  // planners arrange the batches of one job at a time
  CompareTasksOutput output;
  std::vector<std::string> header{"planner", "verdict", "utilization"};
  for (const Task& task : tasks->tasks) header.push_back(task.name + " wcet ms");
  programs::Table table(std::move(header));
  table.align_left(1);
  for (const Planner* planner : chosen) {
    const AdmissionVerdict verdict = AdmissionController(*planner).decide(*tasks);
    std::vector<std::string> row{std::string(planner->name), std::string(to_string(verdict.answer)),
                                 fmt::format("{:.4f}", verdict.utilization)};
    for (const TaskTiming& timing : verdict.timings) row.push_back(fmt::format("{:.3f}", to_ms(timing.wcet)));
    table.add(std::move(row));
    output.planners.push_back(verdict_output(*tasks, verdict));
  }
  if (options.json) {
    programs::print("{}", json_report(json_of(output)));
  } else {
    programs::print("{}", table.text());
  }
  return kOk;
}

int compare(const CompareCommand& command) {
  const auto chosen = planners_to_compare(command);
  if (!chosen) return report_error(chosen.error());
  const auto document = read_document(command.file.path);
  if (!document) return report_error(document.error());
  const auto is_tasks = [](const auto& key) { return key.first == "tasks"; };
  if (!std::any_of(document->keys.begin(), document->keys.end(), is_tasks)) return compare_batch(command, *chosen);
  if (command.svg.empty()) return compare_tasks(command.file, *chosen);
  return report_error({ErrorCode::InvalidInput,
                       fmt::format("--svg draws one batch, and {} is a task set; name a batch file", command.file.path),
                       {}});
}

}  // namespace

void add_compare(programs::CommandLine& program) {
  programs::CommandLine command = program.command("compare", "a batch or a task set under every planner");
  command.footer("Example:\n  tutti compare configs/batches/inspection-example.yaml");
  auto options = std::make_shared<CompareCommand>();
  options->file.add_file(command, "batch file or task set", {FileKind::Batch, FileKind::TaskSet});
  options->file.add_task_options(command);
  command.add("--planner", &options->planners, "one of the planners to compare; without it all:" + list_of_planners())
      .words(names_of_planners())
      .one_at_a_time();
  command.add("--svg", &options->svg, "draw a batch under all these planners into this file").output();
  command.runs([options] { return compare(*options); });
}

}  // namespace tutti::internal
