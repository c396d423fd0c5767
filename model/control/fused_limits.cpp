#include "model/control/fused_limits.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

Expected<void> check_shape(const FusedShape& shape) {
  if (shape.peers < 1 || shape.peers > kMostFusedPeers)
    return invalid_input(
        fmt::format("a fused kernel of {} peers is not possible; give 1 to {}", shape.peers, kMostFusedPeers));
  if (shape.buffers < 1 || shape.buffers > kMostFusedBuffers)
    return invalid_input(
        fmt::format("{} buffers a peer are not possible; give 1 to {}", shape.buffers, kMostFusedBuffers));
  for (const auto& [name, blocks] : {std::pair{"senders", shape.senders}, {"unpackers", shape.unpackers}})
    if (blocks < shape.peers || blocks > kMostFusedBlocks)
      return invalid_input(
          fmt::format("{} {} for {} peers are not possible, since each peer has one at least; give {} to {}", blocks,
                      name, shape.peers, shape.peers, kMostFusedBlocks));
  return {};
}

}  // namespace

Expected<std::uint32_t> fused_blocks(const FusedShape& shape, const FusedSlots& slots, std::uint32_t most) {
  if (auto ok = check_shape(shape); !ok) return tl::unexpected(std::move(ok.error()));
  if (most == 1)
    return invalid_input(
        "a limit of 1 block leaves none beside the receiver, which waits for the peer's senders while the "
        "peer waits for these; allow 2 blocks or more");
  if (slots.of_each() < kFewestFusedSlots)
    return invalid_input(fmt::format(
        "a fused kernel needs {} blocks at once, one to receive and one to send, and has {} (SMs: {}, blocks of {} "
        "threads "
        "on each: {}, fused kernels on the GPU: {}); give blocks fewer threads, or the GPU fewer kernels",
        kFewestFusedSlots, slots.of_each(), slots.processors, slots.threads, slots.blocks_of_each, slots.kernels));
  const auto tickets = static_cast<std::uint32_t>(shape.tickets());
  const std::uint32_t blocks = std::min(tickets, slots.of_each());
  return most == 0 ? blocks : std::min(blocks, most);
}

}  // namespace tutti::internal
