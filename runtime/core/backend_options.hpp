#pragma once
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/quantities.hpp"
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
  Block,  ///< sleeps until it is woken: no thread is busy, and starts and ends are seen later
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

/// What leads the jobs of a run: releases them, opens their gates and sees their ends.
enum class ConductorKind : std::uint8_t {
  Host,  ///< a thread of the host: its pauses are part of every bound
  Gpu,   ///< a thread of a GPU, while the host arms runs ahead; jobs run one at a time
};

/// Mechanism that holds the streams of a batch until their planned instants, on hardware.
enum class GateKind : std::uint8_t {
  PollingKernel,  ///< a kernel of one thread polls a word in host memory; kernels of other streams run beside it
  MemoryWait,     ///< a stream memory operation waits for a word in host memory; on some drivers it holds copies of
                  ///< other streams up while it runs
  HostTimed,      ///< none: the host submits at the planned instant
  DeviceTimer,  ///< a kernel of one thread waits for an instant on its GPU's own timer; one word opens all that a batch
                ///< starts with, and later gates need no host
};
/// Every kind, in the order of their words (`kGateWords`); the first is the default.
inline constexpr std::array kGateKinds{GateKind::PollingKernel, GateKind::MemoryWait, GateKind::HostTimed,
                                       GateKind::DeviceTimer};
static_assert(kGateKinds.size() == kGateWords.size());

/// "polling_kernel", "memory_wait", "host_timed", "device_timer".
[[nodiscard]] constexpr std::string_view to_string(GateKind kind) { return kGateWords[static_cast<std::size_t>(kind)]; }

/// When a run that does not end is given up. Its GPU then counts as lost, so this is for what hangs, not for what is
/// late.
struct Watchdog {
  double times = 10;                          ///< of the planned length; at least 1
  Duration beyond = std::chrono::seconds{2};  ///< and so much more, for the host; at least 0

  friend bool operator==(const Watchdog&, const Watchdog&) = default;

  /// Time from a run's start until it is given up: times x planned + beyond, rounded up; at most the longest Duration.
  /// @param planned  length of the run, >= 0
  [[nodiscard]] Duration limit(Duration planned) const {
    const double scaled = std::ceil(times * static_cast<double>(planned.count()));
    const auto room = static_cast<double>((Duration::max() - beyond).count());
    return scaled < room ? Duration{static_cast<Duration::rep>(scaled)} + beyond : Duration::max();
  }
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
  Watchdog watchdog = {};
  /// Waits after each command on GPUs, so that an error names the one that broke a GPU, where several are under way
  /// otherwise. For finding faults: gates and times then mean nothing.
  bool serialize = false;
  /// Most pinned memory that this program may have for GPUs, above 0: what is in use and what is kept for reuse.
  /// Absent: as much as the host pins. Where backends differ, the least of theirs counts.
  std::optional<Bytes> pinned_limit = {};
};

}  // namespace tutti
