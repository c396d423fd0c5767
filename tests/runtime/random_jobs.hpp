#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sched/tasks/wcet.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// A job of a batch of copies with kernels, a host step, and a batch back.
inline Task random_job(const Station& station, Random& random, std::string name) {
  const VertexId mem = station.at("mem0");
  const VertexId gpus[] = {station.at("gpu0"), station.at("gpu1"), station.at("gpu2")};
  std::vector<CommandStream> there, back;
  for (int s = random.between(1, 4); s > 0; --s) {
    const VertexId gpu = gpus[random.below(3)];
    const std::int64_t size = random.between(0, 3000);
    there.push_back(copy_stream("s" + std::to_string(s), mem, gpu, size));
    if (random.one_in(2)) {
      const Duration time{random.between(0, 500)};
      there.back().kernel = Kernel{gpu, time, 2 * time, "checksum"};
    }
    back.push_back(copy_stream("s" + std::to_string(s), gpu, random.one_in(3) && gpu != gpus[0] ? gpus[0] : mem, size));
  }
  Task task;
  task.name = std::move(name);
  task.steps = {station.batch(there), HostStep{Duration{random.between(0, 300)}}, station.batch(back)};
  return task;
}

/// Periods are 1 to 4 times the work of all tasks, so some sets are refused and most admitted sets are busy.
inline TaskSet random_batch_set(const Station& station, Random& random, Policy policy,
                                const Planner& planner = planners().front()) {
  TaskSet set{station.machine, policy, {}};
  Duration work{};
  for (int i = random.between(1, 3); i > 0; --i) {
    set.tasks.push_back(random_job(station, random, "t" + std::to_string(i)));
    work += bound_job(set.tasks.back(), set.machine, planner).wcet.bound();
  }
  for (Task& task : set.tasks) {
    task.period = work * random.between(10, 40) / 10;
    task.deadline = task.period * random.between(8, 20) / 10;
    task.jitter = task.period * random.between(0, 2) / 10;
    task.offset = Duration{random.between(0, 5000)};
    if (policy == Policy::Given) task.priority = random.between(0, 2);
  }
  return set;
}

/// What `run` does with programs for the tasks.
template <class Run>
RunRecord with_patterns(const Station& station, const TaskSet& set, std::uint64_t seed, const Run& run) {
  std::vector<std::unique_ptr<PatternProgram>> programs;
  std::vector<TaskProgram*> table;
  for (const Task& task : set.tasks)
    table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(station.machine, task, seed)).get());
  return run(table).value();
}

/// What a job takes by the plans that it was admitted with.
inline Duration planned_length(const AdmittedTaskSet& promise, TaskId task) {
  Duration length{};
  for (const auto& chunks : promise.planned().bounds[task.index()].plans)
    for (const ExecutionPlan& chunk : chunks) length += chunk.timeline.latency;
  for (const JobStep& step : promise.tasks().tasks[task.index()].steps)
    if (const auto* host = std::get_if<HostStep>(&step)) length += host->time;
  return length;
}

}  // namespace tutti::internal::test
