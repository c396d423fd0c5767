#include "tests/support/overlap_sets.hpp"

#include <array>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "model/planners/planner.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal::test {

Topology overlap_machine() {
  return make_machine(R"(  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu, copy_engines: 1}
  links:
    - {from: mem0, to: cpu0, bandwidth: 20 GB/s, back: 16 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: {nominal: 10 GB/s, guaranteed: 9 GB/s, theoretical: 11 GB/s}, back: 8 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: {nominal: 10 GB/s, theoretical: 12 GB/s}, back: 10 GB/s}
    - {from: cpu0, to: gpu2, bandwidth: 6 GB/s, back: 7 GB/s}
  shared:
    - {name: both, capacity: 22 GB/s, members: [{from: mem0, to: cpu0}, {from: cpu0, to: mem0, cost: 1.2}]}
  weights: {h2d: 1, d2h: 1.5, peer: 1}
  peer_access: none
  staging: {chunk: 2 kB}
)");
}

TaskSet random_overlap_set(Random& random, const Topology& machine) {
  TaskSet set{machine, random.one_in(2) ? Policy::Edf : Policy::Dm, {}};
  const int tasks = random.between(2, 4);
  for (int i = 0; i < tasks; ++i) {
    Task task;
    task.name = fmt::format("t{}", i);
    task.period = Duration{random.between(4000, 40'000)};
    task.deadline = random.one_in(3) ? task.period * random.between(2, 6) / 4 : task.period;
    if (random.one_in(3)) task.jitter = Duration{random.between(1, 500)};
    const int steps = random.between(1, 3);
    for (int k = 0; k < steps; ++k) {
      if (random.one_in(5)) {
        task.steps.emplace_back(HostStep{Duration{random.between(0, 1500)}});
        continue;
      }
      std::string streams;
      for (int s = random.between(1, 2); s > 0; --s) {
        const int gpu = random.between(0, 2), kind = random.between(0, 5);
        const int bytes = random.between(0, 12'000), ns = random.between(1, 2500);
        if (kind == 0) {
          streams += fmt::format("  - {{kernel: {{on: gpu{}, time: {} ns}}}}\n", gpu, ns);
        } else if (kind == 1) {
          streams += fmt::format("  - {{from: gpu{}, to: gpu{}, size: {} B}}\n", gpu, (gpu + 1) % 3, bytes);
        } else if (kind == 2 && !machine.devices().empty()) {
          streams += fmt::format("  - {{from: {}, to: gpu{}, size: {} B}}\n", machine.vertex(machine.devices()[0]).name,
                                 gpu, bytes);
        } else if (kind == 2) {
          streams += fmt::format("  - {{from: gpu{}, to: mem0, size: {} B}}\n", gpu, bytes);
        } else {
          streams +=
              fmt::format("  - {{from: mem0, to: gpu{}, size: {} B, kernel: {{time: {} ns}}}}\n", gpu, bytes, ns);
        }
      }
      task.steps.emplace_back(make_batch(machine, streams));
    }
    set.tasks.push_back(std::move(task));
  }
  return set;
}

namespace {

/// @param plain  one batch of one stream
std::vector<JobStep> random_steps(const Topology& machine, bool plain, Random& random) {
  constexpr std::array<std::uint64_t, 3> kSizes{20'000, 400'000, 4'000'000};
  const BatchTraits traits{.most_streams = plain ? 1 : 3,
                           .most_bytes = kSizes[random.below(kSizes.size())],
                           .most_kernel = 100'000,
                           .one_method_in = 1};
  std::vector<JobStep> steps;
  for (int k = plain ? 1 : random.between(1, 2); k > 0; --k) {
    if (random.one_in(5)) {
      steps.emplace_back(HostStep{Duration{random.between(0, 50'000)}});
    } else {
      steps.emplace_back(random_batch(machine, random.next(), traits));
    }
  }
  return steps;
}

/// Whoever adds a field draws it here, or says why it stays as it is.
Task task_of_every_field(const Topology& machine, bool plain, Random& random) {
  Task task;
  auto& [name, period, deadline, jitter, offset, buffers, steps, declared_wcet, place, priority, best_case, cut,
         overrun, release, after, late_consumer, late_input] = task;
  name = fmt::format("t{}", random.next());
  period = Duration{random.between(200'000, 3'000'000)};
  deadline = random.one_in(3) ? period * random.between(2, 6) / 4 : period;
  if (random.one_in(3)) jitter = Duration{random.between(1, 20'000)};
  if (random.one_in(2)) offset = Duration{random.between(0, 100'000)};
  buffers.clear();  // they say where bytes lie, which takes no time
  steps = random_steps(machine, plain, random);
  declared_wcet.reset();  // it would not overlap, and neither would a task with a predecessor
  after.clear();
  late_consumer = LateConsumer::Drop;  // jobs overlap, and the host leads
  late_input = LateInput::Drop;        // the same
  place.line = random.between(1, 100);
  priority = random.between(0, 3);
  if (random.one_in(2)) best_case = Duration{random.between(0, 1000)};
  if (random.one_in(3)) cut = Bytes{random.between(300'000, 3'000'000)};
  auto& [policy, budget, suspend_after] = overrun;
  policy = static_cast<OverrunPolicy>(random.below(3));
  if (random.one_in(2)) budget = period;
  suspend_after = random.between(0, 3);
  auto& [source, trigger, early, missing_after] = release;
  source = random.one_in(3) ? ReleaseSource::External : ReleaseSource::Periodic;
  if (random.one_in(2)) trigger = name;
  early = random.one_in(2) ? EarlyTriggers::Drop : EarlyTriggers::Defer;
  missing_after = period * 2 + jitter;
  return task;
}

}  // namespace

TaskSet set_of_every_field(const Topology& machine, std::uint64_t seed) {
  constexpr std::array kPolicies{Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given};
  Random random(seed ^ 0x73657473);
  TaskSet set;
  auto& [on, policy, tasks, arrivals, preemption, cut, planner, overlap, chains, deadline_at, led_by_gpu, why_host,
         host_away] = set;
  on = machine;
  policy = kPolicies[random.below(kPolicies.size())];
  const bool plain = random.one_in(2);
  for (int i = random.between(1, 3); i > 0; --i) tasks.push_back(task_of_every_field(machine, plain, random));
  arrivals = random.one_in(2) ? Arrivals::Periodic : Arrivals::Sporadic;
  preemption = random.one_in(2) ? Preemption::BetweenBatches : Preemption::None;
  if (random.one_in(2)) cut = Bytes{random.between(300'000, 3'000'000)};
  planner = &planners()[random.below(planners().size())];
  overlap = Overlap::On;
  if (random.one_in(2)) chains = {{.name = "c", .tasks = {TaskId{tasks.size() - 1}}}};
  led_by_gpu = false;  // jobs overlap
  deadline_at = random.one_in(2) ? DeadlineAt::Device : DeadlineAt::Host;
  if (deadline_at == DeadlineAt::Device) why_host = "jobs overlap";
  host_away = Duration{random.between(0, 1'000'000)};
  return set;
}

TaskSet stretched(TaskSet set, double factor) {
  for (Task& task : set.tasks)
    for (Duration* const time : {&task.period, &task.deadline})
      *time = Duration{static_cast<std::int64_t>(factor * as_ns(*time)) + 1};
  return set;
}

TaskSet on_machine(TaskSet set, const Topology& machine) {
  for (Task& task : set.tasks)
    for (JobStep& step : task.steps)
      if (const auto* batch = std::get_if<Batch>(&step))
        step = Batch::make(machine, {batch->streams().begin(), batch->streams().end()}, batch->merging()).value();
  set.machine = machine;
  return set;
}

}  // namespace tutti::internal::test
