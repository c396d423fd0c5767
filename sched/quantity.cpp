#include "sched/quantity.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tutti {
namespace {

constexpr double kMillion = 1e6;

void add_task(std::vector<Quantity>& list, const Task& task) {
  const auto add = [&](QuantityKind kind, std::string name, std::int64_t value, const Place& place) {
    list.push_back({kind, task.name, std::move(name), value, place});
  };
  for (const BatchOperation* batch : batches_of(task)) {
    for (const CommandStream& stream : batch->streams()) {
      if (stream.transfer && stream.transfer->size.count > 0)
        add(QuantityKind::Size, stream.name, stream.transfer->size.count, stream.place);
    }
  }
  if (task.declared_wcet) add(QuantityKind::Wcet, "", task.declared_wcet->count(), task.place);
  add(QuantityKind::Period, "", task.period.count(), task.place);
  add(QuantityKind::Deadline, "", task.deadline.count(), task.place);
}

bool has_staged_copy(const TaskSet& set) {
  for (const Task& task : set.tasks)
    for (const BatchOperation* batch : batches_of(task))
      for (const StreamWork& work : batch->work())
        if (work.lead != kNone) return true;
  return false;
}

void add_machine(std::vector<Quantity>& list, const TaskSet& set) {
  const Margin& margin = set.machine->margin();
  if (has_staged_copy(set) && set.machine->staging_chunk().count > 0)
    list.push_back({QuantityKind::Chunk, "", "", set.machine->staging_chunk().count, {}});
  if (margin.relative > 0)
    list.push_back(
        {QuantityKind::RelativeMargin, "", "", std::llround(std::ceil(margin.relative * kMillion - 1e-6)), {}});
  if (margin.absolute > Duration{0})
    list.push_back({QuantityKind::AbsoluteMargin, "", "", margin.absolute.count(), {}});
}

Duration best_case_of(const TaskFile& file, const std::string& task) {
  const auto found = std::ranges::find(file.tasks().tasks, task, &Task::name);
  return found == file.tasks().tasks.end() ? Duration{} : found->best_case;
}

TaskFileChange change_of(const TaskFile& file, const Quantity& quantity, std::int64_t value) {
  const std::string text = value_text(quantity.kind, value);
  TaskFileChange change;
  switch (quantity.kind) {
    case QuantityKind::Parameter: change.parameters[quantity.name] = Bytes{value}; break;
    case QuantityKind::Size: change.keys = {{quantity.place, "size", text}}; break;
    case QuantityKind::Period: change.keys = {{quantity.place, "period", text}}; break;
    case QuantityKind::Deadline: change.keys = {{quantity.place, "deadline", text}}; break;
    case QuantityKind::Wcet:
      change.keys = {{quantity.place, "wcet", text}};
      if (best_case_of(file, quantity.task) > Duration{value})
        change.keys.push_back({quantity.place, "best_case", text});
      break;
    case QuantityKind::Chunk: change.staging_chunk = Bytes{value}; break;
    case QuantityKind::RelativeMargin:
      change.margin = Margin{static_cast<double>(value) / kMillion, file.tasks().machine->margin().absolute};
      break;
    case QuantityKind::AbsoluteMargin:
      change.margin = Margin{file.tasks().machine->margin().relative, Duration{value}};
      break;
    case QuantityKind::Cut: change.keys = {{file.document().place, "cut", text}}; break;
    case QuantityKind::Preemption: change.keys = {{file.document().place, "preemption", text}}; break;
  }
  return change;
}

}  // namespace

std::string_view to_string(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::Parameter: return "parameter";
    case QuantityKind::Size: return "size";
    case QuantityKind::Period: return "period";
    case QuantityKind::Deadline: return "deadline";
    case QuantityKind::Wcet: return "wcet";
    case QuantityKind::Chunk: return "chunk";
    case QuantityKind::RelativeMargin: return "relative_margin";
    case QuantityKind::AbsoluteMargin: return "absolute_margin";
    case QuantityKind::Cut: return "cut";
    case QuantityKind::Preemption: return "preemption";
  }
  return "";
}

QuantityUnit unit_of(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::Parameter:
    case QuantityKind::Size:
    case QuantityKind::Chunk:
    case QuantityKind::Cut: return QuantityUnit::Bytes;
    case QuantityKind::Period:
    case QuantityKind::Deadline:
    case QuantityKind::Wcet:
    case QuantityKind::AbsoluteMargin: return QuantityUnit::Nanoseconds;
    case QuantityKind::RelativeMargin: return QuantityUnit::Millionths;
    case QuantityKind::Preemption: return QuantityUnit::Word;
  }
  return QuantityUnit::Bytes;
}

std::vector<Quantity> quantities(const TaskFile& file) {
  std::vector<Quantity> list;
  for (const auto& [name, size] : file.parameters())
    list.push_back({QuantityKind::Parameter, "", name, size.count, {}});
  for (const Task& task : file.tasks().tasks) add_task(list, task);
  if (file.tasks().machine) add_machine(list, file.tasks());
  return list;
}

std::int64_t least_value(QuantityKind kind) {
  switch (kind) {
    case QuantityKind::Period:
    case QuantityKind::Deadline:
    case QuantityKind::Chunk:
    case QuantityKind::Cut: return 1;
    default: return 0;
  }
}

std::int64_t most_value(QuantityKind kind) {
  switch (unit_of(kind)) {
    case QuantityUnit::Bytes: return std::int64_t{1} << 53;
    case QuantityUnit::Nanoseconds: return std::numeric_limits<std::int64_t>::max();
    case QuantityUnit::Millionths: return 100 * std::int64_t{1'000'000};
    case QuantityUnit::Word: return static_cast<std::int64_t>(Preemption::BetweenBatches);
  }
  return 0;
}

std::string value_text(QuantityKind kind, std::int64_t value) {
  switch (unit_of(kind)) {
    case QuantityUnit::Bytes: return kind == QuantityKind::Cut && value == 0 ? "none" : to_string(Bytes{value});
    case QuantityUnit::Nanoseconds: return to_string(Duration{value});
    case QuantityUnit::Millionths: return fmt::format("{:g}", static_cast<double>(value) / kMillion);
    case QuantityUnit::Word: return std::string(to_string(static_cast<Preemption>(value)));
  }
  return "";
}

Expected<TaskSet> with_value(const TaskFile& file, const Quantity& quantity, std::int64_t value) {
  return file.changed(change_of(file, quantity, value));
}

}  // namespace tutti
