#include "sched/whatif/scenario_yaml.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "sched/tasks/task_yaml.hpp"

namespace tutti::internal {
namespace {

ScenarioJob read_job(const Node& node, const TaskSet& set) {
  const Fields fields(node, "a job of a scenario", {"task", "arrival", "ready", "takes"});
  ScenarioJob job;
  job.task = read_task_name(fields.require("task"), set);
  job.arrival = read_duration(fields.require("arrival"));
  job.takes = read_duration(fields.require("takes"));
  const Node* ready = fields.find("ready");
  job.ready = ready == nullptr ? job.arrival : read_duration(*ready);
  if (job.ready < job.arrival)
    fail(ready->place, fmt::format("the job is ready at {}, before it arrives at {}; write {} or later",
                                   to_string(job.ready), to_string(job.arrival), to_string(job.arrival)));
  const Duration deadline = set.tasks[job.task.index()].deadline;
  if (job.ready > Duration::max() - deadline)
    fail(node.place,
         fmt::format("the job would be due more than 292 years (2^63 ns) after the start; write {} or earlier",
                     to_string(Duration::max() - deadline)));
  return job;
}

Scenario read_scenario(const Node& document, const TaskSet& set) {
  const Fields fields(document, "a scenario", {"version", "jobs"});
  const Node& jobs = fields.require("jobs");
  const auto nodes = read_sequence(jobs, "'jobs'");
  if (nodes.size() > kMostScenarioJobs)
    fail(jobs.place, fmt::format("{} jobs are too many; {} are the most", nodes.size(), kMostScenarioJobs));
  Scenario scenario;
  std::vector<const ScenarioJob*> last(set.tasks.size(), nullptr);
  scenario.jobs.reserve(nodes.size());
  for (const Node& node : nodes) {
    const ScenarioJob& job = scenario.jobs.emplace_back(read_job(node, set));
    const ScenarioJob* before = std::exchange(last[job.task.index()], &job);
    if (before != nullptr && (job.arrival < before->arrival || job.ready < before->ready))
      fail(node.place, fmt::format("this job of '{}' comes before the one above it; write them in order",
                                   set.tasks[job.task.index()].name));
  }
  std::ranges::stable_sort(scenario.jobs, {}, &ScenarioJob::arrival);
  return scenario;
}

}  // namespace

Expected<Scenario> load_scenario(const std::string& path, const TaskSet& tasks) {
  return read_document(path).and_then(
      [&](const Node& document) { return reading([&] { return read_scenario(document, tasks); }); });
}

std::string to_yaml(const Scenario& scenario, const TaskSet& tasks) {
  std::string text = "version: 1\njobs:\n";
  for (const ScenarioJob& job : scenario.jobs)
    text += fmt::format("  - {{task: {}, arrival: {} ns, ready: {} ns, takes: {} ns}}\n",
                        tasks.tasks[job.task.index()].name, job.arrival.count(), job.ready.count(), job.takes.count());
  return scenario.jobs.empty() ? "version: 1\njobs: []\n" : text;
}

}  // namespace tutti::internal
