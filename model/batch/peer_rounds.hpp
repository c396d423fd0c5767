#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tutti::internal {

/// A copy between two GPUs as its order sees it.
struct PeerCopy {
  std::uint32_t issuer = 0;  ///< the engine that issues it: its copies go one after the other
  std::uint32_t target = 0;  ///< the GPU where it ends
  double bytes = 0;
};

/// An order in which the copies of each engine meet those of the others in pairs: in each round every engine has one
/// copy at most, and every GPU receives one at most, as many as can (a maximum matching; engines and GPUs with most
/// bytes left go first). For copies of one size from every GPU to every other, this is the least number of rounds
/// (König).
///
/// @return [copies] a permutation: the copy that takes the place of each, always one of the same engine.
/// @heuristic where sizes differ, rounds drift apart.
[[nodiscard]] std::vector<std::uint32_t> in_rounds(std::span<const PeerCopy> copies);

}  // namespace tutti::internal
