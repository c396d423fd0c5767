#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "apps/lab/learn/motifs.hpp"

namespace tutti::internal {

/// Where operations of a pattern stand in a sequence.
struct Alignment {
  std::vector<std::uint32_t> places;  ///< [operations of the pattern]; `kMissing` where it lacks one
  std::uint32_t next = 0;             ///< the position behind it
  std::size_t found = 0;              ///< operations that are there
};

/// A pattern at a position of a sequence, of which a fifth, but at most 8 operations, may be missing; as many others
/// may stand in between.
[[nodiscard]] std::optional<Alignment> align(std::span<const SequenceItem> items, std::uint32_t begin,
                                             std::uint32_t end, std::span<const std::uint32_t> signs);

/// The pattern that a whole sequence repeats, from its longest usual gap to the next: a loop. Nothing where it repeats
/// none.
/// @param gaps  [items] before each
/// @heuristic
[[nodiscard]] std::optional<Motif> find_repetition(std::span<const SequenceItem> items,
                                                   std::span<const std::int64_t> gaps);

}  // namespace tutti::internal
