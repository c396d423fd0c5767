#pragma once
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "apps/lab/fits/measurement.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// Options for measuring the costs of commands.
struct CostOptions {
  int repetitions = 150;          ///< of every sample
  int repetitions_of_one = 1500;  ///< of samples of one short command on every engine: they show rare delays
  Bytes largest{64LL << 20};      ///< copy; the smallest has 4 bytes
  Bytes most{64LL << 20};         ///< total of one engine queue
  Bytes beside{32LL << 20};       ///< of each large copy that keeps another engine busy
  Duration enough = std::chrono::seconds{60};  ///< no round begins later than this after the first one
  const std::atomic<bool>* interrupted = nullptr;
  std::function<void(const std::string& sentence)> note = {};  ///< hears which method this host refuses, and why
};

/// The samples that are worth measuring on a machine, without their times.
///
/// Copies of every class that the machine has, 1 to 100 of 4 bytes to `largest`, alone and beside large copies on all
/// other engines; 1 to 100 kernels of 5 to 100 us, behind copies and alone; host work; batches in a row; copies after
/// an idle time in which links fall asleep, in one round of eight. Successive samples use the GPUs in turn.
[[nodiscard]] std::vector<CostSample> plan_costs(const Topology& machine, const CostOptions& options);

/// The pauses in which the host takes the processor from a thread: every pause above 10 us, while the thread spins for
/// one half of the time and waits for instants in the other. Empty on a virtual clock.
[[nodiscard]] std::vector<double> measure_pauses(Clock& clock, Duration time);

/// Measures samples interleaved: each once in a round. Those of mapped copies are left out where the host refuses them.
/// @param executor  whose planner starts all streams at once
/// @errors Machine: the buffers do not fit, a run failed. InvalidInput: interrupted.
[[nodiscard]] Expected<std::vector<CostSample>> measure_costs(Executor& executor, std::vector<CostSample> samples,
                                                              const CostOptions& options);

}  // namespace tutti::internal
