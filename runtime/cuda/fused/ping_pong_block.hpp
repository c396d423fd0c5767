#pragma once
#include <cstddef>
#include <cstdint>

#include "model/control/fused_dispatch.hpp"

namespace tutti::internal::cuda {

/// Most blocks of a rank. Each has a word, and each waits for all words.
inline constexpr std::uint32_t kMostPingPongBlocks = 64;

/// What the blocks of one rank know. All must be resident at once, with those of the other rank.
struct PingPongWork {
  std::uint32_t rank;                  ///< 0 sends first, 1 answers
  std::uint32_t blocks;                ///< of each rank, 1 to `kMostPingPongBlocks`
  std::uint64_t first, rounds;         ///< of this launch; rounds count on over launches
  std::uint64_t bytes;                 ///< of the message
  std::uint64_t rest;                  ///< ns before each send
  std::uint64_t slots, stride;         ///< places for messages in the memory of a rank, and their distance
  std::byte* mine;                     ///< [slots][stride]
  std::byte* peers;                    ///< as many, of the other rank
  std::uint64_t* arrived;              ///< [blocks] in this GPU's memory: pieces that have arrived
  std::uint64_t* answered;             ///< [blocks] in the memory of the other rank
  const volatile std::uint64_t* stop;  ///< in pinned memory; not 0: all waits are given up
  std::uint64_t* gave_up;              ///< in pinned memory; set to 1 by a block that does

  /// The place of the message that a rank sends in a round, and of the one that the other rank gets.
  [[nodiscard]] TUTTI_HOST_DEVICE const std::byte* sent(std::uint64_t round) const {
    return mine + round % slots * stride;
  }
  [[nodiscard]] TUTTI_HOST_DEVICE std::byte* received(std::uint64_t round) const {
    return peers + (round + rank) % slots * stride;
  }
};

/// 16 bytes, which a thread moves at once.
struct alignas(16) PingPongQuad {
  std::uint32_t words[4];
};

/// Adds 1 to each of the four bytes, modulo 256.
[[nodiscard]] TUTTI_HOST_DEVICE constexpr std::uint32_t next_bytes(std::uint32_t bytes) {
  return ((bytes & 0x7f7f7f7fU) + 0x01010101U) ^ (bytes & 0x80808080U);
}

/// Sends a piece of a message with 1 added to each byte, so that the last message says how often it was passed on.
template <class Block>
TUTTI_HOST_DEVICE void pass_piece(const Block& block, const PingPongWork& work, std::uint32_t piece,
                                  std::uint64_t round) {
  const std::byte* const from = work.sent(round);
  std::byte* const to = work.received(round);
  const auto* const quads = reinterpret_cast<const PingPongQuad*>(from);
  const std::uint64_t count = work.bytes / sizeof(PingPongQuad);
  for (std::uint64_t i = std::uint64_t{piece} * block.threads() + block.thread(); i < count;
       i += std::uint64_t{work.blocks} * block.threads()) {
    PingPongQuad quad = quads[i];
    for (std::uint32_t& word : quad.words) word = next_bytes(word);
    reinterpret_cast<PingPongQuad*>(to)[i] = quad;
  }
  if (piece != 0) return;
  const std::uint64_t words = work.bytes / sizeof(std::uint32_t);
  for (std::uint64_t i = 4 * count + block.thread(); i < words; i += block.threads())
    reinterpret_cast<std::uint32_t*>(to)[i] = next_bytes(reinterpret_cast<const std::uint32_t*>(from)[i]);
  for (std::uint64_t i = 4 * words + block.thread(); i < work.bytes; i += block.threads())
    to[i] = static_cast<std::byte>(static_cast<std::uint8_t>(from[i]) + 1);
}

/// Runs one block of a rank. Words count pieces of messages that have arrived; a block sends when all pieces of the
/// message are there, so it overwrites none that another block still reads.
/// @tparam Block  as for `run_fused_block`, and rest(ns): the thread does nothing for so long
template <class Block>
TUTTI_HOST_DEVICE void run_ping_pong_block(Block& block, const PingPongWork& work, std::uint32_t piece) {
  // Rank 0 waits once more for the last answer, and not for the first message.
  for (std::uint64_t i = 0; i < work.rounds + (work.rank == 0 ? 1 : 0); ++i) {
    const std::uint64_t round = work.first + i;
    if (work.rank == 1 || i > 0) {
      bool gives_up = false;
      for (std::uint32_t word = block.thread(); word < work.blocks && !gives_up; word += block.threads())
        gives_up = !block.wait(work.arrived + word, round + work.rank, work.stop);
      if (gives_up) block.set(work.gave_up, 1);
      if (block.any(gives_up)) return;
    }
    if (i == work.rounds) return;
    if (work.rest > 0) block.rest(work.rest);
    pass_piece(block, work, piece, i);
    static_cast<void>(block.lead([&] {
      block.set(work.answered + piece, round + 1);
      return std::uint64_t{0};
    }));
  }
}

}  // namespace tutti::internal::cuda
