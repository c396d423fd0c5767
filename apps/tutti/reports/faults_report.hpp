#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "apps/tutti/reports/run_output.hpp"
#include "sched/whatif/run_faults.hpp"

namespace tutti::internal {

/// The faults of a run with how often each has met something: a table.
/// @param counts  [faults]
[[nodiscard]] std::string faults_text(const RunFaults& faults, const TaskSet& set,
                                      std::span<const std::uint64_t> counts);
[[nodiscard]] std::vector<FaultOutput> faults_output(const RunFaults& faults, const TaskSet& set,
                                                     std::span<const std::uint64_t> counts);

}  // namespace tutti::internal
