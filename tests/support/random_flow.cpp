#include "tests/support/random_flow.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace tutti::internal::test {
namespace {

/// Draws the job of a task, batch by batch, and knows what holds data.
class FlowMaker {
 public:
  FlowMaker(Random& random, const FlowTraits& traits, TaskSpec& task) : random_(random), traits_(traits), task_(task) {}

  void make() {
    for (int i = random_.between(1, 3); i > 0; --i) add_buffer("in", traits_.memories);
    for (int i = random_.between(1, 2); i > 0; --i) add_buffer("out", traits_.memories);
    for (int i = random_.between(2, 5); i > 0; --i) {
      const std::string name = add_buffer("on", traits_.gpus);
      if (traits_.kept && random_.one_in(5)) task_.buffers.at(name).keep = true, full_.insert(name);
    }
    task_.job.emplace();
    for (int i = random_.between(2, 5); i > 0; --i) {
      if (traits_.work_on_cpu && random_.one_in(4)) add_host_step();
      add_batch();
    }
    add_last_batch();
  }

 private:
  std::string add_buffer(const std::string& kind, const std::vector<std::string>& places) {
    const std::string name = kind + std::to_string(task_.buffers.size());
    BufferSpec buffer;
    buffer.in = places[random_.below(places.size())];
    buffer.size = Bytes{random_.between(16, 900)};
    task_.buffers.emplace(name, buffer);
    return name;
  }

  [[nodiscard]] std::int64_t size_of(const std::string& name) const { return task_.buffers.at(name).size.bytes.count; }
  [[nodiscard]] const std::string& place_of(const std::string& name) const { return task_.buffers.at(name).in; }
  [[nodiscard]] bool is_of_gpu(const std::string& name) const { return name.rfind("on", 0) == 0; }

  // Who touches a buffer in the batch that is being made.
  [[nodiscard]] bool may_read(const std::string& name, int stream) const {
    const auto writer = writers_.find(name);
    return writer == writers_.end() || writer->second == stream;
  }
  [[nodiscard]] bool may_write(const std::string& name, int stream) const {
    const auto readers = readers_.find(name);
    const bool only_own =
        readers == readers_.end() || std::ranges::all_of(readers->second, [&](int reader) { return reader == stream; });
    return may_read(name, stream) && only_own;
  }
  void read(const std::string& name, int stream) { readers_[name].insert(stream); }
  void write(const std::string& name, int stream) { writers_[name] = stream; }

  template <class Wanted>
  std::optional<std::string> pick(const Wanted& wanted) {
    std::vector<std::string> found;
    for (const auto& [name, buffer] : task_.buffers)
      if (wanted(name)) found.push_back(name);
    if (found.empty()) return std::nullopt;
    return found[random_.below(found.size())];
  }
  /// Holds data for a stream: written by an earlier batch, or by itself before.
  [[nodiscard]] bool holds_data(const std::string& name, const std::set<std::string>& own) const {
    return !is_of_gpu(name) || full_.contains(name) || own.contains(name);
  }

  void add_batch() {
    readers_.clear();
    writers_.clear();
    filled_.clear();
    std::vector<StreamSpec> streams;
    for (int tries = random_.between(1, 5); tries > 0; --tries) {
      switch (random_.below(5)) {
        case 0:
        case 1: add_up(streams); break;
        case 2: add_down(streams); break;
        case 3: add_peer(streams); break;
        default: add_kernels_alone(streams);
      }
    }
    if (streams.empty()) add_idle(streams);
    full_.insert(filled_.begin(), filled_.end());
    StepSpec step;
    step.batch = std::move(streams);
    task_.job->push_back(std::move(step));
  }
  /// Whatever holds data comes back, where there is room.
  void add_last_batch() {
    readers_.clear();
    writers_.clear();
    std::vector<StreamSpec> streams;
    for (int i = 0; i < 3; ++i) add_down(streams);
    if (streams.empty()) return;
    StepSpec step;
    step.batch = std::move(streams);
    task_.job->push_back(std::move(step));
  }
  void add_host_step() {
    HostStepSpec step(Duration{random_.between(0, 200)});
    step.name = "mix";
    const auto is_of_host = [&](const std::string& name) { return !is_of_gpu(name); };
    if (const auto from = pick(is_of_host)) step.reads.push_back(*from);
    if (const auto to = pick(is_of_host)) step.writes.push_back(*to);
    StepSpec made;
    made.host = step;
    task_.job->push_back(made);
  }

  static StreamSpec named(std::vector<StreamSpec>& streams) {
    StreamSpec stream;
    stream.name = "s" + std::to_string(streams.size());
    return stream;
  }
  static int number(const std::vector<StreamSpec>& streams) { return static_cast<int>(streams.size()); }

  void add_idle(std::vector<StreamSpec>& streams) {
    StreamSpec stream = named(streams);
    stream.kernel = KernelSpec{.on = traits_.gpus[0], .time = Duration{10}};
    streams.push_back(stream);
  }
  /// From a memory into all of a GPU's buffer: in one piece, or in two streams.
  void add_up(std::vector<StreamSpec>& streams) {
    const int s = number(streams);
    const auto to = pick([&](const std::string& name) { return is_of_gpu(name) && may_write(name, s); });
    if (!to) return;
    const std::int64_t whole = size_of(*to);
    const std::int64_t first =
        size_of(*to) > 2 && random_.one_in(2) ? random_.between(1, static_cast<int>(whole) - 1) : whole;
    const std::int64_t most = std::max(first, whole - first);
    const auto from = pick([&](const std::string& name) {
      return !is_of_gpu(name) && may_read(name, s) && may_read(name, s + 1) && size_of(name) >= most;
    });
    if (!from) return;
    StreamSpec stream = piece(streams, *from, 0, first, *to);
    if (first < whole) {
      streams.push_back(std::move(stream));
      streams.push_back(piece(streams, *from, first, whole - first, *to));
      read(*from, s + 1);
      write(*to, kNobody);
      filled_.insert(*to);
    } else {
      write(*to, s);
      std::set<std::string> own{*to};
      add_kernels(stream, s, place_of(*to), own);
      streams.push_back(std::move(stream));
    }
    read(*from, s);
  }
  /// `size` bytes from anywhere in a memory's buffer, to `to_at`.
  StreamSpec piece(const std::vector<StreamSpec>& streams, const std::string& from, std::int64_t to_at,
                   std::int64_t size, const std::string& to) {
    StreamSpec stream;
    stream.name = "s" + std::to_string(streams.size());
    stream.copy = from;
    stream.to = to;
    stream.to_at = Bytes{to_at};
    const std::int64_t room = size_of(from) - size;
    const int rows = random_.between(1, 4);
    if (rows > 1 && size % rows == 0 && room >= rows - 1 && random_.one_in(2)) {
      stream.rows = rows;
      stream.pitch = Bytes{size / rows + random_.between(0, static_cast<int>(room / (rows - 1)))};
      const std::int64_t gaps = (stream.pitch->count - size / rows) * (rows - 1);
      stream.at = Bytes{random_.between(0, static_cast<int>(room - gaps))};
    } else {
      stream.at = Bytes{random_.between(0, static_cast<int>(room))};
    }
    stream.size = Bytes{size};
    return stream;
  }
  void add_down(std::vector<StreamSpec>& streams) {
    const int s = number(streams);
    const auto from =
        pick([&](const std::string& name) { return is_of_gpu(name) && full_.contains(name) && may_read(name, s); });
    const auto to = pick(
        [&](const std::string& name) { return !is_of_gpu(name) && may_write(name, s) && name.rfind("out", 0) == 0; });
    if (!from || !to) return;
    add_copy(streams, *from, *to, {});
  }
  void add_peer(std::vector<StreamSpec>& streams) {
    const int s = number(streams);
    const auto from =
        pick([&](const std::string& name) { return is_of_gpu(name) && full_.contains(name) && may_read(name, s); });
    if (!from) return;
    const auto to = pick([&](const std::string& name) {
      return is_of_gpu(name) && place_of(name) != place_of(*from) && may_write(name, s) &&
             (full_.contains(name) || size_of(name) <= size_of(*from));
    });
    if (to) add_copy(streams, *from, *to, place_of(*to));
  }
  /// Some of one buffer into another one; all of it where that holds no data yet.
  /// @param gpu  where kernels may follow; empty: none
  void add_copy(std::vector<StreamSpec>& streams, const std::string& from, const std::string& to,
                const std::string& gpu) {
    const int s = number(streams);
    StreamSpec stream = named(streams);
    const std::int64_t most = std::min(size_of(from), size_of(to));
    const bool fills = is_of_gpu(to) && !full_.contains(to);
    const std::int64_t size = fills ? size_of(to) : random_.between(0, static_cast<int>(most));
    stream.copy = from;
    stream.to = to;
    stream.at = Bytes{random_.between(0, static_cast<int>(size_of(from) - size))};
    stream.to_at = Bytes{random_.between(0, static_cast<int>(size_of(to) - size))};
    if (size != size_of(from) || random_.one_in(2)) stream.size = Bytes{size};
    read(from, s);
    write(to, s);
    std::set<std::string> own;
    if (fills) own.insert(to), filled_.insert(to);
    if (!gpu.empty()) add_kernels(stream, s, gpu, own);
    streams.push_back(std::move(stream));
  }
  void add_kernels_alone(std::vector<StreamSpec>& streams) {
    const int s = number(streams);
    StreamSpec stream = named(streams);
    std::set<std::string> own;
    add_kernels(stream, s,
                traits_.work_on_cpu && random_.one_in(3) ? "cpu0" : traits_.gpus[random_.below(traits_.gpus.size())],
                own);
    if (!stream.kernels.empty()) streams.push_back(std::move(stream));
  }
  /// @param own  what the stream itself has filled so far; grows
  void add_kernels(StreamSpec& stream, int s, const std::string& place, std::set<std::string>& own) {
    for (int i = random_.between(0, 3); i > 0; --i) {
      const bool on_cpu = place == "cpu0";
      const auto lies_there = [&](const std::string& name) {
        return on_cpu ? !is_of_gpu(name) : place_of(name) == place;
      };
      KernelSpec kernel{.on = place, .time = Duration{random_.between(1, 300)}, .name = "mix"};
      for (int k = random_.between(0, 3); k > 0; --k) {
        const auto from = pick([&](const std::string& name) {
          return lies_there(name) && holds_data(name, own) && may_read(name, s) &&
                 !std::ranges::count(kernel.reads, name);
        });
        if (from) kernel.reads.push_back(*from), read(*from, s);
      }
      for (int k = random_.between(1, 2); k > 0; --k) {
        const auto to = pick([&](const std::string& name) {
          return lies_there(name) && may_write(name, s) && !std::ranges::count(kernel.writes, name) &&
                 (!on_cpu || name.rfind("out", 0) == 0);
        });
        if (to) kernel.writes.push_back(*to), write(*to, s);
      }
      if (kernel.writes.empty()) return;
      own.insert(kernel.writes.begin(), kernel.writes.end());
      stream.kernels.push_back(std::move(kernel));
    }
    for (const std::string& name : own)
      if (is_of_gpu(name)) filled_.insert(name);
  }

  static constexpr int kNobody = -2;

  Random& random_;
  const FlowTraits& traits_;
  TaskSpec& task_;
  std::set<std::string> full_;    // buffers of GPUs that hold data since an earlier batch
  std::set<std::string> filled_;  // in the batch that is being made
  std::map<std::string, std::set<int>> readers_;
  std::map<std::string, int> writers_;
};

}  // namespace

TaskSpec random_flow(Random& random, std::string name, const FlowTraits& traits) {
  TaskSpec task;
  task.name = std::move(name);
  task.period = std::chrono::milliseconds{1};
  FlowMaker(random, traits, task).make();
  return task;
}

PlainProgram::PlainProgram(const TaskSpec& task) : task_(task) {
  for (const auto& [name, buffer] : task.buffers)
    buffers_[name].resize(static_cast<std::size_t>(buffer.size.bytes.count));
}

std::vector<std::string> PlainProgram::of_host() const {
  std::vector<std::string> names;
  for (const auto& [name, buffer] : task_.buffers)
    if (buffer.in.rfind("gpu", 0) != 0) names.push_back(name);
  return names;
}

void PlainProgram::run() {
  for (const StepSpec& step : *task_.job) {
    if (step.host) mix(step.host->reads, step.host->writes);
    if (!step.batch) continue;
    for (const StreamSpec& stream : *step.batch) {
      if (!stream.copy.empty()) copy(stream);
      for (const KernelSpec& kernel : stream.kernels) mix(kernel.reads, kernel.writes);
    }
  }
}

void PlainProgram::copy(const StreamSpec& stream) {
  const ByteList& from = buffers_.at(stream.copy);
  ByteList& to = buffers_.at(stream.to);
  const bool up = task_.buffers.at(stream.copy).in.rfind("gpu", 0) != 0;
  const auto at = static_cast<std::size_t>(stream.at.bytes.count),
             to_at = static_cast<std::size_t>(stream.to_at.bytes.count);
  const std::size_t size = stream.size ? static_cast<std::size_t>(stream.size->bytes.count) : from.size() - at;
  const std::size_t row = size / static_cast<std::size_t>(stream.rows);
  const std::size_t pitch = stream.pitch ? static_cast<std::size_t>(stream.pitch->count) : row;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t apart = row == 0 ? 0 : i / row * pitch + i % row;  // rows lie apart in a memory alone
    to[to_at + (up ? i : apart)] = from[at + (up ? apart : i)];
  }
}

void PlainProgram::mix(const std::vector<std::string>& reads, const std::vector<std::string>& writes) {
  for (std::size_t k = 0; k < writes.size(); ++k) {
    ByteList& out = buffers_.at(writes[k]);
    for (std::size_t j = 0; j < out.size(); ++j) {
      unsigned sum = static_cast<unsigned>(k) + 1;
      for (std::size_t r = 0; r < reads.size(); ++r) {
        const ByteList& in = buffers_.at(reads[r]);
        const std::size_t from = reads[r] == writes[k] ? j : (7 * j + r) % in.size();
        sum += (2 * static_cast<unsigned>(r) + 3) * static_cast<unsigned>(in[from]);
      }
      out[j] = static_cast<std::byte>(sum & 0xffU);
    }
  }
}

}  // namespace tutti::internal::test
