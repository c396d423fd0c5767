#pragma once
#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cuda/conductor.hpp"
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/lane_pool.hpp"

namespace tutti::cuda {

class CudaBatch;

/// What the batches of a backend share: the machine as it is bound to this host's GPUs.
struct Stage {
  Stage(const Topology& the_machine, const KernelRegistry& the_kernels, Clock& the_clock, const CudaOptions& options)
      : machine(the_machine),
        kernels(the_kernels),
        clock(the_clock),
        gate(options.gate.value_or(the_machine.gate())),
        waiting(options.waiting),
        conductor(the_clock) {}
  Stage(const Stage&) = delete;  // batches know it by its address
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    for (const auto& [from, to] : peers) {
      const DeviceGuard guard(from);
      if (!lost) static_cast<void>(cudaDeviceDisablePeerAccess(to));
    }
  }

  Topology machine;
  const KernelRegistry& kernels;
  Clock& clock;
  GateKind gate;
  Waiting waiting;
  Driver driver{};
  std::vector<int> numa_nodes;          ///< the system's numbers
  std::vector<int> ordinal;             ///< [vertices] of GPUs, as CUDA counts
  std::map<int, LanePool> lanes;        ///< by ordinal
  std::set<std::pair<int, int>> peers;  ///< from and to: access that this stage has enabled
  std::vector<CudaBatch*> batches;
  std::atomic<bool> lost{false};  ///< a GPU is broken or hangs: nothing of it can be waited for or given back
  int closed = 0;  ///< batches that are armed and not submitted: while there is one, the driver may wait for it
  Conductor conductor;

  [[nodiscard]] int device_of(VertexId gpu) const { return ordinal[gpu.index()]; }
  /// Memories are the host's NUMA nodes, in their order; below 0 where the host has but one.
  [[nodiscard]] int numa_node_of(VertexId memory) const {
    const auto memories = machine.memories();
    const auto place = static_cast<std::size_t>(std::find(memories.begin(), memories.end(), memory) - memories.begin());
    return numa_nodes.size() < 2 || place >= numa_nodes.size() ? -1 : numa_nodes[place];
  }
};

/// What the batches of a backend made by `make_cuda_backend` share; null of any other backend.
[[nodiscard]] Stage* stage_of(DeviceBackend& backend);

}  // namespace tutti::cuda
