#include <memory>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/formats/prediction_json.hpp"
#include "apps/tutti/formats/trace_file.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/timeline_svg.hpp"
#include "apps/tutti/reports/timeline_text.hpp"
#include "model/batch/batch_yaml.hpp"
#include "runtime/dispatch/journal_plan.hpp"

namespace tutti::internal {
namespace {

struct PredictCommand {
  FileOptions file;
  std::string svg;
  std::string trace;
};

/// What pictures of the batch need.
JournalPlan plan_of(const Batch& batch, const Prediction& prediction) {
  const PlannedStreams streams{&batch, &prediction.timeline, &prediction.latest};
  return journal_plan(batch.machine(), {&streams, 1});
}

Expected<void> write_predicted_trace(const PredictCommand& command, const Batch& batch, const Prediction& prediction) {
  const RecordingHead head{
      .title = command.file.path,
      .about = {{"machine", batch.machine().name()}, {"planner", std::string(prediction.planner->name)}},
      .machine = batch.machine().name()};
  return write_trace(command.trace, [&](RecordingSink& sink) -> Expected<void> {
    record_plan(head, plan_of(batch, prediction), "batch", prediction.timeline.latency, prediction.latest.alone(),
                sink);
    return {};
  });
}

int predict(const PredictCommand& command) {
  const auto planner = command.file.chosen_planner();
  if (!planner) return report_error(planner.error());
  const auto batch = load_batch_aloud(command.file.path, command.file.machine);
  if (!batch) return report_error(batch.error());
  const Prediction prediction = predict_under(**planner, *batch);
  if (!command.svg.empty())
    if (const auto written = programs::write_file(command.svg, timelines_svg(*batch, {&prediction, 1})); !written)
      return report_error(written.error());
  if (!command.trace.empty())
    if (const auto written = write_predicted_trace(command, *batch, prediction); !written)
      return report_error(written.error());
  if (command.file.json) {
    const PredictOutput output{batch_output(**planner, batch->machine(), prediction.timeline, prediction.latest),
                               {},
                               plan_output(batch->machine().name(), plan_of(*batch, prediction))};
    programs::print("{}", json_report(json_of(output)));
  } else {
    programs::print("{}", timeline_text(**planner, batch->machine(), prediction.timeline, prediction.latest,
                                        programs::terminal_columns()));
  }
  return kOk;
}

}  // namespace

void add_predict(programs::CommandLine& program) {
  programs::CommandLine command = program.command("predict", "how long a batch takes, and when each stream runs");
  command.footer(
      "Examples:\n  tutti predict configs/batches/inspection-example.yaml --planner time_division\n"
      "  tutti predict configs/batches/inspection-example.yaml --trace batch.json");
  auto options = std::make_shared<PredictCommand>();
  options->file.add_file(command, "batch file", {FileKind::Batch});
  options->file.add_planner(command);
  command.add("--svg", &options->svg, "draw the times of all streams into this file").output();
  command.add("--trace", &options->trace, kTraceOption).output();
  command.runs([options] { return predict(*options); });
}

}  // namespace tutti::internal
