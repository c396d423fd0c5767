#pragma once
#include <cstdint>
#include <span>
#include <vector>

/// What comes again and again in a sequence of operations.
namespace tutti::internal {

/// One operation of a sequence: what it does, as a number, and when.
struct SequenceItem {
  std::uint32_t sign = 0;  ///< equal for operations that do the same
  std::int64_t start = 0, end = 0;
};

inline constexpr std::uint32_t kMissing = ~std::uint32_t{0};
/// A pattern must come so often to be one.
inline constexpr std::size_t kLeastOccurrences = 3;

/// A pattern and its occurrences.
struct Motif {
  std::vector<std::uint32_t> signs;                     ///< of its operations, in order
  std::vector<std::vector<std::uint32_t>> occurrences;  ///< [occurrence][operation] position in the sequence, or
                                                        ///< `kMissing`; by time
};

/// The patterns of a sequence whose operations follow each other, as those of a CUDA stream do.
///
/// Patterns are sought twice: between pauses, where bursts of operations are equal, for several lengths of a pause; and
/// without pauses, where the whole sequence repeats. Of the answers the one with the fewest and longest patterns is
/// taken that explains nearly as much time as the best. An occurrence may lack a fifth of its operations: recorders
/// drop some.
///
/// @param items  [n] by start
/// @return patterns; an operation is in one occurrence at most.
/// @heuristic
[[nodiscard]] std::vector<Motif> find_motifs(std::span<const SequenceItem> items);

}  // namespace tutti::internal
