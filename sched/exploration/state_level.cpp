#include "sched/exploration/state_level.hpp"

#include <algorithm>
#include <bit>

namespace tutti::internal {
namespace {

constexpr std::size_t kBits = 64;
/// Up to this many heads are searched linearly.
constexpr std::size_t kFewHeads = 12;

/// Hash of one job; the hash of a set is the exclusive or of its jobs' hashes.
std::uint64_t mark_of(std::size_t position) {
  std::uint64_t z = (position + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

bool touch(const GraphState& a, const GraphState& b) { return a.from <= b.until + 1 && b.from <= a.until + 1; }

}  // namespace

std::size_t FinishedJobs::next_pending(std::size_t position) const {
  std::size_t offset = position - first;
  while (offset / kBits < bits.size()) {
    const std::uint64_t pending = ~bits[offset / kBits] >> (offset % kBits);
    if (pending != 0) return first + offset + static_cast<std::size_t>(std::countr_zero(pending));
    offset = (offset / kBits + 1) * kBits;
  }
  return first + offset;
}

void StateLevel::clear() {
  states_.clear();
  store_.clear();
  heads_.clear();
  table_.clear();
}

FinishedJobs StateLevel::finished(std::size_t index) const {
  const GraphState& state = states_[index];
  return {state.first, std::span(store_).subspan(state.words_at, state.words)};
}

void StateLevel::add_root() {
  states_.emplace_back();
  heads_.push_back(0);
}

inline void StateLevel::store_shifted(std::span<const std::uint64_t> bits, std::size_t shift) {
  for (std::size_t word = shift / kBits; word < bits.size(); ++word) {
    std::uint64_t moved = bits[word] >> (shift % kBits);
    if (shift % kBits != 0 && word + 1 < bits.size()) moved |= bits[word + 1] << (kBits - shift % kBits);
    store_.push_back(moved);
  }
}

void StateLevel::store_finished(GraphState& state, const FinishedJobs& before, std::size_t position) {
  state.words_at = static_cast<std::uint32_t>(store_.size());
  state.first = static_cast<std::uint32_t>(before.first);
  if (position != before.first) {
    const std::size_t bit = position - before.first;
    store_.insert(store_.end(), before.bits.begin(), before.bits.end());
    if (before.bits.size() <= bit / kBits) store_.resize(state.words_at + bit / kBits + 1, 0);
    store_[state.words_at + bit / kBits] |= std::uint64_t{1} << (bit % kBits);
  } else {
    const std::size_t shift = before.next_pending(position + 1) - position;
    state.first = static_cast<std::uint32_t>(position + shift);
    store_shifted(before.bits, shift);
    if (store_.size() > state.words_at && store_.back() == 0) store_.pop_back();
  }
  state.words = static_cast<std::uint32_t>(store_.size()) - state.words_at;
}

bool StateLevel::same_jobs(const GraphState& a, const GraphState& b) const {
  return a.hash == b.hash && a.first == b.first && a.words == b.words &&
         std::equal(store_.begin() + a.words_at, store_.begin() + a.words_at + a.words, store_.begin() + b.words_at);
}

std::uint32_t StateLevel::find(const GraphState& state) const {
  if (table_.empty()) {
    for (const std::uint32_t head : heads_)
      if (same_jobs(states_[head], state)) return head;
    return kNone;
  }
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = state.hash & mask; table_[slot] != kNone; slot = (slot + 1) & mask)
    if (same_jobs(states_[table_[slot]], state)) return table_[slot];
  return kNone;
}

void StateLevel::index_state(std::uint32_t index) {
  heads_.push_back(index);
  if (heads_.size() > std::max(kFewHeads, table_.size() / 2)) return grow_table();
  if (table_.empty()) return;
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = states_[index].hash & mask;
  while (table_[slot] != kNone) slot = (slot + 1) & mask;
  table_[slot] = index;
}

void StateLevel::grow_table() {
  table_.assign(std::bit_ceil(4 * heads_.size()), kNone);
  const std::size_t mask = table_.size() - 1;
  for (const std::uint32_t head : heads_) {
    std::size_t slot = states_[head].hash & mask;
    while (table_[slot] != kNone) slot = (slot + 1) & mask;
    table_[slot] = head;
  }
}

void StateLevel::absorb(std::uint32_t head, std::uint32_t index) {
  GraphState& state = states_[index];
  for (std::uint32_t at = head; at != kNone; at = states_[at].next_symmetric) {
    GraphState& other = states_[at];
    if (at == index || other.became != kNone || !touch(other, state)) continue;
    state.from = std::min(state.from, other.from);
    state.until = std::max(state.until, other.until);
    other.became = index;
    return absorb(head, index);  // the interval has grown: it may touch more
  }
}

void StateLevel::store_finished(GraphState& state, const FinishedJobs& before,
                                std::span<const std::uint32_t> positions) {
  state.words_at = static_cast<std::uint32_t>(store_.size());
  std::vector<std::uint64_t> bits(before.bits.begin(), before.bits.end());
  const std::size_t last = positions.back() - before.first;
  if (bits.size() <= last / kBits) bits.resize(last / kBits + 1, 0);
  for (const std::uint32_t position : positions)
    bits[(position - before.first) / kBits] |= std::uint64_t{1} << ((position - before.first) % kBits);
  const FinishedJobs all{before.first, bits};
  const std::size_t shift = all.next_pending(before.first) - before.first;
  state.first = static_cast<std::uint32_t>(before.first + shift);
  store_shifted(bits, shift);
  while (store_.size() > state.words_at && store_.back() == 0) store_.pop_back();
  state.words = static_cast<std::uint32_t>(store_.size()) - state.words_at;
}

inline std::size_t StateLevel::add_stored(GraphState& next) {
  const auto index = static_cast<std::uint32_t>(states_.size());
  const std::uint32_t head = find(next);
  if (head == kNone) {
    states_.push_back(next);
    index_state(index);
    return index;
  }
  store_.resize(next.words_at);
  next.words_at = states_[head].words_at;
  for (std::uint32_t at = head; at != kNone; at = states_[at].next_symmetric) {
    GraphState& other = states_[at];
    if (other.became != kNone || !touch(other, next)) continue;
    const bool grows = next.from < other.from || next.until > other.until;
    other.from = std::min(other.from, next.from);
    other.until = std::max(other.until, next.until);
    if (grows) absorb(head, at);
    return at;
  }
  next.next_symmetric = states_[head].next_symmetric;
  states_[head].next_symmetric = index;
  states_.push_back(next);
  return index;
}

std::size_t StateLevel::add(const GraphState& state, const FinishedJobs& finished, std::size_t position, HalfNs from,
                            HalfNs until) {
  GraphState next{from, until, state.hash ^ mark_of(position), 0, 0, 0, kNone, kNone};
  store_finished(next, finished, position);
  return add_stored(next);
}

std::size_t StateLevel::add(const GraphState& state, const FinishedJobs& finished,
                            std::span<const std::uint32_t> positions, HalfNs from, HalfNs until) {
  GraphState next{from, until, state.hash, 0, 0, 0, kNone, kNone};
  for (const std::uint32_t position : positions) next.hash ^= mark_of(position);
  store_finished(next, finished, positions);
  return add_stored(next);
}

}  // namespace tutti::internal
