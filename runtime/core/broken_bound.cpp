#include "runtime/core/broken_bound.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace tutti::internal {
namespace {

constexpr std::array<std::string_view, kBoundCauses> kNames{"trigger", "release", "gate",     "blocking", "transfer",
                                                            "kernel",  "host",    "dispatch", "foreign",  "unknown"};

/// Start and end of a stream's transfer or kernel.
Extent span_of(const Timeline& timeline, std::uint32_t stream, bool kernel) {
  const StreamTimeline& line = timeline.streams[stream];
  return kernel ? Extent{line.kernel->start, line.kernel->end} : Extent{line.transfer->start, line.transfer->end};
}

}  // namespace

std::string_view to_string(BoundCause cause) { return kNames[static_cast<std::size_t>(cause)]; }

void Excesses::add(BoundCause cause, Duration excess) {
  if (excess > Duration{0}) of_[static_cast<std::size_t>(cause)] += excess;
}

void Excesses::raise(BoundCause cause, Duration excess) {
  Duration& of = of_[static_cast<std::size_t>(cause)];
  of = std::max(of, excess);
}

BoundCause Excesses::largest() const {
  const auto most = std::ranges::max_element(of_);  // the first of equals
  return *most > Duration{0} ? static_cast<BoundCause>(most - of_.begin()) : BoundCause::Unknown;
}

BatchPromise::BatchPromise(const ExecutionPlan& plan)
    : last_(plan.timeline.streams.size()), latest_(plan.latest.value()) {
  find_commands(plan);
  paths_.resize(commands_.size());
  extents_.resize(commands_.size());
  order_.resize(commands_.size());
  std::iota(order_.begin(), order_.end(), 0U);
  follow(plan.timeline, [&](std::uint32_t c, const Path& before) {
    Command& command = commands_[c];
    const Extent span = span_of(plan.timeline, command.stream, command.kernel);
    const Duration gate = plan.timeline.streams[command.stream].gate;
    command.opens = before.end <= gate ? std::max(span.start, gate) : gate;
    command.planned = span.end - (command.opener ? span.start : std::min(before.end, span.start));
    last_[command.stream] = c;
    paths_[c].end = span.end;
  });
}

void BatchPromise::find_commands(const ExecutionPlan& plan) {
  std::uint32_t queues = 0, locks = 0;
  for (const PlannedCommand& planned : plan.commands) {
    const auto& kernel = plan.batch.streams()[planned.stream].kernel;
    const bool host = planned.kernel && plan.machine().vertex(kernel->on).kind == VertexKind::Cpu;
    commands_.push_back({.stream = planned.stream,
                         .kernel = planned.kernel,
                         .host = host,
                         .opener = planned.queue == queues,
                         .queue = planned.queue,
                         .locks = planned.locks});
    queues = planned.queue + 1;
    for (const std::uint32_t lock : planned.locks)
      if (lock != kNone) locks = std::max(locks, lock + 1);
  }
  in_queue_.resize(queues);
  on_lock_.resize(locks);
}

template <class Visit>
void BatchPromise::follow(const Timeline& timeline, const Visit& visit) {
  // Starts are rounded down and ends up, so that a command may seem to start before the one that it follows in its
  // queue.
  for (std::uint32_t c = 0; c < commands_.size(); ++c) {
    const auto [start, end] = span_of(timeline, commands_[c].stream, commands_[c].kernel);
    const Extent before = commands_[c].opener ? Extent{} : extents_[c - 1];
    extents_[c] = {std::max(start, before.start), std::max(end, before.end)};
  }
  std::ranges::sort(order_, {}, [&](std::uint32_t c) { return std::tuple(extents_[c].start, extents_[c].end, c); });
  std::ranges::fill(in_queue_, kNone);
  std::ranges::fill(on_lock_, kNone);
  for (const std::uint32_t c : order_) {
    Path before;
    const auto wait_for = [&](std::uint32_t& last) {
      if (last != kNone && last != c && paths_[last].end > before.end) before = paths_[last];
      last = c;
    };
    wait_for(in_queue_[commands_[c].queue]);
    for (const std::uint32_t lock : commands_[c].locks)
      if (lock != kNone) wait_for(on_lock_[lock]);
    visit(c, before);
  }
}

BoundCause BatchPromise::cause_of(const Timeline& measured) {
  Excesses excesses;
  Duration end{};
  follow(measured, [&](std::uint32_t c, const Path& before) {
    const Command& command = commands_[c];
    const Extent span = span_of(measured, command.stream, command.kernel);
    Path path = before;
    Duration begin = path.end;
    if (command.opener) {
      if (command.opens >= path.end) path = {};  // it waited for its own gate last
      begin = std::max(path.end, command.opens);
      const Duration late = std::max(span.start - begin, Duration{0});
      path.gate += late;
      excesses.raise(BoundCause::Gate, late);
      begin += late;
    }
    const Duration excess = span.end - begin - command.planned;
    (command.host ? path.host : command.kernel ? path.kernel : path.transfer) += excess;
    if (command.kernel) excesses.raise(command.host ? BoundCause::Host : BoundCause::Kernel, excess);
    path.end = span.end;
    paths_[c] = path;
    end = std::max(end, span.end);
  });
  for (const std::uint32_t last : last_) {
    const Path& path = paths_[last];
    if (path.end <= latest_.batch) continue;
    excesses.raise(BoundCause::Gate, path.gate);
    excesses.raise(BoundCause::Transfer, path.transfer);
    excesses.raise(BoundCause::Kernel, path.kernel);
    excesses.raise(BoundCause::Host, path.host);
  }
  excesses.add(BoundCause::Dispatch, measured.latency - end);
  return excesses.largest();
}

}  // namespace tutti::internal
