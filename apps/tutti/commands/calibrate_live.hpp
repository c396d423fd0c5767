#pragma once
#include <string>

#include "apps/backends.hpp"
#include "apps/command_line.hpp"
#include "model/measurement.hpp"
#include "model/topology.hpp"

namespace tutti {

/// How `calibrate` measures a machine that is there.
struct LiveOptions {
  LiveOptions() { backend.backend = "cuda"; }

  BackendOptions backend;
  bool all = false;     ///< every combination, not only those of the plan
  bool quick = false;   ///< fewer repetitions of everything
  bool loaded = false;  ///< also how late gates open while all cores of the host are busy
  int rounds = 9;       ///< at most
  std::string copy = "128 MiB";
  std::string measured;  ///< file for the measurements; empty: none
};

void add_live_options(CommandLine& command, LiveOptions& options);

/// What a live measurement found.
struct LiveMeasurements {
  Measurements measurements;
  Topology machine;  ///< what was known, with the best gate and the copy engines that were seen
};

/// Measures a machine: which gate is best, which copies of a GPU work at once, whether bytes arrive unchanged, steady
/// rates and batches, what commands cost. Says on standard error how far it is.
/// @errors as `make_backend` and `measure`; InvalidInput: an option.
[[nodiscard]] Expected<LiveMeasurements> measure_live(const Topology& known, const LiveOptions& options);

}  // namespace tutti
