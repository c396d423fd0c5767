#include <memory>

#include <fmt/format.h>

#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/reports/report.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/batch/safe_bound.hpp"

namespace tutti::internal {
namespace {

int predict(const FileOptions& options) {
  const auto planner = options.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto batch = load_batch(options.path, options.machine);
  if (!batch) return report_error(batch.error());
  const Timeline timeline = plan(**planner, batch->machine(), *batch);
  const LatestFinish latest = latest_finish((*planner)->rates, batch->machine(), *batch, timeline);
  if (options.json) {
    Json json = timeline_json(**planner, batch->machine(), timeline, latest);
    json["schema_version"] = 1;
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", timeline_text(**planner, batch->machine(), timeline, latest));
  }
  return kOk;
}

}  // namespace

void add_predict(CommandLine& program) {
  CommandLine command = program.command("predict", "how long a batch takes, and when each stream runs");
  command.footer("Example:\n  tutti predict configs/batches/inspection-example.yaml --planner time_division");
  auto options = std::make_shared<FileOptions>();
  options->add_file(command, "batch file");
  options->add_planner(command);
  command.runs([options] { return predict(*options); });
}

}  // namespace tutti::internal
