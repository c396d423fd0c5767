#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "model/control/fused_dispatch.hpp"

namespace tutti::internal::test {

/// Two GPUs that run the fused kernel: peer p of each is the other one, at its peer p.
struct FusedRun {
  FusedRules rules = kFusedRules;
  FusedShape shape = {};
  std::uint32_t rounds = 2;
  std::uint32_t slots[2] = {2, 2};  ///< blocks that each GPU runs at once, 1 to 4
  bool receivers_together = false;  ///< a receiver's threads go on when all of them have their messages
  bool every_step = false;          ///< each action is a step by itself; otherwise the reduction below is used
};

/// What an exploration of all interleavings found.
struct FusedFinding {
  std::string fault;       ///< the first one, in words; empty: none
  std::size_t states = 0;  ///< different states that were seen
  std::size_t ends = 0;    ///< different states in which both GPUs had finished
};

/// Explores every interleaving of the blocks of both GPUs, remembering states that it has seen. States that differ by a
/// renaming of slots, or of the GPUs where both have as many slots, count as one.
///
/// A fault is: blocks that all wait, for ever; a piece that is packed while its memory holds a message that is not
/// wholly unpacked; a piece that is packed twice; a message that is unpacked while a piece of it is missing, or
/// changed meanwhile; a piece that is unpacked twice; a round that begins before the one before is over on its GPU; an
/// end with a message, or inner work, that is missing.
///
/// With the reduction, waits that are over, draws, counts and sets are done at once. Words only rise, so a wait that is
/// over stays over, and a set or a count that comes later only delays others, who may be late anyway. Slots are equal,
/// so it does not matter which one draws. So packing, inner work, and begin and end of unpacking are left to
/// interleave.
[[nodiscard]] FusedFinding explore(const FusedRun& run);

}  // namespace tutti::internal::test
