#include <memory>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/timeline_svg.hpp"
#include "model/batch/batch_yaml.hpp"

namespace tutti::internal {
namespace {

struct PredictCommand {
  FileOptions file;
  std::string svg;
};

int predict(const PredictCommand& command) {
  const auto planner = command.file.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto batch = load_batch(command.file.path, command.file.machine);
  if (!batch) return report_error(batch.error());
  const Prediction prediction = predict_under(**planner, *batch);
  if (!command.svg.empty())
    if (const auto written = programs::write_file(command.svg, timelines_svg(*batch, {&prediction, 1})); !written)
      return report_error(written.error());
  if (command.file.json) {
    Json json = timeline_json(**planner, batch->machine(), prediction.timeline, prediction.latest);
    json["schema_version"] = 1;
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{}", timeline_text(**planner, batch->machine(), prediction.timeline, prediction.latest));
  }
  return kOk;
}

}  // namespace

void add_predict(programs::CommandLine& program) {
  programs::CommandLine command = program.command("predict", "how long a batch takes, and when each stream runs");
  command.footer("Example:\n  tutti predict configs/batches/inspection-example.yaml --planner time_division");
  auto options = std::make_shared<PredictCommand>();
  options->file.add_file(command, "batch file");
  options->file.add_planner(command);
  command.add("--svg", &options->svg, "draw the times of all streams into this file");
  command.runs([options] { return predict(*options); });
}

}  // namespace tutti::internal
