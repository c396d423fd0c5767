#include "model/batch_chains.hpp"

#include <algorithm>
#include <cmath>

#include "model/room.hpp"

namespace tutti {
namespace {

double as_ns(Duration time) { return static_cast<double>(time.count()); }

}  // namespace

void BatchChains::load(const Topology& machine, Basis basis, const BatchOperation& batch, RateRule rule,
                       BandwidthModel& bandwidth) {
  const auto streams = batch.streams();
  make_room_for(machine, streams.size());
  merge_streams(machine, batch);
  bandwidth.reset(machine, basis, 2 * streams.size());
  setup_ = as_ns(machine.setup().transfer);
  constexpr double kWhole = 0x1p53;  // no transfer is larger
  const auto chunk = static_cast<double>(machine.staging_chunk().count);
  chunk_ = chunk > 0 ? chunk : kWhole;
  next_epoch();  // the locks get their owners anew, to see who meets
  contended_ = false;
  step_count_ = 0;
  for (std::uint32_t c = 0; c < chain_count_; ++c) {
    chains_[c].begin = step_count_;
    for (std::uint32_t s = head_[c]; s != Step::kNone; s = next_[s])
      if (streams[s].transfer) add_transfer(c, s, streams[s].transfer->size, bandwidth);
    for (std::uint32_t s = head_[c]; s != Step::kNone; s = next_[s])
      if (streams[s].kernel) add_kernel(machine, c, s, *streams[s].kernel, basis);
    chains_[c].end = step_count_;
  }
  bandwidth.finish(rule);
}

inline void BatchChains::make_room_for(const Topology& machine, std::size_t streams) {
  constexpr std::size_t kMostSteps = 4;  // set-up, lead and data of a transfer, and a kernel
  engine_count_ = machine.engine_count();
  make_room(owner_, engine_count_ + machine.vertices().size());
  if (streams <= chains_.size()) return;
  chains_.resize(streams);
  steps_.resize(kMostSteps * streams);
  chain_of_.resize(streams);
  next_.resize(streams);
  head_.resize(streams);
  tail_.resize(streams);
  ways_.resize(streams);
  routes_.resize(streams);
}

/// Forgets who owns the locks, without touching them all.
inline void BatchChains::next_epoch() {
  if (++epoch_ == 0) {
    std::fill(owner_.begin(), owner_.end(), 0);
    epoch_ = 1;
  }
}

// ---- streams -> chains

/// A chain bears the number of its first stream.
inline void BatchChains::merge_streams(const Topology& machine, const BatchOperation& batch) {
  const auto streams = batch.streams();
  const auto count = static_cast<std::uint32_t>(streams.size());
  const DirectWays& ways = machine.direct_ways();
  merging_ = batch.merging();
  next_epoch();
  for (std::uint32_t s = 0; s < count; ++s) {
    chain_of_[s] = s;
    if (!streams[s].transfer) continue;
    const Transfer& transfer = *streams[s].transfer;
    ways_[s] = transfer.route.empty() ? ways.find(transfer.from, transfer.to) : nullptr;
    if (ways_[s] == nullptr) routes_[s] = find_route(machine, transfer);
    if (!merging_) continue;
    chain_of_[s] = ways_[s] != nullptr ? owner_of(ways_[s]->engine, s) : join_owners(routes_[s].engines, s);
  }
  chain_count_ = 0;
  for (std::uint32_t s = 0; s < count; ++s) {
    const std::uint32_t chain = chain_of_[s];
    if (chain == s) {
      head_[chain_count_++] = s;
    } else {
      next_[tail_[chain]] = s;
    }
    tail_[chain] = s;
    next_[s] = Step::kNone;
  }
}

/// The chain that owns an engine; the stream's own if that is the first to use it.
inline std::uint32_t BatchChains::owner_of(EngineId engine, std::uint32_t stream) {
  std::uint64_t& owner = owner_[engine.index()];
  if (owner >> 32 != epoch_) owner = std::uint64_t{epoch_} << 32 | stream;
  return static_cast<std::uint32_t>(owner);
}

/// The same for two engines; makes one chain of two.
std::uint32_t BatchChains::join_owners(std::array<EngineId, 2> engines, std::uint32_t stream) {
  const auto [kept, gone] = std::minmax({owner_of(engines[0], stream), owner_of(engines[1], stream)});
  const std::uint64_t epoch = std::uint64_t{epoch_} << 32;
  for (const EngineId engine : engines) owner_[engine.index()] = epoch | kept;
  if (gone == kept || gone == stream) return kept;
  for (std::uint32_t s = 0; s < stream; ++s)
    if (chain_of_[s] == gone) chain_of_[s] = kept;
  for (std::size_t e = 0; e < engine_count_; ++e)
    if (owner_[e] == (epoch | gone)) owner_[e] = epoch | kept;
  return kept;
}

// ---- chains -> steps

/// Notes that a chain uses a lock, and whether another one does too.
inline void BatchChains::claim(std::uint32_t chain, std::uint32_t lock) {
  if (lock == Step::kNone) return;
  const std::uint64_t mine = std::uint64_t{epoch_} << 32 | chain;
  contended_ |= owner_[lock] >> 32 == epoch_ && owner_[lock] != mine;
  owner_[lock] = mine;
}

inline void BatchChains::add_transfer(std::uint32_t chain, std::uint32_t stream, Bytes size,
                                      BandwidthModel& bandwidth) {
  const std::uint32_t begin = step_count_;
  const DirectWay* const way = ways_[stream];
  const auto bytes = static_cast<double>(size.count);
  Step step;
  step.stream = stream;
  if (way != nullptr) {
    step.locks[0] = way->engine.value;
  } else {
    const auto [one, other] = routes_[stream].engines;
    step.locks = {one.value, other == one ? Step::kNone : other.value};
  }
  if (!merging_)  // merged, an engine has but one chain
    for (const std::uint32_t lock : step.locks) claim(chain, lock);
  if (size.count == 0) {
    add_step(step);
  } else if (way == nullptr) {
    add_routed(step, bytes, routes_[stream], bandwidth);
  } else {
    step.amount = setup_;
    if (setup_ > 0) add_step(step);
    step.flow = bandwidth.add_flow(stream, *way);
    step.amount = bytes;
    step.data = true;
    add_step(step);
  }
  steps_[begin].first = true;
  steps_[step_count_ - 1].last = true;
}

/// A transfer over a way that the machine does not keep ready.
///
/// A staged copy is one flow over the links of both legs, at the rate of the slower, after a lead in which its first
/// chunk crosses the first leg; every chunk pays the set-up. (The published method has two flows with rates of their
/// own: the faster first leg would run ahead without limit, which a bounded buffer cannot execute.)
void BatchChains::add_routed(Step step, double bytes, const RouteView& route, BandwidthModel& bandwidth) {
  const bool staged = route.path == CopyPath::Staged;
  step.amount = staged ? setup_ * std::ceil(bytes / chunk_) : setup_;
  if (setup_ > 0) add_step(step);
  if (staged) {
    step.flow = bandwidth.add_flow(step.stream, route.first, {}, route.weight);
    step.amount = std::min(chunk_, bytes);
    add_step(step);
  }
  step.flow = bandwidth.add_flow(step.stream, route.first, route.second, route.weight);
  step.amount = bytes;
  step.data = true;
  add_step(step);
}

inline void BatchChains::add_kernel(const Topology& machine, std::uint32_t chain, std::uint32_t stream,
                                    const Kernel& kernel, Basis basis) {
  Step step;
  step.amount = as_ns(basis == Basis::Nominal ? kernel.time : kernel.worst);
  step.stream = stream;
  step.kernel = step.first = step.last = true;
  if (machine.direct_ways().gpu[kernel.on.index()] != DirectWays::kNone) {
    step.locks[0] = static_cast<std::uint32_t>(engine_count_ + kernel.on.index());
    claim(chain, step.locks[0]);
  }
  add_step(step);
}

}  // namespace tutti
