#pragma once
#include <string>

#include <nlohmann/json.hpp>

#include "apps/tutti/formats/prediction_output.hpp"
#include "apps/tutti/formats/recording.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// What a picture of a batch needs: the machine; bytes, route and engines of transfers; engines of kernels.
/// @param plan  of that batch alone
[[nodiscard]] PlanOutput plan_output(const std::string& machine, const JournalPlan& plan);

/// Passes on the JSON of `predict`.
/// @param path  of the file, for messages and the title
/// @errors  InvalidInput: it is not the JSON of `predict`, or has no plan.
[[nodiscard]] Expected<void> record_prediction(const nlohmann::json& prediction, const std::string& path,
                                               RecordingSink& sink);

/// Passes on one predicted batch: one job, which ends with the batch.
/// @param latest  finish of the batch
void record_plan(const RecordingHead& head, const JournalPlan& plan, const std::string& name, Duration latency,
                 Duration latest, RecordingSink& sink);

}  // namespace tutti::internal
