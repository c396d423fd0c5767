#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/core/kernel_registry.hpp"
#include "runtime/host/real_time.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// A backend with its clock and its executor. What is passed in outlives it.
class BackendStack {
 public:
  /// @param gpus  that it opens; absent: all
  /// @errors as `Runtime::open`.
  [[nodiscard]] static Expected<BackendStack> make(const tutti::BackendOptions& options, const Topology& machine,
                                                   const KernelRegistry& kernels,
                                                   std::optional<std::vector<VertexId>> gpus = {});

  [[nodiscard]] Clock& clock() const { return *clock_; }
  [[nodiscard]] DeviceBackend& backend() const { return *backend_; }
  [[nodiscard]] Executor& executor() const { return *executor_; }
  /// Adds what the host refused and other users of the devices, each once.
  void add_notes(std::vector<std::string>& notes) const;

 private:
  BackendStack() = default;

  std::optional<RealTimeSetup> setup_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<DeviceBackend> backend_;
  std::unique_ptr<Executor> executor_;
};

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
  /// @errors as `BackendStack::make`.
  [[nodiscard]] static Expected<PartitionMachines> make(const tutti::BackendOptions& options,
                                                        const PlannedTaskSet& planned, const Topology& machine,
                                                        const KernelRegistry& kernels);

  /// [partitions]
  [[nodiscard]] std::span<Executor* const> executors() const { return executors_; }
  /// Backend, clock and the notes so far.
  [[nodiscard]] RunPlace place() const;

 private:
  PartitionMachines() = default;

  std::vector<BackendStack> machines_;
  std::vector<Executor*> executors_;
};

}  // namespace tutti::internal
