#include "runtime/cuda/batches/run_times.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace tutti::internal::cuda {
namespace {

/// Most by which a kernel may exceed its declared worst time without counting as an overrun: from a copy's end until
/// the recorded end of the kernel behind it, 16 us go by that are not the kernel's.
constexpr double kOverrunSlackNs = 20000;
/// Time from a kernel's end until the kernel behind it runs.
constexpr double kLaunchNs = 2000;

Duration to_duration(double ns) { return Duration{static_cast<std::int64_t>(std::llround(ns))}; }
double as_double(Duration duration) { return static_cast<double>(duration.count()); }

}  // namespace

RunTimes::RunTimes(BoundBatch& batch) : batch_(batch), origins_(batch.devices.size()) {
  for (const KernelRun& run : batch.list.kernels)
    before_.push_back(batch.list.commands[run.first].is_released() ? kNone : before_in_lane(run.first));
  std::vector<bool> opened(batch.list.lanes.size());
  for (std::uint32_t i = 0; i < batch.list.commands.size(); ++i) {
    const Command& command = batch.list.commands[i];
    if (!command.gate || !command.opens || opened[command.lane]) continue;
    opened[command.lane] = true;
    openers_.push_back(i);
  }
}

std::uint32_t RunTimes::before_in_lane(std::uint32_t position) const {
  const auto& commands = batch_.list.commands;
  for (std::uint32_t before = position; before-- > 0;)
    if (commands[before].last_lane == commands[position].lane) return before;
  return kNone;
}

void RunTimes::clear() { std::fill(origins_.begin(), origins_.end(), Origin{}); }

void RunTimes::read() {
  set_origins();
  if (batch_.backend.sleeps() && !batch_.timed_by_gpus()) count_doubt();
  learn_timers();
  if (!batch_.result.error) count_overruns();
}

void RunTimes::set_origins() {
  clear();
  set_by_signals();
  if (batch_.backend.sleeps() && batch_.timed_by_gpus()) set_by_timers();
  set_by_gates();
}

/// An event follows its signal, which is seen at about that instant or later, so the least difference is the most
/// accurate.
void RunTimes::set_by_signals() {
  constexpr Duration kPatience = std::chrono::milliseconds{1};
  const Clock& clock = batch_.backend.clock;
  const Duration limit = clock.now() + kPatience;
  for (const Lane& lane : batch_.lanes) {
    Origin& origin = origins_[lane.place];
    const cudaEvent_t last = lane.points.back()->event.get();
    while (answer(cudaEventQuery(last)) == cudaErrorNotReady && clock.now() < limit) continue;  // 1 or 2 us
    for (const Point* point : lane.points) {
      if (origin.event == nullptr) origin = {&point->event, std::numeric_limits<double>::infinity()};
      const double after = elapsed_ns(*origin.event, point->event).value_or(0);
      origin.at = std::min(origin.at, as_double(point->seen) - after);
    }
  }
}

/// Finds the earliest origin of each GPU by commands that did not start before some instant.
/// @param earliest_start  (position) -> ns; nothing: not known
template <class EarliestStart>
void RunTimes::find_earliest(const EarliestStart& earliest_start) {
  for (Origin& origin : origins_) origin.earliest = -std::numeric_limits<double>::infinity();
  for (std::uint32_t i = 0; i < batch_.points.size(); ++i) {
    const Event& start = batch_.points[i].start;
    Origin& origin = origins_[batch_.lanes[batch_.list.commands[i].lane].place];
    if (!start || origin.event == nullptr) continue;
    const std::optional<double> instant = earliest_start(i);
    const auto after = elapsed_ns(*origin.event, start);
    if (instant && after) origin.earliest = std::max(origin.earliest, *instant - *after);
  }
}

/// The event of a start follows the timer value of its release by 1 or 2 us: ends are at most 1 us too early.
void RunTimes::set_by_timers() {
  constexpr double kFollowsNs = 1000;
  find_earliest([&](std::uint32_t i) { return std::optional(start_of(i) + kFollowsNs); });
  for (Origin& origin : origins_)
    if (std::isfinite(origin.earliest)) origin.at = std::min(origin.at, origin.earliest);
}

/// Where an event came later than its signal the origin is too early: no command starts before its gate is to open.
void RunTimes::set_by_gates() {
  for (const std::uint32_t opener : openers_) {
    const Command& command = batch_.list.commands[opener];
    const Event& start = batch_.points[opener].start;
    Origin& origin = origins_[batch_.lanes[command.lane].place];
    if (!start || origin.event == nullptr) continue;
    const Duration gate = batch_.result.start + batch_.list.gates[*command.gate];
    if (const auto after = elapsed_ns(*origin.event, start)) origin.at = std::max(origin.at, as_double(gate) - *after);
  }
}

/// By how much the host may have seen the end late: no command starts before its gate was opened.
void RunTimes::count_doubt() {
  find_earliest([&](std::uint32_t i) {
    const auto gate = batch_.list.commands[i].gate;
    return gate ? std::optional(as_double(batch_.opened[*gate])) : std::nullopt;
  });
  double doubt = 0;
  for (const Origin& origin : origins_)
    if (std::isfinite(origin.earliest)) doubt = std::max(doubt, origin.at - origin.earliest);
  batch_.result.held_up += to_duration(doubt);
}

void RunTimes::learn_timers() {
  for (const BatchDevice& device : batch_.devices) {
    const TimerValue seen = device.start ? device.start->seen() : 0;
    if (seen != 0) device.timer->add_seen(batch_.stored, seen);
  }
}

void RunTimes::count_overruns() {
  for (std::size_t i = 0; i < before_.size(); ++i) {
    const KernelRun& run = batch_.list.kernels[i];
    // The start of what is enqueued when it is due is recorded before the kernel can be there.
    const double start =
        std::max(before_[i] == kNone ? start_of(run.first) : end_of(before_[i]), as_double(batch_.enqueued));
    const double slack = kOverrunSlackNs + kLaunchNs * (run.count - 1);
    if (end_of(run.last) - start > as_double(run.worst) + slack) ++batch_.result.overruns;
  }
}

double RunTimes::instant(const Event& event, std::uint32_t lane) const {
  const Origin& origin = origins_[batch_.lanes[lane].place];
  if (origin.event == nullptr) return as_double(batch_.result.start);  // a run that failed
  return origin.at + elapsed_ns(*origin.event, event).value_or(0);
}

double RunTimes::start_of(std::uint32_t position) const {
  const CommandPoints& points = batch_.points[position];
  const std::uint32_t lane = batch_.list.commands[position].lane;
  if (points.released.on_gpu() == nullptr) return instant(points.start, lane);
  return batch_.devices[batch_.lanes[lane].place].line.host_at(static_cast<std::int64_t>(points.released.value()));
}

double RunTimes::end_of(std::uint32_t position) const {
  return instant(batch_.points[position].end.event, batch_.list.commands[position].last_lane);
}

std::vector<CommandTimes> RunTimes::times() const {
  std::vector<CommandTimes> times(batch_.points.size());
  // The GPU's clock and the host's agree to some microseconds, and nothing happened outside the run.
  const auto within_run = [&](double at) {
    return std::clamp(at, as_double(batch_.result.start), as_double(batch_.result.finish));
  };
  for (std::uint32_t i = 0; i < times.size(); ++i) {
    const Command& command = batch_.list.commands[i];
    if (command.notes_start()) times[i].start = within_run(start_of(i));
    if (command.mark != Mark::None) times[i].end = within_run(end_of(i));
  }
  share_out(batch_.list, times);
  return times;
}

Timeline RunTimes::measured() const {
  Timeline timeline = batch_.bound.plan.timeline;
  const Duration began = batch_.result.start;
  timeline.latency = batch_.result.finish - began;
  const std::vector<CommandTimes> times = this->times();
  const auto since_start = [&](double at) {  // rounded
    return std::clamp(to_duration(at) - began, Duration{0}, timeline.latency);
  };
  for (std::uint32_t i = 0; i < times.size(); ++i) {
    const Command& command = batch_.list.commands[i];
    StreamTimeline& line = timeline.streams[command.stream];
    const Duration start = since_start(times[i].start);
    if (command.is_kernel()) {
      line.kernel->start = start;
      line.kernel->end = std::max(since_start(times[i].end), start);
      continue;
    }
    if (command.opens) line.transfer->start = start;
    if (!command.closes) continue;
    line.transfer->end = std::max(since_start(times[i].end), line.transfer->start);
    line.transfer->segments = {
        {line.transfer->start, line.transfer->end, batch_.stream_of(command).transfer->size, RateSource::Graph}};
  }
  return timeline;
}

}  // namespace tutti::internal::cuda
