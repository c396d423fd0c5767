#include "runtime/sim/fault_script.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>

#include <fmt/format.h>

#include "model/base/random.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/transfer/transfer_method.hpp"
#include "runtime/core/watchdog.hpp"

namespace tutti::internal {
namespace {

/// Kinds that change the times of a batch on its machine.
constexpr bool is_of_machine(FaultKind kind) { return kind == FaultKind::SlowLink || kind == FaultKind::SlowCommands; }
constexpr bool is_of_streams(FaultKind kind) {
  return kind == FaultKind::SlowTransfers || kind == FaultKind::SlowKernels;
}

constexpr bool is_of_triggers(FaultKind kind) {
  return kind == FaultKind::EarlyTrigger || kind == FaultKind::LateTrigger || kind == FaultKind::DoubleTrigger ||
         kind == FaultKind::MissingTrigger;
}

/// The cost `dispatch` is around batches and not in them.
bool is_dispatch_alone(const RunFault& fault) {
  return fault.kind == FaultKind::SlowCommands && fault.of == CommandCost::Dispatch;
}

/// Whether a stream uses a GPU.
bool uses(const CommandStream& stream, VertexId gpu) {
  return (stream.transfer && (stream.transfer->from == gpu || stream.transfer->to == gpu)) ||
         (stream.kernel && stream.kernel->on == gpu);
}

/// The first stream of a batch with a kernel; on a GPU, where there is one.
std::optional<std::uint32_t> first_kernel(const Batch& batch) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t s = 0; s < batch.streams().size(); ++s) {
    if (!batch.streams()[s].kernel) continue;
    if (batch.work()[s].gpu != kNone) return s;
    if (!found) found = s;
  }
  return found;
}

void raise(Cost& cost, const RunFault& fault) {
  cost.nominal = fault.lengthened(cost.nominal);
  cost.guaranteed = fault.lengthened(cost.guaranteed);
}

void raise_costs(SetupTimes& setup, const RunFault& fault) {
  const auto raised = [&](CommandCost cost) { return !fault.of || fault.of == cost; };
  if (raised(CommandCost::Batch)) raise(setup.batch, fault);
  if (raised(CommandCost::Transfer))
    for (const CopyKind kind : kCopyKinds) {
      if (setup.transfer.counted(kind) == kind) raise(setup.transfer.of(kind).each, fault);
    }
  if (raised(CommandCost::Kernel)) raise(setup.kernel, fault);
  if (raised(CommandCost::Gate)) raise(setup.gate, fault);
  if (raised(CommandCost::Host)) raise(setup.host, fault);
  if (raised(CommandCost::Handover)) raise(setup.handover, fault);
  if (raised(CommandCost::Turn)) raise(setup.turn, fault);
}

/// The size with which a transfer, alone, takes as much longer as the fault says.
Bytes lengthened(const Batch& batch, std::size_t stream, Basis basis, Bytes size, const RunFault& fault) {
  const CommandStream& of = batch.streams()[stream];
  const StreamWork& work = batch.work()[stream];
  const double rate = batch.route_class(work.route_class).alone.at(basis).value;
  const double time = static_cast<double>(size.count) / rate * fault.times + as_ns(fault.by);
  double bytes = time * rate;
  // A small copy has a rate of its own, and a longer one would be no small copy.
  const CopyCost& cost = batch.machine().setup().transfer.of(work.route);
  const auto below = static_cast<double>(cost.below.count);
  if (cost.small && of.transfer->size < cost.below && bytes >= below) {
    const std::uint32_t usual = batch.machine().route_class(of.transfer->from, of.transfer->to);
    if (usual != kNone) bytes *= batch.machine().route_classes()[usual].alone.at(basis).value / rate;
  }
  return Bytes{static_cast<std::int64_t>(std::min(std::max(bytes, 1.0), 0x1p52))};
}

/// The bytes of a transfer in segments that moved more or fewer, in the same proportions.
void place_bytes(TransferInterval& transfer, Bytes size) {
  double all = 0, so_far = 0;
  for (const Segment& segment : transfer.segments) all += static_cast<double>(segment.bytes.count);
  if (all == static_cast<double>(size.count)) return;
  std::int64_t placed = 0;
  for (Segment& segment : transfer.segments) {
    so_far += static_cast<double>(segment.bytes.count);
    const bool is_last = &segment == &transfer.segments.back();
    const auto total =
        is_last || all == 0 ? size.count : static_cast<std::int64_t>(static_cast<double>(size.count) * (so_far / all));
    segment.bytes = Bytes{total - placed};
    placed = total;
  }
}

Error lost(const BatchRun& run, std::string_view gpu) {
  return {ErrorCode::Machine, fmt::format("{}: {} was lost; nothing more can run on it", run.name, gpu), {}};
}

}  // namespace

FaultScript::FaultScript(const RunFaults& faults, const TaskSet& set, const Topology& machine, const Watchdog& watchdog,
                         std::uint64_t seed)
    : faults_(faults), set_(set), machine_(machine), watchdog_(watchdog), seed_(seed), counts_(faults.faults.size()) {}

std::vector<FaultClock::Stall> FaultScript::stalls_of(const RunFaults& faults) {
  std::vector<FaultClock::Stall> stalls;
  for (const RunFault& fault : faults.faults)
    if (fault.kind == FaultKind::HostStall) stalls.push_back({fault.at, fault.lasts});
  return stalls;
}

// ---- triggers

bool FaultScript::has_triggers(const RunFaults& faults) {
  return std::ranges::any_of(faults.faults, is_of_triggers, &RunFault::kind);
}

TriggerFault FaultScript::trigger(TaskId task, std::uint64_t number, Duration at) {
  TriggerFault found;
  for (std::size_t i = 0; i < faults_.faults.size(); ++i) {
    const RunFault& fault = faults_.faults[i];
    if (!is_of_triggers(fault.kind) || !meets(i, task, number, at)) continue;
    ++counts_[i];
    if (fault.kind == FaultKind::EarlyTrigger) found.by -= fault.by;
    if (fault.kind == FaultKind::LateTrigger) found.by += fault.by;
    if (fault.kind == FaultKind::DoubleTrigger) found.doubled = true;
    if (fault.kind == FaultKind::MissingTrigger) found.missing = true;
  }
  return found;
}

// ---- which faults meet what

bool FaultScript::meets(std::size_t fault, std::optional<TaskId> task, std::uint64_t job, Duration at) const {
  const RunFault& of = faults_.faults[fault];
  const Duration since = at - begin_;
  if (since < of.from || since >= of.until || since < of.at) return false;
  if ((row_of(of.kind).allows & kOfJobs) != kOfJobs) return true;
  if (!task || (of.task && of.task != task) || job < of.first_job || job > of.last_job) return false;
  if (of.chance >= 1) return true;
  Random draw(Random(seed_ ^ Random((fault << 32) | task->value).next()).next() + job);
  return static_cast<double>(draw.next() >> 11) * 0x1p-53 < of.chance;
}

std::optional<TaskId> FaultScript::task_of(std::string_view name) const {
  const auto found = std::ranges::find(set_.tasks, name, &Task::name);
  if (found == set_.tasks.end()) return std::nullopt;
  return TaskId{static_cast<std::size_t>(found - set_.tasks.begin())};
}

bool FaultScript::concerns(const RunFault& fault, const ExecutionPlan& plan) const {
  const auto streams = plan.batch.streams();
  switch (fault.kind) {
    case FaultKind::SlowLink:
      return std::ranges::any_of(streams, [&](const CommandStream& stream) {
        if (!stream.transfer) return false;
        const RouteView route = find_route(machine_, *stream.transfer);
        return std::ranges::any_of(fault.links, [&](LinkId link) {
          return std::ranges::count(route.first, link) + std::ranges::count(route.second, link) > 0;
        });
      });
    case FaultKind::SlowTransfers:
      return std::ranges::any_of(streams, [](const CommandStream& stream) { return stream.transfer.has_value(); });
    case FaultKind::SlowKernels:
    case FaultKind::HungKernel:
    case FaultKind::FailingKernel: return first_kernel(plan.batch).has_value();
    case FaultKind::LostGpu:
      return std::ranges::any_of(streams, [&](const CommandStream& stream) { return uses(stream, *fault.gpu); });
    case FaultKind::SlowCommands:
    case FaultKind::LateCompletion:
    case FaultKind::LostCompletion:
    case FaultKind::StickyError: return true;
    default: return false;  // not of batches
  }
}

Duration FaultScript::host_time(TaskId task, std::uint64_t job, Duration declared, Duration now) {
  Duration time = declared;
  for (std::size_t i = 0; i < faults_.faults.size(); ++i) {
    if (faults_.faults[i].kind != FaultKind::SlowHostSteps || !meets(i, task, job, now)) continue;
    std::atomic_ref(counts_[i]).fetch_add(1, std::memory_order_relaxed);  // threads for host steps may be several
    time = faults_.faults[i].lengthened(time);
  }
  return time;
}

// ---- batches

const BatchFault* FaultScript::of(const BatchRun& run) {
  fault_ = {};
  slow_ = nullptr;
  hung_.reset();
  Mask mask = 0, links = 0;
  bool any = false;
  const auto task = task_of(run.job.task);
  for (std::size_t i = 0; i < faults_.faults.size(); ++i) {
    const RunFault& fault = faults_.faults[i];
    if (!meets(i, task, run.job.index, run.at) || !concerns(fault, run.plan)) continue;
    ++counts_[i];
    any = true;
    if (run.overlaps && fault.kind == FaultKind::SlowLink) {
      links |= Mask{1} << i;
      continue;
    }
    if (is_of_streams(fault.kind) || (is_of_machine(fault.kind) && !is_dispatch_alone(fault))) mask |= Mask{1} << i;
    if (fault.kind == FaultKind::SlowCommands && (!fault.of || is_dispatch_alone(fault))) {
      const Duration usual = machine_.setup().dispatch.nominal;
      fault_.late_submit += std::max(fault.lengthened(usual) - usual, Duration{0});
    }
    if (fault.kind == FaultKind::LateCompletion) fault_.late_notice = add_saturating(fault_.late_notice, fault.by);
    note_failures(run, i);
  }
  if (!any) return nullptr;
  if (links != 0) fault_.shares = &machine_with(links);
  if (mask != 0) slow_ = &times_of(run, mask);
  if (slow_ != nullptr || hung_)
    fault_.times = [this](Timeline& times) {
      if (slow_ != nullptr) times = *slow_;
      if (hung_) times.streams[*hung_].kernel->end = std::max(times.streams[*hung_].kernel->end, fault_.no_sooner);
    };
  return &fault_;
}

/// Notes that the run fails; the first failure counts.
void FaultScript::note_failures(const BatchRun& run, std::size_t i) {
  const RunFault& fault = faults_.faults[i];
  if (fault_.error) return;
  const auto given_up = [&](std::string_view what) {
    constexpr Duration kLongest = std::chrono::hours{24 * 365};  // of a simulation
    const Duration planned = run.plan.timeline.latency;
    fault_.no_sooner = std::min(watchdog_.limit(planned), kLongest);
    fault_.error = not_returned(watchdog_, run.name, what, planned);
  };
  switch (fault.kind) {
    case FaultKind::LostCompletion:
      given_up("its completion");
      fault_.cause = BoundCause::Dispatch;
      break;
    case FaultKind::HungKernel: {
      hung_ = first_kernel(run.plan.batch);
      const CommandStream& stream = run.plan.batch.streams()[*hung_];
      given_up(fmt::format("kernel '{}' of stream '{}'", stream.kernel->name, stream.name));
      fault_.cause = BoundCause::Kernel;
      break;
    }
    case FaultKind::FailingKernel: {
      const CommandStream& failing = run.plan.batch.streams()[*first_kernel(run.plan.batch)];
      fault_.error = kernel_failed(failing, failing.kernel->name, "a fault was asked for");
      break;
    }
    case FaultKind::LostGpu:
      fault_.error = lost(run, machine_.vertex(*fault.gpu).name);
      fault_.lost_gpu = fault.gpu;
      break;
    case FaultKind::StickyError:
      fault_.error = Error{ErrorCode::Machine,
                           fmt::format("{}: an error before has broken the GPU; nothing more can run on it", run.name),
                           {}};
      break;
    default: break;
  }
}

// ---- the truth

const Timeline& FaultScript::times_of(const BatchRun& run, Mask mask) {
  constexpr std::size_t kMostKnown = 4096;
  const std::pair key{run.batch, mask};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  if (known_.size() == kMostKnown) known_.clear();
  return known_.emplace(key, replayed(run.plan, mask)).first->second;
}

Timeline FaultScript::replayed(const ExecutionPlan& plan, Mask mask) {
  const Topology& machine = machine_with(mask);
  Timeline times = replay(plan, slowed(plan, machine, mask), plan.basis);
  const auto streams = plan.batch.streams();
  for (std::size_t s = 0; s < streams.size(); ++s)
    if (streams[s].transfer) place_bytes(*times.streams[s].transfer, streams[s].transfer->size);
  return times;
}

const Topology& FaultScript::machine_with(Mask mask) {
  for (std::size_t i = 0; i < faults_.faults.size(); ++i)
    if (!is_of_machine(faults_.faults[i].kind)) mask &= ~(Mask{1} << i);
  const auto found = machines_.find(mask);
  return found != machines_.end() ? found->second : machines_.emplace(mask, slowed(mask)).first->second;
}

/// The machine with other bandwidths and costs. Its table, if any, would hide slow links, so it is left out: plans that
/// are admitted do not use it. A slow link slows what background flows leave of it.
Topology FaultScript::slowed(Mask mask) const {
  std::vector<double> factors(machine_.links().size(), 1);
  MachineSpec spec = left_graph_of(machine_);
  for (std::size_t i = 0; i < faults_.faults.size(); ++i) {
    const RunFault& fault = faults_.faults[i];
    if ((mask >> i & 1) == 0) continue;
    for (const LinkId link : fault.links) factors[link.index()] *= fault.rate;
    if (fault.kind == FaultKind::SlowCommands) raise_costs(spec.setup, fault);
  }
  for (std::size_t l = 0; l < factors.size(); ++l) {  // the spec of a machine has a link for each direction
    LinkBandwidth& bandwidth = spec.links[l].bandwidth;
    bandwidth.nominal.value *= factors[l];
    bandwidth.guaranteed.value *= factors[l];
  }
  return compile(std::move(spec)).value();
}

/// The batch with transfers and kernels of other lengths.
Batch FaultScript::slowed(const ExecutionPlan& plan, const Topology& machine, Mask mask) const {
  std::vector<CommandStream> streams(plan.batch.streams().begin(), plan.batch.streams().end());
  for (std::size_t s = 0; s < streams.size(); ++s) {
    auto& [name, transfer, kernel, place, copied] = streams[s];
    for (std::size_t i = 0; i < faults_.faults.size(); ++i) {
      const RunFault& fault = faults_.faults[i];
      if ((mask >> i & 1) == 0) continue;
      if (fault.kind == FaultKind::SlowTransfers && transfer && transfer->size.count > 0)
        transfer = resized(*transfer, lengthened(plan.batch, s, plan.basis, transfer->size, fault));
      if (fault.kind == FaultKind::SlowKernels && kernel) {
        constexpr Duration kLongest{1LL << 52};
        kernel->time = std::min(fault.lengthened(kernel->time), kLongest);
        kernel->worst = std::min(fault.lengthened(kernel->worst), kLongest);
      }
    }
  }
  return plan.batch.with_sizes_of(machine, std::move(streams)).value();
}

}  // namespace tutti::internal
