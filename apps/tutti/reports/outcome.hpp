#pragma once
#include <span>
#include <string>
#include <string_view>

#include "apps/exit_code.hpp"
#include "model/base/error.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "sched/chains/chain_measurement.hpp"

namespace tutti::internal {

using programs::ExitCode;
using enum programs::ExitCode;

/// Prints an error to standard error and returns its exit code.
int report_error(const Error& error);
/// As `report_error`, for work that an interrupt ends: the exit code is that of the interrupt where one has come.
int report_end_of_work(const Error& error);

/// The exit code of a run: a missed deadline takes precedence over a job above its bound.
/// @param simulated  a simulated machine keeps to its plan, so a late job there is the host's fault.
/// @param chains     latencies of the run's chains; a reaction later than the deadline of its chain is a missed
/// deadline
[[nodiscard]] ExitCode exit_code_of(const RunRecord& record, bool simulated,
                                    std::span<const ChainLatencies> chains = {});

/// The same where times mean nothing: failures alone count, and jobs that were late, over their bound, dropped or
/// aborted do not.
[[nodiscard]] ExitCode exit_code_without_times(const RunRecord& record);

/// Addition to the first line of a run's report on a simulated machine: its times are not measured.
/// @param backend  name of the backend
[[nodiscard]] std::string_view note_of_simulated(std::string_view backend);

/// A sentence about the jobs above their bound, with their causes; empty where there are none.
[[nodiscard]] std::string broken_bounds_text(const RunRecord& record, const TaskSet& tasks);

/// The summaries of all tasks as one.
[[nodiscard]] JobSummary summary_of_all(const RunRecord& record);

/// Prints on standard error what the report of a run leaves out: notes of the backends, failures, broken bounds with
/// their causes, an interrupt.
void print_remarks(const RunRecord& record, const TaskSet& tasks, std::span<const std::string> notes,
                   ExitCode exit_code);

}  // namespace tutti::internal
