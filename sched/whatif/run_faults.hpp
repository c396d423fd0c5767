#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "model/base/ids.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {

/// What can go wrong in a run. To add one, write its value here, its word and its fields in `kFaultKinds`, and what
/// it does in `runtime/sim/fault_script.cpp`.
enum class FaultKind : std::uint8_t {
  SlowLink,        ///< the links of a route have a fraction of their rate
  SlowTransfers,   ///< transfers take longer
  SlowKernels,     ///< kernels take longer
  SlowHostSteps,   ///< host steps take longer
  SlowCommands,    ///< the costs of commands are higher
  LateCompletion,  ///< the host hears late that a batch is finished
  LostCompletion,  ///< it never hears so
  HungKernel,      ///< a kernel never ends
  FailingKernel,   ///< a kernel fails
  LostGpu,         ///< no command of a GPU ends any more
  StickyError,     ///< every command fails
  HostStall,       ///< the whole process stands
  EarlyTrigger,    ///< an external release comes before it may
  LateTrigger,     ///< it comes late
  DoubleTrigger,   ///< it comes twice
  MissingTrigger,  ///< it does not come
};

/// Fields of a fault, a bit each.
enum FaultField : unsigned {
  kFaultTask = 1 << 0,     ///< `task`
  kFaultJobs = 1 << 1,     ///< `jobs`, `chance`
  kFaultWindow = 1 << 2,   ///< `from`, `until`
  kFaultRoute = 1 << 3,    ///< `route`
  kFaultRate = 1 << 4,     ///< `rate`
  kFaultTimes = 1 << 5,    ///< `times`
  kFaultBy = 1 << 6,       ///< `by`
  kFaultCost = 1 << 7,     ///< `of`
  kFaultGpu = 1 << 8,      ///< `gpu`
  kFaultInstant = 1 << 9,  ///< `at`
  kFaultLength = 1 << 10,  ///< `lasts`
};
inline constexpr unsigned kOfJobs = kFaultTask | kFaultJobs | kFaultWindow;

/// A kind of fault as files write it.
struct FaultKindRow {
  FaultKind kind;
  std::string_view word;
  unsigned needs;       ///< fields that it must have; of `times` and `by` one
  unsigned allows = 0;  ///< further fields
};
inline constexpr std::array kFaultKinds{
    FaultKindRow{FaultKind::SlowLink, "slow_link", kFaultRoute | kFaultRate, kFaultWindow},
    FaultKindRow{FaultKind::SlowTransfers, "slow_transfers", kFaultTimes | kFaultBy, kOfJobs},
    FaultKindRow{FaultKind::SlowKernels, "slow_kernels", kFaultTimes | kFaultBy, kOfJobs},
    FaultKindRow{FaultKind::SlowHostSteps, "slow_host_steps", kFaultTimes | kFaultBy, kOfJobs},
    FaultKindRow{FaultKind::SlowCommands, "slow_commands", kFaultTimes | kFaultBy, kOfJobs | kFaultCost},
    FaultKindRow{FaultKind::LateCompletion, "late_completion", kFaultBy, kOfJobs},
    FaultKindRow{FaultKind::LostCompletion, "lost_completion", 0, kOfJobs},
    FaultKindRow{FaultKind::HungKernel, "hung_kernel", 0, kOfJobs},
    FaultKindRow{FaultKind::FailingKernel, "failing_kernel", 0, kOfJobs},
    FaultKindRow{FaultKind::LostGpu, "lost_gpu", kFaultGpu | kFaultInstant},
    FaultKindRow{FaultKind::StickyError, "sticky_error", kFaultInstant},
    FaultKindRow{FaultKind::HostStall, "host_stall", kFaultInstant | kFaultLength},
    FaultKindRow{FaultKind::EarlyTrigger, "early_trigger", kFaultTask | kFaultBy, kOfJobs},
    FaultKindRow{FaultKind::LateTrigger, "late_trigger", kFaultTask | kFaultBy, kOfJobs},
    FaultKindRow{FaultKind::DoubleTrigger, "double_trigger", kFaultTask, kOfJobs},
    FaultKindRow{FaultKind::MissingTrigger, "missing_trigger", kFaultTask, kOfJobs},
};

/// The row of a kind.
[[nodiscard]] constexpr const FaultKindRow& row_of(FaultKind kind) {
  return kFaultKinds[static_cast<std::size_t>(kind)];
}
/// "slow_link", ...
[[nodiscard]] constexpr std::string_view to_string(FaultKind kind) { return row_of(kind).word; }

/// Cost of commands that a fault raises.
enum class CommandCost : std::uint8_t { Batch, Transfer, Kernel, Gate, Host, Handover, Turn, Dispatch };
inline constexpr std::array<std::string_view, 8> kCommandCosts{"batch", "transfer", "kernel", "gate",
                                                               "host",  "handover", "turn",   "dispatch"};

/// One fault of a run. Times are from the start of the run.
struct RunFault {
  static constexpr std::uint64_t kLastJob = std::numeric_limits<std::uint64_t>::max();

  FaultKind kind = FaultKind::SlowLink;
  std::optional<TaskId> task = {};  ///< absent: every task
  std::uint64_t first_job = 0, last_job = kLastJob;
  double chance = 1;  ///< that a job has it, 0 to 1
  /// Of what begins in [from, until).
  Duration from{}, until = Duration::max();
  std::vector<LinkId> links = {};      ///< that are slow
  double rate = 1;                     ///< of their bandwidths, 0.001 to 1000: above 1 they are faster than their model
  double times = 1;                    ///< so many times as long, 0.001 to 1000
  Duration by{};                       ///< and so much longer
  std::optional<CommandCost> of = {};  ///< absent: all costs
  std::optional<VertexId> gpu = {};    ///< that is lost
  Duration at{};                       ///< the instant of what happens once
  Duration lasts{};                    ///< how long the process stands

  friend bool operator==(const RunFault&, const RunFault&) = default;

  /// How long something takes with this fault. @param time  without it, >= 0
  [[nodiscard]] Duration lengthened(Duration time) const {
    return add_saturating(round_up_ns(as_ns(time) * times), by);
  }
};

/// Most faults of one run.
inline constexpr std::size_t kMostFaults = 64;
/// The most by which a fault in a file makes something longer.
inline constexpr Duration kLongestFault = std::chrono::hours{24};

/// What goes wrong in a run.
struct RunFaults {
  std::vector<RunFault> faults;  ///< at most `kMostFaults`

  friend bool operator==(const RunFaults&, const RunFaults&) = default;
};

}  // namespace tutti::internal
