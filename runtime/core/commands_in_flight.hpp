#pragma once
#include <cstdint>
#include <vector>

#include "runtime/core/command_list.hpp"

namespace tutti::internal {

/// What the host knows of a mark in a run that has broken off.
enum class Reached : std::uint8_t {
  Unknown,  ///< there is no mark, or nothing says whether the GPU came there
  No,       ///< so nothing behind it in its lane has begun
  Yes,      ///< so everything before it in its lane has ended
};

/// How far a run came, as the host knows it. Each knowledge is of an instant after the run broke off.
struct RunProgress {
  explicit RunProgress(const CommandList& list)
      : ends(list.commands.size()),
        leg_ends(list.commands.size()),
        seen_early(list.commands.size()),
        opened(list.gates.size(), true),
        enqueued(static_cast<std::uint32_t>(list.commands.size())) {}

  std::vector<Reached> ends;      ///< [commands]
  std::vector<Reached> leg_ends;  ///< [commands] of the first legs of staged copies
  std::vector<bool> seen_early;   ///< [commands] whether lanes may see its end before the host does
  std::vector<bool> opened;       ///< [gates] whether it may be open
  std::uint32_t enqueued;         ///< commands that may be in a queue: so many from the first one on
};

/// Commands that may have begun and that have not ended, as far as is known. What was under way when the run broke off
/// is always among them.
///
/// A lane runs its commands in order, so a mark that was not reached holds all that is behind it; a wait holds a
/// command while the other lane's mark was not reached, unless its signal is set in several places, one after the
/// other, of which the host's is the last.
///
/// @return positions, ascending
[[nodiscard]] std::vector<std::uint32_t> commands_in_flight(const CommandList& list, const RunProgress& progress);

}  // namespace tutti::internal
