#include "sched/tasks/buffer_flow.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

/// Rows of bytes of a buffer: `rows` times `row`, `pitch` apart.
struct ByteRows {
  std::int64_t at = 0, row = 0, pitch = 0, rows = 1;

  [[nodiscard]] std::int64_t end() const { return at + (rows - 1) * pitch + row; }
};

/// Whether a row of one meets a row of the other; true where it is not easily told.
bool meet(const ByteRows& a, const ByteRows& b) {
  if (a.at >= b.end() || b.at >= a.end()) return false;
  const std::int64_t pitch = a.rows > 1 ? a.pitch : b.pitch;
  const bool same_pitch = (a.rows == 1 || a.pitch == pitch) && (b.rows == 1 || b.pitch == pitch);
  if ((a.rows == 1 && b.rows == 1) || !same_pitch || a.row >= pitch || b.row >= pitch) return true;
  const std::int64_t behind = ((b.at - a.at) % pitch + pitch) % pitch;  // of b's rows, from where a's rows begin
  return behind < a.row || behind + b.row > pitch;
}

/// What a stream does with bytes of a buffer.
struct Access {
  BufferId buffer;
  ByteRows bytes;
  bool writes = false;
  std::string field;  ///< of the stream that says so
};

/// Bytes of a buffer that have been written, as disjoint intervals.
class Written {
 public:
  void add(std::int64_t begin, std::int64_t end) {
    auto next = intervals_.lower_bound(begin);
    if (next != intervals_.begin() && std::prev(next)->second >= begin) --next;
    while (next != intervals_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = intervals_.erase(next);
    }
    intervals_.emplace(begin, end);
  }
  /// The first byte of an interval that was not written; nothing where all were.
  [[nodiscard]] std::optional<std::int64_t> first_missing(std::int64_t begin, std::int64_t end) const {
    auto next = intervals_.upper_bound(begin);
    if (next != intervals_.begin() && std::prev(next)->second > begin) begin = std::prev(next)->second;
    return begin < end ? std::optional(begin) : std::nullopt;
  }

 private:
  std::map<std::int64_t, std::int64_t> intervals_;  // begin, end
};

/// Where the transfer of a stream touches a buffer at one of its ends.
ByteRows bytes_at_end(const Topology& machine, const Transfer& transfer, VertexId end, Bytes at) {
  const bool apart = transfer.is_strided() && machine.vertex(end).kind == VertexKind::Memory;
  if (!apart) return {at.count, transfer.size.count, 0, 1};
  return {at.count, transfer.row().count, transfer.rows.pitch.count, transfer.rows.count};
}

/// What a stream does with buffers, in its order.
/// @param kernel_field  of the n-th kernel
template <class KernelField>
std::vector<Access> accesses_of(const Topology& machine, const Task& task, const CommandStream& stream,
                                const KernelField& kernel_field) {
  std::vector<Access> all;
  if (stream.copied && stream.transfer->size > Bytes{0}) {
    const auto& [from, to, at, to_at] = *stream.copied;
    all.push_back({from, bytes_at_end(machine, *stream.transfer, stream.transfer->from, at), false, "copy"});
    all.push_back({to, bytes_at_end(machine, *stream.transfer, stream.transfer->to, to_at), true, "to"});
  }
  if (!stream.kernel) return all;
  for (std::size_t k = 0; k < stream.kernel->calls.size(); ++k) {
    const KernelCall& call = stream.kernel->calls[k];
    const auto add = [&](const std::vector<BufferId>& buffers, bool writes, std::string_view field) {
      for (std::size_t i = 0; i < buffers.size(); ++i)
        all.push_back({buffers[i],
                       {0, task.buffers[buffers[i].index()].size.count, 0, 1},
                       writes,
                       path_of(path_of(kernel_field(k), field), i)});
    };
    add(call.reads, false, "reads");
    add(call.writes, true, "writes");
  }
  return all;
}

/// Follows the buffers through one job.
class JobFlow {
 public:
  JobFlow(const Topology& machine, const TaskSpec& spec, const Task& task, Faults& faults, const std::string& path)
      : machine_(machine), spec_(spec), task_(task), faults_(faults), job_(path_of(path, "job")) {}

  void check() {
    for (std::size_t step = 0; step < task_.steps.size(); ++step)
      if (const auto* batch = std::get_if<Batch>(&task_.steps[step]))
        check(*batch, *(*spec_.job)[step].batch, path_of(path_of(job_, step), "batch"));
  }

 private:
  /// An access of a stream of the batch that is being looked at.
  struct Met {
    std::size_t stream;
    Access access;
  };

  void check(const Batch& batch, const std::vector<StreamSpec>& specs, const std::string& list) {
    met_.clear();
    for (std::size_t s = 0; s < batch.streams().size(); ++s) {
      const bool is_one = specs[s].kernel.has_value();
      const auto kernel_field = [&](std::size_t k) { return is_one ? "kernel" : path_of("kernels", k); };
      const std::size_t before = faults_.added();
      for (Access& access : accesses_of(machine_, task_, batch.streams()[s], kernel_field)) {
        const std::string field = path_of(path_of(list, s), access.field);
        if (faults_.added() == before) check_owner(access, field);
        if (faults_.added() == before) check_beside(batch, s, access, field);
        if (faults_.added() == before) check_written(access, field);
        if (access.writes && access.bytes.rows == 1) written_[access.buffer].add(access.bytes.at, access.bytes.end());
        met_[access.buffer].push_back({s, std::move(access)});
      }
    }
  }
  /// That what is written is the task's own.
  void check_owner(const Access& access, const std::string& field) {
    const NamedBuffer& buffer = task_.buffers[access.buffer.index()];
    if (access.writes && !buffer.owner().empty())
      faults_.add(field, fmt::format("buffer '{}' is written by '{}' alone; write one of this task's", buffer.name,
                                     buffer.owner()));
  }
  /// That no other stream of the batch has to do with what one writes.
  void check_beside(const Batch& batch, std::size_t stream, const Access& access, const std::string& field) {
    for (const Met& met : met_[access.buffer]) {
      if (met.stream == stream || (!met.access.writes && !access.writes) || !meet(met.access.bytes, access.bytes))
        continue;
      const auto does = [&](const Access& one) { return one.writes ? "writes" : "reads"; };
      const std::int64_t shared =
          std::min(access.bytes.end(), met.access.bytes.end()) - std::max(access.bytes.at, met.access.bytes.at);
      return faults_.add(
          field, fmt::format("stream '{}' {} bytes of buffer '{}', which stream '{}' {} in the same batch; {}",
                             batch.streams()[stream].name, does(access), name(access), batch.streams()[met.stream].name,
                             does(met.access),
                             shared == 1 ? "it is one byte: shares are rounded, so let the parameter be a multiple of "
                                           "what they divide"
                                         : "let one of them stand in a later batch"));
    }
  }
  /// That what is read of a GPU's buffer was written there.
  void check_written(const Access& access, const std::string& field) {
    const NamedBuffer& buffer = task_.buffers[access.buffer.index()];
    const bool is_filled = buffer.is_kept || !buffer.owner().empty();
    if (access.writes || is_filled || machine_.vertex(buffer.in).kind != VertexKind::Gpu) return;
    const auto missing = written_[access.buffer].first_missing(access.bytes.at, access.bytes.end());
    if (!missing) return;
    const std::string which =
        *missing == 0 ? "is read here, and nothing is written into it before"
                      : fmt::format("is read here, and nothing is written into its byte {} before", *missing);
    faults_.add(field, fmt::format("buffer '{}' {}; copy into it or let a kernel write it first, or give it 'keep: "
                                   "true' and fill it before the first job",
                                   buffer.name, which));
  }
  [[nodiscard]] const std::string& name(const Access& access) const {
    return task_.buffers[access.buffer.index()].name;
  }

  const Topology& machine_;
  const TaskSpec& spec_;
  const Task& task_;
  Faults& faults_;
  std::string job_;
  std::map<BufferId, Written> written_;
  std::map<BufferId, std::vector<Met>> met_;  // in the batch
};

}  // namespace

std::vector<BufferUse> uses_of(const Task& task) {
  std::vector<BufferUse> uses(task.buffers.size());
  const auto read = [&](const std::vector<BufferId>& buffers) {
    for (const BufferId buffer : buffers) uses[buffer.index()].is_read = true;
  };
  const auto write = [&](const std::vector<BufferId>& buffers) {
    for (const BufferId buffer : buffers) uses[buffer.index()].is_written = true;
  };
  for (const JobStep& step : task.steps) {
    if (const auto* host = std::get_if<HostStep>(&step)) read(host->reads), write(host->writes);
    const auto* batch = std::get_if<Batch>(&step);
    if (batch == nullptr) continue;
    for (const CommandStream& stream : batch->streams()) {
      if (stream.copied) uses[stream.copied->from.index()].is_read = true;
      if (stream.copied) uses[stream.copied->to.index()].is_written = true;
      if (!stream.kernel) continue;
      for (const KernelCall& call : stream.kernel->calls) {
        read(call.reads), write(call.writes);
        if (call.of) uses[call.of->index()].is_counted = true;
      }
    }
  }
  return uses;
}

namespace {

/// What a kernel of the user's lacks: "reads and writes", "reads", "writes"; empty: nothing, or it only passes time.
std::string_view lacks(const KernelCall& call) {
  if (call.name == "spin") return "";
  if (call.reads.empty()) return call.writes.empty() ? "reads and writes" : "reads";
  return call.writes.empty() ? "writes" : "";
}

}  // namespace

void check_buffer_flow(const Topology& machine, const TaskSpec& spec, const Task& task, Faults& faults,
                       const std::string& path) {
  JobFlow(machine, spec, task, faults, path).check();
}

std::optional<VertexId> memory_before(const Topology& machine, VertexId place) {
  for (std::size_t v = 0; v < machine.vertices().size(); ++v) {
    if (machine.vertices()[v].kind != VertexKind::Memory || machine.vertices()[v].pageable) continue;
    Transfer up;
    up.from = VertexId{v};
    up.to = place;
    up.size = Bytes{1};
    if (Batch::make(machine, {{"up", up, {}}})) return up.from;
  }
  return std::nullopt;
}

bool writes_kept_buffers(const Task& task) {
  const std::vector<BufferUse> uses = uses_of(task);
  for (std::size_t i = 0; i < uses.size(); ++i)
    if (task.buffers[i].is_kept && uses[i].is_written) return true;
  return false;
}

std::vector<Error> notes_on_buffers(const TaskSet& set) {
  std::vector<Error> notes;
  const auto note = [&](const Task& task, const std::string& what, const Place& place) {
    notes.push_back({ErrorCode::InvalidInput, fmt::format("task '{}': {}", task.name, what), place});
  };
  std::set<std::pair<std::string, std::string>> others;  // read by other tasks than their owner
  for (const Task& task : set.tasks)
    for (const NamedBuffer& buffer : task.buffers) others.emplace(buffer.owner(), buffer.own_name());
  for (const Task& task : set.tasks) {
    const std::vector<BufferUse> uses = uses_of(task);
    for (std::size_t i = 0; i < uses.size(); ++i) {
      const NamedBuffer& buffer = task.buffers[i];
      if (!buffer.owner().empty()) continue;
      const bool is_read = uses[i].is_read || others.contains(std::pair(task.name, buffer.name));
      const bool is_written = uses[i].is_written, is_counted = uses[i].is_counted;
      const Vertex& place = set.machine->vertex(buffer.in);
      if (buffer.size == Bytes{0})
        note(task, fmt::format("buffer '{}' has 0 bytes and holds nothing; give it a size", buffer.name), buffer.place);
      else if (!is_read && !is_written && !is_counted)
        note(task, fmt::format("no step names buffer '{}'; leave it out", buffer.name), buffer.place);
      else if (!is_read && is_written && place.kind == VertexKind::Gpu)
        note(task,
             fmt::format("nobody reads buffer '{}' of '{}'; copy it back, or let a kernel read it", buffer.name,
                         place.name),
             buffer.place);
      else if (!is_written && place.kind == VertexKind::Device)
        note(task,
             fmt::format("nobody fills buffer '{}' of device '{}', which has what the device puts there", buffer.name,
                         place.name),
             buffer.place);
    }
    if (task.buffers.empty()) continue;
    for (const Batch* batch : batches_of(task))
      for (const CommandStream& stream : batch->streams()) {
        if (stream.copied && stream.transfer->size == Bytes{0})
          note(task, fmt::format("stream '{}' moves nothing; give it a size above 0, or leave it out", stream.name),
               stream.place);
        if (!stream.kernel) continue;
        for (const KernelCall& call : stream.kernel->calls)
          if (const std::string_view lack = lacks(call); !lack.empty())
            note(task,
                 fmt::format("kernel '{}' of stream '{}' {} no buffer; name what it works on in 'reads' and "
                             "'writes'",
                             call.name, stream.name, lack),
                 stream.place);
      }
  }
  return notes;
}

}  // namespace tutti::internal
