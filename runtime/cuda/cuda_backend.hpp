#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal {

/// How a caller waits for a batch.
enum class Waiting : std::uint8_t {
  Spin,   ///< looks again at once: the quickest answer, one core busy
  Yield,  ///< lets others run between two looks
  Block,  ///< sleeps until it is woken
};

struct CudaOptions {
  std::vector<std::pair<std::string, std::string>> bind;  ///< GPU of the machine, bus id or UUID of the host
  std::optional<GateKind> gate;                           ///< absent: the machine's
  Waiting waiting = Waiting::Spin;
  /// GPUs of the machine that the backend opens: a program may have several backends, but no two on one GPU. Absent:
  /// all.
  std::optional<std::vector<VertexId>> gpus;
  /// Shared by all backends of the program. Set when a GPU hangs: then none of them frees anything, which would wait.
  std::shared_ptr<std::atomic<bool>> hangs = std::make_shared<std::atomic<bool>>(false);
  bool may_share = false;  ///< whether several GPUs of the machine may be one of the host; for tests
};

/// The GPUs of this host as a backend. Real time only.
///
/// A batch is enqueued ahead of its run, every stream held at a gate; a thread of the backend, the conductor, opens the
/// gates at their planned instants and sees the completions, as signals that the streams write into host memory.
///
/// The conductor takes a core. The calling thread stays off it until it destroys the backend; threads that it starts
/// meanwhile stay off it for good. Older threads do not: make backends first.
///
/// The arguments outlive the backend; it outlives its batches, and its buffers may outlive it.
///
/// @errors InvalidInput: a GPU of the machine without bus id or UUID and without `bind`, one that `bind` names and the
///         machine has not, two that are the same, a virtual clock. Machine: this build has no CUDA, no driver or one
///         that is too old, fewer GPUs than the machine has or another one, peer access that the machine has and the
///         host has not.
[[nodiscard]] Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Topology& machine,
                                                                         const KernelRegistry& kernels, Clock& clock,
                                                                         const CudaOptions& options);

}  // namespace tutti::internal
