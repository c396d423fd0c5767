#include "runtime/sim/sim_batch.hpp"

#include <algorithm>
#include <cstring>

#include "model/base/expects.hpp"
#include "runtime/sim/sim_parts.hpp"

namespace tutti::internal {

SimBatch::SimBatch(SimBackend& backend, BoundPlan bound)
    : backend_(&backend), bound_(std::move(bound)), times_(bound_.plan.timeline) {
  find_kernels_and_staging();
  list_events();
}

SimBatch::~SimBatch() {
  wait();  // a submitted run ends while its buffers still exist
  --backend_->prepared_;
}

void SimBatch::find_kernels_and_staging() {
  const auto streams = bound_.plan.batch.streams();
  for (std::size_t s = 0; s < streams.size(); ++s) {
    const auto& kernel = streams[s].kernel;
    kernels_.push_back(kernel ? calls_of(*backend_->kernels_, backend_->machine_, streams[s], bound_.bindings[s])
                              : std::vector<BoundCall>{});
    const auto& transfer = streams[s].transfer;
    if (!transfer || !bound_.plan.timeline.streams[s].transfer->method.chunked) continue;
    if (!staging_) staging_.emplace(backend_->machine_.staging_chunk());
    staging_->reserve(transfer->size);
  }
}

void SimBatch::list_events() {
  events_.clear();
  for (std::uint32_t s = 0; s < bound_.bindings.size(); ++s) add_events(s);
  // A stream's own events are in order; of what happens at one instant, the earlier stream comes first.
  std::ranges::sort(events_, {}, [](const Event& event) { return std::pair(event.at, event.position); });
  add({.at = times_.latency, .kind = EventKind::BatchEnd});
  next_ = events_.size();
}

void SimBatch::add(Event event) {
  event.position = static_cast<std::uint32_t>(events_.size());
  events_.push_back(event);
}

void SimBatch::add_events(std::uint32_t stream) {
  const StreamTimeline& line = times_.streams[stream];
  Duration data_there{};
  if (line.transfer) {
    add({.at = line.transfer->start, .kind = EventKind::TransferStart, .stream = stream});
    std::size_t offset = 0;
    std::uint32_t number = 0;
    for (const Segment& segment : line.transfer->segments) {
      const auto bytes = static_cast<std::size_t>(segment.bytes.count);
      add({.at = segment.end,
           .kind = EventKind::SegmentEnd,
           .stream = stream,
           .offset = offset,
           .bytes = bytes,
           .segment = number++});
      offset += bytes;
    }
    TUTTI_EXPECTS(Bytes{static_cast<std::int64_t>(offset)} == bound_.plan.batch.streams()[stream].transfer->size,
                  "the segments of a transfer add up to its size");
    data_there = line.transfer->end;
  }
  if (line.kernel) {
    // The plan rounds starts down and ends up: never start before the data is there.
    const Duration start = std::max(line.kernel->start, data_there);
    add({.at = start, .kind = EventKind::KernelStart, .stream = stream});
    add({.at = std::max(line.kernel->end, start), .kind = EventKind::KernelEnd, .stream = stream});
  }
}

bool SimBatch::follow(const Timeline& times) {
  TUTTI_EXPECTS(finished(), "the times of a batch change between two runs");
  TUTTI_EXPECTS(times.streams.size() == times_.streams.size(), "the times are those of the batch's streams");
  times_ = times;
  list_events();
  return true;
}

void SimBatch::submit(Duration earliest) {
  TUTTI_EXPECTS(finished(), "a batch is submitted again only after it is finished");
  const Duration start = std::max(earliest + backend_->machine_.setup().dispatch.nominal, backend_->free_at_);
  backend_->free_at_ = start + times_.latency;
  result_ = {start, start, std::nullopt};
  next_ = 0;
  backend_->submitted_.push_back(this);
}

void SimBatch::play(Duration start) {
  TUTTI_EXPECTS(finished(), "a batch runs again only after it is finished");
  result_ = {start, start, std::nullopt};
  for (next_ = 0; !finished();) run_next_event();
}

bool SimBatch::poll() {
  if (!backend_->clock_->runs_by_itself()) {
    if (!finished()) backend_->run_next_event();
  } else {
    while (!finished() && backend_->next_event_is_due()) backend_->run_next_event();
  }
  return finished();
}

void SimBatch::wait() {
  while (!finished()) backend_->run_next_event();
}

void SimBatch::run_next_event() {
  Event& event = events_[next_];
  if (event.kind == EventKind::SegmentEnd) copy(event);
  if (event.kind == EventKind::KernelStart) launch(event);
  // A virtual clock may have passed this instant before the batch was polled.
  event.happened = backend_->clock_->runs_by_itself() ? backend_->clock_->now() : next_event();
  ++next_;
  if (event.kind == EventKind::BatchEnd) end_batch();
}

void SimBatch::copy(const Event& event) {
  if (event.bytes == 0) return;
  const StreamBinding& binding = bound_.bindings[event.stream];
  if (bound_.plan.timeline.streams[event.stream].transfer->method.chunked) {
    staging_->move(binding.source.bytes().subspan(event.offset, event.bytes),
                   binding.destination.bytes().subspan(event.offset, event.bytes));
  } else {
    move_bytes(backend_->machine_, *bound_.plan.batch.streams()[event.stream].transfer, binding, event.offset,
               event.bytes);
  }
}

void SimBatch::launch(const Event& event) {
  auto error = call_kernels(bound_.plan.batch.streams()[event.stream], kernels_[event.stream]);
  if (error && !result_.error) result_.error = std::move(error);  // the first one is reported
}

void SimBatch::end_batch() {
  result_.finish = events_.back().happened;
  backend_->free_at_ = std::max(backend_->free_at_, result_.finish);
  const Duration lag = result_.finish - (result_.start + times_.latency);
  if (lag > SimBackend::kHostLag && !result_.error) {
    result_.error = SimBackend::too_slow(lag);
  }
}

Timeline SimBatch::measured() const {
  Timeline timeline = times_;
  measure(timeline);
  return timeline;
}

/// Segments of a transfer differ in number where other times than the plan's were followed.
void SimBatch::measure(Timeline& into) const {
  into.latency = result_.finish - result_.start;
  for (std::size_t s = 0; s < times_.streams.size(); ++s)
    if (const auto& transfer = times_.streams[s].transfer) into.streams[s].transfer->segments = transfer->segments;
  for (const Event& event : events_) {
    StreamTimeline& line = into.streams[event.stream];
    const Duration at = event.happened - result_.start;
    switch (event.kind) {
      case EventKind::TransferStart: line.transfer->start = line.transfer->end = at; break;
      case EventKind::SegmentEnd: {
        Segment& done = line.transfer->segments[event.segment];
        done.start = line.transfer->end;
        done.end = line.transfer->end = at;
        break;
      }
      case EventKind::KernelStart: line.kernel->start = at; break;
      case EventKind::KernelEnd: line.kernel->end = at; break;
      case EventKind::BatchEnd: break;
    }
  }
}

}  // namespace tutti::internal
