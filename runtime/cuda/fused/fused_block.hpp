#pragma once
#include <cstdint>

#include "model/control/fused_dispatch.hpp"

namespace tutti::internal::cuda {

/// One GPU that this one exchanges messages with.
struct FusedPeer {
  std::uint64_t* words;  ///< of the peer, in its memory
  std::uint32_t index;   ///< this GPU among the peers of that one
};

/// What a GPU's blocks say when they give up. In pinned memory: the host reads it when the kernel is over.
struct FusedReport {
  std::uint64_t gave_up;         ///< 1: some block did
  std::uint64_t waits_for_peer;  ///< 1: one of them waited for another GPU, and the rest is of the first of these; all
                                 ///< others wait for blocks of their own GPU
  std::uint64_t step;            ///< FusedStep
  std::uint64_t round;
  std::uint64_t peer;
};

/// What all blocks of one GPU's fused kernel share.
struct FusedMemory {
  FusedRules rules;
  FusedShape shape;
  std::uint64_t first, rounds;         ///< of this launch
  std::uint64_t* words;                ///< [shape.words()] in this GPU's memory
  std::uint64_t* claim;                ///< a word there: who writes the report
  const volatile std::uint64_t* stop;  ///< in pinned memory; not 0: all waits are given up
  FusedReport* report;                 ///< in pinned memory
  FusedPeer peers[kMostFusedPeers];
};

[[nodiscard]] TUTTI_HOST_DEVICE inline std::uint64_t* word_of(const FusedMemory& memory, const FusedOrder& order) {
  if (!order.at_peer) return memory.words + memory.shape.position(order.word, order.peer, order.buffer);
  const FusedPeer& peer = memory.peers[order.peer];
  return peer.words + memory.shape.position(order.word, peer.index, order.buffer);
}

/// Runs one block of a fused kernel: draws tickets and does what they stand for, until none is left or the host says
/// stop. A kernel and tests on the host run this same function.
///
/// Who packs writes into the memory of the peer, then counts; who counts last rings. A count releases and acquires on
/// this GPU, the ring releases at system scope, and what waits for it acquires, so the unpackers see the message. That
/// is enough between GPUs, whose stores and words take one path; a message that a device such as a network card writes
/// would have to be flushed before its word is believed (`CU_STREAM_WAIT_VALUE_FLUSH`, where the GPU has
/// `CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES`), which a kernel cannot do.
///
/// @tparam Block  a thread of a block, with these functions:
///   thread(), threads()        its place and their number
///   lead(f)                    all threads come here; one calls f, and all return what it returned
///   any(bool)                  all threads come here; whether one of them said true
///   draw(word)                 adds 1, and returns the old value
///   add(word)                  adds 1 behind all that the block did, and returns the old value; acquires, releases
///   set(word, value)           sets behind all that the block did; releases
///   wait(word, value, stop)    until the word is at least the value; acquires; false: `*stop` is not 0
/// @tparam Work   pack, inner and unpack (Block&, const FusedOrder&), each called by all threads of the block
template <class Block, class Work>
TUTTI_HOST_DEVICE void run_fused_block(Block& block, const FusedMemory& memory, Work& work) {
  FusedThread thread(memory.rules, memory.shape, memory.first, memory.rounds, block.thread(), block.threads());
  bool stopped = false;
  const auto wait = [&](const FusedOrder& order) {
    if (block.wait(word_of(memory, order), order.value, memory.stop)) return true;
    const bool for_peer = thread.step() == FusedStep::AwaitMessage || thread.step() == FusedStep::AwaitFree;
    if (for_peer && block.add(memory.claim) == 0) {
      memory.report->step = static_cast<std::uint64_t>(thread.step());
      memory.report->round = order.round;
      memory.report->peer = order.peer;
      memory.report->waits_for_peer = 1;
    }
    block.set(&memory.report->gave_up, 1);
    return false;
  };
  while (true) {
    const FusedOrder order = thread.order();
    std::uint64_t result = 0;
    switch (order.action) {
      case FusedAction::Exit: return;
      case FusedAction::Draw:
        if (block.any(stopped)) return;
        result = block.lead([&] { return block.draw(word_of(memory, order)); });
        break;
      case FusedAction::Wait:
        if (order.by_each) {
          stopped = stopped || !wait(order);
        } else if (block.lead([&] { return std::uint64_t{wait(order) ? 1U : 0U}; }) == 0) {
          return;
        }
        break;
      case FusedAction::Add: result = block.lead([&] { return block.add(word_of(memory, order)); }); break;
      case FusedAction::Set:
        if (order.by_each) {
          if (!stopped) block.set(word_of(memory, order), order.value);
        } else {
          static_cast<void>(
              block.lead([&] { return block.set(word_of(memory, order), order.value), std::uint64_t{0}; }));
        }
        break;
      case FusedAction::Pack: work.pack(block, order); break;
      case FusedAction::Inner: work.inner(block, order); break;
      case FusedAction::Unpack: work.unpack(block, order); break;
    }
    thread.done(result);
  }
}

/// An exchange whose every word is checked: messages say who sent them to whom in which round.
struct CheckedExchange {
  std::uint32_t rank;
  FusedShape shape;
  std::uint32_t message_words;
  std::uint32_t inner_words;                ///< a multiple of nothing: senders share them in turn
  std::uint64_t* arriving;                  ///< [peers][buffers][message_words] in this GPU's memory
  std::uint64_t* leaving[kMostFusedPeers];  ///< [buffers][message_words] of this GPU, in the memory of each peer
  std::uint32_t ranks[kMostFusedPeers];     ///< of the peers
  std::uint64_t* inner_sums;                ///< [inner_words]; each is to be the sum of 1 + round
  std::uint64_t* unpacked;                  ///< threads' looks at words that were right
  std::uint64_t* wrong;                     ///< words of another round, sender or place

  /// What stands at a place of a message. Different for any two messages of 2^32 rounds.
  [[nodiscard]] TUTTI_HOST_DEVICE static std::uint64_t value(std::uint32_t from, std::uint32_t to, std::uint64_t round,
                                                             std::uint32_t place) {
    return ((round << 6 | from) << 6 | to) << 20 | place;
  }

  template <class Block>
  TUTTI_HOST_DEVICE void pack(Block& block, const FusedOrder& order) {
    std::uint64_t* const message = leaving[order.peer] + std::uint64_t{order.buffer} * message_words;
    for (std::uint32_t i = order.piece + order.pieces * block.thread(); i < message_words;
         i += order.pieces * block.threads())
      message[i] = value(rank, ranks[order.peer], order.round, i);
  }

  template <class Block>
  TUTTI_HOST_DEVICE void inner(Block& block, const FusedOrder& order) {
    for (std::uint32_t i = order.piece + order.pieces * block.thread(); i < inner_words;
         i += order.pieces * block.threads())
      inner_sums[i] += order.round + 1;
  }

  template <class Block>
  TUTTI_HOST_DEVICE void unpack(Block& block, const FusedOrder& order) {
    const std::uint64_t* const message =
        arriving + (std::uint64_t{order.peer} * shape.buffers + order.buffer) * message_words;
    std::uint64_t right = 0, bad = 0;
    for (std::uint32_t i = order.piece + order.pieces * block.thread(); i < message_words;
         i += order.pieces * block.threads())
      (message[i] == value(ranks[order.peer], rank, order.round, i) ? right : bad) += 1;
    if (right > 0) block.add_some(unpacked, right);
    if (bad > 0) block.add_some(wrong, bad);
  }
};

}  // namespace tutti::internal::cuda
