#include "sched/overlap/operations.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/batch/command_costs.hpp"
#include "model/batch/copy_class.hpp"
#include "model/sharing/corunner_rates.hpp"
#include "model/transfer/transfer_method.hpp"
#include "sched/tasks/cut.hpp"
#include "sched/tasks/led_set.hpp"
#include "sched/tasks/partition.hpp"
#include "sched/tasks/producer_cores.hpp"
#include "sched/tasks/wcet.hpp"

namespace tutti::internal {
namespace {

/// What a resource is made of: an engine, the last hop of copies between GPUs (a link), a processor (a vertex).
struct ResourcePart {
  enum class Kind : std::uint8_t { Engine, LastHop, Processor };

  Kind kind;
  std::uint32_t id;
  std::uint32_t core = 0;  // of a cpu

  friend auto operator<=>(const ResourcePart&, const ResourcePart&) = default;
};

std::string name_of(const Topology& machine, EngineId engine) {
  for (const VertexId gpu : machine.gpus()) {
    const std::string& name = machine.vertex(gpu).name;
    const bool in = machine.engine_in(gpu) == engine, out = machine.engine_out(gpu) == engine;
    if (in && out) return name + " copies";
    if (in || out) return name + (in ? " copies in" : " copies out");
    if (machine.peer_engine_in(gpu) == engine) return name + " peer copies in";
    if (machine.peer_engine_out(gpu) == engine) return name + " peer copies out";
  }
  for (const VertexId device : machine.devices()) {
    if (machine.engine_in(device) == engine) return machine.vertex(device).name + " copies in";
    if (machine.engine_out(device) == engine) return machine.vertex(device).name + " copies out";
  }
  TUTTI_EXPECTS(false, "an engine is of a GPU or a device");
  return {};
}

std::string name_of(const Topology* machine, const ResourcePart& part) {
  switch (part.kind) {
    case ResourcePart::Kind::Engine: return name_of(*machine, EngineId{part.id});
    case ResourcePart::Kind::LastHop: break;
    case ResourcePart::Kind::Processor: {
      if (part.id == kNone) return "host";
      const Vertex& vertex = machine->vertex(VertexId{part.id});
      if (vertex.kind == VertexKind::Memory) return vertex.name + " mapped copies";
      return vertex.cores > 1 ? fmt::format("core {} of {}", part.core, vertex.name) : vertex.name;
    }
  }
  return "last hop at " + machine->vertex(machine->link(LinkId{part.id}).to).name;
}

/// Groups of parts that are held together, in the order in which they are met.
class JoinedParts {
 public:
  /// The place of a part; joins it with another.
  std::size_t add(const ResourcePart& part) {
    const auto [known, is_new] = place_.try_emplace(part, parts_.size());
    if (is_new) {
      parts_.push_back(part);
      parent_.push_back(known->second);
    }
    return known->second;
  }
  void join(std::size_t a, std::size_t b) {
    const auto [first, second] = std::minmax({root(a), root(b)});
    parent_[second] = first;
  }
  /// Joins two parts, where both are there.
  void join_if_there(const ResourcePart& a, const ResourcePart& b) {
    const auto first = place_.find(a), second = place_.find(b);
    if (first != place_.end() && second != place_.end()) join(first->second, second->second);
  }
  [[nodiscard]] std::vector<std::string> names(const Topology* machine) const {
    std::vector<std::string> names;
    for (const ResourcePart& part : parts_) names.push_back(name_of(machine, part));
    return names;
  }
  /// @param places  becomes [places] positions in the result
  std::vector<SharedResource> take(const Topology* machine, std::vector<std::size_t>& places) {
    std::vector<SharedResource> resources;
    std::map<std::size_t, std::size_t> of_root;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto [known, is_new] = of_root.try_emplace(root(i), resources.size());
      const std::string name = name_of(machine, parts_[i]);
      if (is_new) {
        resources.push_back({name});
      } else {
        resources[known->second].name += " + " + name;
      }
      places.push_back(known->second);
    }
    return resources;
  }

 private:
  std::size_t root(std::size_t at) const {
    while (parent_[at] != at) at = parent_[at];
    return at;
  }

  std::map<ResourcePart, std::size_t> place_;
  std::vector<ResourcePart> parts_;
  std::vector<std::size_t> parent_;
};

/// A region before its rates are known.
struct Region {
  double fixed = 0;      // ns that pass, whatever else flows
  std::size_t flow = 0;  // among the co-runners, where there are bytes
  double bytes = 0;
  double filling = 0;             // bytes more that flow where buffers are filled meanwhile
  VertexId sms{kNone};            // GPU whose multiprocessors it takes
  std::vector<VertexId> at = {};  // GPUs that the copy starts or ends at
};

/// Bounds of regions.
class Bounds {
 public:
  Bounds(const Topology& machine, Duration dispatching)
      : machine_(machine), around_(add_saturating(dispatching, machine.setup().job.guaranteed)) {}

  /// Of host work that a job waits for.
  [[nodiscard]] Duration host(Duration time) const { return add_saturating(time, around_); }
  /// Of a copy or kernel: what a batch of it alone would have, and what it waits for the dispatcher.
  [[nodiscard]] Duration batch(double length) const { return add_saturating(alone(length), around_); }
  /// The former.
  [[nodiscard]] Duration alone(double length) const {
    const double whole = as_ns(machine_.setup().batch.guaranteed) + length;
    return batch_wcet(round_up_ns(whole), machine_.margin()).bound();
  }

 private:
  const Topology& machine_;
  Duration around_;  // the dispatcher's time, and what machine and host may be held up
};

/// The core of each cpu that the host work of a task takes, of those that copies of pageable memory leave: that of the
/// task with the most is handed out first, to the core that has the least.
class Cores {
 public:
  Cores(const TaskSet& set, int most) {
    if (!set.machine) return;
    std::vector<std::tuple<double, TaskId, VertexId>> loads;
    for (std::size_t i = 0; i < set.tasks.size(); ++i)
      for (const auto& [cpu, time] : host_times(set, set.tasks[i]))
        loads.emplace_back(-time / as_ns(set.tasks[i].period), TaskId{i}, cpu);
    std::ranges::sort(loads);
    std::map<VertexId, std::vector<double>> of_cpu;
    const auto producers = producer_cores(set);
    for (const auto& [load, task, cpu] : loads) {
      auto& cores = of_cpu[cpu];
      const auto held = producers.find(cpu);
      const int free = set.machine->vertex(cpu).cores - (held == producers.end() ? 0 : held->second);
      cores.resize(static_cast<std::size_t>(std::clamp(free, 1, most)));  // a compiled set has one at least
      const auto least = std::ranges::min_element(cores);
      *least -= load;
      core_of_[{task, cpu}] = static_cast<std::uint32_t>(least - cores.begin());
    }
  }

  [[nodiscard]] std::uint32_t of(TaskId task, VertexId cpu) const {
    const auto found = core_of_.find({task, cpu});
    return found == core_of_.end() ? 0 : found->second;
  }

 private:
  std::map<std::pair<TaskId, VertexId>, std::uint32_t> core_of_;
};

/// The set with what a job does on one resource without anything between as one operation.
OperationSet in_stays(const OperationSet& set) {
  OperationSet result{set.resources, set.units, {}, {}, set.dispatching};
  const auto add = [&](const Operation& operation, std::optional<std::size_t> before) {
    if (before && result.operations[*before].resource == operation.resource) {
      auto& parts = result.operations[*before].parts;
      parts.insert(parts.end(), operation.parts.begin(), operation.parts.end());
      return *before;
    }
    result.operations.push_back(operation);
    return result.operations.size() - 1;
  };
  for (const auto& steps : set.jobs) {
    auto& job = result.jobs.emplace_back();
    std::optional<std::size_t> last;  // the operation before, where there is nothing beside it
    for (const StepOperations& step : steps) {
      StepOperations stage;
      if (step.size() > 1) last.reset();
      for (const auto& stream : step) {
        std::optional<std::size_t> before = last;
        std::vector<std::size_t> operations;
        for (const std::size_t operation : stream) {
          const std::size_t place = add(set.operations[operation], before);
          if (place != before) operations.push_back(place);
          before = place;
        }
        if (!operations.empty()) stage.push_back(std::move(operations));
        if (step.size() == 1) last = before;
      }
      if (!stage.empty()) job.push_back(std::move(stage));
    }
  }
  return result;
}

class Splitting {
 public:
  Splitting(const TaskSet& set, const Joining& joining)
      : set_(set),
        machine_(set.machine ? &*set.machine : nullptr),
        joining_(joining),
        cores_(set, joining.most_cores) {}

  OperationSet split() {
    for (std::size_t i = 0; i < set_.tasks.size(); ++i) {
      auto& job = result_.jobs.emplace_back();
      for (const JobStep& step : set_.tasks[i].steps) {
        OperationPart part;
        part.step = job.size();
        StepOperations& operations = job.emplace_back();
        if (const auto* host = std::get_if<HostStep>(&step)) {
          part.kind = OperationPart::Kind::Host;
          part.least = host->time;
          operations.push_back({add(
              {TaskId{i}, processor(first_cpu(set_).value_or(VertexId{kNone}), TaskId{i}), {std::move(part)}}, {})});
        } else {
          add_batch(operations, {TaskId{i}, 0, {std::move(part)}}, std::get<Batch>(step));
        }
      }
    }
    const auto join_engines = [&](EngineId a, EngineId b) {
      using enum ResourcePart::Kind;
      resources_.join_if_there({Engine, a.value}, {Engine, b.value});
    };
    for (const VertexId gpu : joining_.peers) {
      join_engines(machine_->engine_in(gpu), machine_->peer_engine_in(gpu));
      join_engines(machine_->engine_out(gpu), machine_->peer_engine_out(gpu));
    }
    for (const VertexId gpu : joining_.engines) join_engines(machine_->engine_in(gpu), machine_->engine_out(gpu));
    for (const VertexId gpu : joining_.gpus)
      for (const EngineId engine : {machine_->engine_in(gpu), machine_->engine_out(gpu)})
        resources_.join(processor(gpu, {}), resources_.add({ResourcePart::Kind::Engine, engine.value}));
    result_.units = resources_.names(machine_);
    std::vector<std::size_t> places;
    result_.resources = resources_.take(machine_, places);
    for (Operation& operation : result_.operations) operation.resource = places[operation.resource];
    for (CorunnerFlow& flow : company_) flow.engine = static_cast<std::uint32_t>(places[flow.engine]);
    find_times();
    return in_stays(result_);
  }

 private:
  std::size_t add(Operation operation, std::vector<Region> regions) {
    result_.operations.push_back(std::move(operation));
    regions_.push_back(std::move(regions));
    return result_.operations.size() - 1;
  }

  std::size_t processor(VertexId vertex, TaskId task) {
    return resources_.add({ResourcePart::Kind::Processor, vertex.value, cores_.of(task, vertex)});
  }

  void add_batch(StepOperations& operations, Operation operation, const Batch& batch) {
    const Chunks chunks = cut(batch, cut_in_force(set_, set_.tasks[operation.task.index()]));
    const std::size_t last = chunks.batches.size() - 1;
    std::vector<std::size_t> at(last + 1);  // the stream in each batch: those before the last have no lone kernels
    for (std::size_t s = 0; s < batch.streams().size(); ++s) {
      operation.parts[0].stream = s;
      auto& in_order = operations.emplace_back();
      if (const auto& transfer = batch.streams()[s].transfer) {
        if (memory_on_way(*machine_, *transfer)) {
          in_order.push_back(add_copy(operation, Leg::Into, chunks, at));
          in_order.push_back(add_copy(operation, Leg::OutOf, chunks, at));
        } else {
          in_order.push_back(add_copy(operation, Leg::Whole, chunks, at));
        }
      }
      if (batch.streams()[s].kernel) in_order.push_back(add_kernel(operation, chunks.batches[last], at[last]));
      for (std::size_t c = 0; c <= last; ++c)
        if (batch.streams()[s].transfer || c == last) ++at[c];
    }
  }

  /// @param at  [batches] the stream in each
  std::size_t add_copy(Operation operation, Leg leg, const Chunks& chunks, std::span<const std::size_t> at) {
    OperationPart& part = operation.parts[0];
    part.kind = OperationPart::Kind::Copy;
    part.leg = leg;
    std::vector<Region> of_batch;
    for (std::size_t c = 0; c < chunks.batches.size(); ++c) {
      std::optional<Batch> alone;
      if (leg != Leg::Whole) alone = batch_of_leg(chunks.batches[c].streams()[at[c]], leg);
      const Batch& batch = alone ? *alone : chunks.batches[c];
      const std::size_t stream = alone ? 0 : at[c];
      const StreamWork& work = batch.work()[stream];
      part.units = {hold(work)};
      operation.resource = part.units.front();
      Region& region = of_batch.emplace_back();
      region.fixed = most_before_copy(machine_->setup(), work);
      const Transfer& transfer = *batch.streams()[stream].transfer;
      for (const VertexId end : {transfer.from, transfer.to})
        if (machine_->vertex(end).kind == VertexKind::Gpu) region.at.push_back(end);
      region.sms = machine_->moving_vertex(work.engines[0]).value_or(VertexId{kNone});
      if (work.bytes == 0) continue;
      const CopyTimes times = copy_times(machine_->setup(), Basis::Guaranteed, work, 1);
      region.fixed += times.before;
      region.flow = add_flow(transfer, operation.resource);
      region.bytes = work.bytes;
      region.filling = times.filling * company_[region.flow].alone;
    }
    std::vector<Region> regions;
    for (const std::size_t batch : chunks.order) regions.push_back(of_batch[batch]);
    return add(std::move(operation), std::move(regions));
  }

  [[nodiscard]] Batch batch_of_leg(const CommandStream& stream, Leg leg) const {
    auto alone = Batch::make(*machine_, {leg_of(*machine_, stream, leg)});
    TUTTI_EXPECTS(alone.has_value(), "a leg of a copy of a valid batch is one");
    return *std::move(alone);
  }

  /// The engine of a copy, joined with what it holds beside; or what moves data itself.
  std::size_t hold(const StreamWork& work) {
    if (const auto vertex = machine_->moving_vertex(work.engines[0]))
      return resources_.add({ResourcePart::Kind::Processor, vertex->value});
    const std::size_t engine = resources_.add({ResourcePart::Kind::Engine, work.engines[0].value});
    if (work.last_hop != kNone) resources_.join(engine, resources_.add({ResourcePart::Kind::LastHop, work.last_hop}));
    return engine;
  }

  /// The flow of a copy among the co-runners; equal ones are one.
  std::size_t add_flow(const Transfer& transfer, std::size_t resource) {
    const RouteClass route_class = class_in_company(*machine_, transfer);
    CorunnerFlow flow;
    flow.engine = static_cast<std::uint32_t>(resource);
    flow.weight = route_class.weight;
    flow.alone = route_class.alone.guaranteed.value;
    flow.uses = route_class.guaranteed_uses;
    for (const LinkId link : find_route(*machine_, transfer).first) {
      const LinkBandwidth& bandwidth = machine_->link(link).bandwidth;
      if (!bandwidth.theoretical) continue;
      flow.most = std::min(flow.most, std::max(bandwidth.theoretical->value, bandwidth.nominal.value));
    }
    std::vector<double> key{static_cast<double>(resource), flow.weight, flow.alone, flow.most};
    for (const CapacityUse& use : flow.uses) key.insert(key.end(), {static_cast<double>(use.capacity.value), use.cost});
    const auto [known, is_new] = flow_of_.try_emplace(std::move(key), company_.size());
    if (is_new) company_.push_back(std::move(flow));
    return known->second;
  }

  std::size_t add_kernel(Operation operation, const Batch& batch, std::size_t stream) {
    const StreamWork& work = batch.work()[stream];
    operation.parts[0].kind = OperationPart::Kind::Kernel;
    operation.resource = processor(batch.streams()[stream].kernel->on, operation.task);
    if (work.gpu != kNone) operation.parts[0].units = {operation.resource};
    operation.parts[0].least = round_down_ns(work.kernel_worst);
    const SetupTimes& setup = machine_->setup();
    return add(std::move(operation),
               {{.fixed = most_before_kernel(setup, work) + kernel_time(setup, Basis::Guaranteed, work),
                 .sms = batch.streams()[stream].kernel->on}});
  }

  /// The longest times of all regions, now that the co-runners are known.
  void find_times() {
    if (machine_ == nullptr) {  // there is nothing but host work
      for (Operation& operation : result_.operations) operation.parts[0].regions = {operation.parts[0].least};
      return;
    }
    result_.dispatching = dispatching_of(set_, result_.resources.size(), result_.operations.size());
    const Bounds bounds(*machine_, result_.dispatching);
    const auto capacities = machine_->capacities(Basis::Guaranteed);
    const std::vector<double> rates = rates_beside_corunners(capacities, company_);
    CorunnerTimes times(capacities, company_, volumes());
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      OperationPart& part = result_.operations[i].parts[0];
      if (part.kind == OperationPart::Kind::Host) part.regions = {bounds.host(part.least)};
      for (const Region& region : regions_[i]) {
        const bool flows = region.bytes > 0;
        const double bytes = region.bytes + region.filling;
        const double in_company = flows ? times.longest(region.flow, bytes, bytes / rates[region.flow]) : 0;
        const double alone = flows ? region.bytes / company_[region.flow].alone : 0;
        part.regions.push_back(bounds.batch(region.fixed + in_company));
        part.least = add_saturating(part.least, round_down_ns(alone));
      }
    }
    if (set_.led_by_gpu && machine_->spec().conductor_sms == 0) add_waits_for_blocks(bounds, times, rates);
  }

  /// Where a GPU leads, a gate and the mark of an end are kernels of one block, without multiprocessors of their own
  /// where the machine sets none apart (`conductor_sms`). Beside the lane of a copy, a kernel of
  /// another resource may hold all room for blocks of the GPU, and blocks go in no known order: the gate may wait until
  /// the last block of that kernel runs, and so may the mark. Neither waits for a second one, since between two kernels
  /// of one resource the conductor sees the end of the first, and all room is free meanwhile. So a copy takes longer by
  /// two of the longest kernel on either of its GPUs, unless both have one resource.
  void add_waits_for_blocks(const Bounds& bounds, CorunnerTimes& times, std::span<const double> rates) {
    struct Longest {
      std::size_t resource = 0;
      Duration time{};
    };
    std::map<VertexId, Longest> on;
    for (std::size_t i = 0; i < regions_.size(); ++i)
      for (const Region& region : regions_[i]) {
        if (region.sms == VertexId{kNone}) continue;
        const double bytes = region.bytes + region.filling;
        const double moving = bytes > 0 ? times.longest(region.flow, bytes, bytes / rates[region.flow]) : 0;
        Longest& longest = on[region.sms];
        longest = {result_.operations[i].resource, std::max(longest.time, bounds.alone(region.fixed + moving))};
      }
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      Operation& operation = result_.operations[i];
      for (std::size_t r = 0; r < regions_[i].size(); ++r) {
        Duration longest{};
        for (const VertexId gpu : regions_[i][r].at)
          if (const auto found = on.find(gpu); found != on.end() && found->second.resource != operation.resource)
            longest = std::max(longest, found->second.time);
        Duration& bound = operation.parts[0].regions[r];
        bound = add_saturating(add_saturating(bound, longest), longest);
      }
    }
  }

  /// What the jobs of each task move by each flow.
  [[nodiscard]] std::vector<FlowVolume> volumes() const {
    std::map<std::pair<std::size_t, TaskId>, double> bytes;
    for (std::size_t i = 0; i < regions_.size(); ++i)
      for (const Region& region : regions_[i])
        if (region.bytes > 0) bytes[{region.flow, result_.operations[i].task}] += region.bytes + region.filling;
    std::vector<FlowVolume> volumes;
    for (const auto& [of, sum] : bytes) {
      const Task& task = set_.tasks[of.second.index()];
      volumes.push_back({of.first, sum, as_ns(task.period), as_ns(add_saturating(task.deadline, task.jitter))});
    }
    return volumes;
  }

  const TaskSet& set_;
  const Topology* machine_;
  const Joining& joining_;
  Cores cores_;
  OperationSet result_;
  JoinedParts resources_;
  std::vector<std::vector<Region>> regions_;  // [operations]
  std::vector<CorunnerFlow> company_;
  std::map<std::vector<double>, std::size_t> flow_of_;  // places among the co-runners, by all that a flow is
};

}  // namespace

CommandStream leg_of(const Topology& machine, const CommandStream& stream, Leg leg) {
  CommandStream alone{stream.name, stream.transfer, {}, stream.place};
  if (leg == Leg::Whole) return alone;
  const RouteView route = find_route(machine, *stream.transfer);
  const std::span<const LinkId> links = leg == Leg::Into ? route.first : route.second;
  (leg == Leg::Into ? alone.transfer->to : alone.transfer->from) = route.via;
  alone.transfer->route.assign(links.begin(), links.end());
  alone.transfer->via.reset();
  return alone;
}

std::optional<VertexId> memory_on_way(const Topology& machine, const Transfer& transfer) {
  const RouteView route = find_route(machine, transfer);
  return route.method.chunked ? std::optional(route.via) : std::nullopt;
}

// Before its begin each of the n - 1 others has a begin and an end at most; before its end is seen, an end, and one of
// them a begin: n (b + e) + b + (n - 1) e <= (2 n - 1) (b + e), where b + e is the dispatcher's time.
//
// A conductor on a GPU does the same (`runtime/core/overlap_conductor`), one thing after each look at all regions under
// way, with what `calibrate` measured as `conductor` in place of b + e: a job of one batch from its release to its
// record, with the way of gate and mark. There is no figure for single things, so each counts as one more of it:
// - the release of a job, and the words of the host that are read for it. Before a region begins, each task has one at
//   most: its period is not shorter than its longest region, which has all of this in it.
// - a look at one word of the host, which may be under way as the region could begin, and as it ends.
// The record of the job whose end has freed the resource is in the region's own: n (b + e) + b + (n - 1) e and a
// record, with two looks and T releases with their words, are 2 n + 2 T + 1 at most. What was measured has 24 tasks
// whose instants it compares twice. A visit here compares those of all tasks twice and of all operations, and reads
// four words of each resource at most: one more for each 48 of these.
// Where it is known what a visit takes (`conductor_visit`, the share of each in bursts, with more than 48 of these),
// each counts so much, and `conductor` once: the way from the region's gate to its mark and the looks at it are in
// that.
Duration dispatching_of(const TaskSet& set, std::size_t resources, std::size_t operations) {
  constexpr std::size_t kMeasured = 48;
  std::size_t visits = 2 * resources - std::min<std::size_t>(resources, 1);
  if (set.led_by_gpu) {
    const std::size_t looks = 2 * set.tasks.size() + operations + 4 * resources;
    visits = (2 * resources + 2 * set.tasks.size() + 1) * ((looks + kMeasured - 1) / kMeasured);
  }
  const SetupTimes& own = set.machine->setup();
  const SetupTimes costs =
      set.led_by_gpu ? led_by_gpu(set.machine->spec().setup, lanes_beside(set, true)).value_or(own) : own;
  const Duration whole = costs.dispatch.guaranteed;
  const bool is_known = set.led_by_gpu && costs.conductor_visit;
  Duration sum = is_known ? whole : Duration{};
  for (std::size_t i = 0; i < visits; ++i)
    sum = add_saturating(sum, is_known ? costs.conductor_visit->guaranteed : whole);
  return sum;
}

std::vector<Duration> Operation::regions() const {
  std::vector<Duration> regions;
  for (const OperationPart& part : parts) regions.insert(regions.end(), part.regions.begin(), part.regions.end());
  return regions;
}

Duration Operation::worst() const {
  Duration sum{};
  for (const OperationPart& part : parts)
    sum = std::accumulate(part.regions.begin(), part.regions.end(), sum, add_saturating);
  return sum;
}

Duration Operation::least() const {
  Duration sum{};
  for (const OperationPart& part : parts) sum = add_saturating(sum, part.least);
  return sum;
}

Duration time_of(std::span<const std::size_t> stream, std::span<const Duration> times) {
  Duration sum{};
  for (const std::size_t operation : stream) sum = add_saturating(sum, times[operation]);
  return sum;
}

Duration time_of(const StepOperations& step, std::span<const Duration> times) {
  Duration longest{};
  for (const auto& stream : step) longest = std::max(longest, time_of(stream, times));
  return longest;
}

Duration longest_way(const OperationSet& operations, std::span<const Duration> times, TaskId task) {
  Duration way{};
  for (const StepOperations& step : operations.jobs[task.index()]) way = add_saturating(way, time_of(step, times));
  return way;
}

Duration longest_alone(const OperationSet& operations, TaskId task) {
  Duration sum{};
  for (const StepOperations& step : operations.jobs[task.index()]) {
    Duration longest{};
    std::map<std::size_t, Duration> on_resource;
    for (const auto& stream : step) {
      Duration in_order{};
      for (const std::size_t place : stream) {
        const Operation& operation = operations.operations[place];
        in_order = add_saturating(in_order, operation.worst());
        Duration& together = on_resource[operation.resource];
        together = add_saturating(together, operation.worst());
        longest = std::max({longest, in_order, together});
      }
    }
    sum = add_saturating(sum, longest);
  }
  return sum;
}

std::vector<Duration> worst_times(const OperationSet& operations) {
  std::vector<Duration> times;
  for (const Operation& operation : operations.operations) times.push_back(operation.worst());
  return times;
}

std::vector<Duration> least_times(const OperationSet& operations) {
  std::vector<Duration> times;
  for (const Operation& operation : operations.operations) times.push_back(operation.least());
  return times;
}

Expected<OperationSet> operations_of(const TaskSet& set, const Joining& joining) {
  for (const Task& task : set.tasks) {
    if (says_what_jobs_hold(task)) continue;
    return tl::unexpected(Error{
        ErrorCode::InvalidInput,
        fmt::format("task '{}' says how long its jobs take, not what they hold; give it a 'job' without a 'wcet', "
                    "or say 'overlap: off'",
                    task.name),
        task.place});
  }
  return Splitting(set, joining).split();
}

std::vector<VertexId> gpus_of(const TaskSet& set) {
  if (!set.machine) return {};
  Partition all;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) all.tasks.emplace_back(i);
  return gpus_of(set, all);
}

}  // namespace tutti::internal
