#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch/batch.hpp"

namespace tutti::internal {

/// Work on which methods of running batches are compared.
struct Workload {
  std::string name;  ///< "example", "random-7"
  std::string kind;  ///< "example", "random"
  std::vector<Batch> batches;
  std::vector<std::size_t> order;  ///< positions in `batches` in the order of execution, each issued while the one
                                   ///< before runs: so no two neighbours are the same
  int most_runs;                   ///< limit on repetitions, for long workloads

  /// Bytes of all transfers of one run.
  [[nodiscard]] Bytes moved() const;
};

/// Options for making workloads.
struct WorkloadOptions {
  static constexpr Bytes kUsualImage{512LL << 20};
  static constexpr Bytes kSmallestImage{512};
  static constexpr Bytes kLargestImage{1LL << 40};

  Bytes image = kUsualImage;  ///< all sizes are in proportion to it; from the smallest to the largest image
  std::uint64_t seed = 1;     ///< of the random workloads
};

/// A line for each kind of workload, for `--help`.
[[nodiscard]] std::string workload_list();

/// The workloads of a machine: the published example and applications scaled to it, and random batches. They copy
/// between the first memory and the GPUs, and between GPUs; kernels are `spin`. The batches of a workload are those of
/// one application.
/// @param only  a kind, or one workload of a kind; empty: all but those that `workload_list` calls "when asked for".
/// @errors InvalidInput: an unknown name; the machine has no memory, no GPU, or a GPU without routes up and down.
/// @source [VMS14] section 2.4 (example), Table 1 (wafer inspection, domain decomposition).
[[nodiscard]] Expected<std::vector<Workload>> make_workloads(const Topology& machine, const WorkloadOptions& options,
                                                             std::string_view only = "");

}  // namespace tutti::internal
