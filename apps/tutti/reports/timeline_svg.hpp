#pragma once
#include <span>
#include <string>

#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"

namespace tutti::internal {

/// A batch under one planner.
struct Prediction {
  const Planner* planner = nullptr;
  Timeline timeline;
  LatestFinish latest;
};

/// Plans a batch at nominal bandwidths, and finds its latest finish.
/// @pre the batch was made for this machine.
[[nodiscard]] Prediction predict_under(const Planner& planner, const Batch& batch);

/// A picture of one batch under each of these planners, below each other on one time axis: a row for each copy engine
/// that the batch uses, for the kernels of each GPU and for the host work of each cpu; gates, completion and latest
/// finish. Each stream has its colour.
/// @pre at least one prediction, all of this batch.
[[nodiscard]] std::string timelines_svg(const Batch& batch, std::span<const Prediction> predictions);

}  // namespace tutti::internal
