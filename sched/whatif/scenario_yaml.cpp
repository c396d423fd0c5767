#include "sched/whatif/scenario_yaml.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "model/base/record.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {

/// A job of a scenario as a file says it.
struct ScenarioJobSpec {
  std::string task;
  Duration arrival{};
  std::optional<Duration> ready = {};  ///< absent: its arrival
  std::optional<Duration> takes = {};  ///< absent only where jobs overlap
};
struct ScenarioSpec {
  std::vector<ScenarioJobSpec> jobs;
};

template <>
struct Record<ScenarioJobSpec> {
  static constexpr std::string_view what = "a job of a scenario";
  static constexpr std::tuple fields{Field{"task", &ScenarioJobSpec::task}.required(),
                                     Field{"arrival", &ScenarioJobSpec::arrival}.required(),
                                     Field{"ready", &ScenarioJobSpec::ready}, Field{"takes", &ScenarioJobSpec::takes}};
};
template <>
struct Record<ScenarioSpec> {
  static constexpr std::string_view what = "a scenario";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"jobs", &ScenarioSpec::jobs}.required()};
};

namespace {

std::optional<ScenarioJob> compile_job(const ScenarioJobSpec& spec, const TaskSet& set, Faults& faults,
                                       const std::string& path) {
  const auto task = find_task(set, spec.task, faults, path_of(path, "task"));
  if (!task) return std::nullopt;
  const ScenarioJob job{*task, spec.arrival, spec.ready.value_or(spec.arrival), spec.takes};
  if (job.ready < job.arrival)
    faults.add(path_of(path, "ready"),
               fmt::format("the job is ready at {}, before it arrives at {}; write {} or later", to_string(job.ready),
                           to_string(job.arrival), to_string(job.arrival)));
  if (set.overlap == Overlap::On && job.takes)
    faults.add(path_of(path, "takes"),
               "where jobs overlap, their operations take what the machine gives them; leave 'takes' out, or give "
               "--overlap off");
  if (set.overlap != Overlap::On && !job.takes)
    faults.add(path,
               "'takes' is missing: how long the job has the machine; add it, or give --overlap on, if the run "
               "is of jobs that overlap");
  const Duration deadline = set.tasks[task->index()].deadline;
  if (job.ready > Duration::max() - deadline)
    faults.add(path,
               fmt::format("the job would be due more than 292 years (2^63 ns) after the start; write {} or earlier",
                           to_string(Duration::max() - deadline)));
  return job;
}

Expected<Scenario> scenario_of(const ScenarioSpec& spec, const TaskSet& set, Faults faults) {
  if (spec.jobs.empty()) {
    faults.add("jobs", "there are no jobs to run; give one at least");
    return tl::unexpected(faults.error());
  }
  if (spec.jobs.size() > kMostScenarioJobs) {
    faults.add("jobs", fmt::format("{} jobs are too many; {} are the most", spec.jobs.size(), kMostScenarioJobs));
    return tl::unexpected(faults.error());
  }
  Scenario scenario;
  std::vector<std::optional<ScenarioJob>> last(set.tasks.size());
  for (std::size_t i = 0; i < spec.jobs.size(); ++i) {
    const std::string path = path_of("jobs", i);
    const auto job = compile_job(spec.jobs[i], set, faults, path);
    if (!job) continue;
    scenario.jobs.push_back(*job);
    const auto before = std::exchange(last[job->task.index()], job);
    if (before && (job->arrival < before->arrival || job->ready < before->ready))
      faults.add(path, fmt::format("this job of '{}' comes before the one above it; write them in order",
                                   set.tasks[job->task.index()].name));
  }
  if (!faults.none()) return tl::unexpected(faults.error());
  std::ranges::stable_sort(scenario.jobs, {}, &ScenarioJob::arrival);
  return scenario;
}

}  // namespace

Expected<Scenario> scenario_from(const Node& document, const TaskSet& tasks) {
  return compiled<ScenarioSpec>(
      document, [&](const ScenarioSpec& spec, Faults faults) { return scenario_of(spec, tasks, std::move(faults)); });
}

Expected<Scenario> load_scenario(const std::string& path, const TaskSet& tasks) {
  return read_document(path).and_then([&](const Node& document) { return scenario_from(document, tasks); });
}

std::string to_yaml(const Scenario& scenario, const TaskSet& tasks) {
  std::string text = "version: 1\njobs:\n";
  for (const ScenarioJob& job : scenario.jobs) {
    const std::string takes = job.takes ? fmt::format(", takes: {} ns", job.takes->count()) : "";
    text += fmt::format("  - {{task: {}, arrival: {} ns, ready: {} ns{}}}\n", tasks.tasks[job.task.index()].name,
                        job.arrival.count(), job.ready.count(), takes);
  }
  return scenario.jobs.empty() ? "version: 1\njobs: []\n" : text;
}

std::string scenario_schema() { return file_schema<ScenarioSpec>(); }

}  // namespace tutti::internal
