#pragma once
#include <cstdint>
#include <vector>

#include "apps/lab/learn/motifs.hpp"
#include "apps/lab/learn/recorded_trace.hpp"

namespace tutti::internal {

/// Jobs of one task: [job][operation] position in the trace, or `kMissing`. Every job has one operation at least.
using JobList = std::vector<std::vector<std::uint32_t>>;

/// Joins the patterns of a process whose occurrences always go together: one behind the other at a distance that varies
/// little. A job begins behind the longest pause.
/// @param motifs  with positions in the trace
/// @heuristic
[[nodiscard]] std::vector<JobList> joined_motifs(const RecordedTrace& trace, std::vector<Motif> motifs);

}  // namespace tutti::internal
