#include "sched/tasks/compile_tasks.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/base/joined.hpp"
#include "model/batch/choose_methods.hpp"
#include "model/batch/compile_batch.hpp"
#include "sched/tasks/buffer_flow.hpp"
#include "sched/tasks/compile_after.hpp"
#include "sched/tasks/led_set.hpp"
#include "sched/tasks/producer_cores.hpp"
#include "sched/tasks/shared_buffers.hpp"
#include "sched/tasks/task_fields.hpp"
#include "sched/tasks/task_names.hpp"

namespace tutti::internal {
namespace {

/// What compiling one task set knows.
struct Compilation {
  const TaskSetSpec& spec;
  const std::optional<Topology>& machine;
  Faults faults;
  std::vector<NamedBuffer> shared = {};    // buffers of all tasks, as others name them
  std::vector<std::string> left_out = {};  // names of those that are at fault
};

const Planner* find_asked_planner(Compilation& all) {
  const std::string& name = all.spec.planner;
  if (name.empty()) return nullptr;
  if (const Planner* planner = find_planner(name)) return planner;
  std::vector<std::string> names;
  for (const Planner& planner : planners()) names.emplace_back(planner.name);
  all.faults.add("planner", fmt::format("'{:.80}' is no planner; write one of {}", name, joined(names)));
  return nullptr;
}

void check_cut(Compilation& all, const std::optional<Bytes>& cut, const std::string& path) {
  if (!cut) return;
  if (all.spec.preemption == Preemption::None && !all.faults.unread("preemption"))
    all.faults.add(path, "'cut' is for 'preemption: between_batches'; write that or leave it out");
  if (*cut <= Bytes{0})
    all.faults.add(path, "chunks of 0 bytes move nothing; write a size like 32 MB, or leave 'cut' out");
}

/// The buffers that a host step names, of which each is to lie in a memory.
/// @param words  absent: there is no machine, and no buffer
std::vector<BufferId> host_buffers(Compilation& all, const std::vector<std::string>& names,
                                   const std::optional<StreamWords>& words, const std::string& path) {
  std::vector<BufferId> buffers;
  if (!words && !names.empty() && !all.faults.unread("machine"))
    all.faults.add(path, "buffers need a machine; add 'machine' or give --machine, and 'buffers' to the task");
  if (!words) return buffers;
  const auto found = find_buffers(*words, names, all.faults, path);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i]) continue;
    buffers.push_back(*found[i]);
    const Vertex& place = words->machine.vertex(words->buffers[found[i]->index()].in);
    if (place.kind != VertexKind::Memory)
      all.faults.add(path_of(path, i), fmt::format("the host does not reach into '{}', where buffer '{}' lies; copy it "
                                                   "into a memory first",
                                                   place.name, names[i]));
  }
  return buffers;
}

/// That a host step writes buffers of its task alone.
void check_host_writes(Compilation& all, const std::vector<std::string>& names, const std::string& path) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].find('.') != std::string::npos)
      all.faults.add(
          path_of(path, i),
          fmt::format("buffer '{:.80}' is written by its own task alone; write one of this task's", names[i]));
}

HostStep compile_host_step(Compilation& all, const HostStepSpec& step, const std::optional<StreamWords>& words,
                           const std::string& path) {
  if (step.time < Duration{0}) all.faults.add(path, "a step cannot take less than 0; write a time");
  if (!step.name.empty()) check_word(step.name, {}, all.faults, path_of(path, "name"));
  check_host_writes(all, step.writes, path_of(path, "writes"));
  return {step.time, step.name, host_buffers(all, step.reads, words, path_of(path, "reads")),
          host_buffers(all, step.writes, words, path_of(path, "writes"))};
}

/// The faults of a buffer.
void check_buffer(Compilation& all, const NamedBuffer& buffer, const std::string& in, const std::string& path) {
  const Vertex& place = all.machine->vertex(buffer.in);
  if (!is_end(place.kind))
    return all.faults.add(path_of(path, "in"), fmt::format("'{}' is a {}; buffers lie in a memory, a gpu or a device",
                                                           in, to_string(place.kind)));
  if (buffer.size < Bytes{0} || buffer.size > Bytes{1LL << 53})
    all.faults.add(path_of(path, "size"), "a buffer of so many bytes is not possible; write 0 to 2^53 bytes");
  const bool is_filled = !buffer.is_kept || place.kind == VertexKind::Memory || memory_before(*all.machine, buffer.in);
  if (!is_filled)
    all.faults.add(path, fmt::format("a kept buffer is filled from a memory before the first job, and none leads to "
                                     "'{}'; keep one that a job copies from, or add the missing links",
                                     in));
}

/// The buffers of a task; the words get them, and the names of those at fault, which are left out with the faults of
/// those who name them.
void compile_buffers(Compilation& all, const TaskSpec& spec, Task& task, StreamWords& words, const std::string& path) {
  const std::string list = path_of(path, "buffers");
  words.buffers_field = list;
  for (const auto& [name, buffer] : spec.buffers) {
    const std::string at = path_of(list, name);
    const std::size_t before = all.faults.added();
    if (name.find('.') != std::string::npos)
      all.faults.add(
          list, fmt::format("'{:.80}' has a dot, and the name of a buffer has none; write it with '-' or '_'", name));
    else
      check_word(name, {.required = true}, all.faults, at);
    const bool was_read = !all.faults.unread(path_of(at, "in")) && !all.faults.unread(path_of(at, "size"));
    if (was_read && all.faults.added() == before) {
      const NamedBuffer made{name,
                             vertex_of(*all.machine, buffer.in, all.faults, path_of(at, "in")),
                             bytes_of(buffer.size, all.spec.parameters, all.faults, path_of(at, "size")),
                             buffer.keep,
                             buffer.slots,
                             buffer.place};
      if (all.faults.added() == before) check_buffer(all, made, buffer.in, at);
      if (all.faults.added() == before) task.buffers.push_back(made);
    }
    if (!was_read || all.faults.added() != before) words.left_out.push_back(name);
  }
  words.buffers = task.buffers;
}

/// Lets each task name the buffers of all others. Their faults are those of their tasks.
void find_shared_buffers(Compilation& all, std::span<const TaskSpec> tasks) {
  if (!all.machine) return;
  Compilation quiet{all.spec, all.machine, all.faults};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].name.empty()) continue;  // a fault of its own
    Task task;
    StreamWords words{*all.machine, all.spec.parameters};
    compile_buffers(quiet, tasks[i], task, words, path_of("tasks", i));
    for (NamedBuffer& buffer : task.buffers) {
      buffer.name = fmt::format("{}.{}", tasks[i].name, buffer.name);
      all.shared.push_back(std::move(buffer));
    }
    for (const std::string& name : words.left_out) all.left_out.push_back(fmt::format("{}.{}", tasks[i].name, name));
  }
}

/// Adds the buffers of other tasks that a job names to those of its task.
void add_shared_buffers(Compilation& all, const TaskSpec& spec, Task& task, StreamWords& words,
                        const std::string& path) {
  for (const auto& [name, field] : names_of_others(spec, path)) {
    const auto found = std::ranges::find(all.shared, name, &NamedBuffer::name);
    if (found == all.shared.end()) continue;
    if (found->owner() != task.name) {
      task.buffers.push_back(*found);
      continue;
    }
    words.left_out.push_back(name);
    all.faults.add(field, fmt::format("'{:.80}' is a buffer of this task; write '{}', or give it 'keep: true' for what "
                                      "the job before has left",
                                      name, found->own_name()));
  }
  words.left_out.insert(words.left_out.end(), all.left_out.begin(), all.left_out.end());
  words.of_others = all.shared;
  words.buffers = task.buffers;
}

/// That the slots of buffers suffice for the jobs that can be alive, and are as many of each.
void check_slots(Compilation& all, const TaskSpec& spec, const Task& task, const std::string& path) {
  const std::int64_t alive = jobs_alive(task.period, task.deadline, task.jitter);
  int slots = 0;
  for (const auto& [name, buffer] : spec.buffers) {
    const std::string at = path_of(path_of(path_of(path, "buffers"), name), "slots");
    if (buffer.slots == 0) continue;
    if (buffer.keep) all.faults.add(at, "a kept buffer is one for all jobs; leave 'slots' or 'keep' out");
    if (buffer.slots < alive)
      all.faults.add(at, fmt::format("{} jobs of '{}' can be alive, and each has a slot of its own; give {} or more",
                                     alive, spec.name, alive));
    if (slots != 0 && buffer.slots != slots)
      all.faults.add(at, fmt::format("another buffer has {} slots, and jobs take both in turn; give as many", slots));
    slots = buffer.slots;
  }
}

/// @param words  absent: there is no machine
std::optional<JobStep> compile_step(Compilation& all, const StepSpec& step, const std::optional<StreamWords>& words,
                                    const std::string& path) {
  if (step.batch.has_value() == step.host.has_value())
    return all.faults.add(path, "a step is either 'batch' or 'host'; write one of the two"), std::nullopt;
  if (step.host) {
    if (step.merging) all.faults.add(path_of(path, "merging"), "'merging' is for batches; leave it out of a host step");
    return compile_host_step(all, *step.host, words, path_of(path, "host"));
  }
  const std::string list = path_of(path, "batch");
  if (!words) {
    if (!all.faults.unread("machine")) all.faults.add(list, "a batch needs a machine; add 'machine' or give --machine");
    return std::nullopt;
  }
  return compile_streams(*step.batch, step.merging.value_or(Merging::On), *words, all.faults, list);
}

/// @param words  absent: there is no machine
void compile_job(Compilation& all, const TaskSpec& spec, Task& task, const std::optional<StreamWords>& words,
                 const std::string& path) {
  const std::string list = path_of(path, "job");
  for (std::size_t i = 0; i < spec.job->size(); ++i)
    if (auto step = compile_step(all, (*spec.job)[i], words, path_of(list, i))) task.steps.push_back(*std::move(step));
  if (spec.job->empty()) all.faults.add(list, fmt::format("the job of '{}' has no steps; give it a batch", spec.name));
}

/// The priority that the spec gives to a task; 0 where it gives none and the policy needs none.
int priority_of(Compilation& all, const TaskSpec& spec, const std::string& path) {
  const bool given = all.spec.policy == Policy::Given;
  if (all.faults.unread("policy")) return spec.priority.value_or(0);
  if (spec.priority && !given)
    all.faults.add(path_of(path, "priority"),
                   "'priority' is for 'policy: given'; write that policy or leave the priority out");
  if (!spec.priority && given)
    all.faults.add(path,
                   "'priority' is missing in a task under 'policy: given'; add a whole number, smaller is more urgent");
  return spec.priority.value_or(0);
}

/// Adds what contradicts a release by triggers, and what belongs to one and stands beside another.
ReleaseRule release_of(Compilation& all, const TaskSpec& spec, const std::string& path) {
  ReleaseRule rule{spec.release, spec.trigger, spec.early_trigger.value_or(EarlyTriggers::Defer), {}};
  const auto refuse = [&](std::string_view field, std::string_view fault) {
    all.faults.add(path_of(path, field), std::string(fault));
  };
  if (!spec.trigger.empty()) check_word(spec.trigger, {}, all.faults, path_of(path, "trigger"));
  if (!rule.is_external()) {
    const auto alone = [&](std::string_view field) {
      refuse(field, fmt::format("'{}' is for 'release: external'; write that, or leave it out", field));
    };
    if (!spec.trigger.empty()) alone("trigger");
    if (spec.early_trigger) alone("early_trigger");
    if (spec.missing_after) alone("missing_after");
    return rule;
  }
  const Duration two_periods = spec.period > Duration::max() / 4 ? Duration::max() / 2 : 2 * spec.period;
  rule.missing_after = spec.missing_after.value_or(two_periods + std::min(spec.jitter, Duration::max() / 2));
  if (spec.missing_after && *spec.missing_after < spec.period)
    refuse("missing_after", "triggers may be a period apart, so none is missing before; give the period or more");
  if (all.spec.arrivals == Arrivals::Periodic)
    refuse("release", "triggers come when they come; with 'release: external' write 'arrivals: sporadic'");
  if (spec.offset != Duration{0})
    refuse("offset", "the first trigger says when the first job arrives; leave the offset out");
  return rule;
}

Task compile_task(Compilation& all, const TaskSpec& spec, const std::string& path) {
  const auto check_positive = [&](Duration time, std::string_view field) {
    if (time > Duration{0}) return;
    all.faults.add(path_of(path, field), fmt::format("the {} must be at least 1 ns; write a time like 25 ms", field));
  };
  const auto check_negative = [&](Duration time, std::string_view field) {
    if (time < Duration{0})
      all.faults.add(path_of(path, field), fmt::format("the {} is below 0; write 0 or more", field));
  };
  Task task;
  task.place = spec.place;
  task.name = spec.name;
  task.period = spec.period;
  task.deadline = spec.deadline.value_or(spec.period);
  task.jitter = spec.jitter;
  task.offset = spec.offset;
  task.after = spec.after;
  task.priority = priority_of(all, spec, path);
  task.declared_wcet = spec.wcet;
  task.best_case = spec.best_case;
  check_cut(all, spec.cut, path_of(path, "cut"));
  task.cut = spec.cut;
  task.overrun = {spec.overrun, spec.budget, spec.suspend_after};
  task.late_consumer = spec.late_consumer;
  task.late_input = spec.late_input;
  task.release = release_of(all, spec, path);
  const bool lacks_predecessor = !spec.after.empty() && spec.period == Duration{0};  // whose period it would have
  if (!lacks_predecessor) check_positive(task.period, "period");
  if (spec.deadline) check_positive(task.deadline, "deadline");
  check_negative(task.jitter, "jitter");
  check_negative(task.offset, "offset");
  check_negative(task.best_case, "best_case");
  check_negative(spec.wcet.value_or(Duration{0}), "wcet");
  check_negative(spec.budget.value_or(Duration{0}), "budget");
  if (spec.job.has_value() == spec.wcet.has_value())
    all.faults.add(path, fmt::format("task '{}' has either a 'job' or a 'wcet'; write one of the two", spec.name));
  if (spec.wcet && spec.best_case > *spec.wcet)
    all.faults.add(path_of(path, "best_case"),
                   fmt::format("the best case of '{}' is above its wcet of {}; give at most "
                               "that",
                               spec.name, to_string(*spec.wcet)));
  const bool leaves_out = spec.overrun == OverrunPolicy::SkipNext || spec.suspend_after > 0;
  if (all.spec.arrivals == Arrivals::Periodic && spec.budget && leaves_out)
    all.faults.add(
        path_of(path, "budget"),
        "with 'arrivals: periodic' no job may be left out while all keep to their Wcet; leave the budget out, "
        "or write 'overrun: abort' and no 'suspend_after'");
  const std::size_t before = all.faults.added();
  std::optional<StreamWords> words;
  if (all.machine) {
    compile_buffers(all, spec, task, words.emplace(StreamWords{*all.machine, all.spec.parameters}), path);
    add_shared_buffers(all, spec, task, *words, path);
  }
  if (!spec.buffers.empty() && !spec.job)
    all.faults.add(path_of(path, "buffers"), "'buffers' are for the steps of a 'job'; leave them out beside a 'wcet'");
  else if (!spec.buffers.empty() && !all.machine && !all.faults.unread("machine"))
    all.faults.add(path_of(path, "buffers"), "buffers need a machine; add 'machine' or give --machine");
  if (spec.job) compile_job(all, spec, task, words, path);
  const bool is_sound = all.faults.added() == before && !all.faults.unread(path);
  if (!task.buffers.empty() && is_sound) check_buffer_flow(*all.machine, spec, task, all.faults, path);
  if (is_sound && task.period > Duration{0}) check_slots(all, spec, task, path);
  return task;
}

/// The tasks of a chain.
/// @param positions  of all tasks by their names
std::vector<TaskId> compile_links(Compilation& all, const ChainSpec& spec, const TaskPositions& positions,
                                  const std::string& path) {
  const std::string list = path_of(path, "tasks");
  std::vector<TaskId> tasks;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < spec.tasks.size(); ++i) {
    const std::string& name = spec.tasks[i];
    const auto found = positions.find(name);
    if (found != positions.end()) tasks.emplace_back(found->second);
    if (found == positions.end() && !all.faults.incomplete("tasks"))
      all.faults.add(path_of(list, i), no_such_task(name, positions));
    if (!seen.insert(name).second)
      all.faults.add(path_of(list, i),
                     fmt::format("task '{:.80}' comes twice, so the chain runs in a circle; list each task once, from "
                                 "cause to effect",
                                 name));
  }
  if (spec.tasks.empty())
    all.faults.add(list, "a chain without tasks has no latency; list its tasks from cause to effect");
  return tasks;
}

void compile_chains(Compilation& all, TaskSet& set) {
  const TaskPositions positions = positions_of(all.spec.tasks);
  std::set<std::string_view> chains;
  for (std::size_t i = 0; i < all.spec.chains.size(); ++i) {
    const ChainSpec& spec = all.spec.chains[i];
    const std::string path = path_of("chains", i);
    check_word(spec.name, {.required = true}, all.faults, path_of(path, "name"));
    if (!chains.insert(spec.name).second)
      all.faults.add(path, fmt::format("there are two chains '{:.80}'; names are unique", spec.name));
    if (spec.deadline && *spec.deadline <= Duration{0})
      all.faults.add(path_of(path, "deadline"), "the deadline must be at least 1 ns; write a time like 100 ms");
    set.chains.push_back({spec.name, compile_links(all, spec, positions, path), spec.deadline, spec.place});
  }
}

/// Where jobs overlap, nobody makes the next job of a task wait for what the last one writes into a kept buffer.
void check_kept_buffers(Compilation& all, const TaskSet& set) {
  if (all.spec.overlap != Overlap::On) return;
  for (const Task& task : set.tasks)
    if (writes_kept_buffers(task))
      all.faults.add("overlap", fmt::format("jobs of '{}' write a buffer with 'keep: true', so each needs what the one "
                                            "before has left; write 'overlap: off'",
                                            task.name));
}

void check_sharing(Compilation& all, const TaskSet& set) {
  std::vector<std::vector<NameOfOther>> names;
  for (std::size_t i = 0; i < all.spec.tasks.size(); ++i)
    names.push_back(names_of_others(all.spec.tasks[i], path_of("tasks", i)));
  check_shared_buffers(set, names, all.faults);
}

/// A machine that waits for a job must know when it comes, and have nothing else to do meanwhile.
void check_critical_window(Compilation& all) {
  if (all.spec.policy != Policy::CwEdf || all.faults.unread("policy")) return;
  const auto refuse = [&](std::string_view fault) { all.faults.add("policy", std::string(fault)); };
  if (all.spec.arrivals != Arrivals::Periodic && !all.faults.unread("arrivals"))
    refuse(
        "under cw_edf the machine waits for jobs to come, so their arrivals are known; write 'arrivals: periodic', or "
        "'policy: edf'");
  if (all.spec.preemption != Preemption::None)
    refuse("under cw_edf jobs are not preempted; leave 'preemption' out, or write 'policy: edf'");
  if (all.spec.overlap == Overlap::On)
    refuse("under cw_edf jobs run one at a time; write 'overlap: off', or 'policy: edf'");
}

/// GPUs and cpus on which kernels of a task run.
std::set<VertexId> places_of_kernels(const Task& task) {
  std::set<VertexId> places;
  for (const Batch* batch : batches_of(task))
    for (const CommandStream& stream : batch->streams())
      if (stream.kernel) places.insert(stream.kernel->on);
  return places;
}

/// The methods of the best worst case, for copies that ask for none: beside kernels of other tasks, and of the task's
/// own next job where that may come before the end of one.
void choose_methods(TaskSet& set) {
  const bool copies_may_hold_cores = has_cores_for_copies(set);
  std::map<VertexId, std::size_t> tasks_at;
  for (const Task& task : set.tasks)
    for (const VertexId place : places_of_kernels(task)) ++tasks_at[place];
  for (Task& task : set.tasks) {
    const bool meets_itself = add_saturating(task.jitter, task.deadline) > task.period;
    const std::set<VertexId> own = places_of_kernels(task);
    HeldByOthers held{.host = !copies_may_hold_cores};
    for (const auto& [place, tasks] : tasks_at)
      if (tasks > 1 || meets_itself || !own.contains(place)) held.gpus.insert(place);
    for (JobStep& step : task.steps)
      if (auto* batch = std::get_if<Batch>(&step)) *batch = choose_methods(std::move(*batch), Basis::Guaranteed, held);
  }
}

/// Makes the batches of all tasks those of one application.
void join_batches(TaskSet& set) {
  std::vector<const Batch*> batches;
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task)) batches.push_back(batch);
  if (batches.empty()) return;
  const ApplicationLoad application(batches);
  for (Task& task : set.tasks)
    for (JobStep& step : task.steps)
      if (auto* batch = std::get_if<Batch>(&step)) *batch = batch->within(application);
}

/// The set on a machine as it stands, whatever leads its jobs.
Expected<TaskSet> compile_on(const TaskSetSpec& spec, const std::optional<Topology>& machine, Faults faults) {
  Compilation all{spec, machine, std::move(faults)};
  TaskSet set;
  set.machine = machine;
  set.policy = spec.policy;
  set.planner = find_asked_planner(all);
  set.arrivals = spec.arrivals;
  set.preemption = spec.preemption;
  check_cut(all, spec.cut, "cut");
  set.cut = spec.cut.value_or(Bytes{0});
  set.overlap = spec.overlap;
  set.deadline_at = spec.deadline_at;
  set.host_away = spec.host_away;
  if (spec.host_away < Duration{0})
    all.faults.add("host_away", "the host is away for less than 0; write 0 or a time like 100 ms");
  const std::vector<TaskSpec> tasks = with_predecessors(spec, all.faults);
  const bool has_order = std::ranges::any_of(tasks, [](const TaskSpec& task) { return !task.after.empty(); });
  if (spec.tasks.empty()) all.faults.add("tasks", "there is no task, so there is nothing to guarantee; add one");
  find_shared_buffers(all, tasks);
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < spec.tasks.size(); ++i) {
    const std::string path = path_of("tasks", i);
    check_word(spec.tasks[i].name, {.required = true}, all.faults, path_of(path, "name"));
    if (!names.insert(spec.tasks[i].name).second)
      all.faults.add(path, fmt::format("there are two tasks '{}'; names are unique", spec.tasks[i].name));
    set.tasks.push_back(compile_task(all, tasks[i], path));
  }
  const bool can_overlap = !has_order && std::ranges::all_of(set.tasks, says_what_jobs_hold) &&
                           std::ranges::none_of(set.tasks, writes_kept_buffers);
  if (set.overlap == Overlap::Auto && !can_overlap) set.overlap = Overlap::Off;
  compile_chains(all, set);
  check_kept_buffers(all, set);
  check_critical_window(all);
  check_producer_cores(set, all.faults);
  if (set.policy == Policy::CwEdf) set.overlap = Overlap::Off;
  if (all.faults.none()) check_sharing(all, set);
  if (!all.faults.none()) return tl::unexpected(all.faults.error());
  choose_methods(set);
  join_batches(set);
  return set;
}

/// The same set as a GPU leads it: its copies may go by other methods, and so by more lanes, than those of the host.
/// @pre `can_be_led`
TaskSet compile_led(const TaskSetSpec& spec, const TaskSet& by_host) {
  std::optional<TaskSet> set;
  std::size_t lanes = 0, found = lanes_beside(by_host, false);
  do {
    lanes = found;
    auto made = compile_on(spec, by_host.machine->led_by_gpu(lanes), {});
    TUTTI_EXPECTS(made.has_value(), "costs around jobs make no fault");
    set = *std::move(made);
    found = lanes_beside(*set, false);
  } while (found > lanes);
  set->led_by_gpu = true;
  if (set->overlap == Overlap::Auto && !can_be_led_overlapping(*set)) set->overlap = Overlap::Off;
  return *std::move(set);
}

/// The set with its conductor, whether that can do what tasks ask for or not.
Expected<TaskSet> compile_for_conductor(const TaskSetSpec& spec, const std::optional<Topology>& machine,
                                        Faults faults) {
  auto set = compile_on(spec, machine ? std::optional(machine->led_by_host()) : std::nullopt, std::move(faults));
  const bool is_asked = spec.conductor == Conductor::Gpu;
  const bool may_be_led = is_asked || (spec.conductor == Conductor::Auto && spec.deadline_at == DeadlineAt::Device);
  if (!set || !may_be_led) return set;
  auto possible = can_be_led(*set);
  if (possible) return compile_led(spec, *set);
  Error& why = possible.error();
  if (!is_asked) {
    set->why_host = std::move(why.message);
    return set;
  }
  why.field = kConductorField;
  return tl::unexpected(std::move(why));
}

}  // namespace

Expected<TaskSet> compile(const TaskSetSpec& spec, const std::optional<Topology>& machine, Faults faults) {
  auto set = compile_for_conductor(spec, machine, std::move(faults));
  if (!set || set->led_by_gpu) return set;
  Faults fault;
  const auto refuse = [&](std::size_t task, std::string_view field, std::string_view what) {
    fault.add(path_of(path_of("tasks", task), field),
              fmt::format("only where a GPU leads do jobs {}, and the host leads this set{}; leave '{}' out", what,
                          set->why_host.empty() ? ", which has no 'deadline_at: device', or asks for the host"
                                                : ": " + set->why_host,
                          field));
  };
  for (std::size_t i = 0; i < set->tasks.size(); ++i) {
    if (set->tasks[i].late_consumer == LateConsumer::Overwrite)
      refuse(i, "late_consumer", "run into buffers that their consumer still has");
    if (set->tasks[i].late_input == LateInput::Reuse) refuse(i, "late_input", "have the input of an earlier one");
  }
  return fault.none() ? std::move(set) : tl::unexpected(fault.error());
}

std::vector<Error> notes_on(const TaskSetSpec& spec) {
  std::vector<Error> notes;
  for (std::size_t t = 0; t < spec.tasks.size(); ++t) {
    if (!spec.tasks[t].job) continue;
    const std::string job = path_of(path_of("tasks", t), "job");
    for (std::size_t s = 0; s < spec.tasks[t].job->size(); ++s)
      if (const auto& batch = (*spec.tasks[t].job)[s].batch)
        std::ranges::move(notes_on(*batch, spec.parameters, path_of(path_of(job, s), "batch")),
                          std::back_inserter(notes));
  }
  return notes;
}

Expected<TaskStudy> TaskStudy::make(TaskSetSpec spec, const std::optional<Topology>& machine, Faults faults) {
  return compile(spec, machine, std::move(faults)).map([&](TaskSet tasks) {
    return TaskStudy{std::move(spec), std::move(tasks)};
  });
}

Expected<TaskStudy> led_by_host(TaskStudy study, const std::string& why) {
  if (!study.tasks.led_by_gpu) return study;
  if (study.spec.conductor == Conductor::Gpu) {
    Faults fault;
    fault.add(std::string(kConductorField), why);
    return tl::unexpected(fault.error());
  }
  study.spec.conductor = Conductor::Host;
  auto led = TaskStudy::make(std::move(study.spec), study.tasks.machine);
  if (led)
    led->tasks.why_host = why;
  else
    led.error().message += "; " + why;
  return led;
}

std::optional<TaskStudy> led_by_host_instead(const TaskStudy& study) {
  if (!study.tasks.led_by_gpu || study.spec.conductor != Conductor::Auto) return std::nullopt;
  auto by_host = led_by_host(study, "");
  if (!by_host) return std::nullopt;  // it asks for what a GPU alone does
  by_host->notes = study.notes;
  return *std::move(by_host);
}

}  // namespace tutti::internal
