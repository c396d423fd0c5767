#include "apps/wafer_inspection/run_remarks.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/exit_code.hpp"
#include "apps/terminal.hpp"
#include "apps/wafer_inspection/inspection_report.hpp"

namespace wafer {

using tutti::JobRecord;
using enum tutti::programs::ExitCode;

int report_error(const tutti::Error& error) {
  tutti::programs::print_error(error.text());
  return error.code == tutti::ErrorCode::InvalidInput ? kUsage : kMachineError;
}

int exit_code_of(const tutti::RunRecord& record, bool simulated) {
  if (record.interrupted) return kInterrupted;
  if (std::ranges::any_of(record.jobs, [](const JobRecord& job) { return job.has_failed(); })) return kMachineError;
  if (std::ranges::any_of(record.jobs, &JobRecord::missed)) return simulated ? kMachineError : kRefused;
  return std::ranges::any_of(record.jobs, [](const JobRecord& job) { return job.broken.has_value(); }) ? kMachineError
                                                                                                       : kOk;
}

void print_remarks(const tutti::RunRecord& record, int exit_code) {
  constexpr std::size_t kMostErrors = 10;
  for (const std::string& note : record.notes) tutti::programs::print_note(note);
  std::size_t failed = 0, over = 0, overran = 0;
  const JobRecord* worst = nullptr;
  for (const JobRecord& job : record.jobs) {
    if (job.has_failed() && job.error && ++failed <= kMostErrors)
      tutti::programs::print_error(fmt::format("job {}: {}", job.index, job.error->message));
    if (job.overruns > 0) ++overran;
    if (!job.broken) continue;
    ++over;
    if (worst == nullptr || job.broken->excess > worst->broken->excess) worst = &job;
  }
  if (failed > kMostErrors) tutti::programs::print_error(fmt::format("and {} more failed jobs", failed - kMostErrors));
  if (record.interrupted) tutti::programs::print_error("interrupted; the report covers what had run");
  if (worst != nullptr)
    tutti::programs::print_error(fmt::format("{} of {} jobs over their bound; the worst is job {}, by {} ({})", over,
                                             record.jobs.size(), worst->index, text_of(worst->broken->excess),
                                             worst->broken->cause));
  if (overran > 0)
    tutti::programs::print_error(fmt::format(
        "{} of {} jobs had kernels that took longer than their declared worst; 'tutti profile' measures them", overran,
        record.jobs.size()));
  if (exit_code == kMachineError && failed == 0 && std::ranges::any_of(record.jobs, &JobRecord::missed))
    tutti::programs::print_error("the host is too slow to play this machine in real time; use the virtual clock");
}

}  // namespace wafer
