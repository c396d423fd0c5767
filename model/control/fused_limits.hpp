#pragma once
#include <cstdint>

#include "model/base/error.hpp"
#include "model/control/fused_dispatch.hpp"

namespace tutti::internal {

/// Slots that a fused kernel needs: one to receive and one for all others.
inline constexpr std::uint32_t kFewestFusedSlots = 2;
/// Limits of a fused kernel's shape.
inline constexpr std::uint32_t kMostFusedBuffers = 16, kMostFusedBlocks = 1U << 20;

/// The slots of one GPU for its fused kernels.
struct FusedSlots {
  std::uint32_t processors = 1;      ///< SMs, >= 1
  std::uint32_t blocks_of_each = 1;  ///< blocks of this kernel that an SM holds at once; 0: none fits
  std::uint32_t threads = 1;         ///< of a block, for messages
  std::uint32_t kernels = 1;         ///< fused kernels that run on this GPU together, >= 1

  /// Slots of one of these kernels. They share the GPU evenly.
  [[nodiscard]] constexpr std::uint32_t of_each() const { return processors * blocks_of_each / kernels; }

  friend bool operator==(const FusedSlots&, const FusedSlots&) = default;
};

/// The blocks with which to launch a fused kernel.
///
/// More blocks than tickets have nothing to do. More blocks than slots are harmless where a kernel has its GPU for
/// itself: those that come late find the tickets that are left. Where several kernels share a GPU they are not: one
/// kernel's waiting blocks may then keep the other from ever starting. So a kernel is never launched with more blocks
/// than it has slots.
/// @param most  a limit of the caller's, at least 2; 0: none
/// @return blocks, at least 2 and at most the slots
/// @errors InvalidInput: a shape without peers, with fewer senders or unpackers than peers, or above the limits;
///         fewer than 2 slots, or a limit below 2: receiver and senders could wait for each other for ever.
[[nodiscard]] Expected<std::uint32_t> fused_blocks(const FusedShape& shape, const FusedSlots& slots,
                                                   std::uint32_t most = 0);

}  // namespace tutti::internal
