#include "apps/lab/reports/costs_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "apps/tutti/reports/setup_report.hpp"
#include "model/base/quantile.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMostCosts = 8;
constexpr double kSmallError = 5000;  // ns: negligible

std::string us(double ns) { return fmt::format("{:.2f}", ns / 1e3); }

std::string sample_text(const CostSample& sample) {
  std::string text = fmt::format("gpu {}: {} x {}", sample.gpu, sample.count, to_string(sample.work));
  if (sample.bytes.count > 0) text += " " + to_string(sample.bytes);
  if (sample.time.count() > 0) text += " " + to_string(sample.time);
  if (sample.against) {
    text += fmt::format(", against {}", to_string(*sample.against));
  } else if (sample.beside.count > 0) {
    text += ", others busy";
  }
  if (sample.idle.count() > 0) text += fmt::format(", {} idle", to_string(sample.idle));
  if (sample.in_a_row > 0) text += fmt::format(", {} in a row", sample.in_a_row);
  return text;
}

double error_of(const CostResidual& residual) {
  const double error = std::abs(residual.predicted - residual.median);
  return error < kSmallError ? 0 : error / residual.median;
}

/// The ratio of the promise to 1.5 times the worst measured time plus 50 us.
double looseness_of(const CostResidual& residual) { return residual.promised / (1.5 * residual.worst + 50e3); }

template <class Measure>
std::string worst_text(const std::string& title, const CostFit& fit, const CostMeasurements& measured, double least,
                       Measure measure) {
  std::vector<CostResidual> residuals = fit.residuals;
  std::stable_sort(residuals.begin(), residuals.end(),
                   [&](const CostResidual& a, const CostResidual& b) { return measure(a) > measure(b); });
  programs::Table table({title, "predicted us", "median us", "worst us", "promised us", "by"});
  table.align_left(0);
  std::size_t rows = 0;
  for (const CostResidual& residual : residuals) {
    if (rows == kMostCosts || measure(residual) <= least) break;
    table.add({sample_text(measured.samples[residual.sample]), us(residual.predicted), us(residual.median),
               us(residual.worst), us(residual.promised), fmt::format("{:.2f}", measure(residual))});
    ++rows;
  }
  return rows == 0 ? fmt::format("{}: none\n", title) : table.text() + "\n";
}

std::string gates_text(const CostMeasurements& measured) {
  programs::Table table({"starts behind gates", "of", "median us", "99 %", "99.9 %", "worst"});
  table.align_left(0);
  for (const auto& [name, starts] :
       {std::pair("idle", &measured.gates), std::pair("beside large copies", &measured.gates_busy),
        std::pair("on a busy host", &measured.gates_loaded)}) {
    if (starts->empty()) continue;
    table.add({name, fmt::to_string(starts->size()), us(quantile(*starts, 0.5)), us(quantile(*starts, 0.99)),
               us(quantile(*starts, 0.999)), us(quantile(*starts, 1))});
  }
  std::string text = table.text() + "\n";
  if (measured.pauses.empty()) return text;
  return text + fmt::format("{} pauses of the host of more than 10 us: median {} us, worst {}\n\n",
                            measured.pauses.size(), us(quantile(measured.pauses, 0.5)),
                            us(quantile(measured.pauses, 1)));
}

/// The tail of the times of one short copy, where rare delays show.
std::string tail_text(const CostMeasurements& measured) {
  std::vector<double> all;
  std::size_t runs = 0;
  for (const CostSample& sample : measured.samples) {
    runs += sample.ns.size();
    if (sample.count > 1 || sample.bytes.count > 4 || sample.bytes.count == 0 || sample.beside.count > 0 ||
        sample.in_a_row > 0 || sample.idle.count() > 0 || sample.work > CostWork::Down)
      continue;
    all.insert(all.end(), sample.ns.begin(), sample.ns.end());
  }
  return fmt::format(
      "{} runs in all; one copy of 4 bytes, {} runs: median {} us, 99 % {}, 99.9 % {}, 99.99 % {}, worst {}\n\n", runs,
      all.size(), us(quantile(all, 0.5)), us(quantile(all, 0.99)), us(quantile(all, 0.999)), us(quantile(all, 0.9999)),
      us(quantile(all, 1)));
}

}  // namespace

std::string costs_text(const SetupTimes& setup, const CostFit& fit, const CostMeasurements& measured) {
  std::vector<double> errors;
  for (const CostResidual& residual : fit.residuals) errors.push_back(error_of(residual));
  std::string text = setup_text(setup) + "\n" + gates_text(measured) + tail_text(measured);
  text +=
      fmt::format("costs explain {} samples within {:.1f} % in the median, {:.1f} % in 95 of 100 (below 5 us: 0)\n\n",
                  errors.size(), 100 * quantile(errors, 0.5), 100 * quantile(errors, 0.95));
  text += worst_text("predicted worst", fit, measured, 0, error_of);
  text += worst_text("promised too loosely", fit, measured, 1, looseness_of);
  text += worst_text("longer than promised", fit, measured, 1,
                     [](const CostResidual& residual) { return residual.worst / residual.promised; });
  for (const std::string& sentence : fit.left_out) text += sentence + "\n";
  return text;
}

Json costs_json(const CostFit& fit, const CostMeasurements& measured) {
  Json list = Json::array();
  for (const CostResidual& residual : fit.residuals) {
    const CostSample& sample = measured.samples[residual.sample];
    list.push_back({{"class", to_string(sample.work)},
                    {"gpu", sample.gpu},
                    {"n", sample.count},
                    {"bytes", sample.bytes.count},
                    {"time_ns", sample.time.count()},
                    {"beside_bytes", sample.beside.count},
                    {"in_a_row", sample.in_a_row},
                    {"idle_ns", sample.idle.count()},
                    {"predicted_ns", residual.predicted},
                    {"promised_ns", residual.promised},
                    {"median_ns", residual.median},
                    {"worst_ns", residual.worst}});
  }
  return list;
}

}  // namespace tutti::internal
