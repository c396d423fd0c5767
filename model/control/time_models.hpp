#pragma once
#include <optional>

#include "model/control/block_schedule.hpp"
#include "model/control/exchange_spec.hpp"

/// The time models of [AGO17]: how long an exchange keeps the CPU and the GPU under each mode.
///
/// All times are doubles in ns. Those that end in `_ns` and stand in a `ModeTime` are of all R iterations.
namespace tutti::internal {

/// What a mode takes.
struct ModeTime {
  double cpu_ns = 0;  ///< T_CPU
  double gpu_ns = 0;  ///< T_GPU

  [[nodiscard]] double total_ns() const { return cpu_ns > gpu_ns ? cpu_ns : gpu_ns; }
  [[nodiscard]] bool is_cpu_longer() const { return cpu_ns > gpu_ns; }
  friend bool operator==(const ModeTime&, const ModeTime&) = default;
};

/// Model (1).
struct HostDrivenTime {
  ModeTime time;
  double synchronization_ns = 0;  ///< TH_sync, the mean of a wait of the host for the GPU
  double idle_ns = 0;             ///< T_idle, of all iterations

  friend bool operator==(const HostDrivenTime&, const HostDrivenTime&) = default;
};

/// Model (3).
struct FusedTime {
  ModeTime time;
  double sequence_ns = 0;  ///< of one iteration: the three groups one after the other
  double overlap_ns = 0;   ///< O, of one iteration; from 0 to `sequence_ns`

  friend bool operator==(const FusedTime&, const FusedTime&) = default;
};

/// Sums over the tasks of one iteration, ns.
struct ExchangeSums {
  double launch_ns = 0;   ///< sum LA + sum LB + sum LC
  double enqueue_ns = 0;  ///< sum LS + sum LW
  double run_ns = 0;      ///< sum A + sum B + sum C
  double message_ns = 0;  ///< sum S + sum W
  int sends = 0;          ///< X
  int inner = 0;          ///< Y
  int receives = 0;       ///< Z

  friend bool operator==(const ExchangeSums&, const ExchangeSums&) = default;
};
[[nodiscard]] ExchangeSums sums_of(const ExchangeSpec& spec, ControlMode mode);

/// T_CPU = R [sum (LA + TH_sync + S) + sum LB + sum (W + TH_sync + LC) + TH_sync], T_GPU = R [sum A + sum B + sum C] +
/// T_idle.
///
/// Where TH_sync is not given, the waits are those of an iteration that is played once: the host launches, waits until
/// the GPU has finished all that was launched, and goes on. Where T_idle is not given, it is what T_CPU leaves of
/// T_GPU.
/// @source [AGO17] model (1)
[[nodiscard]] HostDrivenTime host_driven_time(const ExchangeSpec& spec);

/// T_CPU = R [sum (LA + LS) + sum LB + sum (LW + LC)], T_GPU = R [sum (A + S) + sum B + sum (W + C)].
/// @source [AGO17] model (2)
[[nodiscard]] ModeTime on_stream_time(const ExchangeSpec& spec);

/// The blocks of an exchange's fused kernel.
///
/// A task of no more blocks than slots has blocks as long as itself. One of more fills all slots for all of its time,
/// so its block is that time times slots over blocks.
/// @pre `checked` takes the spec, and it has a fused kernel
[[nodiscard]] FusedBlocks fused_blocks(const ExchangeSpec& spec);

/// T_CPU = R LK, T_GPU = R {sum (A + S) + sum (W + C) + sum B - O}, with O from `schedule_blocks`.
///
/// O is at least 0. The schedule has whole blocks, so its last round over the slots may be nearly empty, while a
/// measured time of a task has that round in it already: what the schedule is longer than the sequence is such
/// rounding.
/// @return absent without a fused kernel
/// @pre    `checked` takes the spec
/// @source [AGO17] model (3)
[[nodiscard]] std::optional<FusedTime> kernel_initiated_time(const ExchangeSpec& spec);

/// All three.
struct ExchangeTimes {
  HostDrivenTime host;
  ModeTime stream;
  std::optional<FusedTime> kernel;

  /// Absent where a mode was not considered.
  [[nodiscard]] std::optional<ModeTime> of(ControlMode mode) const;
  friend bool operator==(const ExchangeTimes&, const ExchangeTimes&) = default;
};
/// @pre `checked` takes the spec
[[nodiscard]] ExchangeTimes exchange_times(const ExchangeSpec& spec);

}  // namespace tutti::internal
