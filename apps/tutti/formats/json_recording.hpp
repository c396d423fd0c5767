#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/formats/recording.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// Passes on a trace of this project (`TraceWriter`), compressed or not, or the JSON of `predict`. A trace is read
/// event by event, so memory is bounded.
/// @return  what is missing at the end of a trace that is cut off, a sentence each with its place; none of a whole one
/// @errors  InvalidInput: it cannot be read, is no JSON, or neither of these two, or of a newer version.
[[nodiscard]] Expected<std::vector<std::string>> record_json(const std::string& path, RecordingSink& sink);

}  // namespace tutti::internal
