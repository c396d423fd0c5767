#pragma once
#include <string>
#include <vector>

#include "apps/lab/benches/ping_pong_bench.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti::internal {

/// What `bench pingpong` measured, where and when.
struct PingPongRecord {
  std::string machine;
  std::vector<std::string> gpus;  ///< [2] of the ranks
  std::string host, date;
  PingPongPlan plan;
  std::vector<PingPongCase> cases;
};

/// A row for each case and mode; then which mode is best where, beside what was published.
[[nodiscard]] std::string ping_pong_text(const PingPongRecord& record);
[[nodiscard]] Json ping_pong_json(const PingPongRecord& record);

}  // namespace tutti::internal
