#include "apps/lab/learn/own_trace.hpp"

#include <map>
#include <optional>

#include <fmt/format.h>

#include "apps/lab/learn/trace_builder.hpp"
#include "apps/tutti/formats/journal_recording.hpp"
#include "apps/tutti/formats/json_recording.hpp"

namespace tutti::internal {
namespace {

/// Takes the measured slices of a recording. A task's work on an engine stands for a CUDA stream.
class TraceSink final : public RecordingSink {
 public:
  void begin(const RecordingHead& head) override {
    for (const JournalVertex& vertex : head.vertices) vertices_.push_back(vertex.name);
    for (const JournalLink& link : head.links) links_.emplace_back(link.from, link.to);
  }
  void add_task(const RecordingTask&) override {}
  void add_lane(const JournalLane& lane) override { lanes_.push_back(lane); }
  void add_name(const std::string& name) override { names_.push_back(builder_.name(name)); }
  void add_route(const std::vector<std::uint32_t>& links) override { routes_.push_back(links); }
  void job(const RecordingJob& job) override { task_of_[job.number] = job.task; }
  void slice(const RecordingSlice& slice) override {
    if (slice.measured && !slice.again && slices_.size() < kMostOperations) slices_.push_back(slice);
  }
  void end(std::span<const std::string>) override {}

  Expected<RecordedTrace> finish(const std::string& source, const std::string& path) && {
    for (const RecordingSlice& slice : slices_) add(slice);
    if (others_ > 0) builder_.note(fmt::format("{} kernels on cpus and copies of other kinds are left out", others_));
    return std::move(builder_).finish(source, path);
  }
  TraceBuilder& builder() { return builder_; }

 private:
  void add(const RecordingSlice& slice) {
    const std::string& device = slice.lane < lanes_.size() ? lanes_[slice.lane].device : no_device_;
    TraceEntry entry;
    entry.start = slice.start.count();
    entry.end = slice.end.count();
    entry.bytes = slice.bytes.count;
    entry.name = slice.name < names_.size() ? names_[slice.name] : 0;
    const auto task = task_of_.find(slice.job);
    entry.stream = task == task_of_.end() ? -1 : static_cast<std::int64_t>(task->second);
    const bool is_there = slice.kernel ? set_gpu(device, entry) : set_ends(slice, entry);
    if (is_there)
      builder_.add(entry);
    else
      ++others_;
  }
  static bool set_gpu(const std::string& device, TraceEntry& entry) {
    const auto gpu = number_of(device);
    entry.gpu = gpu.value_or(0);
    entry.bytes = 0;
    return gpu.has_value();
  }
  /// The ends of a copy, as its route has them.
  bool set_ends(const RecordingSlice& slice, TraceEntry& entry) const {
    if (slice.route >= routes_.size() || routes_[slice.route].empty()) return false;
    const auto& route = routes_[slice.route];
    if (route.front() >= links_.size() || route.back() >= links_.size()) return false;
    const std::uint32_t first = links_[route.front()].first, last = links_[route.back()].second;
    if (first >= vertices_.size() || last >= vertices_.size()) return false;
    const auto from = number_of(vertices_[first]), to = number_of(vertices_[last]);
    if (!from && !to) return false;
    entry.kind = from && to ? RecordedKind::Peer : to ? RecordedKind::Up : RecordedKind::Down;
    entry.gpu = from.value_or(to.value_or(0));
    entry.to_gpu = to.value_or(0);
    return true;
  }
  /// The number at the end of a GPU's name; names of other vertices have none here.
  static std::optional<std::int64_t> number_of(const std::string& name) {
    if (!name.starts_with("gpu") || name.size() > 8) return std::nullopt;
    std::int64_t number = 0;
    for (const char c : name.substr(3)) {
      if (c < '0' || c > '9') return std::nullopt;
      number = 10 * number + (c - '0');
    }
    return number;
  }

  const std::string no_device_;
  TraceBuilder builder_;
  std::vector<std::string> vertices_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links_;
  std::vector<JournalLane> lanes_;
  std::vector<std::uint32_t> names_;
  std::vector<std::vector<std::uint32_t>> routes_;
  std::map<std::uint64_t, std::uint32_t> task_of_;
  std::vector<RecordingSlice> slices_;
  std::size_t others_ = 0;
};

void note_faults(TraceSink& sink, const std::vector<std::string>& faults) {
  for (const std::string& fault : faults) sink.builder().note_damage(fault);
}

}  // namespace

Expected<RecordedTrace> learned_from_journal(JournalReader reader, const std::string& path) {
  TraceSink sink;
  note_faults(sink, record_journal(std::move(reader), path, sink).faults);
  return std::move(sink).finish("a journal", path);
}

Expected<RecordedTrace> learned_from_trace(const std::string& path) {
  TraceSink sink;
  const auto faults = record_json(path, sink);
  if (!faults) return tl::unexpected(faults.error());
  note_faults(sink, *faults);
  return std::move(sink).finish("a trace of 'tutti run'", path);
}

}  // namespace tutti::internal
