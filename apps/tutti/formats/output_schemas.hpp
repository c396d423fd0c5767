#pragma once
#include <span>
#include <string_view>

namespace tutti::internal {

/// The JSON Schema of what a command prints with --json: a file of configs/schemas, as it was when this was built.
struct OutputSchema {
  std::string_view name;
  std::string_view text;
};
[[nodiscard]] std::span<const OutputSchema> output_schemas();

}  // namespace tutti::internal
