#include "runtime/broken_bound.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tutti {
namespace {

constexpr std::array<std::string_view, kBoundCauses> kNames{"trigger", "release", "gate",     "blocking", "transfer",
                                                            "kernel",  "host",    "dispatch", "foreign",  "unknown"};

/// When a stream's transfer or kernel runs.
struct Span {
  Duration start{}, end{};
};

Span span_of(const Timeline& timeline, std::uint32_t stream, bool kernel) {
  const StreamTimeline& line = timeline.streams[stream];
  return kernel ? Span{line.kernel->start, line.kernel->end} : Span{line.transfer->start, line.transfer->end};
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

BatchPromise::BatchPromise(const BatchOperation& batch, const Timeline& plan, LatestFinish latest)
    : last_(plan.streams.size()), latest_(std::move(latest)) {
  for (std::uint32_t s = 0; s < plan.streams.size(); ++s) {
    const auto& kernel = batch.streams()[s].kernel;
    if (plan.streams[s].transfer) commands_.push_back({.stream = s});
    if (!kernel) continue;
    const bool host = batch.machine().vertex(kernel->on).kind == VertexKind::Cpu;
    commands_.push_back({.stream = s, .kernel = true, .host = host});
  }
  std::ranges::sort(commands_, {}, [&](const Command& command) {
    const Span span = span_of(plan, command.stream, command.kernel);
    return std::tuple(span.start, span.end, command.kernel, command.stream);
  });
  add_afters(batch, plan);
  paths_.resize(commands_.size());
}

/// What each command waits for: the one before it on an engine or a GPU; a kernel also for its own transfer, and for the
/// transfers and kernels of streams that its own is merged with, as far as they come before it.
void BatchPromise::add_afters(const BatchOperation& batch, const Timeline& plan) {
  /// The last of what was planned so far.
  struct Last {
    std::uint32_t transfer = kNone, kernel = kNone;
  };
  std::vector<Last> on_engine;
  std::vector<std::uint32_t> on_gpu(batch.machine().vertices().size(), kNone);
  std::vector<std::uint32_t> transfer_of(plan.streams.size(), kNone);
  for (std::uint32_t c = 0; c < commands_.size(); ++c) {
    Command& command = commands_[c];
    const StreamWork& work = batch.work()[command.stream];
    const bool copies = plan.streams[command.stream].transfer.has_value();
    const Span span = span_of(plan, command.stream, command.kernel);
    Duration ready{};
    const auto add = [&](std::uint32_t before) {
      if (before == kNone) return;
      const Command& other = commands_[before];
      const Duration end = span_of(plan, other.stream, other.kernel).end;
      if (end > span.start + Duration{1}) return;  // they overlap, so neither waits; plans are exact to 1 ns
      const auto known = command.after.begin() + command.afters;
      if (std::find(command.after.begin(), known, before) != known) return;
      command.after[command.afters++] = before;
      ready = std::max(ready, end);
    };
    for (const EngineId engine : work.engines) {
      if (!copies || (command.kernel && !batch.merging())) continue;
      if (on_engine.size() <= engine.index()) on_engine.resize(engine.index() + 1);
      Last& last = on_engine[engine.index()];
      add(last.transfer);
      if (command.kernel) add(last.kernel);
      (command.kernel ? last.kernel : last.transfer) = c;
    }
    if (command.kernel) {
      add(transfer_of[command.stream]);
      if (work.gpu != kNone) add(std::exchange(on_gpu[work.gpu], c));
    } else {
      transfer_of[command.stream] = c;
    }
    const Duration gate = plan.streams[command.stream].gate;
    command.gated = command.afters == 0 || (!(command.kernel && copies) && ready <= gate);
    command.opens = std::max(span.start, gate + gate_allowance(batch.machine()));
    command.planned = span.end - (command.gated ? span.start : ready);
    last_[command.stream] = c;
  }
}

BoundCause BatchPromise::cause_of(const Timeline& measured) {
  Excesses excesses;
  Duration end{};
  for (std::uint32_t c = 0; c < commands_.size(); ++c) {
    const Command& command = commands_[c];
    const Span span = span_of(measured, command.stream, command.kernel);
    Path path;
    for (std::uint8_t i = 0; i < command.afters; ++i)
      if (const Path& before = paths_[command.after[i]]; before.end > path.end) path = before;
    Duration begin = path.end;
    if (command.gated) {
      if (command.opens >= path.end) path = {};  // its own gate is what it waited for
      begin = std::max(path.end, command.opens);
      const Duration late = span.start - begin;
      if (late > Duration{0}) path.gate += late;
      excesses.raise(BoundCause::Gate, late);
      begin = std::max(begin, span.start);
    }
    const Duration excess = span.end - begin - command.planned;
    (command.host ? path.host : command.kernel ? path.kernel : path.transfer) += excess;
    if (command.kernel) excesses.raise(command.host ? BoundCause::Host : BoundCause::Kernel, excess);
    path.end = span.end;
    paths_[c] = path;
    end = std::max(end, span.end);
  }
  for (std::size_t s = 0; s < last_.size(); ++s) {
    const Path& path = paths_[last_[s]];
    if (path.end <= latest_.streams[s]) continue;
    excesses.raise(BoundCause::Gate, path.gate);
    excesses.raise(BoundCause::Transfer, path.transfer);
    excesses.raise(BoundCause::Kernel, path.kernel);
    excesses.raise(BoundCause::Host, path.host);
  }
  excesses.add(BoundCause::Dispatch, measured.latency - end);
  return excesses.largest();
}

}  // namespace tutti
