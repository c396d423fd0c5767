#include "sched/whatif/tunable_parameter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {
namespace {

constexpr double kMillion = 1e6;

void add_task(std::vector<TunableParameter>& list, const TaskStudy& study, std::size_t t) {
  const TaskSpec& spec = study.spec.tasks[t];
  const Task& task = study.tasks.tasks[t];
  const auto add = [&](TunableKind kind, std::int64_t value) {
    list.push_back({.kind = kind, .task = task.name, .value = value, .place = spec.place, .at_task = t});
  };
  for (std::size_t step = 0; step < task.steps.size(); ++step) {
    const auto* batch = std::get_if<Batch>(&task.steps[step]);
    for (std::size_t s = 0; batch != nullptr && s < batch->streams().size(); ++s) {
      const CommandStream& stream = batch->streams()[s];
      if (!stream.transfer || stream.transfer->size == Bytes{0}) continue;
      list.push_back(
          {TunableKind::Size, task.name, stream.name, stream.transfer->size.count, stream.place, t, step, s});
    }
  }
  if (task.declared_wcet) add(TunableKind::Wcet, task.declared_wcet->count());
  if (task.after.empty()) add(TunableKind::Period, task.period.count());  // else it is that of another task
  add(TunableKind::Deadline, task.deadline.count());
}

bool has_staged_copy(const TaskSet& set) {
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task))
      for (const StreamWork& work : batch->work())
        if (work.fill != kNone) return true;
  return false;
}

void add_machine(std::vector<TunableParameter>& list, const TaskSet& set) {
  const Margin& margin = set.machine->margin();
  const auto add = [&](TunableKind kind, std::int64_t value) { list.push_back({.kind = kind, .value = value}); };
  if (has_staged_copy(set) && set.machine->staging_chunk().count > 0)
    add(TunableKind::Chunk, set.machine->staging_chunk().count);
  if (margin.relative > 0) add(TunableKind::RelativeMargin, std::llround(std::ceil(margin.relative * kMillion - 1e-6)));
  if (margin.absolute > Duration{0}) add(TunableKind::AbsoluteMargin, margin.absolute.count());
}

/// Whether what stands in a spec is the tunable one: it is at its position, or an alias in a file stands for both.
bool is_same(const Place& place, const TunableParameter& tunable, bool at_its_position) {
  return at_its_position || (place.line > 0 && place == tunable.place);
}

void set_size(TaskSetSpec& spec, const TunableParameter& tunable, Bytes size) {
  for (std::size_t t = 0; t < spec.tasks.size(); ++t) {
    if (!spec.tasks[t].job) continue;
    for (std::size_t step = 0; step < spec.tasks[t].job->size(); ++step) {
      auto& batch = (*spec.tasks[t].job)[step].batch;
      for (std::size_t s = 0; batch && s < batch->size(); ++s) {
        const bool there = t == tunable.at_task && step == tunable.at_step && s == tunable.at_stream;
        if (is_same((*batch)[s].place, tunable, there)) (*batch)[s].size = size;
      }
    }
  }
}

/// @param change  of the `TaskSpec&`
template <class Change>
void set_of_task(TaskSetSpec& spec, const TunableParameter& tunable, Change change) {
  for (std::size_t t = 0; t < spec.tasks.size(); ++t)
    if (is_same(spec.tasks[t].place, tunable, t == tunable.at_task)) change(spec.tasks[t]);
}

/// All that a task does on one GPU is done on another one.
void move_to_gpu(TaskSetSpec& spec, const TunableParameter& tunable, std::size_t to) {
  const std::string& from = tunable.words[static_cast<std::size_t>(tunable.value)];
  const auto move = [&](std::string& vertex) {
    if (vertex == from) vertex = tunable.words[to];
  };
  const auto move_stream = [&](StreamSpec& stream) {
    move(stream.from);
    move(stream.to);
    std::ranges::for_each(stream.route, move);
    if (stream.kernel) move(stream.kernel->on);
  };
  set_of_task(spec, tunable, [&](TaskSpec& task) {
    if (!task.job) return;
    for (StepSpec& step : *task.job)
      if (step.batch) std::ranges::for_each(*step.batch, move_stream);
  });
}

/// The task set on its machine with other figures.
/// @param change  of the `MachineSpec&`
template <class Change>
Expected<TaskSet> on_changed_machine(const TaskStudy& study, Change change) {
  MachineSpec machine = graph_of(*study.tasks.machine);
  change(machine);
  return compile(std::move(machine)).and_then([&](Topology changed) {
    return compile(study.spec, std::move(changed));
  });
}

/// The compiled set with another period or deadline, without compiling the spec again: in a set of 1,000 tasks that
/// takes longer than most tests.
/// @pre `times_stand_alone`, value >= 1
TaskSet with_time(const TaskStudy& study, const TunableParameter& tunable, Duration value) {
  TaskSet set = study.tasks;
  for (std::size_t t = 0; t < set.tasks.size(); ++t) {
    const TaskSpec& spec = study.spec.tasks[t];
    if (!is_same(spec.place, tunable, t == tunable.at_task)) continue;
    Task& task = set.tasks[t];
    if (tunable.kind == TunableKind::Period) task.period = value;
    if (tunable.kind == TunableKind::Deadline || !spec.deadline) task.deadline = value;
  }
  return set;
}

}  // namespace

bool times_stand_alone(const TaskStudy& study) {
  const TaskSet& set = study.tasks;
  const bool may_be_led = study.spec.conductor == Conductor::Gpu ||
                          (study.spec.conductor == Conductor::Auto && set.deadline_at == DeadlineAt::Device);
  return !may_be_led && std::ranges::all_of(set.tasks, [](const Task& task) {
    return task.after.empty() && task.buffers.empty() && !task.release.is_external() && batches_of(task).empty();
  });
}

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
    case TunableKind::Overlap: return "overlap";
    case TunableKind::Policy: return "policy";
    case TunableKind::Gpu: return "gpu";
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
    case TunableKind::Preemption:
    case TunableKind::Overlap:
    case TunableKind::Policy:
    case TunableKind::Gpu: return TunableUnit::Word;
  }
  return TunableUnit::Bytes;
}

std::vector<TunableParameter> tunables(const TaskStudy& study) {
  std::vector<TunableParameter> list;
  for (const auto& [name, size] : study.spec.parameters)
    list.push_back({.kind = TunableKind::Parameter, .name = name, .value = size.count});
  for (std::size_t t = 0; t < study.tasks.tasks.size(); ++t) add_task(list, study, t);
  if (study.tasks.machine) add_machine(list, study.tasks);
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
    case TunableUnit::Word:
      return kind == TunableKind::Overlap ? static_cast<std::int64_t>(Overlap::Auto)
                                          : static_cast<std::int64_t>(Preemption::BetweenBatches);
  }
  return 0;
}

std::string value_text(const TunableParameter& tunable, std::int64_t value) {
  switch (unit_of(tunable.kind)) {
    case TunableUnit::Bytes: return tunable.kind == TunableKind::Cut && value == 0 ? "none" : to_string(Bytes{value});
    case TunableUnit::Nanoseconds: return to_string(Duration{value});
    case TunableUnit::Millionths: return fmt::format("{:g}", static_cast<double>(value) / kMillion);
    case TunableUnit::Word: break;
  }
  if (!tunable.words.empty()) return tunable.words[static_cast<std::size_t>(value)];
  return std::string(tunable.kind == TunableKind::Overlap ? to_string(static_cast<Overlap>(value))
                                                          : to_string(static_cast<Preemption>(value)));
}

Expected<TaskSet> with_value(const TaskStudy& study, const TunableParameter& tunable, std::int64_t value) {
  const bool is_time = tunable.kind == TunableKind::Period || tunable.kind == TunableKind::Deadline;
  if (is_time && value >= 1 && times_stand_alone(study)) return with_time(study, tunable, Duration{value});
  TaskSetSpec spec = study.spec;
  switch (tunable.kind) {
    case TunableKind::Parameter: spec.parameters[tunable.name] = Bytes{value}; break;
    case TunableKind::Size: set_size(spec, tunable, Bytes{value}); break;
    case TunableKind::Period: set_of_task(spec, tunable, [&](TaskSpec& task) { task.period = Duration{value}; }); break;
    case TunableKind::Deadline:
      set_of_task(spec, tunable, [&](TaskSpec& task) { task.deadline = Duration{value}; });
      break;
    case TunableKind::Wcet: set_of_task(spec, tunable, [&](TaskSpec& task) { task.wcet = Duration{value}; }); break;
    case TunableKind::Cut:
      spec.cut = Bytes{value};
      spec.preemption = Preemption::BetweenBatches;
      break;
    case TunableKind::Preemption: spec.preemption = static_cast<Preemption>(value); break;
    case TunableKind::Overlap: spec.overlap = static_cast<Overlap>(value); break;
    case TunableKind::Policy:
      spec.policy = parse_policy(tunable.words[static_cast<std::size_t>(value)]).value_or(spec.policy);
      break;
    case TunableKind::Gpu: move_to_gpu(spec, tunable, static_cast<std::size_t>(value)); break;
    case TunableKind::Chunk:
      return on_changed_machine(study, [&](MachineSpec& machine) { machine.staging.chunk = Bytes{value}; });
    case TunableKind::RelativeMargin:
      return on_changed_machine(
          study, [&](MachineSpec& machine) { machine.margin.relative = static_cast<double>(value) / kMillion; });
    case TunableKind::AbsoluteMargin:
      return on_changed_machine(study, [&](MachineSpec& machine) { machine.margin.absolute = Duration{value}; });
  }
  return compile(spec, study.tasks.machine);
}

}  // namespace tutti::internal
