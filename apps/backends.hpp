#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/command_line.hpp"
#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal {

/// The options for backend and clock, unchecked, as typed on the command line.
struct BackendOptions {
  std::string backend = "sim";
  std::string clock;              ///< empty: the backend's own, virtual for sim and real for cuda
  std::vector<std::string> bind;  ///< GPU=BUSID
  std::string gate;               ///< empty: the machine's
  std::string waiting = "spin";
  bool no_peer = false;  ///< plan for the machine without its peer access

  [[nodiscard]] bool simulated() const { return backend == "sim"; }
};

/// Declares --backend, --clock, --bind, --gate, --wait and --no-peer.
void add_backend_options(CommandLine& command, BackendOptions& options);

/// The clock of a run. Call it before anything is loaded: it checks all the options.
/// @errors InvalidInput: an unknown value, a --bind without '=', options that exclude each other.
[[nodiscard]] Expected<std::unique_ptr<Clock>> make_clock(const BackendOptions& options);

/// The share of one backend where several backends divide a machine.
struct BackendPart {
  std::optional<std::vector<VertexId>> gpus = {};  ///< real GPUs that this backend opens; absent: all
  /// Set when a GPU hangs; all backends of the machine share it.
  std::shared_ptr<std::atomic<bool>> hangs = std::make_shared<std::atomic<bool>>(false);
};

/// The backend of a machine; what is passed in outlives it.
/// @errors InvalidInput: as `make_clock`, as `make_cuda_backend`. Machine: this build or this host lacks the backend.
[[nodiscard]] Expected<std::unique_ptr<DeviceBackend>> make_backend(const BackendOptions& options,
                                                                    const Topology& machine,
                                                                    const KernelRegistry& kernels, Clock& clock,
                                                                    const BackendPart& part = {});

}  // namespace tutti::internal
