#include "sched/partition.hpp"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>

#include "model/route.hpp"

namespace tutti {
namespace {

/// Something of the machine that only one group can have.
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
    for (const CommandStream& stream : std::get<BatchOperation>(step).streams()) {
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

/// Groups of positions that grow together.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }

  /// The first of its group.
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

/// Gives the tasks of a witness the ids that they have in the whole set.
void rename(Witness& witness, const Partition& partition) {
  const auto whole = [&](TaskId task) { return partition.tasks[task.index()]; };
  if (witness.task) witness.task = whole(*witness.task);
  if (witness.blocker) witness.blocker = whole(*witness.blocker);
  for (TaskLoad& load : witness.by_task) load.task = whole(load.task);
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
  std::map<std::size_t, Partition> by_first;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) by_first[groups.first(i)].tasks.push_back(TaskId{i});
  std::vector<Partition> partitions;
  for (auto& [first, partition] : by_first) partitions.push_back(std::move(partition));
  return partitions;
}

std::vector<PartitionVerdict> decide_apart(const AdmissionController& controller, const TaskSet& set,
                                           const std::vector<Partition>& partitions) {
  std::vector<PartitionVerdict> verdicts;
  for (const Partition& partition : partitions) {
    TaskSet group{set.machine, set.policy, {}};
    for (const TaskId task : partition.tasks) group.tasks.push_back(set.tasks[task.index()]);
    AdmissionVerdict verdict = controller.decide(group);
    verdict.admitted.reset();  // it would be a promise about a part, made for a dispatcher of the whole
    for (Verdict& test : verdict.tests)
      if (test.witness) rename(*test.witness, partition);
    verdicts.push_back({partition, std::move(verdict)});
  }
  return verdicts;
}

}  // namespace tutti
