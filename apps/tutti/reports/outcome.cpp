#include "apps/tutti/reports/outcome.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "model/base/joined.hpp"

namespace tutti::internal {

int report_error(const Error& error) {
  fmt::print(stderr, "{}\n", error.text());
  return error.code == ErrorCode::InvalidInput ? kUsage : kMachineError;
}

ExitCode exit_code_of(const RunRecord& record, bool simulated) {
  if (record.interrupted) return kInterrupted;
  const auto any = [&](auto test) { return std::any_of(record.jobs.begin(), record.jobs.end(), test); };
  if (any([](const JobRecord& job) { return job.has_failed(); })) return kMachineError;
  if (any([](const JobRecord& job) { return job.missed(); })) return simulated ? kMachineError : kRefused;
  return any([](const JobRecord& job) { return job.broken.has_value(); }) ? kMachineError : kOk;
}

std::string_view note_of_simulated(std::string_view backend) { return backend == "sim" ? "; times are predicted" : ""; }

std::string broken_bounds_text(const RunRecord& record, const TaskSet& tasks) {
  std::array<std::size_t, kBoundCauses> count{};
  std::size_t all = 0;
  const JobRecord* worst = nullptr;
  for (const JobRecord& job : record.jobs) {
    if (!job.broken) continue;
    ++all;
    ++count[static_cast<std::size_t>(job.broken->cause)];
    if (worst == nullptr || job.broken->excess > worst->broken->excess) worst = &job;
  }
  if (worst == nullptr) return "";
  std::vector<std::string> causes;
  for (std::size_t cause = 0; cause < kBoundCauses; ++cause)
    if (count[cause] > 0)
      causes.push_back(fmt::format("{} {}", to_string(static_cast<BoundCause>(cause)), count[cause]));
  return fmt::format("{} of {} jobs over their bound: {}; the worst is job {} of task '{}', by {} ({})", all,
                     record.jobs.size(), joined(causes), worst->index, tasks.tasks[worst->task.index()].name,
                     to_string(worst->broken->excess), to_string(worst->broken->cause));
}

void print_remarks(const RunRecord& record, const TaskSet& tasks, std::span<const std::string> notes,
                   ExitCode exit_code) {
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
  std::size_t failed = 0;
  for (const JobRecord& job : record.jobs) {
    if (!job.has_failed() || ++failed > 10) continue;
    fmt::print(stderr, "job {} of task '{}': {}\n", job.index, tasks.tasks[job.task.index()].name, job.error->message);
  }
  if (failed > 10) fmt::print(stderr, "and {} more failed jobs\n", failed - 10);
  const auto count = [&](JobVerdict verdict) { return std::ranges::count(record.jobs, verdict, &JobRecord::verdict); };
  if (const auto aborted = count(JobVerdict::Aborted), skipped = count(JobVerdict::Skipped); aborted + skipped > 0)
    fmt::print(stderr, "{} jobs aborted and {} skipped, since jobs took longer than their budget\n", aborted, skipped);
  for (const Suspension& suspended : record.suspensions)
    fmt::print(stderr, "task '{}' was suspended at {}: too many of its jobs in a row took longer than their budget\n",
               tasks.tasks[suspended.task.index()].name, to_string(suspended.at));
  if (record.interrupted) fmt::print(stderr, "interrupted; the report covers what had run\n");
  if (const std::string broken = broken_bounds_text(record, tasks); !broken.empty()) fmt::print(stderr, "{}\n", broken);
  const auto overran = std::ranges::count_if(record.jobs, [](const JobRecord& job) { return job.overruns > 0; });
  if (overran > 0)
    fmt::print(stderr,
               "{} of {} jobs had kernels that took longer than their declared worst; 'tutti profile' measures them\n",
               overran, record.jobs.size());
  const bool missed = std::ranges::any_of(record.jobs, [](const JobRecord& job) { return job.missed(); });
  if (exit_code == kMachineError && failed == 0 && missed)
    fmt::print(stderr, "the host is too slow to play this machine in real time; use the virtual clock\n");
}

}  // namespace tutti::internal
