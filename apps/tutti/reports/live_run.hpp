#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/formats/metrics_text.hpp"
#include "runtime/trace/journal.hpp"

namespace tutti::internal {

/// Shows a run while it runs: a line for each task on standard error, and a file of metrics. A terminal's lines are
/// replaced four times a second; elsewhere they come every 10 s. A run of less than a second shows none.
class LiveRun : public JournalObserver {
 public:
  /// @param metrics  file that is replaced every second, and at the end; empty: none
  LiveRun(std::vector<MeasuredTask> tasks, std::string metrics);

  void see(const RecordedJob& job) override;
  void end_turn() override;
  /// Takes the lines away and writes the last metrics. @pre the journal is closed
  /// @return why metrics could not be written, the first time
  std::optional<Error> end();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::string lines() const;
  void write_metrics();

  std::vector<MeasuredTask> tasks_;
  std::string metrics_;
  std::vector<JobSummary> summaries_;  // [tasks]
  std::optional<Error> fault_;
  Clock::time_point start_, shown_, written_;
};

}  // namespace tutti::internal
