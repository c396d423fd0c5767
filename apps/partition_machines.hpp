#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/backends.hpp"
#include "runtime/core/executor.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// The machines of a run, for its report.
struct RunPlace {
  std::string backend;
  std::string clock;
  std::size_t partitions = 1;
  std::vector<std::string> notes = {};  ///< requests that the host refused, other users of the devices; each once
};

/// The partitions' machines: each partition of a task set has its own clock, backend and executor. With several
/// partitions on real GPUs, each opens only the GPUs that its tasks use.
class PartitionMachines {
 public:
  /// @param machine  of the set, or any where the set names none; machine and kernels must outlive the result
  /// @errors as `make_clock` and `make_backend`.
  [[nodiscard]] static Expected<PartitionMachines> make(const BackendOptions& options, const PlannedTaskSet& planned,
                                                        const Topology& machine, const KernelRegistry& kernels);

  /// [partitions]
  [[nodiscard]] std::span<Executor* const> executors() const { return executors_; }
  /// Backend, clock and the notes so far.
  [[nodiscard]] RunPlace place() const;

 private:
  struct OfOne {
    std::unique_ptr<Clock> clock;
    std::unique_ptr<DeviceBackend> backend;
    std::unique_ptr<Executor> executor;
  };

  PartitionMachines() = default;

  std::vector<OfOne> machines_;
  std::vector<Executor*> executors_;
};

}  // namespace tutti::internal
