#include "sched/whatif/overload_screen.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "sched/analyses/utilization.hpp"

namespace tutti::internal {
namespace {

/// Largest share that is counted: sums of shares then stay within 128 bits.
constexpr UnsignedWide kMostShare = UnsignedWide{1} << 96;

/// C/T in units of 2^-64, rounded down; at most `kMostShare`.
UnsignedWide share_of(Duration wcet, Duration period) {
  const UnsignedWide scaled = static_cast<UnsignedWide>(wcet.count()) << 64;
  return std::min(scaled / static_cast<UnsignedWide>(period.count()), kMostShare);
}

}  // namespace

OverloadScreen::OverloadScreen(const TaskStudy& study, const AdmissionVerdict& refused)
    : study_(study),
      refused_(refused),
      is_alone_(study.tasks.tasks.size(), times_stand_alone(study)),
      partition_of_(study.tasks.tasks.size()),
      lower_(refused.partitions.size()) {
  std::map<std::pair<int, int>, std::size_t> by_place;
  for (std::size_t t = 0; t < study.spec.tasks.size(); ++t) {
    const Place& place = study.spec.tasks[t].place;
    if (place.line <= 0) continue;
    const auto [other, is_first] = by_place.try_emplace({place.line, place.column}, t);
    if (!is_first) is_alone_[t] = is_alone_[other->second] = false;
  }
  for (std::size_t p = 0; p < refused.partitions.size(); ++p) {
    for (const TaskId id : refused.partitions[p].tasks) {
      partition_of_[id.index()] = p;
      lower_[p] += share_of(refused.timings[id.index()].wcet, study.tasks.tasks[id.index()].period);
    }
    if (lower_[p] > kWholeUse) ++overloaded_;
  }
}

std::optional<UnsignedWide> OverloadScreen::changed_share(const TunableParameter& tunable, std::int64_t value) const {
  const Duration wcet = refused_.timings[tunable.at_task].wcet;
  const Duration period = study_.tasks.tasks[tunable.at_task].period;
  switch (tunable.kind) {
    case TunableKind::Deadline: return share_of(wcet, period);
    case TunableKind::Period: return share_of(wcet, Duration{value});
    case TunableKind::Wcet: return share_of(Duration{value}, period);
    default: return std::nullopt;
  }
}

bool OverloadScreen::proves_overload(const TunableParameter& tunable, std::int64_t value) const {
  if (overloaded_ == 0 || tunable.task.empty() || !is_alone_[tunable.at_task]) return false;
  const std::optional<UnsignedWide> after = changed_share(tunable, value);
  if (!after) return false;
  const UnsignedWide own = lower_[partition_of_[tunable.at_task]];
  const UnsignedWide before =
      share_of(refused_.timings[tunable.at_task].wcet, study_.tasks.tasks[tunable.at_task].period);
  const std::size_t others = overloaded_ - (own > kWholeUse ? 1 : 0);
  return others > 0 || own - before + *after > kWholeUse;
}

bool OverloadScreen::is_overloaded(const TaskSet& changed) const {
  return std::ranges::any_of(refused_.partitions, [&](const Partition& partition) {
    UtilizationSum sum;
    for (const TaskId id : partition.tasks) {
      const Task& task = changed.tasks[id.index()];
      const bool known = task.declared_wcet || task.steps == study_.tasks.tasks[id.index()].steps;
      if (known) sum.add(task.declared_wcet.value_or(refused_.timings[id.index()].wcet), task.period);
    }
    return sum.compare_with_one() > 0;
  });
}

}  // namespace tutti::internal
