#pragma once
#include <array>
#include <atomic>
#include <span>
#include <vector>

#include "model/control/wait_fit.hpp"
#include "runtime/core/baselines.hpp"

namespace tutti::internal {

/// The gates with which streams wait for a word of the host.
inline constexpr std::array kGatesOfWords{GateKind::MemoryWait, GateKind::PollingKernel};

/// What is swept: every sleep with every number of streams, some times.
struct WaitSweep {
  std::vector<Duration> sleeps;  ///< of the host between enqueuing and storing the word
  std::vector<int> streams;      ///< that wait at the same time
  int repetitions = 1;
};

/// From 0 to the longest one.
[[nodiscard]] std::vector<Duration> sleeps_up_to(Duration most, Duration step);

/// Measures wait reaction times, repetition by repetition, so that what changes with time changes all sleeps and
/// numbers of streams. A repetition before the first is left out.
/// @errors as `WaitProbe::react`. InvalidInput: interrupted.
[[nodiscard]] Expected<std::vector<WaitSample>> measure_waits(WaitProbe& probe, const WaitSweep& sweep,
                                                              const std::atomic<bool>* interrupted);

}  // namespace tutti::internal
