#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/batch/safe_bound.hpp"

namespace tutti::internal {
namespace {

int compare_batch(const FileOptions& options) {
  const auto batch = load_batch(options.path, options.machine);
  if (!batch) return report_error(batch.error());
  Json rows = Json::array();
  Table table({"planner", "batch ms", "against the first", "at the latest ms"});
  double first = 0;
  for (const Planner& planner : planners()) {
    const Timeline timeline = plan(planner, batch->machine(), *batch);
    const LatestFinish latest = latest_finish(planner.rates, batch->machine(), *batch, timeline);
    if (rows.empty()) first = to_ms(timeline.latency);
    rows.push_back(timeline_json(planner, batch->machine(), timeline, latest));
    table.add({std::string(planner.name), fmt::format("{:.3f}", to_ms(timeline.latency)),
               first > 0 ? fmt::format("{:.3f}", to_ms(timeline.latency) / first) : "-",
               fmt::format("{:.3f}", to_ms(latest.alone()))});
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"schema_version", 1}, {"planners", rows}}.dump(2));
  } else {
    fmt::print("{}", table.text());
  }
  return kOk;
}

int compare_tasks(const FileOptions& options) {
  const auto tasks = options.load_task_set();
  if (!tasks) return report_error(tasks.error());
  Json rows = Json::array();
  std::vector<std::string> header{"planner", "verdict", "utilization"};
  for (const Task& task : tasks->tasks) header.push_back(task.name + " wcet ms");
  Table table(std::move(header));
  table.align_left(1);
  for (const Planner& planner : planners()) {
    const AdmissionVerdict verdict = AdmissionController(planner).decide(*tasks);
    Json json = verdict_json(*tasks, verdict);
    json.erase("schema_version");
    std::vector<std::string> row{std::string(planner.name), json["verdict"],
                                 fmt::format("{:.4f}", verdict.utilization)};
    for (const TaskTiming& timing : verdict.timings) row.push_back(fmt::format("{:.3f}", to_ms(timing.wcet)));
    table.add(std::move(row));
    rows.push_back(std::move(json));
  }
  if (options.json) {
    fmt::print("{}\n", Json{{"schema_version", 1}, {"planners", rows}}.dump(2));
  } else {
    fmt::print("{}", table.text());
  }
  return kOk;
}

int compare(const FileOptions& options) {
  const auto document = read_document(options.path);
  if (!document) return report_error(document.error());
  const auto is_tasks = [](const auto& key) { return key.first == "tasks"; };
  const bool tasks = std::any_of(document->keys.begin(), document->keys.end(), is_tasks);
  return tasks ? compare_tasks(options) : compare_batch(options);
}

}  // namespace

void add_compare(CommandLine& program) {
  CommandLine command = program.command("compare", "a batch or a task set under every planner");
  command.footer("Example:\n  tutti compare configs/batches/inspection-example.yaml");
  auto options = std::make_shared<FileOptions>();
  options->add_file(command, "batch file or task set");
  options->add_task_options(command);
  command.runs([options] { return compare(*options); });
}

}  // namespace tutti::internal
