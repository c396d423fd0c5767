#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "runtime/dispatch/dispatcher.hpp"

namespace tutti::internal::simulation {

/// The first invariant that the record of a run breaks (`run`).
/// @param released  [tasks] jobs that the run is to release
/// @param inside    the run kept to its envelope
[[nodiscard]] std::optional<std::string> broken_invariant(const AdmittedTaskSet& admitted, const RunRecord& record,
                                                          std::span<const std::uint64_t> released, bool inside);

}  // namespace tutti::internal::simulation
