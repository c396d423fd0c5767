#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/backend_words.hpp"
#include "apps/tutti/commands/kernels.hpp"
#include "runtime/core/baselines.hpp"
#include "runtime/dispatch/partition_machines.hpp"

namespace tutti::internal {

/// A machine with its clock, backend and executor, for measurements. Only one rig may exist at a time: two would
/// share the GPUs' queues.
class Rig {
 public:
  /// @errors as `backend_options` and `BackendStack::make`.
  [[nodiscard]] static Expected<std::unique_ptr<Rig>> make(const Topology& machine,
                                                           const programs::BackendWords& words);
  Rig(const Rig&) = delete;  // its parts point at each other
  Rig& operator=(const Rig&) = delete;

  [[nodiscard]] const Topology& machine() const { return machine_; }
  [[nodiscard]] Executor& executor() { return stack_->executor(); }
  [[nodiscard]] DeviceBackend& backend() { return stack_->backend(); }
  [[nodiscard]] Clock& clock() { return stack_->clock(); }
  /// As `BackendStack::add_notes`.
  void add_notes(std::vector<std::string>& notes) const { stack_->add_notes(notes); }
  /// What the driver does by itself. Never null.
  /// @errors InvalidInput: the backend has no driver.
  [[nodiscard]] Expected<Baselines*> baselines();

 private:
  explicit Rig(const Topology& machine) : machine_(machine) {}

  Topology machine_;
  KernelRegistry kernels_ = kernels_of_this_program();
  std::optional<BackendStack> stack_;
};

}  // namespace tutti::internal
