#pragma once
#include <cstddef>

#include "model/batch/batch.hpp"
#include "model/machine/topology.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// Machines of any size, and batches for them: what benchmarks and tests of large counts predict. Each GPU has two copy
/// engines, so that streams of one GPU and direction are merged.
enum class Tree {
  Nested,   ///< one memory and processor, switches with four GPUs each: one row for which all groups compete
  Sockets,  ///< max(2, GPUs / 4) processors with a memory each; two are linked, more meet in one hub; switches with two
            ///< GPUs each: many rows, and no two are alike
};

/// mem0 - 48 GB/s - cpu0 - 16 GB/s - switchN - 12 GB/s - gpuN, both ways; or, GB/s down and up again:
/// memN - 38.5/31.2 - cpuN - 19.2/18.7 - hub or the other cpu, cpuN - 9.43/10.1 - switchN - 6.03/6.41 - gpuN.
/// @pre at least 4 GPUs, a multiple of 4
[[nodiscard]] Topology make_tree(Tree tree, std::size_t gpus);

/// Copies between memories and GPUs, spread evenly over the GPUs in random order. In the nested tree 32 to 512 MB, into
/// the GPUs first, out of them once each has one, and so on. Between sockets 1 to 256 MiB over all engines, a quarter
/// of them between a GPU and the memory of another processor.
/// @param kernels  each stream has one of up to 20 ms: on its GPU, or on the GPU's processor after a copy out of it, so
///                 that no two chains want one GPU.
[[nodiscard]] Batch make_tree_batch(const Topology& machine, Tree tree, std::size_t streams, bool kernels,
                                    Random& random);

}  // namespace tutti::internal::test
