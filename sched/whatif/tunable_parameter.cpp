#include "sched/whatif/tunable_parameter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

constexpr double kMillion = 1e6;

void add_task(std::vector<TunableParameter>& list, const Task& task) {
  const auto add = [&](TunableKind kind, std::string name, std::int64_t value, const Place& place) {
    list.push_back({kind, task.name, std::move(name), value, place});
  };
  for (const Batch* batch : batches_of(task)) {
    for (const CommandStream& stream : batch->streams()) {
      if (stream.transfer && stream.transfer->size.count > 0)
        add(TunableKind::Size, stream.name, stream.transfer->size.count, stream.place);
    }
  }
  if (task.declared_wcet) add(TunableKind::Wcet, "", task.declared_wcet->count(), task.place);
  add(TunableKind::Period, "", task.period.count(), task.place);
  add(TunableKind::Deadline, "", task.deadline.count(), task.place);
}

bool has_staged_copy(const TaskSet& set) {
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task))
      for (const StreamWork& work : batch->work())
        if (work.lead != kNone) return true;
  return false;
}

void add_machine(std::vector<TunableParameter>& list, const TaskSet& set) {
  const Margin& margin = set.machine->margin();
  if (has_staged_copy(set) && set.machine->staging_chunk().count > 0)
    list.push_back({TunableKind::Chunk, "", "", set.machine->staging_chunk().count, {}});
  if (margin.relative > 0)
    list.push_back(
        {TunableKind::RelativeMargin, "", "", std::llround(std::ceil(margin.relative * kMillion - 1e-6)), {}});
  if (margin.absolute > Duration{0}) list.push_back({TunableKind::AbsoluteMargin, "", "", margin.absolute.count(), {}});
}

Duration best_case_of(const TaskFile& file, const std::string& task) {
  const auto found = std::ranges::find(file.tasks().tasks, task, &Task::name);
  return found == file.tasks().tasks.end() ? Duration{} : found->best_case;
}

TaskFileChange change_of(const TaskFile& file, const TunableParameter& tunable, std::int64_t value) {
  const std::string text = value_text(tunable.kind, value);
  TaskFileChange change;
  switch (tunable.kind) {
    case TunableKind::Parameter: change.parameters[tunable.name] = Bytes{value}; break;
    case TunableKind::Size: change.keys = {{tunable.place, "size", text}}; break;
    case TunableKind::Period: change.keys = {{tunable.place, "period", text}}; break;
    case TunableKind::Deadline: change.keys = {{tunable.place, "deadline", text}}; break;
    case TunableKind::Wcet:
      change.keys = {{tunable.place, "wcet", text}};
      if (best_case_of(file, tunable.task) > Duration{value}) change.keys.push_back({tunable.place, "best_case", text});
      break;
    case TunableKind::Chunk: change.staging_chunk = Bytes{value}; break;
    case TunableKind::RelativeMargin:
      change.margin = Margin{static_cast<double>(value) / kMillion, file.tasks().machine->margin().absolute};
      break;
    case TunableKind::AbsoluteMargin:
      change.margin = Margin{file.tasks().machine->margin().relative, Duration{value}};
      break;
    case TunableKind::Cut: change.keys = {{file.document().place, "cut", text}}; break;
    case TunableKind::Preemption: change.keys = {{file.document().place, "preemption", text}}; break;
  }
  return change;
}

}  // namespace

std::string_view to_string(TunableKind kind) {
  switch (kind) {
    case TunableKind::Parameter: return "parameter";
    case TunableKind::Size: return "size";
    case TunableKind::Period: return "period";
    case TunableKind::Deadline: return "deadline";
    case TunableKind::Wcet: return "wcet";
    case TunableKind::Chunk: return "chunk";
    case TunableKind::RelativeMargin: return "relative_margin";
    case TunableKind::AbsoluteMargin: return "absolute_margin";
    case TunableKind::Cut: return "cut";
    case TunableKind::Preemption: return "preemption";
  }
  return "";
}

TunableUnit unit_of(TunableKind kind) {
  switch (kind) {
    case TunableKind::Parameter:
    case TunableKind::Size:
    case TunableKind::Chunk:
    case TunableKind::Cut: return TunableUnit::Bytes;
    case TunableKind::Period:
    case TunableKind::Deadline:
    case TunableKind::Wcet:
    case TunableKind::AbsoluteMargin: return TunableUnit::Nanoseconds;
    case TunableKind::RelativeMargin: return TunableUnit::Millionths;
    case TunableKind::Preemption: return TunableUnit::Word;
  }
  return TunableUnit::Bytes;
}

std::vector<TunableParameter> tunables(const TaskFile& file) {
  std::vector<TunableParameter> list;
  for (const auto& [name, size] : file.parameters()) list.push_back({TunableKind::Parameter, "", name, size.count, {}});
  for (const Task& task : file.tasks().tasks) add_task(list, task);
  if (file.tasks().machine) add_machine(list, file.tasks());
  return list;
}

std::int64_t least_value(TunableKind kind) {
  switch (kind) {
    case TunableKind::Period:
    case TunableKind::Deadline:
    case TunableKind::Chunk:
    case TunableKind::Cut: return 1;
    default: return 0;
  }
}

std::int64_t most_value(TunableKind kind) {
  switch (unit_of(kind)) {
    case TunableUnit::Bytes: return std::int64_t{1} << 53;
    case TunableUnit::Nanoseconds: return std::numeric_limits<std::int64_t>::max();
    case TunableUnit::Millionths: return 100 * std::int64_t{1'000'000};
    case TunableUnit::Word: return static_cast<std::int64_t>(Preemption::BetweenBatches);
  }
  return 0;
}

std::string value_text(TunableKind kind, std::int64_t value) {
  switch (unit_of(kind)) {
    case TunableUnit::Bytes: return kind == TunableKind::Cut && value == 0 ? "none" : to_string(Bytes{value});
    case TunableUnit::Nanoseconds: return to_string(Duration{value});
    case TunableUnit::Millionths: return fmt::format("{:g}", static_cast<double>(value) / kMillion);
    case TunableUnit::Word: return std::string(to_string(static_cast<Preemption>(value)));
  }
  return "";
}

Expected<TaskSet> with_value(const TaskFile& file, const TunableParameter& tunable, std::int64_t value) {
  return file.changed(change_of(file, tunable, value));
}

}  // namespace tutti::internal
