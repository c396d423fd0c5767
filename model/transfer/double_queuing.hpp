#pragma once
#include "model/base/quantities.hpp"

namespace tutti {

/// Speeds of a host that decide how ordinary memory is copied to and from a GPU. Measured once per host and NUMA node.
struct DoubleQueuingSpeeds {
  GBps link;    ///< S_B2D: the engine between a pinned buffer and the GPU; > 0
  GBps thread;  ///< S_H2B: one thread between ordinary memory and a buffer; > 0
  GBps memory;  ///< B_MEM: what the host's memory gives to all threads, reads and writes together; > 0

  friend bool operator==(const DoubleQueuingSpeeds&, const DoubleQueuingSpeeds&) = default;
};

/// Times that each byte of a copy goes over the host's memory.
enum class MemoryPasses : std::uint8_t {
  Cached = 2,  ///< read by a thread, written into a buffer that stays in the caches, where the engine reads it
  Memory = 3,  ///< and read once more by the engine, as published
};

/// How many threads copy, and what that gives.
struct ProducerChoice {
  int threads;      ///< N
  int least;        ///< N_min: so many fill the link
  int most;         ///< N_max: the host's memory feeds so many beside the engine; may be below N_min, and 0
  GBps rate;        ///< of long copies
  bool fills_link;  ///< both published conditions hold

  friend bool operator==(const ProducerChoice&, const ProducerChoice&) = default;
};

/// Rate of long copies by so many threads: min(S_B2D, N S_H2B, B_MEM / passes).
/// @pre threads > 0
/// @source [MDQ19] conditions (1) and (2), as one minimum
[[nodiscard]] GBps double_queuing_rate(const DoubleQueuingSpeeds& speeds, int threads,
                                       MemoryPasses passes = MemoryPasses::Memory);

/// Chooses as many threads as fill the link, N_min = ceil(S_B2D / S_H2B), as far as there are cores: with N_max =
/// floor((B_MEM - S_B2D) / (2 S_H2B)) >= N_min both conditions hold, S_B2D <= N S_H2B and S_B2D + 2 N S_H2B <= B_MEM.
/// Otherwise the link cannot be filled, and the rate says what is left.
/// @param cores  that the threads may use, > 0
/// @source [MDQ19] conditions (1) and (2)
[[nodiscard]] ProducerChoice choose_producers(const DoubleQueuingSpeeds& speeds, int cores,
                                              MemoryPasses passes = MemoryPasses::Memory);

}  // namespace tutti
