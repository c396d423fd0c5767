#include "apps/outcome.hpp"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace tutti {

int report_error(const Error& error) {
  fmt::print(stderr, "{}\n", error.text());
  return error.code == ErrorCode::InvalidInput ? kUsage : kTrouble;
}

ExitCode exit_code_of(const RunRecord& record, bool simulated) {
  if (record.interrupted) return kInterrupted;
  const auto any = [&](auto test) { return std::any_of(record.jobs.begin(), record.jobs.end(), test); };
  if (any([](const JobRecord& job) { return job.error.has_value(); })) return kTrouble;
  if (any([](const JobRecord& job) { return job.missed(); })) return simulated ? kTrouble : kNegative;
  return kFine;
}

void print_remarks(const RunRecord& record, const TaskSet& tasks, std::span<const std::string> notes,
                   ExitCode exit_code) {
  for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
  std::size_t failed = 0;
  for (const JobRecord& job : record.jobs) {
    if (!job.error || ++failed > 10) continue;
    fmt::print(stderr, "job {} of task '{}': {}\n", job.index, tasks.tasks[job.task.index()].name, job.error->message);
  }
  if (failed > 10) fmt::print(stderr, "and {} more failed jobs\n", failed - 10);
  if (record.interrupted) fmt::print(stderr, "interrupted; the report covers what had run\n");
  if (exit_code == kTrouble && failed == 0)
    fmt::print(stderr, "the host is too slow to play this machine in real time; use the virtual clock\n");
}

}  // namespace tutti
