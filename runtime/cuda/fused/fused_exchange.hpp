#pragma once
#include <cstdint>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/quantities.hpp"

namespace tutti::internal {

/// GPUs that exchange messages with each other by fused kernels alone: every rank sends a message to every other one in
/// each round, and every word of a message is checked where it is unpacked.
struct FusedExchangeSpec {
  std::vector<int> gpus;        ///< [ranks] CUDA's number of the GPU of each rank, 2 to 33 ranks; several may share one
  std::uint64_t rounds = 1000;  ///< 1 to 2^32
  std::uint64_t rounds_a_launch = 0;              ///< a launch of the kernels for each so many; 0: one launch for all
  std::uint32_t senders = 0;                      ///< blocks of each GPU and round; 0: two for each peer
  std::uint32_t unpackers = 0;                    ///< as for senders
  std::uint32_t buffers = 1;                      ///< for the messages of each peer
  std::uint32_t message_words = 256;              ///< of 8 bytes, 1 to 2^20
  std::uint32_t inner_words = 4096;               ///< of inner work, as many for each rank
  std::uint32_t threads = 128;                    ///< of a block, 32 to 1024, a multiple of 32
  std::uint32_t most_blocks = 0;                  ///< that a kernel is launched with; 0: as many as fit at once
  Duration limit = std::chrono::seconds(60);      ///< after which the kernels are told to give up
  Duration last_wait = std::chrono::seconds(10);  ///< for kernels that were told to give up; then they are left behind
  int absent = -1;  ///< a rank whose kernel is not launched, to see the others give up; below 0: none
};

/// What happened.
struct FusedExchangeResult {
  std::vector<std::uint32_t> blocks;  ///< [ranks] that ran at once
  std::uint64_t messages = 0;         ///< that were to be unpacked, by all ranks
  std::uint64_t right = 0;            ///< words unpacked with the right sender, receiver, round and place
  std::uint64_t wrong = 0;            ///< words unpacked with another one
  std::uint64_t expected = 0;         ///< words that were to be unpacked
  std::uint64_t inner_wrong = 0;      ///< words of inner work that were not worked on once a round
  Duration length{};                  ///< from the first launch to the end of the last kernel, as the host sees it

  /// Every message came once and whole, and all inner work was done.
  [[nodiscard]] bool holds() const { return right == expected && wrong == 0 && inner_wrong == 0; }
};

/// Runs the exchange, under a watchdog: kernels that are not over within the limit are told to give up.
/// @errors InvalidInput: values outside their ranges, a GPU that is not there, GPUs that do not reach each other, fewer
///         than 2 slots for a kernel; Machine: a call failed; the kernels gave up: the message says where the first
///         block waited.
/// @source [AGO17] kernel-initiated communication.
[[nodiscard]] Expected<FusedExchangeResult> run_fused_exchange(const FusedExchangeSpec& spec);

}  // namespace tutti::internal
