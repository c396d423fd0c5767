#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/formats/metrics_text.hpp"
#include "apps/tutti/reports/metrics_endpoint.hpp"
#include "runtime/trace/journal.hpp"

namespace tutti::internal {

/// Shows a run while it runs: a line for each task on standard error, and metrics in a file and at an endpoint. A
/// terminal's lines are replaced four times a second; elsewhere they come every 10 s. A run of less than a second shows
/// none.
class LiveRun : public JournalObserver {
 public:
  /// @param metrics   file that is replaced every second, and at the end; empty: none
  /// @param endpoint  serves the same text; null: none
  LiveRun(std::vector<MeasuredTask> tasks, std::string metrics, std::unique_ptr<MetricsEndpoint> endpoint);

  void see(const RecordedJob& job) override;
  void end_turn() override;
  /// Takes the lines away, writes the last metrics and closes the endpoint. @pre the journal is closed
  /// @return why metrics could not be written, the first time
  std::optional<Error> end();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string lines() const;
  [[nodiscard]] bool has_metrics() const { return !metrics_.empty() || endpoint_; }
  void write_metrics();

  std::vector<MeasuredTask> tasks_;
  std::string metrics_;
  std::unique_ptr<MetricsEndpoint> endpoint_;
  std::vector<JobSummary> summaries_;  // [tasks]
  ModelErrors errors_;
  std::optional<Error> fault_;
  Clock::time_point start_, shown_, written_;
};

}  // namespace tutti::internal
