#pragma once
#include <string>

#include "apps/lab/learn/recorded_trace.hpp"
#include "model/base/error.hpp"
#include "runtime/trace/journal_reader.hpp"

namespace tutti::internal {

/// What a run of this project has measured, from its journal.
/// @errors InvalidInput: it has no copy and no kernel.
[[nodiscard]] Expected<RecordedTrace> learned_from_journal(JournalReader reader, const std::string& path);
/// The same from a trace (`--trace`).
/// @errors InvalidInput: it cannot be read, or has no measured copy and no kernel.
[[nodiscard]] Expected<RecordedTrace> learned_from_trace(const std::string& path);

}  // namespace tutti::internal
