#include "apps/lab/reports/methods_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "model/base/quantile.hpp"

namespace tutti::internal {
namespace {

std::string three_digits(double value) { return fmt::format("{:.3f}", value); }
std::string signed_percent(double share) { return fmt::format("{:+.1f}", 100 * share); }

double gain_over_best(const MethodRuns& runs) { return runs.gain_over(runs.best_other()); }
double uncertainty_over_best(const MethodRuns& runs) { return runs.uncertainty_of_gain_over(runs.best_other()); }

std::string medians_text(const MethodsRecord& record) {
  std::vector<std::string> header{"median ms", "MB moved", "runs"};
  header.insert(header.end(), record.methods.begin(), record.methods.end());
  header.insert(header.begin() + 4, {"its fastest", "its slowest"});
  programs::Table table(std::move(header));
  for (std::size_t w = 0; w < record.workloads.size(); ++w) {
    const MethodRuns& runs = record.runs[w];
    const auto [fastest, slowest] = std::minmax_element(runs.ms[0].begin(), runs.ms[0].end());
    std::vector<std::string> row{record.workloads[w].name,
                                 fmt::format("{:.1f}", static_cast<double>(record.workloads[w].moved().count) / 1e6),
                                 fmt::to_string(runs.ms[0].size()),
                                 three_digits(runs.median_ms(0)),
                                 three_digits(*fastest),
                                 three_digits(*slowest)};
    for (std::size_t other = 1; other < runs.ms.size(); ++other) row.push_back(three_digits(runs.median_ms(other)));
    table.add(std::move(row));
  }
  return table.text();
}

/// The gains of one workload, or the medians of several.
std::vector<std::string> gains_row(std::string name, std::span<const MethodRuns* const> workloads, std::string best) {
  const auto median_of = [&](auto gain) {
    std::vector<double> gains;
    for (const MethodRuns* runs : workloads) gains.push_back(gain(*runs));
    return signed_percent(median(gains));
  };
  std::vector<std::string> row{std::move(name)};
  for (std::size_t other = 1; other < workloads.front()->ms.size(); ++other)
    row.push_back(median_of([&](const MethodRuns& runs) { return runs.gain_over(other); }));
  row.push_back(median_of(gain_over_best));
  const double uncertainty = 100 * uncertainty_over_best(*workloads.front());
  row.push_back(workloads.size() == 1 && std::isfinite(uncertainty) ? fmt::format("{:.1f}", uncertainty) : "");
  row.push_back(std::move(best));
  return row;
}

/// The runs of each kind with several workloads.
std::map<std::string, std::vector<const MethodRuns*>> runs_by_kind(const MethodsRecord& record) {
  std::map<std::string, std::vector<const MethodRuns*>> kinds;
  for (std::size_t w = 0; w < record.workloads.size(); ++w) kinds[record.workloads[w].kind].push_back(&record.runs[w]);
  std::erase_if(kinds, [](const auto& kind) { return kind.second.size() == 1; });
  return kinds;
}

std::string gains_text(const MethodsRecord& record) {
  std::vector<std::string> header{fmt::format("% that {} is sooner than", record.methods[0])};
  header.insert(header.end(), record.methods.begin() + 1, record.methods.end());
  header.insert(header.end(), {"the best of them", "+-", "which is"});
  programs::Table table(header);
  table.align_left(header.size() - 1);
  for (std::size_t w = 0; w < record.workloads.size(); ++w) {
    const MethodRuns* runs = &record.runs[w];
    table.add(gains_row(record.workloads[w].name, std::span(&runs, 1), record.methods[runs->best_other()]));
  }
  for (const auto& [kind, runs] : runs_by_kind(record))
    table.add(gains_row(fmt::format("{}: median of {}", kind, runs.size()), runs, ""));
  return table.text();
}

/// The gain of a searching method over each one that does not search, over the workloads of one kind: a row of means, a
/// row of least gains, and a row with the uncertainty of the least gains.
void add_search_rows(programs::Table& table, const MethodsRecord& record, std::size_t search, std::string_view kind,
                     std::span<const MethodRuns* const> workloads) {
  const std::size_t others = record.methods.size() - workloads.front()->searching;
  std::vector<std::string> mean{fmt::format("{}, {}: mean of {}", record.methods[search], kind, workloads.size())};
  std::vector<std::string> least{"least"}, known{"+-"};
  for (std::size_t other = 0; other < others; ++other) {
    double sum = 0;
    const MethodRuns* worst = workloads.front();
    for (const MethodRuns* runs : workloads) {
      sum += runs->gain_over(other, search);
      if (runs->gain_over(other, search) < worst->gain_over(other, search)) worst = runs;
    }
    mean.push_back(signed_percent(sum / static_cast<double>(workloads.size())));
    least.push_back(signed_percent(worst->gain_over(other, search)));
    const double uncertainty = worst->uncertainty_of_gain_over(other, search);
    known.push_back(std::isfinite(uncertainty) ? fmt::format("{:.1f}", 100 * uncertainty) : "");
  }
  for (auto* row : {&mean, &least, &known}) table.add(std::move(*row));
}

/// The table of searching methods; empty where no method searches, or no kind has several workloads.
std::string searches_text(const MethodsRecord& record) {
  const auto kinds = runs_by_kind(record);
  const std::size_t others = record.methods.size() - record.runs.front().searching;
  if (kinds.empty() || others == record.methods.size()) return "";
  std::vector<std::string> header{"% sooner than"};
  header.insert(header.end(), record.methods.begin(), record.methods.begin() + static_cast<std::ptrdiff_t>(others));
  programs::Table table(std::move(header));
  for (std::size_t search = others; search < record.methods.size(); ++search)
    for (const auto& [kind, runs] : kinds) add_search_rows(table, record, search, kind, runs);
  return table.text() + "\n";
}

WorkloadOutput workload_output(const MethodsRecord& record, const Workload& workload, const MethodRuns& runs) {
  WorkloadOutput output{workload.name, record.methods[runs.best_other()], 100 * gain_over_best(runs)};
  if (const double uncertainty = 100 * uncertainty_over_best(runs); std::isfinite(uncertainty))
    output.gain_uncertainty_percent = uncertainty;
  for (std::size_t m = 0; m < runs.ms.size(); ++m) {
    MethodOutput& row = output.methods.emplace_back(MethodOutput{record.methods[m], runs.median_ms(m)});
    if (m > 0) row.gain_percent = 100 * runs.gain_over(m);
    row.runs_ms = runs.ms[m];
  }
  for (std::size_t b = 0; b < workload.batches.size(); ++b)
    output.batches.push_back(
        {std::count(workload.order.begin(), workload.order.end(), b), declared_output(workload.batches[b])});
  return output;
}

}  // namespace

std::size_t MethodsRecord::worst() const {
  const auto least = std::min_element(runs.begin(), runs.end(), [](const MethodRuns& a, const MethodRuns& b) {
    return gain_over_best(a) < gain_over_best(b);
  });
  return static_cast<std::size_t>(least - runs.begin());
}

bool MethodsRecord::holds() const { return gain_over_best(runs[worst()]) >= -tolerance; }

MethodsOutput methods_output(const MethodsRecord& record) {
  MethodsOutput output{{}, record.machine, record.backend, record.clock, record.notes, record.options.image};
  output.seed = record.options.seed;
  output.tolerance_percent = 100 * record.tolerance;
  output.holds = record.holds();
  output.worst = record.workloads[record.worst()].name;
  output.methods = record.methods;
  for (std::size_t w = 0; w < record.workloads.size(); ++w)
    output.workloads.push_back(workload_output(record, record.workloads[w], record.runs[w]));
  return output;
}

std::string worst_text(const MethodsRecord& record) {
  const MethodRuns& runs = record.runs[record.worst()];
  const double gain = gain_over_best(runs);
  return fmt::format("at worst, on {}, {} is {:.1f} % {} than {}", record.workloads[record.worst()].name,
                     record.methods[0], 100 * std::abs(gain), gain < 0 ? "slower" : "faster",
                     record.methods[runs.best_other()]);
}

std::string methods_text(const MethodsRecord& record) {
  return fmt::format("methods on {}: {} backend, {} clock, images of {}, seed {}\n\n{}\n{}\n{}{}\n", record.machine,
                     record.backend, record.clock, to_string(record.options.image), record.options.seed,
                     medians_text(record), gains_text(record), searches_text(record), worst_text(record));
}

}  // namespace tutti::internal
