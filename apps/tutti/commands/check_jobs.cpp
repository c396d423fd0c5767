#include "apps/tutti/commands/check_jobs.hpp"

#include <map>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/table.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/formats/job_csv.hpp"
#include "apps/tutti/reports/job_set_output.hpp"
#include "apps/tutti/reports/outcome.hpp"
#include "apps/tutti/reports/report.hpp"
#include "sched/exploration/exploration.hpp"

namespace tutti::internal {
namespace {

using Jobs = std::vector<JobTiming>;

/// All jobs of one task.
struct TaskRow {
  std::size_t jobs = 0;
  Duration best = Duration::max();
  Duration worst{-1};
  Duration slack = Duration::max();
};

/// Rows keyed by the task's id; with responses only where the exploration has them.
std::map<std::int64_t, TaskRow> rows_of(const Jobs& jobs, const Exploration& found) {
  std::map<std::int64_t, TaskRow> rows;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    TaskRow& row = rows[jobs[i].task];
    ++row.jobs;
    if (found.responses.empty()) continue;
    const ResponseRange& response = found.responses[i];
    row.best = std::min(row.best, response.best);
    row.worst = std::max(row.worst, response.worst);
    row.slack = std::min(row.slack, jobs[i].deadline - jobs[i].earliest - response.worst);
  }
  return rows;
}

HalfTime half_time(HalfNs time) { return HalfTime{time}; }
std::optional<HalfTime> if_run(HalfNs time) {
  return time == kNotYetRun ? std::nullopt : std::optional(half_time(time));
}

std::vector<LateJobOutput> late_jobs_output(const Jobs& jobs, const Exploration& found) {
  std::vector<LateJobOutput> run;
  for (const ExecutedJob& job : found.late_run)
    run.push_back({jobs[job.source].task, jobs[job.source].id, half_time(job.release), half_time(job.start),
                   if_run(job.finish), half_time(job.due)});
  return run;
}

CheckJobsOutput answer_output(const Jobs& jobs, const Exploration& found, const std::string& reason) {
  CheckJobsOutput output{{}, found.answer == Answer::Schedulable, found.answer, found.states, found.exact};
  for (const auto& [task, row] : rows_of(jobs, found)) {
    JobTaskOutput& its = output.tasks.emplace_back(JobTaskOutput{task, row.jobs});
    if (found.responses.empty()) continue;
    its.best = row.best;
    its.worst = row.worst;
    its.slack = row.slack;
  }
  for (std::size_t i = 0; i < found.responses.size(); ++i)
    output.jobs.push_back({jobs[i].task, jobs[i].id, found.responses[i].best, found.responses[i].worst});
  if (!found.late_run.empty()) output.late_run = late_jobs_output(jobs, found);
  output.reason = text_if_any(reason);
  return output;
}

std::string answer_text(const Jobs& jobs, const Exploration& found, std::string_view answer,
                        const std::string& reason) {
  std::string text = fmt::format("{} ({} jobs, non-preemptive, {} states)\n", answer, jobs.size(), found.states);
  if (!reason.empty()) text += fmt::format("  {}\n", reason);
  if (!found.exact)
    text +=
        "  there are too many schedules to look at all of them, so responses are bounds: no best one is smaller, no "
        "worst one larger; --exact looks at all\n";
  programs::Table table({"task", "jobs", "best response ns", "worst response ns", "slack ns"});
  for (const auto& [task, row] : rows_of(jobs, found)) {
    const auto ns = [&](Duration time) { return found.responses.empty() ? "-" : fmt::to_string(time.count()); };
    table.add({fmt::to_string(task), fmt::to_string(row.jobs), ns(row.best), ns(row.worst), ns(row.slack)});
  }
  return fmt::format("{}\n{}", text, table.text());
}

}  // namespace

int check_jobs(const std::string& path, const std::string& responses, bool exact, bool json) {
  if (!responses.empty())
    if (const auto writable = programs::check_writable(responses); !writable) return report_error(writable.error());
  const auto jobs = load_jobs(path);
  if (!jobs) return report_error(jobs.error());
  if (jobs->empty())
    return report_error({ErrorCode::InvalidInput,
                         "there is no job, so there is nothing to guarantee; add a line for each",
                         {path, 1, 1}});
  ExplorationLimits limits;
  if (exact) limits.reduced_visits = 0;
  const Exploration found = explore(*jobs, limits);
  const auto name = [&](const ExecutedJob& job) {
    return fmt::format("job {} of task {}", (*jobs)[job.source].id, (*jobs)[job.source].task);
  };
  const std::string reason = found.late_run.empty() ? found.reason : describe_late_run(found.late_run, name);
  if (!responses.empty() && found.responses.empty())
    programs::print_note(fmt::format("there are no responses to write to '{}'", responses));
  if (!responses.empty() && !found.responses.empty())
    if (const auto written = programs::write_file(responses, responses_text(*jobs, found.responses)); !written)
      return report_error(written.error());
  if (!responses.empty() && !found.exact)
    programs::print_note(fmt::format("the responses in '{}' are bounds; --exact looks at all schedules", responses));
  if (json) {
    programs::print("{}", json_report(json_of(answer_output(*jobs, found, reason))));
  } else {
    programs::print("{}", answer_text(*jobs, found, sentence(found.answer), reason));
  }
  return found.answer == Answer::Schedulable ? kOk : kRefused;
}

}  // namespace tutti::internal
