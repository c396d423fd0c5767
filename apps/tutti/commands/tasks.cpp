#include <memory>

#include <fmt/format.h>

#include "apps/output_file.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/commands/tasks_import.hpp"
#include "apps/tutti/formats/job_csv.hpp"
#include "apps/tutti/reports/job_set_output.hpp"
#include "apps/tutti/reports/report.hpp"
#include "sched/admission/admission.hpp"
#include "sched/exploration/exploration.hpp"

namespace tutti::internal {
namespace {

struct ExpandOptions {
  FileOptions file;
  std::string out;
  std::size_t jobs = 0;
  std::optional<std::size_t> partition;
};

/// The number of jobs that covers the whole behaviour: up to the end of the hyperperiod after which the schedule
/// repeats, and one more hyperperiod where jobs wait across that end.
Expected<std::size_t> jobs_to_write(std::span<const TaskTiming> tasks, Policy policy) {
  const ExplorationLimits limits{.reduced_visits = 0};  // where the schedule repeats is known of all schedules alone
  const auto repetition = repetition_of(tasks, limits.jobs);
  if (!repetition) return invalid_input(repetition.error().message + ", or give a number of jobs with --jobs");
  const Exploration found = explore(tasks, policy, limits);
  if (found.answer == Answer::Unknown) return invalid_input(found.reason + "; give a number of jobs with --jobs");
  const std::size_t behind = found.jobs > repetition->startup ? found.jobs - repetition->startup : 0;
  const std::size_t rounds = std::max<std::size_t>(1, (behind + repetition->per_round - 1) / repetition->per_round);
  const bool crosses = found.answer == Answer::NotSchedulable || !found.settled;
  return repetition->startup + (rounds + (crosses ? 1 : 0)) * repetition->per_round;
}

/// The partition to write: a job set has one machine for all its jobs.
Expected<std::size_t> chosen_partition(const ExpandOptions& options, std::size_t partitions) {
  const std::size_t chosen = options.partition.value_or(0);
  if (chosen < partitions && (options.partition || partitions == 1)) return chosen;
  if (partitions == 1) return invalid_input("--partition: the set is one partition; leave it out, or give 0");
  return invalid_input(
      fmt::format("the set falls into {} partitions that run independently, each a job set of its own; give "
                  "--partition 0 to {}",
                  partitions, partitions - 1),
      {options.file.path, 0, 0});
}

Expected<std::vector<JobTiming>> jobs_of(const ExpandOptions& options) {
  if (const auto given = options.file.given_planner(); !given) return tl::unexpected(given.error());
  const auto set = options.file.load_task_set();
  if (!set) return tl::unexpected(set.error());
  const auto planner = options.file.chosen_planner(&*set);
  if (!planner) return tl::unexpected(planner.error());
  if (set->policy == Policy::CwEdf)
    return invalid_input(
        "under cw_edf the machine waits while a job is ready, which a job set does not say; give --policy edf",
        {options.file.path, 0, 0});
  if (set->arrivals != Arrivals::Periodic) {
    return invalid_input(
        "its arrivals are sporadic, so its jobs have no fixed releases; 'arrivals: periodic' gives "
        "them",
        {options.file.path, 0, 0});
  }
  if (set->preemption != Preemption::None)
    programs::print_note("a job set knows no preemption: each job is written, and judged by others, as one piece");
  const PlannedTaskSet planned = AdmissionController(**planner).plan(*set);
  const auto partition = chosen_partition(options, planned.partitions.size());
  if (!partition) return tl::unexpected(partition.error());
  const std::vector<TaskTiming> timings = timings_of(planned.partitions[*partition], planned.timings);
  if (timings.empty()) return std::vector<JobTiming>{};
  if (!in_reach(timings)) return invalid_input("a time is above 146 years; a shorter one would be within reach");
  if (options.jobs > 0) return expand(timings, set->policy, options.jobs);
  return jobs_to_write(timings, set->policy).map([&](std::size_t count) {
    return expand(timings, set->policy, count);
  });
}

std::vector<ExpandedJobOutput> jobs_output(std::span<const JobTiming> jobs) {
  std::vector<ExpandedJobOutput> rows;
  for (const JobTiming& job : jobs)
    rows.push_back({job.task, job.id, job.earliest, job.latest, job.least, job.most, job.deadline, job.priority});
  return rows;
}

int expand_tasks(const ExpandOptions& options) {
  const auto jobs = jobs_of(options);
  if (!jobs) return report_error(jobs.error());
  if (!options.out.empty())
    if (const auto written = programs::write_file(options.out, jobs_text(*jobs)); !written)
      return report_error(written.error());
  const bool here = options.out.empty();
  if (options.file.json)
    programs::print("{}",
                    json_report(json_of(TasksExpandOutput{{},
                                                          jobs->size(),
                                                          here ? std::nullopt : std::optional(options.out),
                                                          here ? std::optional(jobs_output(*jobs)) : std::nullopt})));
  else if (here)
    programs::print("{}", jobs_text(*jobs));
  else
    programs::print("{} jobs, times in ns: {}\n", jobs->size(), options.out);
  return kOk;
}

}  // namespace

void add_tasks(programs::CommandLine& program) {
  programs::CommandLine command = program.command("tasks", "other forms of a task set");
  command.needs_command();
  command.footer("Example:\n  tutti tasks expand configs/tasks/periodic-offsets.yaml --out jobs.csv");
  programs::CommandLine expand = command.command(
      "expand", "the jobs of a strictly periodic task set, as the CSV file of np-schedulability-analysis");
  expand.footer(
      "Example:\n  tutti tasks expand configs/tasks/periodic-offsets.yaml --out jobs.csv && tutti check --jobs "
      "jobs.csv");
  const auto options = std::make_shared<ExpandOptions>();
  reads(expand.add("file", &options->file.path, "task set"), {FileKind::TaskSet}).required();
  options->file.add_machine(expand);
  options->file.add_planner(expand);
  options->file.add_task_options(expand);
  expand.add("--out", &options->out, "the file to write; without it, standard output").output();
  expand.add("--json", &options->file.json, "print one JSON object, with the jobs where --out is left out");
  expand.add("--jobs", &options->jobs, "how many jobs, in the order of their arrivals; without it, until they repeat")
      .between(1, 10'000'000);
  expand.add("--partition", &options->partition,
             "whose jobs, by number as 'tutti check' gives it; for sets that fall into several");
  expand.runs([options] { return expand_tasks(*options); });
  add_tasks_import(command);
}

}  // namespace tutti::internal
