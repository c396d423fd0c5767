#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/core/kernel_registry.hpp"
#include "runtime/dispatch/spare_machines.hpp"
#include "runtime/host/real_time.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// A backend with its clock and its executor. What is passed in outlives it.
class BackendStack {
 public:
  /// @param gpus   that it opens; absent: all
  /// @param clock  of the stack whose place it takes; absent: one that starts now
  /// @errors as `Runtime::open`.
  [[nodiscard]] static Expected<BackendStack> make(const tutti::BackendOptions& options, const Topology& machine,
                                                   const KernelRegistry& kernels,
                                                   std::optional<std::vector<VertexId>> gpus = {},
                                                   std::shared_ptr<Clock> clock = nullptr);

  [[nodiscard]] Clock& clock() const { return *clock_; }
  [[nodiscard]] const std::shared_ptr<Clock>& shared_clock() const { return clock_; }
  [[nodiscard]] DeviceBackend& backend() const { return *backend_; }
  [[nodiscard]] Executor& executor() const { return *executor_; }
  /// Adds what the host refused and other users of the devices, each once.
  void add_notes(std::vector<std::string>& notes) const;

 private:
  BackendStack() = default;

  std::optional<RealTimeSetup> setup_;
  std::shared_ptr<Clock> clock_;
  std::unique_ptr<DeviceBackend> backend_;
  std::unique_ptr<Executor> executor_;
};

/// The machines of a run, for its report.
struct RunPlace {
  std::string backend;
  std::string clock;
  std::size_t partitions = 1;
  std::vector<std::string> notes = {};  ///< requests that the host refused, other users of the devices; each once
  bool overlaps = false;                ///< jobs do
  std::vector<PinnedUse> pinned = {};   ///< memory of the program, by NUMA node; empty: the backend pins none
};

/// The partitions' machines: each partition of a task set has its own clock, backend and executor. With several
/// partitions on real GPUs, each opens only the GPUs that its tasks use.
class PartitionMachines final : public SpareMachines {
 public:
  /// @param machine  of the set, or any where the set names none; machine and kernels must outlive the result
  /// @errors as `BackendStack::make`.
  [[nodiscard]] static Expected<PartitionMachines> make(const tutti::BackendOptions& options,
                                                        const PlannedTaskSet& planned, const Topology& machine,
                                                        const KernelRegistry& kernels);

  /// [partitions]
  [[nodiscard]] std::span<Executor* const> executors() const { return executors_; }
  /// Backend, clock and the notes so far.
  [[nodiscard]] RunPlace place() const;
  [[nodiscard]] Expected<Executor*> without(std::size_t partition, std::span<const VertexId> lost) override;

 private:
  PartitionMachines(const tutti::BackendOptions& options, const Topology& machine, const KernelRegistry& kernels)
      : options_(options), machine_(&machine), kernels_(&kernels) {}

  tutti::BackendOptions options_;
  const Topology* machine_;
  const KernelRegistry* kernels_;
  bool overlaps_ = false;
  std::vector<BackendStack> machines_;
  std::vector<std::vector<VertexId>> gpus_;  // [partitions] that their tasks may use
  std::vector<BackendStack> spares_;
  std::unique_ptr<std::mutex> making_ = std::make_unique<std::mutex>();  // of spares
  std::vector<Executor*> executors_;
};

}  // namespace tutti::internal
