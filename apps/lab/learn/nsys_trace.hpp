#pragma once
#include <string>
#include <string_view>

#include "apps/lab/learn/recorded_trace.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// Whether a file begins as SQLite databases do.
[[nodiscard]] bool is_sqlite(std::string_view first_bytes);

/// Reads the SQLite export of Nsight Systems (`nsys export --type sqlite`): copies, kernels and memsets.
/// @errors InvalidInput: no such export, a damaged one, or one without copies and kernels.
[[nodiscard]] Expected<RecordedTrace> read_nsys_trace(const std::string& path);
/// The same of the bytes of a file.
/// @param path  for errors
[[nodiscard]] Expected<RecordedTrace> parse_nsys_trace(std::string_view bytes, const std::string& path);

}  // namespace tutti::internal
