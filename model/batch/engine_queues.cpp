#include "model/batch/engine_queues.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/grow_to.hpp"
#include "model/batch/command_costs.hpp"

namespace tutti::internal {
void EngineQueues::load(const Topology& machine, Basis basis, const Batch& batch, RateRule rule,
                        BandwidthModel& bandwidth) {
  work_ = batch.work();
  streams_ = batch.streams();
  rule_ = rule;
  basis_ = basis;
  setup_ = &machine.setup();
  grow_for(machine, work_.size());
  merge_streams(batch);
  constexpr std::size_t kMostFlows = 2;  // pipeline fill and data of a staged copy
  bandwidth.reset(machine, basis, batch.own_classes(), kMostFlows * work_.size());
  if (rule == RateRule::Allocated) shares_.load(machine, basis, batch);
  if (rule == RateRule::Static) shares_.load(machine, basis, batch, batch.application());
  step_count_ = 0;
  contended_ = false;
  handover_ = as_ns(setup_->handover.at(basis));
  turn_ = as_ns(setup_->turn.at(basis));
  if (handover_ > 0) find_lock_users();
  for (std::uint32_t c = 0; c < queue_count_; ++c) {
    queues_[c].begin = step_count_;
    opening_ = as_ns(setup_->gate.at(basis));
    last_copy_ = kNone;
    classes_ = 0;
    firsts_ = 0;
    handed_over_ = false;
    if (handover_ > 0) find_lock_users_of(c);
    for (std::uint32_t s = head_[c]; s != kNone; s = next_[s])
      if (work_[s].route_class != kNone) add_transfer(c, s, bandwidth);
    for (std::uint32_t s = head_[c]; s != kNone; s = next_[s])
      if (work_[s].has_kernel) add_kernel(c, s);
    queues_[c].end = step_count_;
    steps_[queues_[c].begin].queue_first = true;
    steps_[step_count_ - 1].queue_last = true;
  }
  bandwidth.finish();
}

inline void EngineQueues::grow_for(const Topology& machine, std::size_t streams) {
  constexpr std::size_t kMostSteps = 4;  // set-up, pipeline fill and data of a transfer, and a kernel
  constexpr double kWhole = 0x1p53;      // no transfer is larger
  const auto chunk = static_cast<double>(machine.staging_chunk().count);
  chunk_ = chunk > 0 ? chunk : kWhole;
  engine_count_ = static_cast<std::uint32_t>(machine.engine_count());
  vertex_count_ = static_cast<std::uint32_t>(machine.vertices().size());
  grow_to(owner_, engine_count_ + vertex_count_ + machine.links().size());
  if (streams <= queues_.size()) return;
  queues_.resize(streams);
  steps_.resize(kMostSteps * streams);
  queue_of_.resize(streams);
  next_.resize(streams);
  head_.resize(streams);
  tail_.resize(streams);
}

/// Forgets the owners of all locks, without touching each.
inline void EngineQueues::next_epoch() {
  if (++epoch_ == 0) {
    std::fill(owner_.begin(), owner_.end(), 0);
    epoch_ = 1;
  }
}

// ---- streams -> queues

/// An engine queue bears the number of its first stream.
inline void EngineQueues::merge_streams(const Batch& batch) {
  const auto count = static_cast<std::uint32_t>(work_.size());
  const std::span<const std::uint32_t> order = batch.order();
  const auto at = [&](std::uint32_t i) { return order.empty() ? i : order[i]; };
  merging_ = batch.merging();
  shares_engines_ = batch.shares_engines();
  next_epoch();
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t s = at(i);
    queue_of_[s] = s;
    if (merging_ == Merging::Off || work_[s].route_class == kNone) continue;
    const auto [one, other] = work_[s].engines;
    const bool joins = merging_ == Merging::Transitive && one != other;
    queue_of_[s] = joins ? join_owners(work_[s].engines, s) : owner_of(one, s);
  }
  if (shares_engines_) next_epoch();  // owners of locks are queues from here on
  queue_count_ = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t s = at(i);
    const std::uint32_t queue = queue_of_[s];
    if (queue == s) {
      head_[queue_count_++] = s;
    } else {
      next_[tail_[queue]] = s;
    }
    tail_[queue] = s;
    next_[s] = kNone;
  }
}

/// The queue that owns an engine; the stream's own if that is the first to use it.
inline std::uint32_t EngineQueues::owner_of(EngineId engine, std::uint32_t stream) {
  std::uint64_t& owner = owner_[engine.index()];
  if (owner >> 32 != epoch_) owner = std::uint64_t{epoch_} << 32 | stream;
  return static_cast<std::uint32_t>(owner);
}

/// The queue that owns two engines; merges the two owners.
std::uint32_t EngineQueues::join_owners(std::array<EngineId, 2> engines, std::uint32_t stream) {
  const auto [kept, gone] = std::minmax({owner_of(engines[0], stream), owner_of(engines[1], stream)});
  const std::uint64_t epoch = std::uint64_t{epoch_} << 32;
  for (const EngineId engine : engines) owner_[engine.index()] = epoch | kept;
  if (gone == kept || gone == stream) return kept;
  for (std::uint32_t s = 0; s < stream; ++s)
    if (queue_of_[s] == gone) queue_of_[s] = kept;
  for (std::uint64_t& owner : owner_)  // of GPUs, too, whose kernels copy
    if (owner == (epoch | gone)) owner = epoch | kept;
  return kept;
}

// ---- queues -> steps

inline void EngineQueues::add_time(std::uint32_t stream, double ns) {
  steps_[step_count_++] = {.amount = ns, .stream = stream};
}

/// The flow of a transfer, or of a staged copy's pipeline fill, in the bandwidth model.
inline std::uint32_t EngineQueues::flow_of(std::uint32_t queue, std::uint32_t stream, bool data,
                                           BandwidthModel& bandwidth) const {
  const std::uint32_t route_class = data ? work_[stream].route_class : work_[stream].fill;
  if (rule_ == RateRule::MaxMin) return bandwidth.add_flow(route_class, queue);
  return bandwidth.add_fixed_flow(route_class, data ? shares_.rates(stream).data : shares_.rates(stream).fill);
}

/// The gate's cost, once per queue.
inline double EngineQueues::take_opening() { return std::exchange(opening_, 0); }

/// The cost `first` of a class of copies, once per queue.
inline double EngineQueues::take_first(std::uint32_t stream) {
  const StreamWork& work = work_[stream];
  const unsigned bit = 1U << static_cast<unsigned>(work.route);
  if (std::exchange(classes_, classes_ | bit) & bit) return 0;
  const auto is_only_copy = [&] {
    if (last_copy_ != kNone) return false;
    std::uint32_t next = next_[stream];
    while (next != kNone && work_[next].bytes == 0) next = next_[next];
    return next == kNone;
  };
  const CopyCost& cost = setup_->transfer.of(work.route);
  const double first = cost.first_ns(basis_, work.bytes, cost.carried.size.count > 0 && is_only_copy());
  firsts_ += first;
  return first;
}

/// Cost before a copy with other ends than the copy before it in its queue. A staged copy ends in another queue, so
/// handovers precede it and the copy after it.
inline double EngineQueues::take_turn(std::uint32_t stream) {
  const std::uint32_t last = std::exchange(last_copy_, stream);
  if (last == kNone) return 0;
  if ((work_[stream].fill == kNone) != (work_[last].fill == kNone)) return handover_;
  if (turn_ == 0) return 0;
  const Transfer &before = *streams_[last].transfer, &transfer = *streams_[stream].transfer;
  return before.from == transfer.from && before.to == transfer.to ? 0 : turn_;
}

/// A staged copy is one flow over the links of both legs, at the rate of the slower, after a pipeline fill in which its
/// first chunk crosses the first leg; that chunk's copy pays the set-up, and so does every chunk's copy over the second
/// leg. (The published method has two flows with rates of their own: the faster first leg would run ahead without
/// limit, which a bounded buffer cannot execute.)
inline void EngineQueues::add_transfer(std::uint32_t queue, std::uint32_t stream, BandwidthModel& bandwidth) {
  const StreamWork& work = work_[stream];
  const std::uint32_t begin = step_count_;
  const double unpaid = last_copy_ == kNone ? 0 : firsts_ + std::max(turn_, handover_);
  if (work.bytes == 0) {
    add_time(stream, take_opening());
  } else {
    const bool staged = work.fill != kNone;
    const double first = staged ? std::min(chunk_, work.bytes) : work.bytes;  // bytes of one copy
    const std::uint32_t fill = staged ? flow_of(queue, stream, false, bandwidth) : kNone;
    const std::uint32_t data = flow_of(queue, stream, true, bandwidth);
    const double copies = staged ? 1 + std::ceil(work.bytes / chunk_) : 1;
    const CopyTimes times = copy_times(*setup_, basis_, work, copies);
    const double handovers = take_lock_handovers(stream);
    const double ns = take_opening() + take_first(stream) + times.before + take_turn(stream) + handovers;
    if (ns > 0) add_time(stream, ns);
    if (staged) steps_[step_count_++] = {.amount = first, .stream = stream, .flow = fill};
    if (times.filling > 0)
      steps_[step_count_++] = {.amount = times.filling * bandwidth.alone(data), .stream = stream, .flow = data};
    steps_[step_count_++] = {.amount = work.bytes, .stream = stream, .flow = data, .data = true};
  }
  steps_[begin].first = true;
  steps_[begin].unpaid = unpaid;
  steps_[step_count_ - 1].last = true;
  if (!shares_engines_) return;  // each engine has one engine queue
  for (const std::uint32_t lock : locks(work))
    if (lock != kNone) claim(queue, lock);
}

void EngineQueues::find_lock_users() {
  lock_users_.assign(lock_count(), {});
  for (const StreamWork& work : work_) each_use(work, [&](LockUsers& users) { ++users.all; });
}

void EngineQueues::find_lock_users_of(std::uint32_t queue) {
  for (std::uint32_t s = head_[queue]; s != kNone; s = next_[s])
    each_use(work_[s], [](LockUsers& users) { users.of_queue = 0; });
  for (std::uint32_t s = head_[queue]; s != kNone; s = next_[s])
    each_use(work_[s], [](LockUsers& users) { ++users.of_queue; });
}

template <class Do>
void EngineQueues::each_use(const StreamWork& work, Do what) {
  if (work.route_class != kNone)
    for (const std::uint32_t lock : locks(work))
      if (lock != kNone) what(lock_users_[lock]);
  if (work.has_kernel && work.gpu != kNone) what(lock_users_[engine_count_ + work.gpu]);
}

/// Handovers of a copy's second lock from other queues. A staged copy's second engine is handed over at most as often
/// as others use it; the return may take as long. A last hop is handed over, unless the copy before it in its own queue
/// is probably the one before it there.
inline double EngineQueues::take_lock_handovers(std::uint32_t stream) const {
  const auto [first, second] = locks(work_[stream]);
  if (handover_ == 0) return 0;
  if (work_[stream].by_kernel) return share_of_gpu(first);
  if (second == kNone) return 0;
  const double own = lock_users_[second].of_queue, others = lock_users_[second].all - lock_users_[second].of_queue;
  if (others == 0) return 0;
  if (work_[stream].last_hop == kNone) return handover_ * (basis_ == Basis::Nominal ? std::min(1.0, others / own) : 2);
  const bool goes_on = last_copy_ != kNone && work_[last_copy_].last_hop == work_[stream].last_hop;
  return goes_on && basis_ == Basis::Nominal ? 0 : handover_;
}

/// Handover before a kernel on a GPU. An engine queue's first kernel takes over from its copies. Where others use the
/// GPU too, a kernel without copies has its gate in their queue: half a handover (H200).
inline double EngineQueues::take_handover(const StreamWork& work) {
  if (work.route_class != kNone && !work.by_kernel) return std::exchange(handed_over_, true) ? 0 : handover_;
  return share_of_gpu(engine_count_ + work.gpu);
}

/// Cost before a command in the queue of a GPU's kernels that has no copies of an engine before it.
inline double EngineQueues::share_of_gpu(std::uint32_t lock) const {
  const LockUsers& users = lock_users_[lock];
  if (users.all == users.of_queue) return 0;
  return basis_ == Basis::Nominal ? handover_ / 2 : handover_;
}

/// A kernel's step includes its launch; a step of host work includes the cost before it.
inline void EngineQueues::add_kernel(std::uint32_t queue, std::uint32_t stream) {
  const StreamWork& work = work_[stream];
  const double handover = handover_ > 0 && work.gpu != kNone ? take_handover(work) : 0;
  steps_[step_count_++] = {.amount = take_opening() + handover + kernel_time(*setup_, basis_, work),
                           .stream = stream,
                           .kernel = true,
                           .first = true,
                           .last = true};
  if (work.gpu != kNone) claim(queue, engine_count_ + work.gpu);
}

/// Notes that an engine queue uses a lock, and whether another queue does too.
inline void EngineQueues::claim(std::uint32_t queue, std::uint32_t lock) {
  const std::uint64_t mine = std::uint64_t{epoch_} << 32 | queue;
  contended_ |= owner_[lock] >> 32 == epoch_ && owner_[lock] != mine;
  owner_[lock] = mine;
}

std::array<std::uint32_t, 2> EngineQueues::locks(const Step& step) const {
  const StreamWork& work = work_[step.stream];
  if (step.kernel) return {work.gpu == kNone ? kNone : engine_count_ + work.gpu, kNone};
  return locks(work);
}

std::array<std::uint32_t, 2> EngineQueues::locks(const StreamWork& copy) const {
  const auto [one, other] = copy.engines;
  if (copy.last_hop != kNone) return {one.value, engine_count_ + vertex_count_ + copy.last_hop};
  return {one.value, one == other ? kNone : other.value};
}

}  // namespace tutti::internal
