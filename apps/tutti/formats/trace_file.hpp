#pragma once
#include <functional>
#include <string>

#include "apps/tutti/formats/recording.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// Help of the option `--trace`.
inline constexpr auto kTraceOption =
    "writes a trace for the viewers of Perfetto (ui.perfetto.dev) and Chrome into this file; FILE.gz is compressed";

/// Writes a trace, compressed where the name of the file ends in ".gz".
/// @param record  passes a whole recording to the sink
/// @errors as `programs::write_file` and `record`; then a file that was there stays as it was.
[[nodiscard]] Expected<void> write_trace(const std::string& path,
                                         const std::function<Expected<void>(RecordingSink&)>& record);

}  // namespace tutti::internal
