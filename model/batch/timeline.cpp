#include "model/batch/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

/// The stretches of constant rate of one stream as segments whose bytes add up exactly: each boundary and each running
/// total is rounded once.
class SegmentMaker {
 public:
  SegmentMaker(TransferInterval& transfer, Bytes size) : transfer_(transfer), size_(size) {}

  void add(const RateSegment& piece) {
    arrived_ += piece.rate * (piece.end - piece.start);
    const Duration end = std::clamp(round_down_ns(piece.end + 0.5), at_, transfer_.end);
    const std::int64_t total = std::min(size_.count, static_cast<std::int64_t>(std::llround(arrived_)));
    append({at_, end, Bytes{total - placed_}, piece.source});
    placed_ = total;
    at_ = end;
  }

  void start(Duration at) { at_ = at; }

  /// The last segment takes the time and the bytes that rounding left over.
  void finish() {
    if (transfer_.segments.empty()) {
      // Too short to show between two doubles; or a gate opens for it, and there are no bytes.
      if (size_.count > 0 || transfer_.start < transfer_.end) append({transfer_.start, transfer_.end, size_});
      return;
    }
    transfer_.segments.back().end = transfer_.end;
    transfer_.segments.back().bytes += Bytes{size_.count - placed_};
  }

 private:
  void append(const Segment& segment) {
    if (segment.start == segment.end && !transfer_.segments.empty()) {
      transfer_.segments.back().bytes += segment.bytes;  // shorter than a nanosecond
    } else {
      transfer_.segments.push_back(segment);
    }
  }

  TransferInterval& transfer_;
  Bytes size_;
  Duration at_{};
  double arrived_ = 0;
  std::int64_t placed_ = 0;
};

StreamTimeline make_stream(const Topology& machine, const CommandStream& stream, const StreamTimes& times) {
  StreamTimeline line{stream.name, {}, {}, round_down_ns(times.gate)};
  if (stream.transfer) {
    line.transfer = TransferInterval{find_route(machine, *stream.transfer).method,
                                     round_down_ns(times.transfer_start),
                                     round_up_ns(times.transfer_end),
                                     {}};
    if (times.transfer_start == times.transfer_end) line.transfer->start = line.transfer->end;
  }
  if (stream.kernel) {
    line.kernel = KernelInterval{stream.kernel->on, round_down_ns(times.kernel_start), round_up_ns(times.kernel_end)};
  }
  return line;
}

}  // namespace

Timeline make_timeline(const Topology& machine, const Batch& batch, const BatchSimulation& simulation) {
  Timeline timeline;
  timeline.latency = round_up_ns(simulation.latency_ns());
  timeline.setup = round_up_ns(simulation.batch_setup_ns());
  const auto streams = batch.streams();
  for (std::size_t s = 0; s < streams.size(); ++s) {
    timeline.streams.push_back(make_stream(machine, streams[s], simulation.times()[s]));
  }
  std::vector<SegmentMaker> makers;
  std::vector<std::size_t> maker_of(streams.size(), 0);
  for (std::size_t s = 0; s < streams.size(); ++s) {
    maker_of[s] = makers.size();
    if (!streams[s].transfer) continue;
    makers.emplace_back(*timeline.streams[s].transfer, streams[s].transfer->size);
    makers.back().start(timeline.streams[s].transfer->start);
  }
  for (const RateSegment& piece : simulation.pieces()) makers[maker_of[piece.stream]].add(piece);
  for (SegmentMaker& maker : makers) maker.finish();
  return timeline;
}

namespace {

/// Intervals that exclude each other on one engine or GPU.
struct Occupied {
  Duration start, end;
  std::string_view stream;
};

std::optional<std::string> find_overlap(std::vector<Occupied> intervals, std::string_view what) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Occupied& a, const Occupied& b) { return std::pair(a.start, a.end) < std::pair(b.start, b.end); });
  std::size_t last = 0;  // the one that ends last so far
  for (std::size_t i = 1; i < intervals.size(); ++i) {
    if (intervals[last].end - intervals[i].start > Duration{1} && intervals[i].end > intervals[i].start) {
      return fmt::format("'{}' and '{}' overlap on {}", intervals[last].stream, intervals[i].stream, what);
    }
    if (intervals[i].end > intervals[last].end) last = i;
  }
  return std::nullopt;
}

std::optional<std::string> find_violation(const CommandStream& stream, const StreamTimeline& line, Duration latency) {
  if (line.name != stream.name || line.transfer.has_value() != stream.transfer.has_value() ||
      line.kernel.has_value() != stream.kernel.has_value()) {
    return fmt::format("'{}' does not have the parts of its stream", line.name);
  }
  if (line.transfer) {
    Bytes total;
    Duration at = line.transfer->start;
    for (const Segment& segment : line.transfer->segments) {
      if (segment.start != at || segment.end < segment.start)
        return fmt::format("'{}' has a gap in its segments", line.name);
      if (segment.bytes < Bytes{0}) return fmt::format("'{}' has a segment of less than 0 bytes", line.name);
      at = segment.end;
      total += segment.bytes;
    }
    if (at != line.transfer->end) return fmt::format("the segments of '{}' do not reach its end", line.name);
    if (total != stream.transfer->size) return fmt::format("the bytes of '{}' do not add up", line.name);
  }
  if (line.kernel && line.kernel->end < line.kernel->start) {
    return fmt::format("the kernel of '{}' ends before it starts", line.name);
  }
  if (line.kernel && line.kernel->on != stream.kernel->on)
    return fmt::format("the kernel of '{}' runs elsewhere", line.name);
  if (line.transfer && line.kernel && line.transfer->end - line.kernel->start > Duration{1}) {
    return fmt::format("the kernel of '{}' starts before its data is there", line.name);
  }
  if (line.start() < Duration{0} || line.end() > latency) return fmt::format("'{}' lies outside its batch", line.name);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_violation(const Topology& machine, const Batch& batch, const Timeline& timeline) {
  const auto streams = batch.streams();
  if (timeline.streams.size() != streams.size()) return "the timeline has not one row a stream";
  std::map<EngineId, std::vector<Occupied>> engines;
  std::map<VertexId, std::vector<Occupied>> gpus;
  std::map<std::uint32_t, std::vector<Occupied>> last_hops;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const StreamTimeline& line = timeline.streams[s];
    if (auto violation = find_violation(streams[s], line, timeline.latency)) return violation;
    if (line.transfer) {
      const RouteView route = find_route(machine, *streams[s].transfer);
      if (const auto gpu = machine.moving_vertex(route.engines[0]); gpu && route.method.by_kernel)
        gpus[*gpu].push_back({line.transfer->start, line.transfer->end, line.name});
      engines[route.engines[0]].push_back({line.transfer->start, line.transfer->end, line.name});
      if (route.engines[1] != route.engines[0]) {
        engines[route.engines[1]].push_back({line.transfer->start, line.transfer->end, line.name});
      }
    }
    if (line.transfer && batch.work()[s].last_hop != kNone)
      last_hops[batch.work()[s].last_hop].push_back({line.transfer->start, line.transfer->end, line.name});
    if (line.kernel && machine.vertex(line.kernel->on).kind == VertexKind::Gpu) {
      gpus[line.kernel->on].push_back({line.kernel->start, line.kernel->end, line.name});
    }
  }
  for (const auto& [engine, intervals] : engines) {
    if (auto overlap = find_overlap(intervals, fmt::format("copy engine {}", engine.value))) return overlap;
  }
  for (const auto& [last_hop, intervals] : last_hops) {
    if (auto overlap = find_overlap(intervals, fmt::format("the last link {}", last_hop))) return overlap;
  }
  for (const auto& [gpu, intervals] : gpus) {
    if (auto overlap = find_overlap(intervals, machine.vertex(gpu).name)) return overlap;
  }
  return std::nullopt;
}

std::vector<double> gates_of(const BatchSimulation& loaded, const Timeline& plan) {
  std::vector<double> gates;
  for (std::size_t c = 0; c < loaded.queue_count(); ++c) {
    const Duration gate = plan.streams[loaded.first_stream(c)].gate;
    gates.push_back(std::max(0.0, as_ns(gate - plan.setup)));
  }
  return gates;
}

}  // namespace tutti::internal
