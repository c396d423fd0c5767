#include "apps/tutti/reports/outcome.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "apps/interrupt.hpp"
#include "apps/terminal.hpp"
#include "model/base/joined.hpp"

namespace tutti::internal {

int report_error(const Error& error) {
  programs::print_error(error.text());
  return error.code == ErrorCode::InvalidInput ? kUsage : kMachineError;
}

int report_end_of_work(const Error& error) {
  const int code = report_error(error);
  return programs::watch_for_interrupt() ? static_cast<int>(kInterrupted) : code;
}

ExitCode exit_code_of(const RunRecord& record, bool simulated, std::span<const ChainLatencies> chains) {
  if (record.interrupted) return kInterrupted;
  const auto any = [&](auto count) {
    return std::ranges::any_of(record.summaries, [&](auto& row) { return count(row) > 0; });
  };
  if (record.fatal) return kMachineError;
  if (any([](const JobSummary& row) { return row.with(JobVerdict::Failed) + row.with(JobVerdict::Dropped); }))
    return kMachineError;
  const bool late_chain = std::ranges::any_of(chains, [](auto& chain) { return chain.over_deadline > 0; });
  if (simulated && (late_chain || any([](const JobSummary& row) { return row.with(JobVerdict::Missed); })))
    return kMachineError;
  if (late_chain || any([](const JobSummary& row) { return row.without_deadline_met(); })) return kRefused;
  const bool long_chain = std::ranges::any_of(chains, [](auto& chain) { return chain.over_bound > 0; });
  return long_chain || any([](const JobSummary& row) { return row.over_bound(); }) ? kMachineError : kOk;
}

ExitCode exit_code_without_times(const RunRecord& record) {
  if (record.interrupted) return kInterrupted;
  return record.fatal || summary_of_all(record).with(JobVerdict::Failed) > 0 ? kMachineError : kOk;
}

std::string_view note_of_simulated(std::string_view backend) { return backend == "sim" ? "; times are predicted" : ""; }

std::string broken_bounds_text(const RunRecord& record, const TaskSet& tasks) {
  const JobSummary all = summary_of_all(record);
  if (all.over_bound() == 0) return "";
  std::vector<std::string> causes;
  for (std::size_t cause = 0; cause < kBoundCauses; ++cause)
    if (const auto count = all.over_bound(static_cast<BoundCause>(cause)); count > 0)
      causes.push_back(fmt::format("{} {}", to_string(static_cast<BoundCause>(cause)), count));
  std::string text =
      fmt::format("{} of {} jobs over their bound: {}; the worst is ", all.over_bound(), all.jobs(), joined(causes));
  const JobRecord* worst = nullptr;
  for (const JobRecord& job : record.jobs)
    if (job.broken && (worst == nullptr || job.broken->excess > worst->broken->excess)) worst = &job;
  if (worst == nullptr) return text + to_string(all.worst_excess());
  return text + fmt::format("job {} of task '{}', by {} ({})", worst->index, tasks.tasks[worst->task.index()].name,
                            to_string(worst->broken->excess), to_string(worst->broken->cause));
}

JobSummary summary_of_all(const RunRecord& record) {
  JobSummary all;
  for (const JobSummary& row : record.summaries) all.merge(row);
  return all;
}

void print_remarks(const RunRecord& record, const TaskSet& tasks, std::span<const std::string> notes,
                   ExitCode exit_code) {
  for (const std::string& note : notes) programs::print_note(note);
  std::size_t failed = 0;
  bool has_said_fatal = false;
  for (const JobRecord& job : record.jobs) {
    if (!job.has_failed() || ++failed > 10) continue;
    has_said_fatal = has_said_fatal || (record.fatal && job.error->message == record.fatal->message);
    programs::print_error(
        fmt::format("job {} of task '{}': {}", job.index, tasks.tasks[job.task.index()].name, job.error->message));
  }
  if (failed > 10) programs::print_error(fmt::format("and {} more failed jobs", failed - 10));
  const JobSummary all = summary_of_all(record);
  if (const auto aborted = all.with(JobVerdict::Aborted), skipped = all.with(JobVerdict::Skipped);
      aborted + skipped > 0)
    programs::print_error(
        fmt::format("{} jobs aborted and {} skipped, since jobs took longer than their budget", aborted, skipped));
  for (const Suspension& suspended : record.suspensions)
    programs::print_error(
        fmt::format("task '{}' was suspended at {}: too many of its jobs in a row took longer than their budget",
                    tasks.tasks[suspended.task.index()].name, to_string(suspended.at)));
  if (record.fatal && !has_said_fatal) programs::print_error(record.fatal->message);
  if (record.interrupted) programs::print_error("interrupted; the report covers what had run");
  if (const std::string broken = broken_bounds_text(record, tasks); !broken.empty()) programs::print_error(broken);
  const auto overran = std::ranges::count_if(record.jobs, [](const JobRecord& job) { return job.overruns > 0; });
  if (overran > 0)
    programs::print_error(fmt::format(
        "{} of {} jobs had kernels that took longer than their declared worst; 'tutti profile' measures them", overran,
        record.jobs.size()));
  if (exit_code == kMachineError && failed == 0 && all.with(JobVerdict::Missed) > 0 && !record.fatal)
    programs::print_error("the host is too slow to play this machine in real time; use the virtual clock");
}

}  // namespace tutti::internal
