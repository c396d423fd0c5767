#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/machine/machine_spec.hpp"

namespace tutti {

/// What runs batches.
enum class BackendKind : std::uint8_t {
  Simulated,  ///< a simulated machine that moves real bytes and runs host forms of kernels
  Cuda,       ///< the GPUs of this host; needs libtutti_cuda
};

/// How time passes.
enum class ClockKind : std::uint8_t {
  OfBackend,  ///< virtual for the simulated machine, real for GPUs
  Virtual,    ///< jumps to whatever is waited for; for the simulated machine alone
  Real,       ///< the host's monotonic clock
};

/// How the host waits for GPUs.
enum class WaitKind : std::uint8_t {
  Spin,   ///< looks again at once: the quickest answer, one core busy
  Yield,  ///< lets other threads run between two looks
  Block,  ///< sleeps until it is woken
};

/// Requests to the operating system for the threads that keep the time. A thread that spins gets a priority only with a
/// core of its own. The notes of a run name every request that the host refused.
struct RealTimeOptions {
  static constexpr int kHighestPriority = 98;

  /// SCHED_FIFO priority of the threads that dispatch jobs, 1 to 98; the thread that opens gates has one more. With it
  /// the memory of the process is locked and cores are kept from deep sleep. 0: ordinary threads.
  int priority = 0;
  std::vector<int> cores = {};  ///< for threads that spin, one each: two a partition on GPUs; empty: the last free ones
};

struct BackendOptions {
  BackendKind kind = BackendKind::Simulated;
  ClockKind clock = ClockKind::OfBackend;
  WaitKind waiting = WaitKind::Spin;
  /// GPU of the machine, and the bus id or UUID of the host's; needed where the machine file has no bus ids.
  std::vector<std::pair<std::string, std::string>> bind = {};
  std::optional<GateKind> gate =
      {};  ///< what holds streams of GPUs until their planned instants; absent: the machine's
  RealTimeOptions real_time = {};
};

}  // namespace tutti
