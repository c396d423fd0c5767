#pragma once
#include <string>

#include "apps/lab/learn/recorded_trace.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// Reads the trace of a program, whichever the file is: an export of Nsight Systems (SQLite), a trace in Chrome's JSON
/// form, compressed or not, a journal, or a trace that this project has written.
/// @errors InvalidInput: none of these, or one without copies and kernels.
[[nodiscard]] Expected<RecordedTrace> read_trace(const std::string& path);

}  // namespace tutti::internal
