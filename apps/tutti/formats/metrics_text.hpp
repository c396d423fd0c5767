#pragma once
#include <optional>
#include <span>
#include <string>

#include "apps/tutti/formats/model_errors.hpp"
#include "runtime/trace/job_summary.hpp"

namespace tutti::internal {

/// A task as metrics name it.
struct MeasuredTask {
  std::string name;
  Duration deadline{};                      ///< from the arrival
  std::optional<Duration> bound{};          ///< on the response; absent: none is known
  std::optional<Duration> predicted{};      ///< length of a job by its plans; absent: there is none
  std::optional<Duration> bound_at_host{};  ///< until the host has the record, where a GPU leads; absent: none is known
};

/// The jobs of a run in the text format of Prometheus, version 0.0.4: counters of jobs by verdict and of those over
/// their bound by cause, histograms of responses and release lateness in seconds, bounds, deadlines and model errors.
/// @param tasks, summaries, errors  [tasks]
[[nodiscard]] std::string metrics_text(std::span<const MeasuredTask> tasks, std::span<const JobSummary> summaries,
                                       std::span<const ModelError> errors);

}  // namespace tutti::internal
