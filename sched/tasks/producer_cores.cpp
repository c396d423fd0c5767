#include "sched/tasks/producer_cores.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

std::optional<VertexId> first_cpu_on(const Topology& machine, const RouteView& route) {
  for (const LinkId link : route.first)
    for (const VertexId end : {machine.link(link).from, machine.link(link).to})
      if (machine.vertex(end).kind == VertexKind::Cpu) return end;
  return std::nullopt;
}

/// What the tasks of a set need of a cpu's cores.
struct UseOfCores {
  int cores = 0;
  int held = 0;        ///< by threads that copy
  bool works = false;  ///< and one by host work

  [[nodiscard]] int spare() const { return cores - held - (works ? 1 : 0); }
};

/// @pre the set has a machine
std::map<VertexId, UseOfCores> uses_of_cores(const TaskSet& set) {
  std::map<VertexId, UseOfCores> uses;
  for (std::size_t i = 0; i < set.machine->vertices().size(); ++i)
    if (const Vertex& vertex = set.machine->vertices()[i]; vertex.kind == VertexKind::Cpu)
      uses[VertexId{i}].cores = vertex.cores;
  for (const auto& [cpu, held] : producer_cores(set)) uses[cpu].held = held;
  for (const Task& task : set.tasks)
    for (const auto& [cpu, time] : host_times(set, task)) uses[cpu].works |= time > 0;
  return uses;
}

}  // namespace

std::optional<VertexId> first_cpu(const TaskSet& set) {
  for (std::size_t i = 0; set.machine && i < set.machine->vertices().size(); ++i)
    if (set.machine->vertices()[i].kind == VertexKind::Cpu) return VertexId{i};
  return std::nullopt;
}

std::map<VertexId, int> producer_cores(const TaskSet& set) {
  std::map<std::pair<VertexId, EngineId>, int> of_engine;
  for (const Task& task : set.tasks)
    for (const JobStep& step : task.steps) {
      if (!std::holds_alternative<Batch>(step)) continue;
      for (const CommandStream& stream : std::get<Batch>(step).streams()) {
        if (!stream.transfer) continue;
        const RouteView route = find_route(*set.machine, *stream.transfer);
        const auto [pageable, mapped] = std::pair(route.method.pageable, route.method.mapped);
        const auto cpu = pageable || mapped ? first_cpu_on(*set.machine, route) : std::nullopt;
        if (!cpu) continue;
        const Vertex &from = set.machine->vertex(stream.transfer->from), &to = set.machine->vertex(stream.transfer->to);
        int& producers = of_engine[{*cpu, route.engines[0]}];
        producers = std::max(producers, mapped ? 1 : from.pageable ? from.producers : to.producers);
      }
    }
  std::map<VertexId, int> cores;
  for (const auto& [place, producers] : of_engine) cores[place.first] += producers;
  return cores;
}

bool has_cores_for_copies(const TaskSet& set) {
  if (!set.machine) return false;
  const int threads = static_cast<int>(set.machine->memories().size());
  return std::ranges::none_of(uses_of_cores(set), [&](const auto& use) { return use.second.spare() < threads; });
}

void check_producer_cores(const TaskSet& set, Faults& faults) {
  if (!set.machine) return;
  for (const auto& [cpu, use] : uses_of_cores(set)) {
    if (use.held == 0 || use.spare() >= 0) continue;
    faults.add("tasks",
               fmt::format("copies of pageable memory hold {} cores of '{}'{}, which has {}; write the 'cores' "
                           "that it has, or fewer 'producers' of its memory",
                           use.held, set.machine->vertex(cpu).name, use.works ? ", and host work needs one more" : "",
                           use.cores));
  }
}

std::map<VertexId, double> host_times(const TaskSet& set, const Task& task) {
  std::map<VertexId, double> times;
  for (const JobStep& step : task.steps) {
    if (const auto* host = std::get_if<HostStep>(&step)) {
      if (const auto cpu = first_cpu(set)) times[*cpu] += as_ns(host->time);
      continue;
    }
    for (const CommandStream& stream : std::get<Batch>(step).streams())
      if (stream.kernel && set.machine->vertex(stream.kernel->on).kind == VertexKind::Cpu)
        times[stream.kernel->on] += as_ns(stream.kernel->worst);
  }
  return times;
}

}  // namespace tutti::internal
