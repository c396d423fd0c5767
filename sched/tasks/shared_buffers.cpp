#include "sched/tasks/shared_buffers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/wide.hpp"
#include "sched/tasks/buffer_flow.hpp"

namespace tutti::internal {
namespace {

/// Collects names with a dot.
class Names {
 public:
  void add(const std::string& name, const std::string& field) {
    const bool is_known = std::ranges::any_of(found_, [&](const NameOfOther& known) { return known.name == name; });
    if (name.find('.') != std::string::npos && !is_known) found_.push_back({name, field});
  }
  void add(const std::vector<std::string>& names, const std::string& list) {
    for (std::size_t i = 0; i < names.size(); ++i) add(names[i], path_of(list, i));
  }
  void add(const KernelSpec& kernel, const std::string& path) {
    add(kernel.reads, path_of(path, "reads"));
    add(kernel.writes, path_of(path, "writes"));
    add(kernel.of, path_of(path, "of"));
  }
  void add(const StreamSpec& stream, const std::string& path) {
    add(stream.copy, path_of(path, "copy"));
    if (!stream.copy.empty()) add(stream.to, path_of(path, "to"));
    if (stream.kernel) add(*stream.kernel, path_of(path, "kernel"));
    for (std::size_t k = 0; k < stream.kernels.size(); ++k)
      add(stream.kernels[k], path_of(path_of(path, "kernels"), k));
  }
  [[nodiscard]] std::vector<NameOfOther> found() && { return std::move(found_); }

 private:
  std::vector<NameOfOther> found_;
};

/// The owner's own buffer.
const NamedBuffer& original_of(const Task& owner, const NamedBuffer& buffer) {
  return *std::ranges::find(owner.buffers, buffer.own_name(), &NamedBuffer::name);
}

/// Why a buffer cannot be read by another task; empty where it can.
std::string refusal_of(const Topology& machine, const Task& owner, const NamedBuffer& buffer) {
  const NamedBuffer& original = original_of(owner, buffer);
  const bool is_written = uses_of(owner)[static_cast<std::size_t>(&original - owner.buffers.data())].is_written;
  if (slots_of(owner) > 0)
    return fmt::format("jobs of '{}' take their 'slots' in turn, whoever reads them; leave 'slots' out", owner.name);
  if (original.is_kept && is_written)
    return fmt::format(
        "jobs of '{}' write '{}' while others would read it, since it has 'keep: true'; leave 'keep' out", owner.name,
        original.name);
  const bool is_of_gpu = machine.vertex(buffer.in).kind == VertexKind::Gpu;
  if (is_of_gpu && !memory_before(machine, buffer.in))
    return fmt::format(
        "before the first job there are zeros, and no memory leads to '{}', from which they could come; "
        "add the missing links",
        machine.vertex(buffer.in).name);
  if (!original.is_kept && !is_written && is_of_gpu)
    return fmt::format(
        "no step of '{}' writes '{}'; let one write it, or give it 'keep: true' and fill it before the "
        "first job",
        owner.name, original.name);
  return "";
}

/// The sets of its own and of each task that it reads, multiplied; at most one above what is possible.
std::int64_t choices_of(const TaskSet& set, TaskId task, std::span<const std::int64_t> sets) {
  Wide choices = sets[task.index()];
  for (const TaskId owner : owners_read_by(set, task))
    choices = std::min(choices * sets[owner.index()], Wide{kMostChoices} + 1);
  return static_cast<std::int64_t>(std::min(choices, Wide{kMostChoices} + 1));
}

}  // namespace

std::vector<NameOfOther> names_of_others(const TaskSpec& spec, const std::string& path) {
  Names names;
  const std::string list = path_of(path, "job");
  for (std::size_t i = 0; spec.job && i < spec.job->size(); ++i) {
    const StepSpec& step = (*spec.job)[i];
    const std::string at = path_of(list, i);
    for (std::size_t s = 0; step.batch && s < step.batch->size(); ++s)
      names.add((*step.batch)[s], path_of(path_of(at, "batch"), s));
    if (step.host) names.add(step.host->reads, path_of(path_of(at, "host"), "reads"));
    if (step.host) names.add(step.host->writes, path_of(path_of(at, "host"), "writes"));
  }
  return std::move(names).found();
}

std::optional<TaskId> owner_of(const TaskSet& set, const NamedBuffer& buffer) {
  const auto found = std::ranges::find(set.tasks, buffer.owner(), &Task::name);
  if (buffer.owner().empty() || found == set.tasks.end()) return std::nullopt;
  return TaskId{static_cast<std::size_t>(found - set.tasks.begin())};
}

std::vector<TaskId> owners_read_by(const TaskSet& set, TaskId task) {
  const std::vector<NamedBuffer>& buffers = set.tasks[task.index()].buffers;
  const auto is_read_as_left = [&](std::string_view owner) {
    return std::ranges::any_of(buffers, [&](const NamedBuffer& one) { return one.owner() == owner && !one.is_kept; });
  };
  std::vector<TaskId> owners;
  for (const NamedBuffer& buffer : buffers) {
    const auto owner = owner_of(set, buffer);
    if (owner && is_read_as_left(buffer.owner()) && std::ranges::find(owners, *owner) == owners.end())
      owners.push_back(*owner);
  }
  return owners;
}

std::vector<std::int64_t> sets_of_buffers(const TaskSet& set, std::span<const std::int64_t> alive) {
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<Wide> sets(alive.begin(), alive.end());
  std::vector<bool> is_read(alive.size());
  for (std::size_t reader = 0; reader < alive.size(); ++reader)
    for (const TaskId owner : owners_read_by(set, TaskId{reader})) {
      sets[owner.index()] += alive[reader] + (is_read[owner.index()] ? 0 : 1);
      is_read[owner.index()] = true;
    }
  std::vector<std::int64_t> counts;
  for (const Wide count : sets) counts.push_back(static_cast<std::int64_t>(std::min(kMost, count)));
  return counts;
}

void check_shared_buffers(const TaskSet& set, std::span<const std::vector<NameOfOther>> names, Faults& faults) {
  std::vector<std::int64_t> alive;
  for (const Task& task : set.tasks) alive.push_back(jobs_alive(task.period, task.deadline, task.jitter));
  const std::vector<std::int64_t> sets = sets_of_buffers(set, alive);
  for (std::size_t reader = 0; reader < set.tasks.size(); ++reader) {
    const Task& task = set.tasks[reader];
    for (const NameOfOther& other : names[reader]) {
      const auto buffer = std::ranges::find(task.buffers, other.name, &NamedBuffer::name);
      const Task& owner = set.tasks[owner_of(set, *buffer)->index()];
      if (const std::string refusal = refusal_of(*set.machine, owner, *buffer); !refusal.empty())
        faults.add(other.field, refusal);
    }
    if (!owners_read_by(set, TaskId{reader}).empty() && choices_of(set, TaskId{reader}, sets) > kMostChoices)
      faults.add(
          names[reader].front().field,
          fmt::format("a job of '{}' can meet more than {} combinations of sets of buffers, its own and those that "
                      "it reads; let fewer jobs be alive (deadlines of at most a period), or read fewer tasks",
                      task.name, kMostChoices));
  }
}

}  // namespace tutti::internal
