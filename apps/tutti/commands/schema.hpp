#pragma once
#include <span>
#include <string_view>

#include "apps/tutti/formats/record_json.hpp"

namespace tutti::internal {

/// What a command prints, with the schema that its field tables make.
struct RecordSchema {
  std::string_view output;
  Json (*schema)(std::string_view output);
};

/// What the commands of the laboratory print.
[[nodiscard]] std::span<const RecordSchema> laboratory_schemas();

}  // namespace tutti::internal
