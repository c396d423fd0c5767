#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"
#include "runtime/core/backend_options.hpp"

namespace tutti::internal {

struct CudaOptions {
  std::vector<std::pair<std::string, std::string>> bind;  ///< GPU of the machine, bus id or UUID of the host
  GateKind gate = kGateKinds.front();
  WaitKind waiting = WaitKind::Spin;
  Watchdog watchdog = {};
  bool serialize = false;                  ///< the host waits after each command: no gates, times mean nothing
  std::optional<Bytes> pinned_limit = {};  ///< of the program's pool; absent: none
  int priority = 0;                        ///< SCHED_FIFO of the thread that opens gates; 0: a default
  std::vector<int> cores;                  ///< for that thread; empty: the last one that is free
  /// GPUs of the machine that the backend opens: a program may have several backends, but no two on one GPU. Absent:
  /// all.
  std::optional<std::vector<VertexId>> gpus;
  bool may_share = false;      ///< whether several GPUs of the machine may be one of the host; for tests
  bool tries_launches = true;  ///< otherwise gates are closed under a sanitizer, too; for tests
};

/// The choices of a user for a machine: where they leave the gate open, it is the one that the machine's file names.
/// @pre the gate of the spec is one of `kGateWords`.
[[nodiscard]] inline CudaOptions cuda_options(const BackendOptions& options, const MachineSpec& machine) {
  CudaOptions cuda;
  cuda.bind = options.bind;
  for (const GateKind kind : kGateKinds)
    if (machine.gate == to_string(kind)) cuda.gate = kind;
  cuda.gate = options.gate.value_or(cuda.gate);
  cuda.waiting = options.waiting;
  cuda.watchdog = options.watchdog;
  cuda.serialize = options.serialize;
  cuda.pinned_limit = options.pinned_limit;
  if (options.real_time.priority > 0) cuda.priority = options.real_time.priority + 1;
  cuda.cores = options.real_time.cores;
  return cuda;
}

}  // namespace tutti::internal
