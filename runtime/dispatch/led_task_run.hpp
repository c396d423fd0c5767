#pragma once
#include <memory>
#include <span>

#include "runtime/dispatch/dispatcher.hpp"

namespace tutti::internal {

/// As `prepare_run` for a set whose jobs the machine itself leads: the host arms runs ahead, calls the programs and
/// keeps the records. A job's finish is the machine's: its last result is in its destination.
/// @errors as there, and as `DeviceBackend::lead`.
/// @pre the set is one partition whose jobs do not overlap, and `can_be_led`
[[nodiscard]] Expected<std::unique_ptr<PreparedRun>> prepare_led_run(Executor& executor,
                                                                     const AdmittedTaskSet& admitted,
                                                                     std::span<TaskProgram* const> programs,
                                                                     std::span<const std::uint64_t> jobs,
                                                                     const RunOptions& options);

}  // namespace tutti::internal
