#pragma once
#include <span>
#include <string>
#include <string_view>

#include "model/error.hpp"
#include "runtime/dispatch/dispatcher.hpp"

namespace tutti {

/// The exit codes that scripts rely on.
enum ExitCode : int {
  kOk = 0,
  kRefused = 1,       ///< not schedulable, a deadline missed
  kUsage = 2,         ///< usage or invalid input
  kMachineError = 3,  ///< machine, driver, host or a user's kernel; a job over its bound
  kDrifted = 4,       ///< the calibration does not hold any more
  kInterrupted = 130,
};

/// Prints an error to standard error and returns its exit code.
int report_error(const Error& error);

/// What a run came to: a deadline that was missed counts before a job that was over its bound.
/// @param simulated  a simulated machine keeps to its plan, so what is late there is the host's doing.
[[nodiscard]] ExitCode exit_code_of(const RunRecord& record, bool simulated);

/// What the first line of a run's report adds where the machine is simulated: its times are not measured.
/// @param backend  its name
[[nodiscard]] std::string_view note_of_simulated(std::string_view backend);

/// A sentence about the jobs that were over their bound, with their causes; empty where none was.
[[nodiscard]] std::string broken_bounds_text(const RunRecord& record, const TaskSet& tasks);

/// Says on standard error what the report of a run has no place for: notes of the backends, what failed, which
/// bounds were broken by what, an interrupt.
void print_remarks(const RunRecord& record, const TaskSet& tasks, std::span<const std::string> notes,
                   ExitCode exit_code);

}  // namespace tutti
