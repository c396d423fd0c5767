#include "runtime/comm/soft_nic.hpp"

#include <algorithm>

#include "model/base/expects.hpp"

namespace tutti::internal::comm {
namespace {

/// How long a mover that is not done is left alone.
constexpr Duration kMoveLook{500};
constexpr int kMillion = 1'000'000;

Duration on_the_line(std::uint64_t bytes, double rate) {
  return rate > 0 ? round_up_ns(static_cast<double>(bytes) / rate) : Duration{};
}

/// Writes how an entry ended; the turn last, since it is what others wait for.
void complete(Ring& ring, std::uint64_t number, Outcome outcome, std::uint64_t bytes) {
  CompletionEntry& entry = ring.completions[number % kRingDepth];
  entry.outcome = static_cast<Word>(outcome);
  entry.bytes = bytes;
  const WordValue end = ring.ended(number);
  set_word(*end.word, end.value);
}

bool has_given_up(const Fabric& fabric, int rank) { return look_at(fabric.board(rank).aborted) != 0; }

}  // namespace

SoftNic::SoftNic(Fabric fabric, Mover& mover, const NetworkOptions& options)
    : fabric_(fabric),
      mover_(mover),
      options_(options),
      random_(options.seed),
      line_free_(static_cast<std::size_t>(fabric.ranks())) {
  TUTTI_EXPECTS(options.rate >= 0 && options.latency >= Duration{}, "a network has no negative rate and latency");
  TUTTI_EXPECTS(options.delay_per_million == 0 || options.most_delay > Duration{}, "a delay has a length");
  for (int from = 0; from < fabric.ranks(); ++from)
    for (int to = 0; to < fabric.ranks(); ++to)
      for (int lane = 0; lane < fabric.lanes() && from != to; ++lane)
        connections_.push_back({.from = from, .to = to, .lane = lane});
}

Step SoftNic::step(Duration now) {
  Step all;
  if (connections_.empty()) return all;
  // Connections that are ready at once share a line, and none is always first.
  const std::size_t first = static_cast<std::size_t>(random_.next() % connections_.size());
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const Step one = serve(connections_[(first + i) % connections_.size()], now);
    all = {all.progress || one.progress, std::min(all.next, one.next)};
  }
  return all;
}

Step SoftNic::serve(Connection& connection, Duration now) {
  bool progress = false;
  while (take(connection, now)) progress = true;
  for (;;) {
    const Step step = arrive(connection, now);
    if (!step.progress) return {progress, step.next};
    progress = true;
  }
}

bool SoftNic::take(Connection& connection, Duration now) {
  Ring& ring = fabric_.endpoint(connection.from, connection.to, connection.lane).send;
  if (reached(static_cast<Word>(connection.taken), look_at(ring.doorbell))) return false;
  if (connection.flights.size() == kRingDepth) return false;
  Flight flight;
  flight.entry = ring.work[connection.taken % kRingDepth];
  flight.fails = options_.fail_per_million > 0 && random_.between(1, kMillion) <= options_.fail_per_million;
  Duration& line = line_free_[static_cast<std::size_t>(connection.from)];
  line = std::max(line, now) + on_the_line(flight.entry.local.bytes, options_.rate);
  flight.due = line + options_.latency;
  if (options_.delay_per_million > 0 && random_.between(1, kMillion) <= options_.delay_per_million) {
    flight.due += Duration{
        1 + static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(options_.most_delay.count()))};
    ++counts_.delayed;
  }
  flight.due = connection.last_due = std::max(flight.due, connection.last_due);
  connection.flights.push_back(flight);
  ++connection.taken;
  ++counts_.taken;
  return true;
}

bool SoftNic::has_receive(const Connection& connection) const {
  const Ring& ring = fabric_.endpoint(connection.to, connection.from, connection.lane).receive;
  return !reached(static_cast<Word>(connection.received), look_at(ring.doorbell));
}

bool SoftNic::is_registered(int rank, Word region) const {
  return region < kMostRegions && look_at(fabric_.board(rank).regions[region].registered) != 0;
}

std::byte* SoftNic::memory_of(int rank, Word region, std::uint64_t offset, std::uint64_t bytes) {
  if (!is_registered(rank, region)) return nullptr;
  const Region& found = fabric_.board(rank).regions[region];
  if (offset > found.bytes || bytes > found.bytes - offset) return nullptr;
  const Expected<std::byte*> start = mover_.memory_of(found);
  if (start) return *start + offset;
  // Nothing that goes there will ever arrive, and the outcome of one entry could not say why.
  fabric_.give_up(rank, start.error().message);
  return nullptr;
}

Step SoftNic::arrive(Connection& connection, Duration now) {
  if (connection.flights.empty()) return {};
  Flight& flight = connection.flights.front();
  // Memory of a rank that gave up may be gone. What is being moved there is waited for.
  const bool aborted = has_given_up(fabric_, connection.from) || has_given_up(fabric_, connection.to);
  if (flight.moves) {
    const MoveState state = mover_.look(flight.move);
    if (state == MoveState::UnderWay) return {false, now + kMoveLook};
    const Outcome outcome = state == MoveState::Failed ? Outcome::NotMoved : Outcome::Ok;
    return end(connection, aborted ? Outcome::Aborted : outcome), Step{true};
  }
  if (aborted) return end(connection, Outcome::Aborted), Step{true};
  if (flight.due > now) return {false, flight.due};
  const WorkEntry& work = flight.entry;
  Piece target{work.target_region, 0, work.target_offset, work.local.bytes};
  const Duration given_up = add_saturating(flight.due, options_.receive_limit);
  // A rank that is early has its put wait until the peer has registered the buffer.
  if (work.kind == WorkKind::Put && work.local.bytes > 0 && !is_registered(connection.to, target.region) &&
      given_up > now)
    return {false, given_up};
  if (work.kind == WorkKind::Send) {
    if (!has_receive(connection)) {
      if (given_up > now) return {false, given_up};
      return end(connection, Outcome::NoReceive), Step{true};
    }
    const Ring& ring = fabric_.endpoint(connection.to, connection.from, connection.lane).receive;
    const Piece& posted = ring.work[connection.received % kRingDepth].local;
    if (posted.bytes < work.local.bytes) return end(connection, Outcome::TooLong), Step{true};
    target = {posted.region, 0, posted.offset, work.local.bytes};
  }
  if (flight.fails) return end(connection, Outcome::Failed), Step{true};
  if (work.local.bytes > 0) {
    const std::byte* const from = memory_of(connection.from, work.local.region, work.local.offset, work.local.bytes);
    std::byte* const to = memory_of(connection.to, target.region, target.offset, target.bytes);
    if (from == nullptr || to == nullptr) return end(connection, Outcome::OutOfBounds), Step{true};
    flight.move = mover_.begin(to, from, work.local.bytes);
    flight.moves = true;
    flight.bytes = work.local.bytes;
    return {true, now};
  }
  return end(connection, Outcome::Ok), Step{true};
}

void SoftNic::end(Connection& connection, Outcome outcome) {
  const Flight& flight = connection.flights.front();
  const std::uint64_t bytes = outcome == Outcome::Ok ? flight.bytes : 0;
  if (flight.entry.kind == WorkKind::Send && has_receive(connection))
    complete(fabric_.endpoint(connection.to, connection.from, connection.lane).receive, connection.received++, outcome,
             bytes);
  if (flight.entry.kind == WorkKind::Put && outcome == Outcome::Ok && flight.entry.word < kBoardWords)
    fabric_.set_board_word(connection.to, flight.entry.word, flight.entry.value);
  complete(fabric_.endpoint(connection.from, connection.to, connection.lane).send, connection.ended++, outcome, bytes);
  (outcome == Outcome::Ok ? counts_.delivered : counts_.failed) += 1;
  counts_.bytes += bytes;
  connection.flights.pop_front();
}

}  // namespace tutti::internal::comm
