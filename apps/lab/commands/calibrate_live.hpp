#pragma once
#include <string>

#include "apps/backend_words.hpp"
#include "apps/command_line.hpp"
#include "apps/lab/fits/measurement.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Options of `calibrate` for measuring the machine of this host.
struct LiveOptions {
  LiveOptions() { backend.backend = "cuda"; }

  programs::BackendWords backend;
  bool all = false;     ///< every combination, not only those of the plan
  bool quick = false;   ///< fewer repetitions of everything
  bool loaded = false;  ///< also measure how late gates open while all cores of the host are busy
  int rounds = 9;       ///< at most
  std::string copy = "128 MiB";
  std::string measured;  ///< file for the measurements; empty: none
};

void add_live_options(programs::CommandLine& command, LiveOptions& options);

/// Result of a live measurement.
struct LiveMeasurements {
  Measurements measurements;
  Topology machine;  ///< the known machine, with the best gate and the copy engines that were measured
};

/// Measures a machine: the best gate, which copies of a GPU overlap, whether bytes arrive unchanged, steady rates and
/// batches, the costs of commands. Reports its progress on standard error.
/// @errors as `Rig::make` and `measure`; InvalidInput: an option.
[[nodiscard]] Expected<LiveMeasurements> measure_live(const Topology& known, const LiveOptions& options);

}  // namespace tutti::internal
