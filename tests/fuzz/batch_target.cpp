// A batch file on the shipped machine that it names: read, written back, planned and bounded, reported.
#include <fmt/format.h>

#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/timeline_text.hpp"
#include "model/base/document.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "tests/fuzz/known_machines.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::size_t kMostStreamsPredicted = 16;

void predict_under_all(const Topology& machine, const Batch& batch) {
  for (const Planner& planner : planners()) {
    const ExecutionPlan planned = plan(planner, batch);
    const auto violation = find_violation(machine, batch, planned.timeline);
    require(!violation, fmt::format("a plan of {} is sound: {}", planner.name, violation.value_or("")));
    const LatestFinish latest = latest_finish(planned);
    require(latest.batch >= planned.timeline.latency,
            fmt::format("a batch under {} ends by its latest finish", planner.name));
    require(!timeline_text(planner, machine, planned.timeline, latest, std::nullopt).empty(),
            "a prediction is reported");
    require(!json_of(batch_output(planner, machine, planned.timeline, latest)).dump().empty(),
            "a prediction is reported");
  }
}

}  // namespace

bool takes_batch(std::string_view bytes) {
  const auto document = parse_document(bytes, std::string(kFile));
  if (!document) return refused(document.error());
  const Topology& machine = machine_named_in(*document);
  const auto batch = batch_from(*document, machine);
  if (!batch) return refused(batch.error());
  const std::string text = batch_yaml(*batch, "m.yaml");
  const auto again =
      parse_document(text, std::string(kFile)).and_then([&](const Node& node) { return batch_from(node, machine); });
  require(again.has_value(), "a batch that is written is read: " + (again ? "" : again.error().text()) + "\n" + text);
  require(batch_yaml(*again, "m.yaml") == text, "a batch reads back as it was:\n" + text);
  if (batch->streams().size() <= kMostStreamsPredicted) predict_under_all(machine, *batch);
  return true;
}

}  // namespace tutti::internal::fuzz
