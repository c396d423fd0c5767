#include "apps/lab/reports/transfers_report.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

constexpr std::string_view kPublished =
    "Published for a GTX 480, where a CPU could store into the GPU's memory [FUJ13]:\n"
    "  up: stores by the CPU are best from 16 B to 8 MB, then DMA; down: loads by the CPU up to 512 B only.\n"
    "  A real-time task alone: worst about equal to average; memory pressure and hackbench change little.\n"
    "  An ordinary task under CPU load: small copies slower by orders of magnitude, large ones by DMA little.\n"
    "  Two at once: down, microcontroller and CPU are best from 16 B to 16 KB, four microcontrollers and DMA to 2 MB; "
    "up, "
    "twice the CPU.\n";

std::string us_text(double us) { return us < 1000 ? fmt::format("{:.2f}", us) : fmt::format("{:.0f}", us); }

void add_times(std::vector<std::string>& row, const SampleSummary& times) {
  row.push_back(fmt::to_string(times.count));
  for (const double us : {times.average, times.median, times.p99, times.p999, times.worst}) row.push_back(us_text(us));
}

std::string condition_text(const TransfersRecord& record, const CopyTimesUnder& under) {
  programs::Table table({"copy", "size", "count", "average us", "median", "99 %", "99.9 %", "worst"});
  for (std::size_t line = 0; line < record.lines.size(); ++line) {
    for (std::size_t size = 0; size < record.sizes.size(); ++size) {
      if (under.cells[size][line].count == 0) continue;
      std::vector<std::string> row{record.lines[line].name(), to_string(record.sizes[size])};
      add_times(row, under.cells[size][line]);
      table.add(std::move(row));
    }
  }
  const std::string by = under.condition.load_by.empty() ? "" : " (load by " + under.condition.load_by + ")";
  return fmt::format("{}{}\n{}\n", under.condition.name(), by, table.text());
}

/// The method that is best at one size in one direction; nothing where there is no choice.
std::optional<std::string_view> best_method(const TransfersRecord& record, std::size_t size, CopyDirection direction,
                                            double SampleSummary::*of) {
  const auto& cells = record.conditions.front().cells[size];
  std::optional<std::size_t> best;
  std::size_t choices = 0;
  for (std::size_t line = 0; line < record.lines.size(); ++line) {
    if (record.lines[line].direction != direction || cells[line].count == 0) continue;
    ++choices;
    if (!best || cells[line].*of < cells[*best].*of) best = line;
  }
  if (choices < 2) return std::nullopt;
  return record.lines[*best].method->name;
}

/// "best average up: engine from 4 B, pageable from 2 MiB"
std::string best_text(const TransfersRecord& record) {
  std::string text;
  for (const CopyDirection direction : kCopyDirections) {
    for (const auto& [name, of] : {std::pair("average", &SampleSummary::average), {"worst", &SampleSummary::worst}}) {
      std::string ranges;
      std::optional<std::string_view> last;
      for (std::size_t size = 0; size < record.sizes.size(); ++size) {
        const auto best = best_method(record, size, direction, of);
        if (best && best != last)
          ranges += fmt::format("{}{} from {}", ranges.empty() ? "" : ", ", *best, to_string(record.sizes[size]));
        last = best;
      }
      if (!ranges.empty()) text += fmt::format("best {} {}: {}\n", name, to_string(direction), ranges);
    }
  }
  return text.empty() ? text : text + "\n";
}

/// A row for each copy, two columns for each condition under load.
std::string factors_table(const TransfersRecord& record, const std::vector<LoadFactor>& factors) {
  std::vector<std::string> header{"times the idle host", "size"};
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::string>> rows;  // by line and size
  for (std::size_t i = 0; i < record.conditions.size(); ++i) {
    if (record.conditions[i].condition.load == LoadKind::None) continue;
    header.insert(header.end(), {record.conditions[i].condition.name() + ": 99.9 %", "worst"});
    for (const LoadFactor& factor : factors) {
      if (factor.condition != i) continue;
      auto& row = rows[{factor.line, factor.size}];
      row.resize(header.size() - 4);  // what is not known stays empty
      row.push_back(fmt::format("{:.2f}", factor.p999));
      row.push_back(fmt::format("{:.2f}", factor.worst));
    }
  }
  programs::Table table(header);
  for (auto& [copy, cells] : rows) {
    std::vector<std::string> row{record.lines[copy.first].name(), to_string(record.sizes[copy.second])};
    row.insert(row.end(), cells.begin(), cells.end());
    row.resize(header.size());
    table.add(std::move(row));
  }
  return table.text();
}

std::string factors_text(const TransfersRecord& record, const std::vector<LoadFactor>& factors) {
  if (factors.empty()) return "";
  std::string text = factors_table(record, factors);
  for (std::size_t i = 0; i < record.conditions.size(); ++i) {
    const LoadFactor* most = nullptr;
    for (const LoadFactor& factor : factors)
      if (factor.condition == i && (most == nullptr || factor.p999 > most->p999)) most = &factor;
    if (most != nullptr)
      text += fmt::format("{}: 99.9 % is at most {:.2f} times idle ({}, {})\n", record.conditions[i].condition.name(),
                          most->p999, record.lines[most->line].name(), to_string(record.sizes[most->size]));
  }
  return text + "\n";
}

std::string pairs_text(const TransfersRecord& record) {
  if (record.pairs.empty()) return "";
  programs::Table table(
      {"two at once", "beside", "size of each", "count", "average us", "median", "99 %", "99.9 %", "worst"});
  table.align_left(1);
  for (const PairTimes& pair : record.pairs) {
    if (pair.times.count == 0) continue;
    std::vector<std::string> row{record.lines[pair.first].name(), record.lines[pair.second].name(),
                                 to_string(pair.size)};
    add_times(row, pair.times);
    table.add(std::move(row));
  }
  return table.text() + "\n";
}

std::string bus_text(const TransfersRecord& record) {
  if (record.bus.empty()) return "";
  programs::Table table({"memory", "GPUs", "up GB/s", "down", "both", "up % of the sum alone", "down", "both"});
  table.align_left(1);
  for (std::size_t row = 0; row < record.bus.size(); ++row) {
    std::vector<std::string> cells{record.bus[row].memory, joined(record.bus_gpus[row])};
    for (const double rate : record.bus_rates[row].gbps) cells.push_back(fmt::format("{:.2f}", rate));
    for (const double share : percent_of_flows_alone(record.bus, record.bus_rates, row))
      cells.push_back(record.bus[row].flows.size() > 1 ? fmt::format("{:.1f}", share) : "");
    table.add(std::move(cells));
  }
  return fmt::format("copies of {} in a row\n{}\n", to_string(record.bus_copy), table.text());
}

// ---- JSON

Json times_json(const SampleSummary& times) {
  return {{"count", times.count}, {"average_us", times.average}, {"median_us", times.median},
          {"p99_us", times.p99},  {"p999_us", times.p999},       {"worst_us", times.worst}};
}

Json line_json(const CopyLine& line) {
  return {{"method", line.method->name}, {"direction", to_string(line.direction)}};
}

Json cell_json(const TransfersRecord& record, std::size_t condition, std::size_t size, std::size_t line) {
  const CopyCondition& under = record.conditions[condition].condition;
  Json json{{"load", to_string(under.load)}, {"scheduling", to_string(under.scheduling)}};
  json.update(line_json(record.lines[line]));
  json["bytes"] = record.sizes[size].count;
  return json;
}

Json cells_json(const TransfersRecord& record) {
  Json list = Json::array();
  for (std::size_t condition = 0; condition < record.conditions.size(); ++condition)
    for (std::size_t size = 0; size < record.sizes.size(); ++size)
      for (std::size_t line = 0; line < record.lines.size(); ++line) {
        const SampleSummary& times = record.conditions[condition].cells[size][line];
        if (times.count == 0) continue;
        list.push_back(cell_json(record, condition, size, line));
        list.back().update(times_json(times));
      }
  return list;
}

Json pairs_json(const TransfersRecord& record) {
  Json list = Json::array();
  for (const PairTimes& pair : record.pairs) {
    if (pair.times.count == 0) continue;
    list.push_back({{"first", line_json(record.lines[pair.first])},
                    {"second", line_json(record.lines[pair.second])},
                    {"bytes", pair.size.count}});
    list.back().update(times_json(pair.times));
  }
  return list;
}

Json bus_json(const TransfersRecord& record) {
  Json rows = Json::array();
  for (std::size_t row = 0; row < record.bus.size(); ++row) {
    const auto& gbps = record.bus_rates[row].gbps;
    const auto percent = percent_of_flows_alone(record.bus, record.bus_rates, row);
    rows.push_back({{"memory", record.bus[row].memory},
                    {"gpus", record.bus_gpus[row]},
                    {"up_gbps", gbps[0]},
                    {"down_gbps", gbps[1]},
                    {"both_gbps", gbps[2]},
                    {"up_percent", percent[0]},
                    {"down_percent", percent[1]},
                    {"both_percent", percent[2]}});
  }
  return rows;
}

}  // namespace

std::string CopyCondition::name() const {
  return fmt::format("{}, {}", load == LoadKind::None ? "idle" : to_string(load),
                     scheduling == Scheduling::Virtual ? "virtual clock" : to_string(scheduling));
}

std::vector<LoadFactor> load_factors(const TransfersRecord& record) {
  const auto is_idle = [](const CopyTimesUnder& under) { return under.condition.load == LoadKind::None; };
  std::vector<LoadFactor> factors;
  const auto idle = std::ranges::find_if(record.conditions, is_idle);
  if (idle == record.conditions.end()) return factors;
  for (std::size_t line = 0; line < record.lines.size(); ++line)
    for (std::size_t size = 0; size < record.sizes.size(); ++size)
      for (std::size_t i = 0; i < record.conditions.size(); ++i) {
        const SampleSummary& alone = idle->cells[size][line];
        const SampleSummary& loaded = record.conditions[i].cells[size][line];
        if (record.conditions[i].condition.load == LoadKind::None || alone.count == 0 || loaded.count == 0) continue;
        factors.push_back({i, size, line, loaded.p999 / alone.p999, loaded.worst / alone.worst});
      }
  return factors;
}

Json transfers_json(const TransfersRecord& record) {
  Json conditions = Json::array(), factors = Json::array();
  for (const auto& [condition, cells] : record.conditions)
    conditions.push_back({{"load", to_string(condition.load)},
                          {"load_by", condition.load_by.empty() ? Json(nullptr) : Json(condition.load_by)},
                          {"scheduling", to_string(condition.scheduling)}});
  for (const LoadFactor& factor : load_factors(record)) {
    factors.push_back(cell_json(record, factor.condition, factor.size, factor.line));
    factors.back().update({{"p999_factor", factor.p999}, {"worst_factor", factor.worst}});
  }
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  return {{"schema_version", 1},
          {"machine", record.machine},
          {"backend", record.backend},
          {"clock", record.clock},
          {"date", text_or_null(record.date)},
          {"host", text_or_null(record.host)},
          {"notes", record.notes},
          {"gpu", record.ends.gpu},
          {"conditions", conditions},
          {"copies", cells_json(record)},
          {"factors", factors},
          {"pairs", pairs_json(record)},
          {"bus_copy_bytes", record.bus_copy.count},
          {"bus", bus_json(record)}};
}

std::string transfers_text(const TransfersRecord& record) {
  std::string text = fmt::format("transfers on {}, {}: {} backend, {} clock{}{}\n\n", record.machine, record.ends.gpu,
                                 record.backend, record.clock, record.date.empty() ? "" : ", " + record.date,
                                 record.host.empty() ? "" : ", " + record.host);
  for (const CopyTimesUnder& under : record.conditions) text += condition_text(record, under);
  if (!record.conditions.empty()) text += best_text(record);
  return text + factors_text(record, load_factors(record)) + pairs_text(record) + bus_text(record) +
         std::string(kPublished);
}

}  // namespace tutti::internal
