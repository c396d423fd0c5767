#include "tests/support/overlap_sets.hpp"

#include <string>

#include <fmt/format.h>

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

}  // namespace tutti::internal::test
