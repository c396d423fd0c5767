#include "sched/tasks/data_flow.hpp"

#include <algorithm>
#include <list>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

/// What a kernel writes, until a transfer copies it.
struct Output {
  StreamPlace writer;
  VertexId gpu;
  Bytes size;
};

/// The outputs that a batch leaves, behind those of the batches before.
void add_outputs(const Batch& batch, std::size_t place, std::list<Output>& outputs) {
  for (std::size_t s = 0; s < batch.streams().size(); ++s) {
    const CommandStream& stream = batch.streams()[s];
    if (stream.kernel && stream.transfer) outputs.push_back({{place, s}, stream.kernel->on, stream.transfer->size});
  }
}

bool computes(const CommandStream& stream) { return stream.kernel && stream.kernel->name != "spin"; }

class FlowNotes {
 public:
  FlowNotes(const Topology& machine, const Task& task, std::vector<Error>& notes)
      : machine_(machine), task_(task), notes_(notes) {}

  void add() {
    const auto flow = data_flow(task_);
    const std::vector<const Batch*> batches = batches_of(task_);
    for (std::size_t b = 0; b < batches.size(); ++b)
      for (std::size_t s = 0; s < batches[b]->streams().size(); ++s) look_at(batches[b]->streams()[s], flow[b][s]);
  }

 private:
  void look_at(const CommandStream& stream, const StreamFlow& flow) {
    const auto& [name, transfer, kernel, place, copied] = stream;
    if (transfer && has_kernel_at(transfer->from) && !flow.written_by)
      note(stream, fmt::format("no kernel writes what this transfer copies from '{}'; a kernel's output is copied by a "
                               "later batch, with as many bytes as the kernel's own transfer has",
                               machine_.vertex(transfer->from).name));
    if (!computes(stream) || (machine_.vertex(kernel->on).kind != VertexKind::Gpu && transfer)) return;
    if (!transfer) {
      note(stream,
           fmt::format("kernel '{}' gets no bytes to read and to write, as its stream has no transfer", kernel->name));
    } else if (!flow.is_copied) {
      note(stream, fmt::format("kernel '{}' gets no bytes to write, as no later batch copies {} from '{}'",
                               kernel->name, to_string(transfer->size), machine_.vertex(kernel->on).name));
    }
    at_work_.push_back(kernel->on);
  }
  /// Whether a kernel before has computed something there.
  [[nodiscard]] bool has_kernel_at(VertexId gpu) const { return std::ranges::find(at_work_, gpu) != at_work_.end(); }

  void note(const CommandStream& stream, std::string message) {
    notes_.push_back({ErrorCode::InvalidInput,
                      fmt::format("task '{}', stream '{}': {}", task_.name, stream.name, message), stream.place});
  }

  const Topology& machine_;
  const Task& task_;
  std::vector<Error>& notes_;
  std::vector<VertexId> at_work_;
};

}  // namespace

std::vector<std::vector<StreamFlow>> data_flow(const Task& task) {
  std::vector<std::vector<StreamFlow>> flow;
  std::list<Output> outputs;
  const std::vector<const Batch*> batches = batches_of(task);
  for (std::size_t b = 0; b < batches.size(); ++b) {
    flow.emplace_back(batches[b]->streams().size());
    for (std::size_t s = 0; s < batches[b]->streams().size(); ++s) {
      const auto& transfer = batches[b]->streams()[s].transfer;
      if (!transfer) continue;
      const auto output = std::ranges::find_if(
          outputs, [&](const Output& one) { return one.gpu == transfer->from && one.size == transfer->size; });
      if (output == outputs.end()) continue;
      flow[b][s].written_by = output->writer;
      flow[output->writer.batch][output->writer.stream].is_copied = true;
      outputs.erase(output);
    }
    add_outputs(*batches[b], b, outputs);
  }
  return flow;
}

std::vector<Error> notes_on_flow(const TaskSet& set) {
  std::vector<Error> notes;
  if (!set.machine) return notes;
  for (const Task& task : set.tasks)
    if (task.buffers.empty()) FlowNotes(*set.machine, task, notes).add();
  return notes;
}

}  // namespace tutti::internal
