#pragma once
#include <map>
#include <string>

#include "model/batch/batch.hpp"
#include "runtime/core/kernel.hpp"

namespace tutti::internal {

using tutti::DeviceKernel;
using tutti::DeviceStream;
using tutti::HostKernel;
using tutti::KernelLaunch;

/// One kernel for host and GPU. Both compute the same.
struct KernelForms {
  HostKernel host;
  DeviceKernel device;   ///< empty: GPUs cannot run it, unless it is built in
  bool builtin = false;  ///< a backend of GPUs supplies its GPU function

  /// Whether GPUs run a form that is the project's own.
  [[nodiscard]] bool is_builtin() const { return builtin && !device; }
};

/// Names of the built-in kernels.
inline constexpr std::string_view kSpinKernel = "spin", kChecksumKernel = "checksum";

/// The kernels that batches may name. A value that `main` fills and passes down.
class KernelRegistry {
 public:
  /// `spin` (does nothing but take its time) and `checksum` (the Fletcher-64 sum of its input, into 8 bytes of output
  /// where there is room).
  [[nodiscard]] static KernelRegistry with_builtins();

  /// @param device  empty: GPUs cannot run it.
  /// @errors InvalidInput: the name is taken.
  [[nodiscard]] Expected<void> add(std::string name, HostKernel host, DeviceKernel device = {});
  /// The kernel of that name, or null.
  [[nodiscard]] const KernelForms* find(std::string_view name) const;
  /// Whether there are the kernels that a stream names.
  /// @errors InvalidInput, with the stream's place: no such kernel; the message lists the known ones.
  [[nodiscard]] Expected<void> check(const CommandStream& stream) const;

 private:
  std::map<std::string, KernelForms, std::less<>> kernels_;
};

}  // namespace tutti::internal
