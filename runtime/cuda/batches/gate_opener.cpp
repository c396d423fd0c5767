#include "runtime/cuda/batches/gate_opener.hpp"

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "runtime/core/watchdog.hpp"
#include "runtime/cuda/batches/command_names.hpp"
#include "runtime/cuda/batches/suspects.hpp"

namespace tutti::internal::cuda {
namespace {

/// How long a run may be behind its plan before the driver is asked whether something is wrong, and how often.
constexpr Duration kAskAfter = std::chrono::milliseconds{20};
/// The host polls a run every microsecond or so; from a pause of this length on it was held up.
constexpr Duration kGlance = std::chrono::microseconds{10};
/// How often a host that sleeps, and waits after each command, looks whether the command has ended.
constexpr Duration kSerialLook = std::chrono::microseconds{200};

/// Commands that go one at a time take as long as all of them together.
Duration planned_length(const BoundBatch& batch) {
  Duration planned = batch.bound.plan.timeline.latency;
  if (!batch.backend.serialize) return planned;
  for (const Command& command : batch.list.commands) planned += command.planned;
  return planned;
}

/// How a message with several names ends.
std::string_view hint_for(std::span<const std::string> names) {
  return names.size() > 1 ? "; --serialize names the one" : "";
}

}  // namespace

GateOpener::GateOpener(BoundBatch& batch, Enqueuer& enqueuer)
    : batch_(batch),
      enqueuer_(enqueuer),
      planned_(planned_length(batch)),
      limit_(batch.backend.watchdog.limit(planned_)),
      seen_(batch.lanes.size()) {
  for (std::uint32_t gate = 0; gate < batch.list.gates.size(); ++gate)
    openings_.push_back({batch.list.gates[gate], gate});
  std::stable_sort(openings_.begin(), openings_.end(), [](const Opening& a, const Opening& b) { return a.at < b.at; });
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
    range_.end();
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

Duration GateOpener::may_begin() const { return batch_.timed_by_gpus() ? earliest_ - kMostAhead : earliest_; }

void GateOpener::begin(Duration now) {
  const Duration start = std::max(now, earliest_);
  range_ = ToolRange::of_batch(batch_.shown_as, batch_.job);
  batch_.stored = looked_ = now;
  batch_.result.start = batch_.result.finish = start;
  next_opening_ = 0;
  unseen_ = 0;
  std::fill(seen_.begin(), seen_.end(), Count{0});
  for (const Lane& lane : batch_.lanes) unseen_ += lane.points.size();
  // A start so far ahead that all GPUs have it in time needs no lead.
  const Duration open = std::max(now + kLead, start);
  for (BatchDevice& device : batch_.devices)
    if (device.start && batch_.follows == nullptr)
      device.start->open(static_cast<TimerValue>(device.line.timer_at(open) + device.doubt.count()), open == start);
  next_question_ = start + std::min(planned_ + kAskAfter, limit_);
}

bool GateOpener::advance(Duration now) {
  if (batch_.backend.lost) {
    batch_.note(Error{ErrorCode::Machine, batch_.bound.name + " was not run: a GPU was lost before", {}});
    return true;
  }
  note_look(now);
  open_gates(now);
  see_progress();
  if (unseen_ == 0) {
    if (batch_.follows != nullptr) batch_.result.start = start_of_linked();
    return true;
  }
  return now >= next_question_ && is_lost(now);
}

/// A run that followed another one has started when its first GPU saw that one's end.
Duration GateOpener::start_of_linked() const {
  Duration start = batch_.result.finish;
  for (const BatchDevice& device : batch_.devices)
    if (const TimerValue began = device.began.value(); began != 0)  // otherwise no stream of it has a gate
      start = std::min(start, round_down_ns(device.line.host_at(static_cast<std::int64_t>(began))));
  return start;
}

/// At the next gate, and when something may be wrong. The ends of lanes call the conductor.
Duration GateOpener::next_look() {
  looked_ = next_question_;
  if (batch_.backend.serialize) looked_ = std::min(looked_, batch_.backend.clock.now() + kSerialLook);
  if (!batch_.timed_by_gpus() && next_opening_ < openings_.size())
    looked_ = std::min(looked_, batch_.result.start + openings_[next_opening_].at);
  return looked_;
}

void GateOpener::finish() {
  MemoryPool::instance().end_run();
  range_.end();
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
    batch_.result.gates_late = std::max(batch_.result.gates_late, since - openings_[next_opening_].at);
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
    batch_.result.finish = std::max(now, batch_.result.start);  // of a start ahead, which is the timers'
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
    note_fault(fault);
    return true;
  }
  if (empty && batch_.is_broken()) return true;  // a command could not be enqueued, and will never end
  if (since < limit_) return false;
  note_hang();
  return true;
}

void GateOpener::note_fault(cudaError_t fault) {
  std::vector<std::string> names = names_of_suspects();
  if (batch_.bound.overlaps) add_names_of_others(names);
  if (names.empty()) names = names_of(batch_, in_flight());
  batch_.note(Error{ErrorCode::Machine,
                    fmt::format("{}: {} has broken the GPU: {}, {}; nothing more can run on it{}", batch_.bound.name,
                                any_of(names), cudaGetErrorName(fault), cudaGetErrorString(fault), hint_for(names)),
                    {}});
}

/// Operations that overlap may have broken the GPU for each other.
void GateOpener::add_names_of_others(std::vector<std::string>& names) const {
  for (GateOpener* other : batch_.backend.overlapping) {
    if (other == this) continue;
    for (const std::string& name : other->names_of_suspects())
      names.push_back(fmt::format("{} ({})", name, other->batch_.bound.name));
  }
}

void GateOpener::note_hang() {
  const std::vector<std::uint32_t> hang = in_flight();
  const std::vector<std::string> names = names_of(batch_, hang);
  batch_.backend.lose(batch_.lanes[hang.empty() ? 0 : batch_.list.commands[hang.front()].last_lane].device);
  Error error = not_returned(batch_.backend.watchdog, batch_.bound.name, any_of(names), planned_);
  error.message += hint_for(names);
  batch_.note(std::move(error));
}

std::vector<std::uint32_t> GateOpener::in_flight() const {
  std::vector<bool> opened(batch_.gates.size(), true);
  if (!batch_.timed_by_gpus())
    for (std::size_t i = next_opening_; i < openings_.size(); ++i) opened[openings_[i].gate] = false;
  return commands_in_flight(batch_.list, progress_of(batch_, enqueuer_, seen_, std::move(opened)));
}

/// A GPU that is broken sets no signal any more: what was set before is seen now.
std::vector<std::string> GateOpener::names_of_suspects() {
  see_progress();
  return names_of(batch_, suspects_of_fault(batch_, in_flight()));
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

}  // namespace tutti::internal::cuda
