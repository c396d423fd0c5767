#pragma once
#include <string>
#include <vector>

#include "sched/tasks/task.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal::test {

/// Copies to a GPU of each: gpu0 and gpu1 are on the first side, gpu2 on the second.
inline constexpr const char* kUp0 = "from: mem0, to: gpu0, size: 6 kB";
inline constexpr const char* kUp1 = "from: mem0, to: gpu1, size: 6 kB";
inline constexpr const char* kUp2 = "from: mem1, to: gpu2, size: 6 kB";

/// Two sides, each with a memory, a cpu and GPUs (two, and one) on links of their own at 1 byte/ns; a link between the
/// cpus.
inline Topology two_sides(const std::string& rest = "") {
  return make_machine(R"(  vertices:
    mem0: {kind: memory}
    mem1: {kind: memory}
    cpu0: {kind: cpu}
    cpu1: {kind: cpu}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu}
  links:
    - {from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: mem0, to: cpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: cpu0, to: cpu1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: cpu1, to: mem1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: cpu1, to: gpu2, bandwidth: 1 GB/s, back: 1 GB/s}
  peer_access: none
)" + rest);
}

/// Task i has the i-th of these streams, or a host step or a declared Wcet of 1000 ns; each arrives every 10,000 ns.
inline TaskSet tasks_of(const Topology& machine, const std::vector<std::string>& streams, Policy policy = Policy::Edf) {
  TaskSet set{machine, policy, {}};
  for (const std::string& stream : streams) {
    Task task;
    task.name = "t" + std::to_string(set.tasks.size());
    task.period = task.deadline = Duration{10'000};
    if (stream == "host") {
      task.steps = {HostStep{Duration{1000}}};
    } else if (stream == "wcet") {
      task.declared_wcet = Duration{1000};
    } else {
      task.steps = {make_batch(machine, "  - {" + stream + "}\n")};
    }
    set.tasks.push_back(std::move(task));
  }
  return set;
}

}  // namespace tutti::internal::test
