#include "sched/tasks/led_set.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "model/base/joined.hpp"
#include "model/transfer/transfer_method.hpp"
#include "sched/tasks/partition.hpp"
#include "sched/tasks/shared_buffers.hpp"

namespace tutti::internal {
namespace {

/// What of a batch the host does while it runs.
std::optional<std::string> host_work_of(const Batch& batch) {
  const Topology& machine = batch.machine();
  for (const CommandStream& stream : batch.streams()) {
    if (stream.kernel && machine.vertex(stream.kernel->on).kind == VertexKind::Cpu)
      return fmt::format("the kernel of '{}' runs on '{}'", stream.name, machine.vertex(stream.kernel->on).name);
    if (!stream.transfer) continue;
    const TransferMethod method = find_route(machine, *stream.transfer).method;
    if (method.pageable || method.mapped)
      return fmt::format("threads of the host move the copy '{}' ({})", stream.name, method.name);
    if (method.chunked)
      return fmt::format("the copy '{}' goes through the memory of the host ({})", stream.name, method.name);
    if (method.captured && !stream.transfer->chosen)
      return fmt::format("the copy '{}' reads its bytes when it is enqueued ({})", stream.name, method.name);
  }
  return std::nullopt;
}

/// Why a GPU cannot lead the jobs of one task.
std::optional<std::string> obstacle_in(const TaskSet& set, TaskId id) {
  const Task& task = set.tasks[id.index()];
  if (batches_of(task).empty()) return "has no batch, so a GPU sees nothing of its jobs; give it a 'job' with one";
  if (task.release.is_external())
    return "is released by triggers, which the host sees; write 'release: periodic', or 'conductor: host'";
  if (task.jitter > Duration{0})
    return "has release jitter, and a GPU releases jobs as they arrive; leave 'jitter' out, or write 'conductor: host'";
  if (task.overrun.policy == OverrunPolicy::Abort)
    return "aborts jobs, and what is armed on a GPU runs to its end; write 'overrun: continue' or 'skip_next', or "
           "'conductor: host'";
  for (std::size_t i = 0; i < task.steps.size(); ++i) {
    const auto* batch = std::get_if<Batch>(&task.steps[i]);
    if (batch == nullptr)
      return fmt::format(
          "has work of the host (step {} of its job); do it when the job has ended, or write "
          "'conductor: host'",
          i);
    if (const auto work = host_work_of(*batch))
      return fmt::format("needs the host in step {} of its job: {}; write 'conductor: host'", i, *work);
  }
  if (const auto owners = owners_read_by(set, id); !owners.empty())
    return fmt::format(
        "reads buffers of '{}', and the host chooses which of its jobs left them; write 'conductor: "
        "host'",
        set.tasks[owners.front().index()].name);
  return std::nullopt;
}

/// The GPUs of a group of tasks of which none can open the gates of all others; empty: one can.
std::string without_leader(const TaskSet& set, const Partition& partition) {
  const std::vector<VertexId> gpus = gpus_of(set, partition);
  const auto reaches = [&](VertexId one, VertexId other) {
    return one == other || (set.machine->has_peer_access(one, other) && set.machine->has_peer_access(other, one));
  };
  const auto leads = [&](VertexId one) {
    return std::ranges::all_of(gpus, [&](VertexId other) { return reaches(one, other); });
  };
  if (gpus.empty() || std::ranges::any_of(gpus, leads)) return "";
  std::vector<std::string> names;
  for (const VertexId gpu : gpus) names.push_back(set.machine->vertex(gpu).name);
  return joined(names);
}

/// [GPUs] lanes of their operations, at most: a copy between two GPUs counts at both, since either may issue it, and
/// what a job does at a stretch on one resource is one operation.
std::map<VertexId, std::size_t> operations_on(const TaskSet& set) {
  std::map<VertexId, std::size_t> count;
  const auto add = [&](VertexId place) {
    if (set.machine->vertex(place).kind == VertexKind::Gpu) ++count[place];
  };
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task))
      for (const CommandStream& stream : batch->streams()) {
        if (stream.transfer) add(stream.transfer->from), add(stream.transfer->to);
        if (stream.kernel) add(stream.kernel->on);
      }
  return count;
}

std::optional<std::string> obstacle_to_overlap(const TaskSet& set) {
  for (const auto& [gpu, count] : operations_on(set))
    if (count > kMostLedLanes)
      return fmt::format(
          "each copy and kernel of jobs that overlap needs a stream of its own, of which a GPU has {} for a conductor, "
          "and '{}' has {} of them; write 'overlap: off', or 'conductor: host'",
          kMostLedLanes, set.machine->vertex(gpu).name, count);
  Partition all;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) all.tasks.emplace_back(i);
  if (const std::string gpus = without_leader(set, all); !gpus.empty())
    return fmt::format(
        "one GPU leads all jobs that overlap, and none reaches the memory of all others ({}); write 'overlap: off', or "
        "'conductor: host'",
        gpus);
  return std::nullopt;
}

std::optional<std::string> obstacle_in(const TaskSet& set) {
  if (set.deadline_at == DeadlineAt::Host)
    return "deadlines count until the host has seen the end of a job; with 'deadline_at: device' they count until its "
           "last result is in its destination";
  if (!set.machine) return "the set has no machine, so no GPU leads its jobs; add 'machine' or give --machine";
  if (!led_by_gpu(set.machine->spec().setup))
    return fmt::format(
        "machine '{}' has no costs 'setup.conductor' and 'setup.conductor_job' of jobs that a GPU leads; "
        "run 'tutti calibrate', or write 'conductor: host'",
        set.machine->name());
  if (set.policy == Policy::CwEdf)
    return "under cw_edf the host waits for the instants of a time table; write 'policy: edf', or 'conductor: host'";
  if (set.preemption == Preemption::BetweenBatches && set.overlap != Overlap::On)
    return "what is armed on a GPU lets no job pass between two batches; leave 'preemption' out, or write 'conductor: "
           "host'";
  if (set.tasks.size() > kMostLedTasks)
    return fmt::format("a GPU leads {} tasks at most, and the set has {}; write 'conductor: host'", kMostLedTasks,
                       set.tasks.size());
  for (std::size_t i = 0; i < set.tasks.size(); ++i)
    if (const auto reason = obstacle_in(set, TaskId{i})) return fmt::format("task '{}' {}", set.tasks[i].name, *reason);
  for (const Partition& partition : partitions_of(set))
    if (const std::string gpus = without_leader(set, partition); !gpus.empty())
      return fmt::format(
          "no GPU reaches the memory of all others that share jobs with it ({}), as one must that opens their gates; "
          "leave those out that have no peer access, or write 'conductor: host'",
          gpus);
  if (set.overlap == Overlap::On) return obstacle_to_overlap(set);
  return std::nullopt;
}

Expected<void> none_or(const std::optional<std::string>& reason) {
  return reason ? Expected<void>(invalid_input(*reason)) : Expected<void>{};
}

}  // namespace

Expected<void> can_be_led(const TaskSet& set) { return none_or(obstacle_in(set)); }

std::size_t lanes_of(const Batch& batch, VertexId gpu) {
  const Topology& machine = batch.machine();
  std::vector<EngineId> engines;
  std::size_t by_themselves = 0;
  bool computes = false;
  for (std::size_t i = 0; i < batch.streams().size(); ++i) {
    const CommandStream& stream = batch.streams()[i];
    if (stream.kernel && stream.kernel->on == gpu) computes = true;
    if (!stream.transfer) continue;
    const bool starts_on_gpu = machine.vertex(stream.transfer->from).kind == VertexKind::Gpu;
    if ((starts_on_gpu ? stream.transfer->from : stream.transfer->to) != gpu) continue;
    const StreamWork& work = batch.work()[i];
    if (batch.merging() == Merging::Off)
      ++by_themselves;
    else if (work.by_kernel)
      computes = true;
    else if (std::ranges::find(engines, work.engines[0]) == engines.end())
      engines.push_back(work.engines[0]);
  }
  return engines.size() + by_themselves + (computes ? 1 : 0);
}

std::size_t lanes_beside(const TaskSet& set, bool overlaps) {
  std::map<VertexId, std::size_t> lanes;
  if (overlaps) {
    lanes = operations_on(set);
  } else {
    for (const VertexId gpu : set.machine->gpus())
      for (const Task& task : set.tasks) {
        std::size_t most = 0;
        for (const Batch* batch : batches_of(task)) most = std::max(most, lanes_of(*batch, gpu));
        lanes[gpu] += most;
      }
  }
  std::size_t most = set.tasks.size();
  for (const auto& [gpu, count] : lanes) most = std::max(most, count);
  return most - 1;
}

bool has_gpu_kernels(const TaskSet& set) {
  const auto is_one = [&](const CommandStream& stream) {
    return (stream.kernel && set.machine->vertex(stream.kernel->on).kind == VertexKind::Gpu) ||
           (stream.transfer && find_route(*set.machine, *stream.transfer).method.by_kernel);
  };
  return std::ranges::any_of(set.tasks, [&](const Task& task) {
    return std::ranges::any_of(batches_of(task),
                               [&](const Batch* batch) { return std::ranges::any_of(batch->streams(), is_one); });
  });
}

bool sets_gates_apart(const TaskSet& set) {
  return set.led_by_gpu && set.overlap != Overlap::Off && set.machine->spec().conductor_sms > 0 && has_gpu_kernels(set);
}

Expected<void> can_be_led_overlapping(const TaskSet& set) { return none_or(obstacle_to_overlap(set)); }

std::optional<Duration> host_sees_within(const TaskSet& set) {
  if (!set.led_by_gpu) return std::nullopt;
  const SetupTimes& by_host = set.machine->spec().setup;
  const Duration held_up = by_host.job.guaranteed, arming = by_host.dispatch.guaranteed;
  if (held_up == Duration{0} || arming == Duration{0}) return std::nullopt;
  return add_saturating(add_saturating(kLongestLook, held_up), add_saturating(arming, set.host_away));
}

std::optional<Duration> bound_at_host(const TaskSet& set, std::optional<Duration> at_device) {
  const auto within = host_sees_within(set);
  return within && at_device ? std::optional(add_saturating(*at_device, *within)) : std::nullopt;
}

}  // namespace tutti::internal
