#pragma once
#include <string>
#include <string_view>

#include "apps/lab/learn/recorded_trace.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// Reads a trace in Chrome's JSON form, as PyTorch's profiler (Kineto) writes it and Perfetto exports it, compressed by
/// gzip or not. It is read event by event, so memory is bounded by the copies and kernels of GPUs. A trace that is cut
/// off is read up to there, and a note says so.
/// @errors InvalidInput: no such JSON, or no copies and kernels in it.
[[nodiscard]] Expected<RecordedTrace> read_chrome_trace(const std::string& path);
/// The same of the bytes of a file that is not compressed.
/// @param path  for errors
[[nodiscard]] Expected<RecordedTrace> parse_chrome_trace(std::string_view bytes, const std::string& path);

}  // namespace tutti::internal
