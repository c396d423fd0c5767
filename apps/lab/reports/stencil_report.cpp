#include "apps/lab/reports/stencil_report.hpp"

#include <fmt/format.h>

#include "apps/table.hpp"

namespace tutti::internal {
namespace {

std::string size_of(const StencilSpec& spec) { return fmt::format("{}^{}", spec.edge, spec.dimensions); }

std::string percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f}", 100 * *share) : std::string("-");
}

Json json_of(const StencilCase& one, ControlMode mode) {
  const SampleSummary& times = one.times[static_cast<std::size_t>(mode)];
  const auto predicted = one.predicted_us(mode), gain = one.advice.gain(mode);
  return {{"mode", to_string(mode)},
          {"count", times.count},
          {"median_us", times.median},
          {"p99_us", times.p99},
          {"worst_us", times.worst},
          {"predicted_us", predicted ? Json(*predicted) : Json()},
          {"gain_percent", 100 * one.gain(mode)},
          {"predicted_gain_percent", gain ? Json(100 * *gain) : Json()},
          {"equal", one.equal[static_cast<std::size_t>(mode)]}};
}

}  // namespace

std::string stencil_text(std::span<const StencilCase> cases) {
  programs::Table table({"size of a GPU", "GPUs", "mode", "median us", "99 %", "predicted us", "gain %", "predicted %",
                         "advised", "bits of one GPU"});
  table.align_left(2), table.align_left(8), table.align_left(9);
  for (const StencilCase& one : cases) {
    for (const ControlMode mode : kControlModes) {
      const auto m = static_cast<std::size_t>(mode);
      const auto predicted = one.predicted_us(mode);
      table.add({size_of(one.spec), fmt::to_string(one.gpus), std::string(to_string(mode)),
                 fmt::format("{:.2f}", one.times[m].median), fmt::format("{:.2f}", one.times[m].p99),
                 predicted ? fmt::format("{:.2f}", *predicted) : "-", percent(one.gain(mode)),
                 percent(one.advice.gain(mode)), one.advice.mode == mode ? "yes" : "", one.equal[m] ? "yes" : "NO"});
    }
  }
  const StencilAgreement agreement = agreement_of(cases);
  return fmt::format("{}\nsign of the gain right in {} of {} cases; median error of a predicted time {:.1f} %\n",
                     table.text(), agreement.right, agreement.gains, 100 * agreement.median_error);
}

Json stencil_json(std::span<const StencilCase> cases, std::string_view machine) {
  Json rows = Json::array();
  for (const StencilCase& one : cases) {
    Json modes = Json::array();
    for (const ControlMode mode : kControlModes) modes.push_back(json_of(one, mode));
    rows.push_back({{"dimensions", one.spec.dimensions},
                    {"edge", one.spec.edge},
                    {"layers", one.spec.layers},
                    {"gpus", one.gpus},
                    {"advised", to_string(one.advice.mode)},
                    {"modes", modes}});
  }
  const StencilAgreement agreement = agreement_of(cases);
  return {{"schema_version", 1},
          {"machine", machine},
          {"cases", rows},
          {"gains", agreement.gains},
          {"gains_right", agreement.right},
          {"median_error_percent", 100 * agreement.median_error}};
}

}  // namespace tutti::internal
