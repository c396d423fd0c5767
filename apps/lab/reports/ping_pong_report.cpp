#include "apps/lab/reports/ping_pong_report.hpp"

#include <fmt/format.h>

#include "apps/table.hpp"

namespace tutti::internal {
namespace {

/// Streams may take so much longer than the same operations by hand.
constexpr double kAskedRatio = 1.3;

std::string kernel_words(Duration kernel) { return kernel == Duration{} ? "none" : to_string(kernel); }

std::string behind_kernel(Duration kernel) {
  return kernel == Duration{} ? "without a kernel" : fmt::format("with a kernel of {}", to_string(kernel));
}

std::string sizes_of(const PingPongWinner& winner) {
  if (winner.from == winner.to) return fmt::format("at {}", to_string(winner.from));
  return fmt::format("from {} to {}", to_string(winner.from), to_string(winner.to));
}

std::string winners_text(const std::vector<PingPongCase>& cases) {
  std::string text;
  for (const PingPongWinner& winner : winners_of(cases))
    text += fmt::format("{}, {}: {} is best\n", behind_kernel(winner.kernel), sizes_of(winner), to_string(winner.mode));
  return text;
}

/// As scripts write them.
std::string key_of(PingPongMode mode) {
  return mode == PingPongMode::ByHand ? "by_hand" : std::string(to_string(mode));
}

Json json_of(const PingPongCase& one, PingPongMode mode) {
  const SampleSummary& times = one.of(mode);
  Json json{{"mode", key_of(mode)},      {"count", times.count},
            {"median_us", times.median}, {"p99_us", times.p99},
            {"worst_us", times.worst},   {"against_host_percent", 100 * one.ratio(mode, PingPongMode::Host)}};
  if (mode == PingPongMode::Stream) json["ratio_to_by_hand"] = one.ratio(mode, PingPongMode::ByHand);
  return json;
}

}  // namespace

std::string ping_pong_text(const PingPongRecord& record) {
  programs::Table table({"size", "kernel", "mode", "median us", "99 % us", "against host %", "to by hand"});
  table.align_left(2);
  for (const PingPongCase& one : record.cases)
    for (const PingPongMode mode : kPingPongModes)
      table.add({to_string(one.bytes), kernel_words(one.kernel), std::string(to_string(mode)),
                 fmt::format("{:.2f}", one.of(mode).median), fmt::format("{:.2f}", one.of(mode).p99),
                 fmt::format("{:.0f}", 100 * one.ratio(mode, PingPongMode::Host)),
                 mode == PingPongMode::Stream ? fmt::format("{:.2f}", one.ratio(mode, PingPongMode::ByHand)) : ""});
  std::string text = fmt::format(
      "{}\nround trips between {} and {}: {} runs of each mode in turn, each the mean of {} round trips; {}, {}\n{}",
      table.text(), record.gpus.front(), record.gpus.back(), record.plan.samples, record.plan.rounds, record.host,
      record.date, winners_text(record.cases));
  if (const PingPongCase* const worst = worst_beside_by_hand(record.cases))
    text += fmt::format("stream takes at most {:.2f} times as long as by hand ({}, {}); asked: {}\n",
                        worst->ratio(PingPongMode::Stream, PingPongMode::ByHand), to_string(worst->bytes),
                        behind_kernel(worst->kernel), kAskedRatio);
  return text +
         "published [AGO17], between hosts with network cards: without a kernel host is best at small sizes, since an\n"
         "operation of the GPU takes some 2.5 us more; with a kernel of 5 us kernel is best\n";
}

Json ping_pong_json(const PingPongRecord& record) {
  Json cases = Json::array(), best = Json::array();
  for (const PingPongCase& one : record.cases) {
    Json modes = Json::array();
    for (const PingPongMode mode : kPingPongModes) modes.push_back(json_of(one, mode));
    cases.push_back({{"bytes", one.bytes.count},
                     {"kernel_us", static_cast<double>(one.kernel.count()) / 1e3},
                     {"best", to_string(one.best())},
                     {"modes", modes}});
  }
  for (const PingPongWinner& winner : winners_of(record.cases))
    best.push_back({{"kernel_us", static_cast<double>(winner.kernel.count()) / 1e3},
                    {"from_bytes", winner.from.count},
                    {"to_bytes", winner.to.count},
                    {"mode", to_string(winner.mode)}});
  const PingPongCase* const worst = worst_beside_by_hand(record.cases);
  return {{"schema_version", 1},
          {"machine", record.machine},
          {"gpus", record.gpus},
          {"host", record.host},
          {"date", record.date},
          {"rounds", record.plan.rounds},
          {"samples", record.plan.samples},
          {"cases", cases},
          {"best", best},
          {"worst_ratio_to_by_hand",
           worst != nullptr ? Json(worst->ratio(PingPongMode::Stream, PingPongMode::ByHand)) : Json()},
          {"asked_ratio_to_by_hand", kAskedRatio}};
}

}  // namespace tutti::internal
