#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/batch/batch.hpp"

struct CUstream_st;

namespace tutti::internal {

/// Arguments of a kernel launch.
struct KernelLaunch {
  std::span<const std::byte> input;       ///< where its stream's transfer ended; empty without one
  std::span<std::byte> output;            ///< the user's; may be empty
  std::span<const std::byte> parameters;  ///< the user's; may be empty
  Duration declared{};                    ///< the time that it was declared to take
};

/// The host function of a kernel. It may throw; then its batch fails and no other.
using HostKernel = std::function<void(const KernelLaunch&)>;

/// A stream of a GPU, as a type that needs no header of CUDA: a `cudaStream_t`.
using DeviceStream = CUstream_st*;

/// The GPU function of a kernel: enqueues its work on a stream of the current device and returns. It may only launch
/// kernels and asynchronous copies: a call that waits, allocates, frees, pins memory, loads a module or uses the
/// default stream would wait for closed gates. `input` and `output` lie in the device's memory; `parameters` lie in
/// host memory and are read before it returns. It may throw; then its batch fails and no other.
using DeviceKernel = std::function<void(const KernelLaunch&, DeviceStream)>;

/// One kernel for host and GPU. Both compute the same.
struct KernelForms {
  HostKernel host;
  DeviceKernel device;   ///< empty: GPUs cannot run it, unless it is built in
  bool builtin = false;  ///< a backend of GPUs supplies its GPU function
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
  /// The kernel that a stream names.
  /// @errors InvalidInput, with the stream's place: no such kernel; the message lists the known ones.
  [[nodiscard]] Expected<const KernelForms*> find_for(const CommandStream& stream) const;

 private:
  std::map<std::string, KernelForms, std::less<>> kernels_;
};

}  // namespace tutti::internal
