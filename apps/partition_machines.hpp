#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/backends.hpp"
#include "runtime/core/executor.hpp"
#include "sched/admission/admission.hpp"

namespace tutti {

/// What a report says of the machines of a run.
struct RunPlace {
  std::string backend;
  std::string clock;
  std::size_t partitions = 1;
  std::vector<std::string> notes = {};  ///< what the host refused, and who else used the devices; each once
};

/// What the partitions of a task set run on: each has a clock, a backend and an executor of its own, and on real GPUs
/// only those that its tasks use, if there are several partitions.
class PartitionMachines {
 public:
  /// @param machine  of the set, or any where it names none; it and the kernels outlive the result
  /// @errors as `make_clock` and `make_backend`.
  [[nodiscard]] static Expected<PartitionMachines> make(const BackendOptions& options, const PlannedTaskSet& planned,
                                                        const Topology& machine, const KernelRegistry& kernels);

  /// [partitions]
  [[nodiscard]] std::span<Executor* const> executors() const { return executors_; }
  /// What there is to say by now.
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

}  // namespace tutti
