#include "sched/overlap/overlap_refusal.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

/// What goes before an operation and after it, at least.
struct Surroundings {
  Duration before{}, after{};
  bool at_once = false;  ///< it can begin as its job arrives
};

/// Whether an operation can begin as its job arrives: it is the first of its stream, and no other first one is on its
/// resource.
bool begins_at_once(const OperationSet& operations, std::size_t operation) {
  const auto& [task, resource, parts] = operations.operations[operation];
  std::vector<std::size_t> first;
  for (const auto& stream : operations.jobs[task.index()].front())
    if (operations.operations[stream.front()].resource == resource) first.push_back(stream.front());
  return first == std::vector{operation};
}

/// [operations] of a task; others are left alone.
void add_surroundings(std::vector<Surroundings>& all, const OperationSet& operations, std::span<const Duration> least,
                      TaskId task) {
  Duration before{}, after = longest_way(operations, least, task);
  for (const StepOperations& step : operations.jobs[task.index()]) {
    const Duration longest = time_of(step, least);
    after -= longest;
    for (const auto& stream : step) {
      Duration passed{}, left = time_of(stream, least);
      for (const std::size_t operation : stream) {
        left -= least[operation];
        all[operation] = {before + passed, after + left, begins_at_once(operations, operation)};
        passed += least[operation];
      }
    }
    before += longest;
  }
}

std::vector<Surroundings> surroundings_of(const TaskSet& set, const OperationSet& operations) {
  const std::vector<Duration> least = least_times(operations);
  std::vector<Surroundings> all(operations.operations.size());
  for (std::size_t i = 0; i < set.tasks.size(); ++i) add_surroundings(all, operations, least, TaskId{i});
  return all;
}

/// The time that jobs of a task work on an engine or GPU at least.
struct UnitWork {
  Duration work{};
  Surroundings around{Duration::max(), Duration::max()};  ///< of all that it does there; `at_once`: its longest region
  Duration region{};                                      ///< a region there takes this time at least

  void add(const Operation& operation, const Surroundings& of_operation, std::size_t unit) {
    Duration passed{};
    for (const OperationPart& part : operation.parts) {
      if (std::ranges::find(part.units, unit) != part.units.end()) {
        const Duration each = part.least / static_cast<std::int64_t>(part.regions.size());
        if (each > region) around.at_once = of_operation.at_once && &part == &operation.parts.front();
        region = std::max(region, each);
        work += part.least;
        around.before = std::min(around.before, of_operation.before + passed);
        around.after = std::min(around.after, of_operation.after + (operation.least() - passed - part.least));
      }
      passed += part.least;
    }
  }
};

/// Timings for a test of demand alone: nothing blocks.
TaskTiming window_of(const Task& task, const UnitWork& on_unit, Arrivals arrivals) {
  TaskTiming timing;
  timing.wcet = on_unit.work;
  timing.period = task.period;
  timing.regions = JobRegions{};
  const bool known = arrivals == Arrivals::Periodic;
  timing.jitter = known ? Duration{0} : task.jitter;
  const Duration before = known ? Duration{0} : on_unit.around.before;
  const Duration end = add_saturating(known ? task.offset : Duration{0}, task.deadline - on_unit.around.after);
  timing.deadline = std::max(Duration{1}, end - before);
  return timing;
}

/// @param around  [operations]
/// @pre no job is late with the machine for itself
std::vector<UnitWork> work_on(const TaskSet& set, const OperationSet& operations, std::span<const Surroundings> around,
                              std::size_t unit) {
  std::vector<UnitWork> work(set.tasks.size());
  for (std::size_t o = 0; o < operations.operations.size(); ++o)
    work[operations.operations[o].task.index()].add(operations.operations[o], around[o], unit);
  for (UnitWork& of_task : work)
    if (of_task.work == Duration{0}) of_task.around = {};
  return work;
}

UnitDemand demand_of(const TaskSet& set, std::span<const UnitWork> work) {
  UnitDemand demand;
  Duration open{};  // all windows
  for (std::size_t i = 0; i < work.size(); ++i)
    if (work[i].work > Duration{0}) open = std::max(open, set.tasks[i].jitter + work[i].around.before);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const Task& task = set.tasks[i];
    demand.timings.push_back(window_of(task, work[i], set.arrivals));
    const bool known = set.arrivals == Arrivals::Periodic;
    const bool has_work = work[i].work > Duration{0};
    demand.ready.push_back(known ? task.offset : has_work ? open - work[i].around.before : task.jitter);
    demand.arrival.push_back(known ? task.offset : demand.ready.back() - task.jitter);
  }
  return demand;
}

/// All jobs but one come 1 ns after a region of that one has begun.
/// @pre arrivals are not known
UnitDemand demand_behind_a_region(const TaskSet& set, std::span<const UnitWork> work) {
  const auto due = [&](std::size_t i) { return std::max(Duration{1}, set.tasks[i].deadline - work[i].around.after); };
  Duration latest{1};
  for (std::size_t i = 0; i < work.size(); ++i)
    if (work[i].work > Duration{0}) latest = std::max(latest, due(i));
  UnitDemand demand;
  for (std::size_t i = 0; i < work.size(); ++i) {
    TaskTiming& timing = demand.timings.emplace_back();
    timing.wcet = work[i].work;
    timing.period = set.tasks[i].period;
    timing.deadline = work[i].work > Duration{0} ? due(i) : latest;  // nothing blocks who does not come there
    timing.regions = JobRegions{work[i].region, work[i].region};
    demand.at_once.push_back(work[i].around.at_once);
  }
  demand.arrival = demand.ready = std::vector(work.size(), Duration{1});
  return demand;
}

std::vector<UtilizationSum> least_utilizations(const TaskSet& set, const OperationSet& operations) {
  std::vector<UtilizationSum> sums(operations.units.size());
  for (const Operation& operation : operations.operations)
    for (const OperationPart& part : operation.parts)
      for (const std::size_t unit : part.units) sums[unit].add(part.least, set.tasks[operation.task.index()].period);
  return sums;
}

/// When a job ends at the latest with the machine for itself.
Duration latest_alone(const TaskSet& set, const OperationSet& operations, std::span<const Duration> least,
                      std::size_t task) {
  return add_saturating(set.tasks[task].jitter, longest_way(operations, least, TaskId{task}));
}

/// Tasks whose jobs are then late; at the longest Duration they are for any deadline.
std::vector<std::size_t> late_alone(const TaskSet& set, const OperationSet& operations) {
  const std::vector<Duration> least = least_times(operations);
  std::vector<std::size_t> late;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const Duration latest = latest_alone(set, operations, least, i);
    if (latest > set.tasks[i].deadline || latest == Duration::max()) late.push_back(i);
  }
  return late;
}

std::vector<std::size_t> overloaded_units(const TaskSet& set, const OperationSet& operations) {
  const std::vector<UtilizationSum> sums = least_utilizations(set, operations);
  std::vector<std::size_t> units;
  for (std::size_t unit = 0; unit < sums.size(); ++unit)
    if (sums[unit].compare_with_one() > 0) units.push_back(unit);
  return units;
}

bool is_too_much(const UnitDemand& demand) {
  return np_edf_demand_answer(demand.timings, Policy::Edf) == Answer::NotSchedulable;
}

/// What is demanded of an engine or GPU, where that is too much.
std::optional<UnitDemand> overdemand_on(const TaskSet& set, std::span<const UnitWork> work) {
  if (UnitDemand demand = demand_of(set, work); is_too_much(demand)) return demand;
  if (set.arrivals == Arrivals::Periodic) return std::nullopt;
  if (UnitDemand demand = demand_behind_a_region(set, work); is_too_much(demand)) return demand;
  return std::nullopt;
}

/// @param all  of the time, whatever the interval
OverlapRefusal refusal_of(const TaskSet& set, const OperationSet& operations, std::size_t unit, UnitDemand demand,
                          bool all) {
  OverlapRefusal refusal;
  refusal.unit = unit;
  refusal.demand = std::move(demand);
  Verdict verdict = np_edf_demand(refusal.demand->timings, Policy::Edf);
  refusal.witness = std::move(verdict.witness);
  constexpr std::string_view kRemedy =
      "even if every copy runs alone and nothing costs time beside; use another engine or GPU for part of its work";
  if (all || !refusal.witness) {
    refusal.reason = fmt::format("'{}' is in demand for more than {}, {}", operations.units[unit],
                                 all ? "all the time" : "there is time", kRemedy);
  } else {
    std::string behind;
    if (const auto& blocker = refusal.witness->blocker) {
      refusal.demand->arrival[blocker->index()] = refusal.demand->ready[blocker->index()] = Duration{0};
      behind = fmt::format(", the last {} of a job of '{}' that had just begun among it",
                           to_string(refusal.witness->blocking), set.tasks[blocker->index()].name);
    }
    refusal.reason =
        fmt::format("'{}' can be in demand for {} within {}{}, {}", operations.units[unit],
                    to_string(refusal.witness->load), to_string(refusal.witness->interval), behind, kRemedy);
  }
  return refusal;
}

}  // namespace

std::vector<OverlapRefusal> refusals_by_load(const TaskSet& set, const OperationSet& operations) {
  std::vector<OverlapRefusal> refusals;
  for (const std::size_t i : late_alone(set, operations)) {
    refusals.emplace_back().late_alone = TaskId{i};
    refusals.back().reason = fmt::format(
        "task '{}' takes up to {} from its arrival with the machine for itself; its deadline is {}", set.tasks[i].name,
        to_string(latest_alone(set, operations, least_times(operations), i)), to_string(set.tasks[i].deadline));
  }
  if (!refusals.empty()) return refusals;
  const std::vector<Surroundings> around = surroundings_of(set, operations);
  for (const std::size_t unit : overloaded_units(set, operations)) {
    UnitDemand demand = demand_of(set, work_on(set, operations, around, unit));
    refusals.push_back(refusal_of(set, operations, unit, std::move(demand), true));
  }
  return refusals;
}

std::vector<OverlapRefusal> refusals_by_demand(const TaskSet& set, const OperationSet& operations) {
  std::vector<OverlapRefusal> refusals;
  const std::vector<Surroundings> around = surroundings_of(set, operations);
  for (std::size_t unit = 0; unit < operations.units.size(); ++unit)
    if (auto demand = overdemand_on(set, work_on(set, operations, around, unit)))
      refusals.push_back(refusal_of(set, operations, unit, *std::move(demand), false));
  return refusals;
}

bool is_overloaded(const TaskSet& set, const OperationSet& operations) {
  return !late_alone(set, operations).empty() || !overloaded_units(set, operations).empty();
}

bool is_overdemanded(const TaskSet& set, const OperationSet& operations) {
  const std::vector<Surroundings> around = surroundings_of(set, operations);
  for (std::size_t unit = 0; unit < operations.units.size(); ++unit)
    if (overdemand_on(set, work_on(set, operations, around, unit))) return true;
  return false;
}

}  // namespace tutti::internal
