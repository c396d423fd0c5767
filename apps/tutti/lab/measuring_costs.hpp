#pragma once
#include <atomic>
#include <functional>
#include <vector>

#include "model/measurement.hpp"
#include "runtime/core/executor.hpp"

namespace tutti {

/// How the costs of commands are measured.
struct CostOptions {
  int repetitions = 150;          ///< of every sample
  int repetitions_of_one = 1500;  ///< of samples of one short command on every engine: what is rare shows there
  Bytes largest{64LL << 20};      ///< copy; the smallest has 4 bytes
  Bytes most{64LL << 20};         ///< of one chain
  Bytes beside{32LL << 20};       ///< of each large copy that keeps another engine busy
  Duration enough = std::chrono::seconds{60};  ///< no round begins later than this after the first
  const std::atomic<bool>* interrupted = nullptr;
};

/// The samples that are worth measuring on a machine, without what they took.
///
/// Copies of every class that the machine has, 1 to 100 of 4 bytes to `largest`, alone and beside large copies on all
/// other engines; 1 to 100 kernels of 5 to 100 us, behind copies and alone; host work; batches in a row; copies behind
/// an idle time in which links fall asleep, in one round of eight. GPUs take turns.
[[nodiscard]] std::vector<CostSample> plan_costs(const Topology& machine, const CostOptions& options);

/// How long the host takes the processor from a thread: every pause of more than 10 us in a time in which it spins, one
/// half, and waits for instants, the other. Empty where time does not pass by itself.
[[nodiscard]] std::vector<double> measure_pauses(Clock& clock, Duration time);

/// Measures them, interleaved: each once in a round.
/// @param executor  whose planner starts all streams at once
/// @errors Machine: the buffers do not fit, a run failed. InvalidInput: interrupted.
[[nodiscard]] Expected<std::vector<CostSample>> measure_costs(Executor& executor, std::vector<CostSample> samples,
                                                              const CostOptions& options);

}  // namespace tutti
