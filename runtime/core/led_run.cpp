#include "runtime/core/led_run.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "runtime/core/command_list.hpp"

namespace tutti::internal {
namespace {

/// Why a conductor cannot lead a command; empty: it can.
std::string_view why_not(const Command& command, const CommandStream& stream) {
  switch (command.kind) {
    case Command::Kind::Pageable:
    case Command::Kind::Mapped: return "a thread of the host makes its copy";
    case Command::Kind::HostWork: return "a thread of the host does its work";
    case Command::Kind::Inline: return "the bytes of its copy are read when the host enqueues it";
    case Command::Kind::Staged: return "its copy is staged in the memory of the host";
    case Command::Kind::Kernel:
      return stream.kernel->capture == Capture::Never ? "the host calls its kernel in each run (capture: never)" : "";
    case Command::Kind::Copy:
    case Command::Kind::Rows:
    case Command::Kind::SmCopy:
    case Command::Kind::Nothing: break;
  }
  return "";
}

Expected<void> check_led(const BoundPlan& bound) {
  const Topology& machine = bound.plan.machine();
  if (machine.gpus().empty())
    return invalid_input(fmt::format("machine '{}' has no gpu that could lead {}", machine.name(), bound.name));
  for (const Command& command : make_commands(bound.plan, bound.marks).commands) {
    const CommandStream& stream = bound.plan.batch.streams()[command.stream];
    if (const std::string_view reason = why_not(command, stream); !reason.empty())
      return invalid_input(fmt::format("only the host can lead stream '{}' of {}: {}", stream.name, bound.name, reason),
                           stream.place);
  }
  return {};
}

/// What a run of a batch takes in the queue of one of its lanes.
struct LaneEntries {
  std::size_t count = 1;  ///< the mark of its end, with what is left
  bool between = true;    ///< something lies behind the last copies: first of all a gate
};

/// @return [lanes]
std::vector<LaneEntries> entries_of(const CommandList& list) {
  std::vector<bool> awaited(list.commands.size());  // by other lanes
  for (const Command& command : list.commands)
    for (const std::uint32_t before : command.waits) awaited[before] = true;
  std::vector<LaneEntries> lanes(list.lanes.size());
  for (const Run& run : list.runs) {
    const Command& command = list.commands[run.begin];
    LaneEntries& lane = lanes[command.lane];
    lane.between = lane.between || command.is_released();
    if (command.kind == Command::Kind::Copy) {
      lane.count += (lane.between ? 1 : 0) + run.end - run.begin;
      lane.between = false;
    } else if (command.kind != Command::Kind::Nothing) {
      lane.count += command.kind == Command::Kind::Rows ? 1 : 0;
      lane.between = true;
    }
    lane.between = lane.between || awaited[run.end - 1];
  }
  return lanes;
}

/// Of the queue with the most, in a run of batches whose lanes share queues.
std::size_t most_entries(std::span<const BoundPlan> batches) {
  std::map<std::pair<VertexId, std::size_t>, std::size_t> queues;
  for (const BoundPlan& bound : batches) {
    const CommandList list = make_commands(bound.plan, bound.marks);
    const std::vector<LaneEntries> entries = entries_of(list);
    std::map<VertexId, std::size_t> next;
    for (std::size_t lane = 0; lane < entries.size(); ++lane)
      queues[{list.lanes[lane], next[list.lanes[lane]]++}] += entries[lane].count;
  }
  std::size_t most = 1;
  for (const auto& [queue, count] : queues) most = std::max(most, count);
  return most;
}

/// Jobs of a task that have arrived and not started, and may still start: at most `b`. Where jobs overlap, those that
/// have arrived and not ended: a job that is on its way has a buffer set as one that waits does.
///
/// Let t be an instant, and e > t that of the next decision. Released jobs have buffer sets: at e, at most `sets` of
/// them have arrived by t. A job that arrived at a <= t and is not released at e waits for the set of a job whose
/// deadline has not passed at e; that one arrived `sets` periods before a, or more. So
///   t + 1 - D <= e - D <= a - sets T,   hence   a in [t + 1 - D + sets T, t]
/// and there are at most ceil(D / T) - sets such jobs where D > sets T, else none. Together
///   b = max(sets, ceil(D / T)).
std::uint64_t most_waiting(const LedTask& task) {
  return std::max<std::uint64_t>(task.sets, static_cast<std::uint64_t>((task.deadline - 1) / task.period + 1));
}

/// The jobs of a task that start in (t, t + d] are some of those `b` that wait at t, and of the ceil(d / T) that arrive
/// in (t, t + d]. With C runs armed at t none of them is dropped if b + ceil(d / T) <= C, that is d <= (C - b) T. A
/// test has b jobs waiting, the next one arriving at t + 1, and a job dropped where d is one more.
Duration lasts(const LedTask& task, std::uint64_t ahead) {
  const std::uint64_t waiting = most_waiting(task);
  return Duration{ahead > waiting ? static_cast<Ns>(ahead - waiting) * task.period : 0};
}

}  // namespace

Expected<void> check_led(const LedSet& set) {
  for (const auto& sets : set.plans)
    for (const auto& batches : sets)
      for (const BoundPlan& bound : batches)
        if (auto ok = check_led(bound); !ok) return ok;
  return {};
}

std::vector<LedQueueGroup> queue_groups(const LedSet& set, std::size_t task) {
  if (set.ways.operations.empty()) return {{0, set.tasks[task].batches}};
  std::vector<LedQueueGroup> groups;
  for (const LedOperation& operation : set.ways.operations)
    if (operation.task == task)
      groups.push_back({operation.first_batch - set.tasks[task].first_batch, operation.regions});
  std::ranges::sort(groups, {}, &LedQueueGroup::first);
  return groups;
}

std::vector<std::uint64_t> most_armed(const LedSet& set) {
  std::vector<std::uint64_t> most;
  for (std::size_t task = 0; task < set.tasks.size(); ++task) {
    std::size_t entries = 1;
    for (const LedQueueGroup& group : queue_groups(set, task))
      entries = std::max(entries, most_entries(std::span(set.plans[task].front()).subspan(group.first, group.count)));
    most.push_back(kQueueCapacity / entries);
  }
  return most;
}

Expected<std::vector<std::uint64_t>> runs_ahead(const LedSet& set, std::span<const std::uint64_t> most) {
  constexpr Duration kNotAsked = std::chrono::milliseconds{100};
  const bool asked = set.host_away > Duration{0};
  std::vector<std::uint64_t> ahead;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const LedTask& task = set.tasks[i];
    const auto periods =
        static_cast<std::uint64_t>(((asked ? set.host_away : kNotAsked).count() - 1) / task.period + 1);
    ahead.push_back(std::min(task.count(), most_waiting(task) + periods));
    if (ahead.back() <= most[i]) continue;
    if (most[i] == 0)
      return invalid_input(
          fmt::format("one job takes more than the {} entries of a queue of {}; let its copies be fewer, or its chunks "
                      "larger, or write 'conductor: host'",
                      kQueueCapacity, set.plans[i].front().front().name));
    if (asked)
      return invalid_input(fmt::format(
          "the queues of {} hold {}, less than the {} for which the host may be away; let it be away for less",
          set.plans[i].front().front().name, to_string(lasts(task, most[i])), to_string(set.host_away)));
    ahead.back() = most[i];
  }
  return ahead;
}

Duration host_away(const LedSet& set, std::span<const std::uint64_t> ahead) {
  Duration least = kNever;
  for (std::size_t i = 0; i < set.tasks.size(); ++i)
    if (ahead[i] < set.tasks[i].count()) least = std::min(least, lasts(set.tasks[i], ahead[i]));
  return least;
}

}  // namespace tutti::internal
