#include "apps/lab/learn/learned_tasks.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "apps/lab/learn/learned_machine.hpp"
#include "model/base/record.hpp"
#include "sched/tasks/task_fields.hpp"

namespace tutti::internal {
namespace {

/// A shorter gap between two batches is no work of the host, ns.
constexpr std::int64_t kNoHostWork = 1'000;
/// The value of `kScale`: the power of ten, from 1 MB on, of which no copy is more.
std::int64_t scale_for(std::span<const LearnedTask> tasks) {
  std::int64_t scale = 1'000'000;
  for (const LearnedTask& task : tasks)
    for (const LearnedOperation& operation : task.operations)
      while (is_copy(operation.kind) && operation.bytes > scale) scale *= 10;
  return scale;
}

/// Bytes as an exact share of `kScale`.
SizeSpec scaled(std::int64_t bytes, std::int64_t scale) {
  const std::int64_t hundredth = scale / 100;
  const std::string digits = fmt::format("{}", hundredth);
  std::string percent = fmt::format("{}.{:0{}}", bytes / hundredth, bytes % hundredth, digits.size() - 1);
  percent.erase(percent.find_last_not_of('0') + 1);
  if (percent.back() == '.') percent.pop_back();
  return {kScale, percent};
}

Duration duration(std::int64_t ns) { return Duration(ns); }

/// The operations of one row, [begin, end).
struct TaskRow {
  std::size_t begin, end;
};

/// A closed loop has no clock: what it does holds at the pace of its longest job, as far as the model promises it.
std::int64_t period_of(const LearnedTask& task) {
  return task.release == Release::ClosedLoop ? std::max({task.period, task.length.worst, task.promised}) : task.period;
}

class LearnedTaskWriter {
 public:
  LearnedTaskWriter(const RecordedTrace& trace, const LearnedTask& task, std::int64_t scale)
      : trace_(&trace), task_(&task), scale_(scale) {}

  TaskSpec written() {
    TaskSpec spec{.name = task_->name, .period = duration(period_of(*task_))};
    if (task_->release == Release::Periodic) {
      spec.jitter = duration(task_->jitter);
      spec.offset = duration(task_->offset);
    }
    std::vector<StepSpec> steps;
    for (std::size_t at = 0; at < task_->operations.size();) {
      std::vector<TaskRow> rows;
      const std::uint32_t step = task_->operations[at].step;
      while (at < task_->operations.size() && task_->operations[at].step == step) rows.push_back(next_row(at));
      add_step(rows, steps);
    }
    if (task_->beyond > 0) add_host_step(task_->beyond, steps);
    spec.job = std::move(steps);
    return spec;
  }

 private:
  [[nodiscard]] TaskRow next_row(std::size_t& at) const {
    const TaskRow row{at, at};
    const LearnedOperation& first = task_->operations[at];
    while (at < task_->operations.size() && task_->operations[at].step == first.step &&
           task_->operations[at].row == first.row)
      ++at;
    return {row.begin, at};
  }

  static void add_host_step(std::int64_t time, std::vector<StepSpec>& steps) {
    StepSpec host;
    host.host = HostStepSpec(duration(time));
    steps.push_back(host);
  }

  /// The longest that a row took by itself, from the start of its first operation.
  [[nodiscard]] std::int64_t length_of(TaskRow row) const {
    const LearnedOperation &first = task_->operations[row.begin], &last = task_->operations[row.end - 1];
    return (is_copy(first.kind) ? first.length.worst : 0) + (is_copy(last.kind) ? 0 : last.span.worst);
  }

  /// The rows of a batch start together, those of the trace when their host did. So the batch is as late as the row
  /// that ends last asks for.
  void add_step(std::span<const TaskRow> rows, std::vector<StepSpec>& steps) {
    std::int64_t end = 0, longest = 0;
    for (const TaskRow& row : rows) {
      end = std::max(end, task_->operations[row.begin].gap.worst + length_of(row));
      longest = std::max(longest, length_of(row));
    }
    if (end - longest >= kNoHostWork) add_host_step(end - longest, steps);
    StepSpec batch;
    batch.batch.emplace();
    std::set<std::string> names;
    for (const TaskRow& row : rows) batch.batch->push_back(stream_of(row, names));
    steps.push_back(std::move(batch));
  }

  [[nodiscard]] StreamSpec stream_of(TaskRow row, std::set<std::string>& names) const {
    StreamSpec stream;
    const LearnedOperation& first = task_->operations[row.begin];
    const std::string gpu = learned_gpu_name(first.gpu), memory = learned_memory_name(first.pageable);
    std::size_t kernels = row.begin;
    std::string name = first.kind == RecordedKind::Down ? "down" : first.kind == RecordedKind::Peer ? "peer" : "up";
    if (is_copy(first.kind)) {
      ++kernels;
      stream.from = first.kind == RecordedKind::Up ? memory : gpu;
      stream.to = first.kind == RecordedKind::Up     ? gpu
                  : first.kind == RecordedKind::Down ? memory
                                                     : learned_gpu_name(first.to_gpu);
      stream.size = scaled(first.bytes, scale_);
    } else {
      name.clear();
    }
    if (kernels < row.end) {
      const LearnedOperation& last = task_->operations[row.end - 1];
      KernelSpec kernel{
          .on = gpu, .time = duration(last.span.usual), .worst = duration(std::max(last.span.worst, last.span.usual))};
      stream.kernel = kernel;
      name += fmt::format("{}{}", name.empty() ? "" : "-", trace_->kernel_names[task_->operations[kernels].name]);
      if (row.end - kernels > 1) name += fmt::format("-and-{}-more", row.end - kernels - 1);
    }
    std::string unique = name;
    for (int number = 2; !names.insert(unique).second; ++number) unique = fmt::format("{}.{}", name, number);
    stream.name = unique;
    return stream;
  }

  const RecordedTrace* trace_;
  const LearnedTask* task_;
  std::int64_t scale_;
};

std::string ms_text(std::int64_t ns) { return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6); }

std::string comment_on(const LearnedTask& task) {
  std::string text = fmt::format("# {}: {} jobs, ", task.name, task.jobs.size());
  if (task.release == Release::ClosedLoop)
    text += fmt::format(
        "a closed loop: each begins when the one before has ended, usually {} later; the period is that of "
        "the longest one",
        ms_text(task.period));
  else
    text += fmt::format("every {}, at most {} late{}", ms_text(task.period), ms_text(task.jitter),
                        task.skipped > 0 ? fmt::format(", {} left out", task.skipped) : "");
  return text + fmt::format("; a job takes {}, at most {}.", ms_text(task.length.usual), ms_text(task.length.worst));
}

std::uint16_t last_gpu(const LearnedTask& task) {
  std::uint16_t last = 0;
  for (const LearnedOperation& operation : task.operations) last = std::max({last, operation.gpu, operation.to_gpu});
  return last;
}

}  // namespace

TaskSetSpec learned_task_set(const RecordedTrace& trace, std::span<const LearnedTask> tasks, std::string machine) {
  TaskSetSpec set;
  set.machine = std::move(machine);
  const std::int64_t scale = scale_for(tasks);
  set.parameters[kScale] = Bytes{scale};
  for (const LearnedTask& task : tasks) set.tasks.push_back(LearnedTaskWriter(trace, task, scale).written());
  return set;
}

std::string task_set_text(const TaskSetSpec& set, std::span<const std::string> comments) {
  std::string text;
  for (const std::string& comment : comments) text += comment + "\n";
  Node file;
  file.kind = Node::Kind::Map;
  file.add("version", scalar_node("1"));
  write_fields(set, file);
  return text + document_text(file);
}

std::string learned_tasks_text(const TaskSetSpec& set, std::span<const LearnedTask> tasks, const std::string& source) {
  std::vector<std::string> comments{
      fmt::format(
          "# Written by 'tutti learn' from {}. 'time' is the median of a kernel, 'worst' the longest that was seen.",
          source),
      "# Sizes are shares of 'scale': twice its value doubles all copies. Host steps are the longest gaps that "
      "were seen,",
      "# without the time for which other jobs held the engine; a last one is what the longest job that was alone took "
      "beyond the rest.",
      "# Kernels spin for their time; streams have their names, shortened.",
      fmt::format("# Guess: {}.", kGuessedDeadlines)};
  for (const LearnedTask& task : tasks) comments.push_back(comment_on(task));
  return task_set_text(set, comments);
}

std::vector<LearnedTask> on_gpus(std::span<const LearnedTask> tasks, std::size_t was, std::size_t gpus) {
  std::vector<LearnedTask> result;
  for (std::size_t copy = 0; copy * was < std::max(was, gpus); ++copy)
    for (const LearnedTask& task : tasks) {
      const std::size_t shift = gpus > was ? copy * was : 0;
      if (gpus > was && last_gpu(task) + shift >= gpus) continue;
      LearnedTask moved = task;
      if (copy > 0)
        moved.name = fmt::format("{}-on-{}", task.name, learned_gpu_name(task.operations.front().gpu + shift));
      for (LearnedOperation& operation : moved.operations) {
        operation.gpu = static_cast<std::uint16_t>((operation.gpu + shift) % gpus);
        operation.to_gpu = static_cast<std::uint16_t>((operation.to_gpu + shift) % gpus);
      }
      result.push_back(std::move(moved));
    }
  return result;
}

MachineSpec on_gpus(const MachineSpec& machine, std::size_t was, std::size_t gpus) {
  MachineSpec changed = machine;
  const auto number_of = [](const std::string& name) -> std::optional<std::size_t> {
    if (!name.starts_with("gpu")) return std::nullopt;
    return static_cast<std::size_t>(std::stoul(name.substr(3)));
  };
  const auto is_gone = [&](const std::string& name) { return number_of(name).value_or(0) >= gpus; };
  std::erase_if(changed.vertices, [&](const Vertex& vertex) { return is_gone(vertex.name); });
  std::erase_if(changed.links, [&](const LinkSpec& link) { return is_gone(link.from) || is_gone(link.to); });
  std::erase_if(changed.peer_access.pairs,
                [&](const auto& pair) { return is_gone(pair.first) || is_gone(pair.second); });
  for (SharedSpec& shared : changed.shared)
    std::erase_if(shared.members, [&](const MemberSpec& member) { return is_gone(member.from) || is_gone(member.to); });
  std::erase_if(changed.shared, [](const SharedSpec& shared) { return shared.members.size() < 2; });
  if (changed.peer_access.pairs.empty()) changed.peer_access.mode = PeerMode::None;
  for (std::size_t gpu = was; gpu < gpus; ++gpu) {
    const std::size_t model = gpu % was, shift = gpu - model;
    const auto moved = [&](const std::string& name) {
      const auto number = number_of(name);
      return number ? learned_gpu_name(*number + shift) : name;
    };
    const auto is_of = [&](const std::string& from, const std::string& to) {
      return from == learned_gpu_name(model) || to == learned_gpu_name(model);
    };
    changed.vertices.push_back({.name = learned_gpu_name(gpu), .kind = VertexKind::Gpu});
    for (const LinkSpec& link : machine.links)
      if (is_of(link.from, link.to) && number_of(moved(link.from)).value_or(0) <= gpu &&
          number_of(moved(link.to)).value_or(0) <= gpu)
        changed.links.push_back({moved(link.from), moved(link.to), link.bandwidth, link.back});
    for (const auto& [a, b] : machine.peer_access.pairs)
      if (is_of(a, b) && number_of(moved(a)).value_or(0) <= gpu && number_of(moved(b)).value_or(0) <= gpu)
        changed.peer_access.pairs.emplace_back(moved(a), moved(b));
    for (const SharedSpec& shared : machine.shared) {
      std::vector<MemberSpec> members;
      for (const MemberSpec& member : shared.members)
        if (is_of(member.from, member.to)) members.push_back({moved(member.from), moved(member.to), member.cost});
      const bool is_of_one = members.size() == shared.members.size() && was > 1;
      if (is_of_one) {
        changed.shared.push_back(
            {fmt::format("{}-of-{}", shared.name, learned_gpu_name(gpu)), shared.capacity, members});
        continue;
      }
      for (SharedSpec& all : changed.shared)
        if (all.name == shared.name) all.members.insert(all.members.end(), members.begin(), members.end());
    }
  }
  return changed;
}

}  // namespace tutti::internal
