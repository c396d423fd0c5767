#pragma once
#include <memory>
#include <string>

#include "model/base/error.hpp"
#include "model/base/export.hpp"
#include "runtime/core/kernel.hpp"

namespace tutti {

namespace internal {
class KernelRegistry;
struct Handles;
}  // namespace internal

/// The kernels that batches may name. `spin`, which does nothing but take its time, and `checksum` are built in.
class TUTTI_API Kernels {
 public:
  Kernels();
  Kernels(const Kernels& other);
  Kernels& operator=(const Kernels& other);
  Kernels(Kernels&& other) noexcept;
  Kernels& operator=(Kernels&& other) noexcept;
  ~Kernels();

  /// Adds a kernel. Its forms compute the same.
  /// @param host    run by the simulated machine and on cpus; empty: it runs on GPUs alone
  /// @param device  enqueues its work on a GPU; called when a batch is prepared, see `DeviceKernel`; empty: GPUs cannot
  ///                run it
  /// @errors InvalidInput: the name is taken, both forms are empty, an empty handle.
  [[nodiscard]] Expected<void> add(std::string name, HostKernel host, DeviceKernel device = {});

 private:
  friend struct internal::Handles;

  std::unique_ptr<internal::KernelRegistry> state_;
};

}  // namespace tutti
