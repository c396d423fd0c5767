#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/api/runtime.hpp"
#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal {

/// A backend with its clock and its executor. What is passed in outlives it.
class BackendStack {
 public:
  /// @param gpus   that it opens; absent: all
  /// @param hangs  shared by all that divide one machine
  /// @errors as `Runtime::open`.
  [[nodiscard]] static Expected<BackendStack> make(const tutti::BackendOptions& options, const Topology& machine,
                                                   const KernelRegistry& kernels,
                                                   std::optional<std::vector<VertexId>> gpus = {},
                                                   std::shared_ptr<std::atomic<bool>> hangs = {});

  [[nodiscard]] Executor& executor() const { return *executor_; }
  /// Adds what the host refused and other users of the devices, each once.
  void add_notes(std::vector<std::string>& notes) const;

 private:
  BackendStack() = default;

  std::unique_ptr<Clock> clock_;
  std::unique_ptr<DeviceBackend> backend_;
  std::unique_ptr<Executor> executor_;
};

}  // namespace tutti::internal
