#pragma once
#include <tutti/run.hpp>

namespace wafer {

/// Prints an error to standard error and returns its exit code.
int report_error(const tutti::Error& error);

/// The exit code of a run: a missed deadline takes precedence over a job above its bound.
/// @param simulated  a simulated machine keeps to its plan, so a late job there is the host's fault.
[[nodiscard]] int exit_code_of(const tutti::RunRecord& record, bool simulated);

/// Prints on standard error what the report leaves out: notes of the backend, failures, broken bounds, an interrupt.
void print_remarks(const tutti::RunRecord& record, int exit_code);

}  // namespace wafer
