#include "sched/tasks/partition.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <set>

#include "model/transfer/transfer_method.hpp"
#include "sched/tasks/task_names.hpp"

namespace tutti::internal {
namespace {

/// A resource of the machine that only one group can use.
struct Resource {
  enum class Kind : std::uint8_t { Capacity, Engine, Processor };

  Kind kind;
  std::uint32_t id;

  friend auto operator<=>(const Resource&, const Resource&) = default;
};

class ResourceList {
 public:
  explicit ResourceList(const Topology& machine) : machine_(&machine) {}

  void add(const JobStep& step) {
    if (std::holds_alternative<HostStep>(step)) {
      list_.push_back({Resource::Kind::Processor, kNone});  // the host, whose cpus the machine need not name
      for (std::uint32_t i = 0; i < machine_->vertices().size(); ++i)
        if (machine_->vertices()[i].kind == VertexKind::Cpu) list_.push_back({Resource::Kind::Processor, i});
      return;
    }
    for (const CommandStream& stream : std::get<Batch>(step).streams()) {
      if (stream.transfer) add(*stream.transfer);
      if (stream.kernel) add(stream.kernel->on);
    }
  }

  [[nodiscard]] const std::vector<Resource>& list() const { return list_; }

 private:
  void add(VertexId vertex) {
    const VertexKind kind = machine_->vertex(vertex).kind;
    if (kind == VertexKind::Gpu || kind == VertexKind::Cpu) list_.push_back({Resource::Kind::Processor, vertex.value});
  }

  void add(const Transfer& transfer) {
    add(transfer.from);
    add(transfer.to);
    const RouteView route = find_route(*machine_, transfer);
    for (const auto leg : {route.first, route.second})
      for (const LinkId link : leg)
        for (const CapacityUse& use : machine_->uses(link))
          list_.push_back({Resource::Kind::Capacity, use.capacity.value});
    for (const EngineId engine : route.engines) list_.push_back({Resource::Kind::Engine, engine.value});
  }

  const Topology* machine_;
  std::vector<Resource> list_;
};

/// Disjoint groups of positions that can be joined.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  /// The smallest position of its group.
  std::size_t first(std::size_t at) {
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  void join(std::size_t a, std::size_t b) {
    a = first(a);
    b = first(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

/// Names of the tasks that a task is after, or whose buffers it reads.
std::vector<std::string_view> needed_by(const Task& task) {
  std::vector<std::string_view> names{task.after};
  for (const NamedBuffer& buffer : task.buffers) names.push_back(buffer.owner());
  return names;
}

}  // namespace

std::vector<Partition> partitions_of(const TaskSet& set) {
  const bool unknown =
      !set.machine || std::ranges::any_of(set.tasks, [](const Task& task) { return task.steps.empty(); });
  Groups groups(set.tasks.size());
  std::map<Resource, std::size_t> users;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    if (unknown) {
      groups.join(0, i);
      continue;
    }
    ResourceList used(*set.machine);
    for (const JobStep& step : set.tasks[i].steps) used.add(step);
    for (const Resource& resource : used.list()) groups.join(users.try_emplace(resource, i).first->second, i);
  }
  const TaskPositions positions = positions_of(set.tasks);
  for (std::size_t i = 0; i < set.tasks.size(); ++i)
    for (const std::string_view other : needed_by(set.tasks[i]))
      if (const auto found = positions.find(other); found != positions.end()) groups.join(found->second, i);
  std::map<std::size_t, Partition> by_first;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) by_first[groups.first(i)].tasks.push_back(TaskId{i});
  std::vector<Partition> partitions;
  for (auto& [first, partition] : by_first) partitions.push_back(std::move(partition));
  if (partitions.empty()) partitions.emplace_back();
  return partitions;
}

std::vector<VertexId> gpus_of(const TaskSet& set, const Partition& partition) {
  std::set<VertexId> gpus;
  const auto add = [&](VertexId vertex) {
    if (set.machine->vertex(vertex).kind == VertexKind::Gpu) gpus.insert(vertex);
  };
  for (const TaskId task : partition.tasks) {
    for (const NamedBuffer& buffer : set.tasks[task.index()].buffers) add(buffer.in);
    for (const Batch* batch : batches_of(set.tasks[task.index()])) {
      for (const CommandStream& stream : batch->streams()) {
        if (stream.transfer) add(stream.transfer->from);
        if (stream.transfer) add(stream.transfer->to);
        if (stream.kernel) add(stream.kernel->on);
      }
    }
  }
  return {gpus.begin(), gpus.end()};
}

std::vector<TaskTiming> timings_of(const Partition& partition, std::span<const TaskTiming> timings) {
  std::vector<TaskTiming> own;
  for (const TaskId task : partition.tasks) own.push_back(timings[task.index()]);
  return own;
}

}  // namespace tutti::internal
