#pragma once
#include <cstdint>
#include <string>

#include "model/batch/batch.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal::test {

/// A machine of 1 to 8 GPUs behind cpus, hubs and switches, with shared capacities, weights, one-engine GPUs and set-up
/// times; the same for the same seed. Every memory reaches every GPU and back.
/// @param scale  what all times and the staging chunk are multiplied by; rates stay.
[[nodiscard]] Topology random_machine(std::uint64_t seed, int scale = 1);

/// The machine with a device or two and background flows: to and from them, between memories, GPUs, and inside a
/// memory. They leave at least two fifths of every guaranteed capacity; the same for the same seed.
[[nodiscard]] Topology with_random_background(const Topology& machine, std::uint64_t seed);

/// What a random batch may hold.
struct BatchTraits {
  int most_streams = 10;
  std::uint64_t most_bytes = 200'000'000;  ///< of a copy
  int most_kernel = 30'000'000;            ///< ns
  bool kernels_share = true;               ///< two streams may want one GPU for their kernels
  bool may_unmerge = true;                 ///< one batch in four has `merging: off`
  bool zero_sizes = true;
  bool methods = true;  ///< some copies are by kernels, by arguments of kernels, by the host, or of rows that lie apart
  std::uint64_t one_method_in = 3;  ///< so many copies
};

/// A batch for a machine: copies in both directions, between GPUs, from and to devices, kernels on GPUs and cpus; the
/// same for the same seed.
/// @param scale  what all sizes and times are multiplied by.
[[nodiscard]] Batch random_batch(const Topology& machine, std::uint64_t seed, const BatchTraits& traits = {},
                                 int scale = 1);

/// A batch in words, for the message of a failed assertion.
[[nodiscard]] std::string describe(const Topology& machine, const Batch& batch);

}  // namespace tutti::internal::test
