#pragma once
#include <memory>
#include <optional>
#include <span>

#include "runtime/dispatch/dispatcher.hpp"

namespace tutti::internal {

/// How long the host may be away while a GPU leads jobs of a set without an end: so much its queues hold, or is asked.
/// On GPUs users' kernels that record copies can make it less. Nothing of a set that the host leads.
/// @errors InvalidInput: the set asks for more (`host_away`) than its queues hold.
[[nodiscard]] Expected<std::optional<Duration>> host_may_be_away(const PlannedTaskSet& planned);

/// As `prepare_run` for a set whose jobs the machine itself leads: the host arms runs ahead, calls the programs and
/// keeps the records. A job's finish is the machine's: its last result is in its destination.
/// @errors as there, and as `DeviceBackend::lead`.
/// @pre the set is one partition, and `can_be_led`
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_led_run(Executor& executor,
                                                                     const AdmittedTaskSet& admitted,
                                                                     std::span<TaskProgram* const> programs,
                                                                     std::span<const std::uint64_t> jobs,
                                                                     const RunOptions& options);

}  // namespace tutti::internal
