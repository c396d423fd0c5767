// How many random task sets are admitted one job at a time (off), overlapping (on), and by the better of both (auto),
// beside those that some schedule might still keep: over the utilization of the fullest engine, GPU or cpu. Sets: 2 to
// 8 tasks on the four GPUs of h200x4, each with a copy to one GPU, a kernel there, and in half of them a copy back in a
// second batch; copies of 1 to 100 MB, kernels of 0.1 to 10 ms and periods of 5 to 100 ms, all log-uniform; then all
// periods are stretched alike, so that the fullest resource has the utilization of the row. Deadlines are the periods.
// Options: --seeds N
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sched/admission/admission.hpp"
#include "sched/overlap/overlap_verdict.hpp"
#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::Random;

double log_uniform(Random& random, double low, double high) {
  return std::exp(random.real(std::log(low), std::log(high)));
}

TaskSet random_set(Random& random, const Topology& machine) {
  TaskSet set{machine, Policy::Edf, {}};
  const int tasks = random.between(2, 8);
  for (int i = 0; i < tasks; ++i) {
    Task task;
    task.name = fmt::format("t{}", i);
    task.period = task.deadline = Duration{static_cast<std::int64_t>(1e6 * log_uniform(random, 5, 100))};
    const int gpu = random.between(0, 3);
    task.steps.emplace_back(test::make_batch(
        machine, fmt::format("  - {{from: mem0, to: gpu{}, size: {:.0f} kB, kernel: {{time: {:.0f} us}}}}\n", gpu,
                             log_uniform(random, 1e3, 1e5), log_uniform(random, 100, 10'000))));
    if (random.one_in(2))
      task.steps.emplace_back(test::make_batch(machine, fmt::format("  - {{from: gpu{}, to: mem0, size: {:.0f} kB}}\n",
                                                                    gpu, log_uniform(random, 1e3, 1e5))));
    set.tasks.push_back(std::move(task));
  }
  return set;
}

/// Stretches all periods and deadlines.
void stretch(TaskSet& set, double factor) {
  for (Task& task : set.tasks)
    task.period = task.deadline = Duration{static_cast<std::int64_t>(as_ns(task.period) * factor)};
}

/// Utilization of the fullest resource, every engine for itself.
double fullest(const TaskSet& set) {
  const OperationSet operations = operations_of(set).value();
  std::vector<double> utilization(operations.resources.size());
  for (const Operation& operation : operations.operations)
    utilization[operation.resource] += as_ns(operation.worst()) / as_ns(set.tasks[operation.task.index()].period);
  return std::ranges::max(utilization);
}

/// Whether every job could be in time: behind the longest operation of another task, which may just have begun where
/// its own first one is ready, and with the machine for itself from then on. No schedule without preemption does
/// without.
bool might_hold(const TaskSet& set) {
  const OperationSet operations = operations_of(set).value();
  const std::vector<Duration> least = least_times(operations);
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const std::size_t first = operations.jobs[i].front().front().front();
    Duration blocking{};
    for (const Operation& other : operations.operations)
      if (other.task != TaskId{i} && other.resource == operations.operations[first].resource)
        for (const OperationPart& part : other.parts) blocking = std::max(blocking, part.least);
    if (blocking + longest_way(operations, least, TaskId{i}) > set.tasks[i].deadline) return false;
  }
  return true;
}

struct Shares {
  int off = 0, on = 0, any_of_both = 0, possible = 0;
};

int run(int argc, char** argv) {
  const int seeds = argc == 3 && std::strcmp(argv[1], "--seeds") == 0 ? std::max(1, std::atoi(argv[2])) : 1000;
  const Topology machine = load_machine(test::source_path("configs/machines/h200x4.yaml")).value();
  const AdmissionController controller(planners().front());
  fmt::print("| fullest resource | off | on | auto | some schedule might |\n|---|---|---|---|---|\n");
  for (const double utilization : {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}) {
    Shares shares;
    for (int seed = 1; seed <= seeds; ++seed) {
      Random random(static_cast<std::uint64_t>(seed));
      TaskSet set = random_set(random, machine);
      stretch(set, fullest(set) / utilization);
      const bool off = controller.answer(set) == Answer::Schedulable;
      const bool on = answer_overlapping(set) == Answer::Schedulable;
      shares.off += off ? 1 : 0;
      shares.on += on ? 1 : 0;
      shares.any_of_both += off || on ? 1 : 0;
      shares.possible += might_hold(set) ? 1 : 0;
    }
    const auto percent = [&](int count) { return 100.0 * count / seeds; };
    fmt::print("| {:.1f} | {:.1f} % | {:.1f} % | {:.1f} % | {:.1f} % |\n", utilization, percent(shares.off),
               percent(shares.on), percent(shares.any_of_both), percent(shares.possible));
  }
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
