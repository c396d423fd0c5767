#pragma once
#include <span>
#include <string>
#include <vector>

#include "apps/lab/learn/trace_rates.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Names of the machine's vertices.
[[nodiscard]] std::string learned_gpu_name(std::size_t gpu);
/// @param pageable  ordinary memory, not pinned
[[nodiscard]] std::string learned_memory_name(bool pageable);

/// The class of costs of a copy that the trace has.
[[nodiscard]] CopyKind learned_copy_kind(RecordedKind copy);

/// A machine as a trace shows it, and what it does not show, a sentence each.
struct LearnedMachine {
  MachineSpec spec;
  std::vector<std::string> seen, guessed;
};

/// A memory, a cpu, the GPUs, and a link for each. Where copies that were active together were slower than alone, they
/// share a capacity. Guaranteed rates are the lowest that were seen.
/// @param gpus   of the trace, >= 1
/// @param cores  of the cpu, >= 1: so many host steps can run at a time
[[nodiscard]] LearnedMachine learned_machine(const TraceRates& rates, std::size_t gpus, int cores);

/// The machine file; its first lines say what was seen, and what is a guess.
[[nodiscard]] std::string learned_machine_text(const LearnedMachine& machine, const std::string& source);

}  // namespace tutti::internal
