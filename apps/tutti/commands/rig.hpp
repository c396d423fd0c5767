#pragma once
#include <memory>
#include <optional>

#include "apps/backends.hpp"
#include "apps/tutti/commands/kernels.hpp"
#include "runtime/core/baselines.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// A machine with its clock, backend and executor, for measurements. Only one rig may exist at a time: two would
/// share the GPUs' queues.
class Rig {
 public:
  /// @errors as `make_clock` and `make_backend`.
  [[nodiscard]] static Expected<std::unique_ptr<Rig>> make(const Topology& machine, const BackendOptions& options);
  Rig(const Rig&) = delete;  // its parts point at each other
  Rig& operator=(const Rig&) = delete;

  [[nodiscard]] const Topology& machine() const { return machine_; }
  [[nodiscard]] Executor& executor() { return *executor_; }
  [[nodiscard]] DeviceBackend& backend() { return *backend_; }
  [[nodiscard]] Clock& clock() { return *clock_; }
  /// What the driver does by itself. Never null.
  /// @errors InvalidInput: the backend has no driver.
  [[nodiscard]] Expected<Baselines*> baselines();

 private:
  explicit Rig(const Topology& machine) : machine_(machine) {}

  Topology machine_;
  KernelRegistry kernels_ = kernels_of_this_program();
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<DeviceBackend> backend_;
  std::optional<Executor> executor_;
};

}  // namespace tutti::internal
