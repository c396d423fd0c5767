#include "runtime/cuda/gate_opener.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "runtime/core/watchdog.hpp"

namespace tutti::internal::cuda {
namespace {

/// How long a run may be behind its plan before the driver is asked whether something is wrong, and how often.
constexpr Duration kAskAfter = std::chrono::milliseconds{20};
/// The host polls a run every microsecond or so; from a pause of this length on it was held up.
constexpr Duration kGlance = std::chrono::microseconds{10};

}  // namespace

GateOpener::GateOpener(BoundBatch& batch, Enqueuer& enqueuer)
    : batch_(batch),
      enqueuer_(enqueuer),
      next_(batch.points.size()),
      limit_(batch.backend.watchdog.limit(batch.bound.plan.timeline.latency)),
      seen_(batch.lanes.size()) {
  for (std::uint32_t gate = 0; gate < batch.list.gates.size(); ++gate)
    openings_.push_back({batch.list.gates[gate], gate});
  std::stable_sort(openings_.begin(), openings_.end(), [](const Opening& a, const Opening& b) { return a.at < b.at; });
  find_next();
}

void GateOpener::find_next() {
  std::vector<Next> of_lane(batch_.lanes.size());
  const auto pass = [&](const Point& point) {
    if (!point.event) return;
    of_lane[point.lane].point = &point;
    if (point.step != 0) of_lane[point.lane].step = point.step;
  };
  for (std::size_t i = next_.size(); i-- > 0;) {
    pass(batch_.points[i].end);
    pass(batch_.points[i].leg_end);
    next_[i] = of_lane[batch_.list.commands[i].last_lane];
  }
}

// ---- the caller's side

void GateOpener::submit(Duration earliest) {
  earliest_ = earliest;
  finished_.store(false, std::memory_order_relaxed);
  batch_.backend.conductor.submit(*this);
}

void GateOpener::wait(WaitKind waiting) const {
  while (!finished()) {
    switch (waiting) {
      case WaitKind::Spin: break;
      case WaitKind::Yield: std::this_thread::yield(); break;
      case WaitKind::Block: finished_.wait(false, std::memory_order_acquire); break;
    }
  }
}

void GateOpener::begin_at_once() {
  finished_.store(false, std::memory_order_relaxed);
  const Duration now = batch_.backend.clock.now();
  begin(now);
  for (; next_opening_ < openings_.size(); ++next_opening_) batch_.opened[openings_[next_opening_].gate] = now;
  if (!batch_.backend.lost) enqueuer_.enqueue_due(Duration::max());
}

/// Only the pause before the look that sees the end can have made that late; one that was planned counts from its end.
bool GateOpener::look() {
  batch_.result.held_up = Duration{0};
  if (advance(batch_.backend.clock.now())) {
    finished_.store(true, std::memory_order_relaxed);
    return true;
  }
  if (batch_.backend.sleeps()) looked_ = next_question_;
  return false;
}

void GateOpener::open_all() const {
  for (const HostSignal<Count>& gate : batch_.gates) gate.set(batch_.run);
}

// ---- the conductor's side

void GateOpener::begin(Duration now) {
  batch_.result.start = batch_.result.finish = looked_ = now;
  next_opening_ = 0;
  unseen_ = 0;
  std::fill(seen_.begin(), seen_.end(), Count{0});
  for (const Lane& lane : batch_.lanes) unseen_ += lane.points.size();
  for (BatchDevice& device : batch_.devices)
    if (device.start)
      device.start->open(static_cast<TimerValue>(device.line.timer_at(now + kLead) + device.doubt.count()));
  next_question_ = now + std::min(batch_.bound.plan.timeline.latency + kAskAfter, limit_);
}

bool GateOpener::advance(Duration now) {
  if (batch_.backend.lost) {
    batch_.note(Error{ErrorCode::Machine, batch_.bound.name + " was not run: a GPU was lost before", {}});
    return true;
  }
  note_look(now);
  open_gates(now);
  see_progress();
  if (unseen_ == 0) return true;
  return now >= next_question_ && is_lost(now);
}

/// At the next gate, and when something may be wrong. The ends of lanes call the conductor.
Duration GateOpener::next_look() {
  looked_ = next_question_;
  if (!batch_.timed_by_gpus() && next_opening_ < openings_.size())
    looked_ = std::min(looked_, batch_.result.start + openings_[next_opening_].at);
  return looked_;
}

void GateOpener::finish() {
  MemoryPool::instance().end_run();
  finished_.store(true, std::memory_order_release);
  finished_.notify_all();
}

void GateOpener::open_gates(Duration now) {
  if (batch_.timed_by_gpus()) return;  // GPUs open their own gates
  const Duration since = now - batch_.result.start;
  for (; next_opening_ < openings_.size() && openings_[next_opening_].at <= since; ++next_opening_) {
    const std::uint32_t gate = openings_[next_opening_].gate;
    batch_.opened[gate] = now;
    batch_.gates[gate].set(batch_.run);
  }
  if (batch_.timed_by_host()) enqueuer_.enqueue_due(since);
}

/// The clock is read behind a signal that was seen, not before: a host that is held up in between would see the end
/// earlier than it was.
void GateOpener::see_progress() {
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const Lane& lane = batch_.lanes[i];
    const Count done = lane.progress.value() - lane.base;
    if (seen_[i] == done) continue;
    const Duration now = batch_.backend.clock.now();
    note_look(now);
    for (; seen_[i] < done; ++seen_[i], --unseen_) lane.points[seen_[i]]->seen = now;
    batch_.result.finish = now;
  }
}

/// A pause between two looks counts as the host's; of one that was planned, what it was too long.
void GateOpener::note_look(Duration now) {
  if (now - looked_ > kGlance) batch_.result.held_up += now - looked_;
  looked_ = now;
}

/// Whether a run behind its plan is lost: the driver reports a fault, or the time limit is over.
bool GateOpener::is_lost(Duration now) {
  const Duration since = now - batch_.result.start;
  next_question_ = since < limit_ ? now + std::min(kAskAfter, limit_ - since) : now;
  const auto [empty, fault, device] = ask_driver();
  if (fault != cudaSuccess) {
    batch_.backend.lose(device);
    batch_.note(Error{ErrorCode::Machine,
                      fmt::format("{}: {} has broken the GPU: {}, {}; nothing more can run on it", batch_.bound.name,
                                  text_of(first_unfinished()), cudaGetErrorName(fault), cudaGetErrorString(fault)),
                      {}});
    return true;
  }
  if (empty && batch_.is_broken()) return true;  // a command could not be enqueued, and will never end
  if (since < limit_) return false;
  const Command* const hangs = first_unfinished();
  batch_.backend.lose(batch_.lanes[hangs == nullptr ? 0 : hangs->last_lane].device);
  batch_.note(
      not_returned(batch_.backend.watchdog, batch_.bound.name, text_of(hangs), batch_.bound.plan.timeline.latency));
  return true;
}

GateOpener::Streams GateOpener::ask_driver() const {
  Streams streams;
  for (const Lane& lane : batch_.lanes) {
    const cudaError_t status = answer(cudaStreamQuery(lane.stream));
    if (status != cudaSuccess) streams.empty = false;
    if (status != cudaSuccess && status != cudaErrorNotReady) return {false, status, lane.device};
  }
  return streams;
}

/// The first unfinished command; null: there is none. A transfer breaks no GPU: on a broken one it is a kernel, if one
/// was under way.
const Command* GateOpener::first_unfinished() const {
  const Command* found = nullptr;
  for (std::uint32_t i = 0; i < next_.size(); ++i) {
    const auto& [point, step] = next_[i];
    const Command& command = batch_.list.commands[i];
    if (seen_[command.last_lane] >= step) continue;
    const cudaError_t status = point == nullptr ? cudaErrorNotReady : answer(cudaEventQuery(point->event.get()));
    if (status == cudaSuccess) continue;
    if (found == nullptr) found = &command;
    const bool broken = status != cudaErrorNotReady;
    if (!broken) break;
    if (!command.is_kernel()) continue;
    found = &command;
    break;
  }
  return found;
}

std::string GateOpener::text_of(const Command* command) const {
  if (command == nullptr) return "nothing";
  const CommandStream& stream = batch_.stream_of(*command);
  return command->is_kernel() ? fmt::format("kernel '{}' of stream '{}'{}", stream.kernel->name, stream.name,
                                            command->mark == Mark::None ? ", or one behind it," : "")
                              : fmt::format("the transfer of stream '{}'", stream.name);
}

}  // namespace tutti::internal::cuda
