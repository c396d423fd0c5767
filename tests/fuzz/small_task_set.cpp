#include "tests/fuzz/small_task_set.hpp"

#include "sched/tasks/task_yaml.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal::fuzz {

const TaskSet& small_task_set() {
  static const TaskSet set = parse_study(R"(version: 1
preemption: between_batches
tasks:
  - name: inspect
    period: 25 ms
    deadline: 60 ms
    job:
      - batch: [{from: mem0, to: gpu0, size: 1 kB, kernel: {time: 2 ms}}, {from: mem0, to: gpu1, size: 2 kB}]
      - host: 1 ms
      - batch: [{from: gpu0, to: mem0, size: 1 kB}]
  - name: alarm
    period: 10 ms
    deadline: 8 ms
    jitter: 1 ms
    job:
      - batch: [{from: mem0, to: gpu1, size: 100 B, kernel: {time: 200 us}}]
  - name: frame
    period: 20 ms
    release: external
    job:
      - batch: [{from: gpu0, to: gpu1, size: 3 kB}]
)",
                                         test::star(8, {4, 2}))
                                 .value()
                                 .tasks;
  return set;
}

SimulatedMachine::SimulatedMachine(const PlannedTaskSet& planned)
    : set_(planned.tasks),
      backend_(*planned.tasks.machine, kernels_, clock_),
      executor_(*planned.tasks.machine, backend_, clock_) {
  for (const Task& task : planned.tasks.tasks)
    table_.push_back(programs_.emplace_back(std::make_unique<PatternProgram>(*planned.tasks.machine, task, 1)).get());
}

Expected<TriggerSources> SimulatedMachine::triggers(decltype(TriggerOrigins::faults) faults) const {
  TriggerOrigins origins;
  origins.simulated = true;
  origins.faults = std::move(faults);
  return TriggerSources::make(set_, origins);
}

}  // namespace tutti::internal::fuzz
