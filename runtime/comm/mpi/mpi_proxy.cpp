#include "runtime/comm/mpi/mpi_proxy.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include "runtime/comm/soft_transport.hpp"

namespace tutti::internal::comm {
namespace {

// Tags of MPI's messages within the communicator of a job.
constexpr int kMessageTag = 0;   // bytes of a message
constexpr int kPutBytesTag = 1;  // of a put
constexpr int kHeaderTag = 2;    // of a put in lane 0; in lane 1 the next number
constexpr int kReasonTag = 9;    // why a rank gave up

constexpr std::chrono::seconds kLeaving{1};
constexpr int kLooksAwake = 2000;

int as_count(std::uint64_t bytes) { return static_cast<int>(bytes); }

void write_end(Ring& ring, std::uint64_t number, Outcome outcome, std::uint64_t bytes) {
  CompletionEntry& entry = ring.completions[number % kRingDepth];
  entry.outcome = static_cast<Word>(outcome);
  entry.bytes = outcome == Outcome::Ok ? bytes : 0;
  const WordValue end = ring.ended(number);
  set_word(*end.word, end.value);
}

}  // namespace

MpiProxy::MpiProxy(MPI_Comm ranks, Fabric fabric, ProxyMemory& memory)
    : ranks_(ranks), fabric_(fabric), memory_(memory) {
  MPI_Comm_rank(ranks_, &rank_);
  MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
  for (int peer = 0; peer < fabric.ranks(); ++peer)
    for (int lane = 0; lane < kSoftLanes && peer != rank_; ++lane) {
      lanes_.emplace_back();
      lanes_.back().peer = peer;
      lanes_.back().lane = lane;
    }
  for (Lane& lane : lanes_) expect_header(lane);
  MPI_Irecv(reason_.data(), as_count(reason_.size()), MPI_CHAR, MPI_ANY_SOURCE, kReasonTag, ranks_, &reason_request_);
  thread_ = std::thread([this] { run(); });
}

MpiProxy::~MpiProxy() { static_cast<void>(end()); }

bool MpiProxy::end() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
  return has_left_in_order_;
}

void MpiProxy::run() {
  for (int idle = 0; !stop_.load(); ++idle) {
    bool progress = pass_on_aborts();
    if (!has_given_up())
      for (Lane& lane : lanes_) progress |= serve(lane);
    if (progress) idle = 0;
    if (idle > kLooksAwake)
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    else
      std::this_thread::yield();
  }
  leave();
}

bool MpiProxy::serve(Lane& lane) {
  bool progress = false;
  // Receives first: what comes finds its place.
  progress |= take_receives(lane);
  progress |= take_sends(lane);
  progress |= take_puts(lane);
  progress |= end_sends(lane);
  progress |= end_receives(lane);
  progress |= end_puts(lane);
  return progress;
}

// ---- Memory

MpiProxy::Flight MpiProxy::flight_of(Word region, std::uint64_t offset, std::uint64_t bytes) {
  Flight flight;
  if (bytes == 0) return flight;
  const Region* const found = region < kMostRegions ? &fabric_.board(rank_).regions[region] : nullptr;
  const bool inside = found != nullptr && look_at(found->registered) != 0 && offset <= found->bytes &&
                      bytes <= found->bytes - offset && bytes <= INT_MAX;
  if (!inside) {
    flight.outcome = Outcome::OutOfBounds;
    return flight;
  }
  flight.bytes = bytes;
  flight.memory = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(found->address)) + offset;
  if (memory_.is_host(flight.memory)) return flight;
  const auto fits = [&](std::span<std::byte> block) { return block.size() >= bytes; };
  if (const auto block = std::ranges::find_if(free_staging_, fits); block != free_staging_.end()) {
    flight.staging = *block;
    free_staging_.erase(block);
  } else if (const auto fresh = memory_.allocate(bytes)) {
    flight.staging = *fresh;
  } else {
    flight.outcome = Outcome::Failed;
  }
  return flight;
}

void MpiProxy::give_back(std::span<std::byte> staging) {
  if (!staging.empty()) free_staging_.push_back(staging);
}

bool MpiProxy::is_over(MPI_Request& request, Flight& flight) {
  if (request == MPI_REQUEST_NULL) return true;
  int over = 0;
  MPI_Status status{};
  const int result = MPI_Test(&request, &over, &status);
  if (result != MPI_SUCCESS) {
    int kind = 0;
    MPI_Error_class(result, &kind);
    flight.outcome = kind == MPI_ERR_TRUNCATE ? Outcome::TooLong : Outcome::Failed;
    request = MPI_REQUEST_NULL;
    return true;
  }
  if (over == 0) return false;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  if (count >= 0 && count != MPI_UNDEFINED) flight.bytes = std::min(flight.bytes, static_cast<std::uint64_t>(count));
  return true;
}

// ---- Sends and puts of this rank

bool MpiProxy::take_sends(Lane& lane) {
  Ring& ring = fabric_.endpoint(rank_, lane.peer, lane.lane).send;
  bool progress = false;
  for (; !reached(static_cast<Word>(lane.sends_taken), look_at(ring.doorbell)); progress = true) {
    const WorkEntry& work = ring.work[lane.sends_taken++ % kRingDepth];
    lane.sends.push_back(flight_of(work.local.region, work.local.offset, work.local.bytes));
    Flight& flight = lane.sends.back();
    if (flight.outcome == Outcome::Ok && !flight.staging.empty() &&
        !memory_.copy(flight.staging.data(), flight.memory, flight.bytes))
      flight.outcome = Outcome::Failed;
    if (flight.outcome != Outcome::Ok) continue;
    const std::byte* const bytes = flight.staging.empty() ? flight.memory : flight.staging.data();
    if (work.kind == WorkKind::Put) {
      flight.header = {flight.bytes, work.target_offset, work.target_region, work.word, work.value, 0};
      MPI_Isend(&flight.header, sizeof flight.header, MPI_BYTE, lane.peer, kHeaderTag + lane.lane, ranks_,
                &flight.header_request);
    }
    if (work.kind == WorkKind::Send || flight.bytes > 0)
      MPI_Isend(bytes, as_count(flight.bytes), MPI_BYTE, lane.peer,
                work.kind == WorkKind::Put ? kPutBytesTag : kMessageTag, ranks_, &flight.bytes_request);
  }
  return progress;
}

bool MpiProxy::end_sends(Lane& lane) {
  bool progress = false;
  for (; !lane.sends.empty(); progress = true) {
    Flight& flight = lane.sends.front();
    const std::uint64_t bytes = flight.bytes;
    if (!is_over(flight.header_request, flight) || !is_over(flight.bytes_request, flight)) break;
    give_back(flight.staging);
    write_end(fabric_.endpoint(rank_, lane.peer, lane.lane).send, lane.sends_ended++, flight.outcome, bytes);
    lane.sends.pop_front();
  }
  return progress;
}

// ---- Messages of the peer

void MpiProxy::receive_bytes(Flight& flight, int peer, int tag) {
  std::byte* const bytes = flight.staging.empty() ? flight.memory : flight.staging.data();
  MPI_Irecv(bytes, as_count(flight.bytes), MPI_BYTE, peer, tag, ranks_, &flight.bytes_request);
}

bool MpiProxy::has_arrived(Flight& flight) {
  if (!is_over(flight.bytes_request, flight)) return false;
  if (flight.outcome == Outcome::Ok && !flight.staging.empty() &&
      !memory_.copy(flight.memory, flight.staging.data(), flight.bytes))
    flight.outcome = Outcome::Failed;
  give_back(flight.staging);
  return true;
}

bool MpiProxy::take_receives(Lane& lane) {
  Ring& ring = fabric_.endpoint(rank_, lane.peer, lane.lane).receive;
  bool progress = false;
  for (; !reached(static_cast<Word>(lane.receives_taken), look_at(ring.doorbell)); progress = true) {
    const Piece& piece = ring.work[lane.receives_taken++ % kRingDepth].local;
    lane.receives.push_back(flight_of(piece.region, piece.offset, piece.bytes));
    Flight& flight = lane.receives.back();
    if (flight.outcome == Outcome::Ok) receive_bytes(flight, lane.peer, kMessageTag);
  }
  return progress;
}

bool MpiProxy::end_receives(Lane& lane) {
  bool progress = false;
  for (; !lane.receives.empty() && has_arrived(lane.receives.front()); progress = true) {
    const Flight& flight = lane.receives.front();
    write_end(fabric_.endpoint(rank_, lane.peer, lane.lane).receive, lane.receives_ended++, flight.outcome,
              flight.bytes);
    lane.receives.pop_front();
  }
  return progress;
}

// ---- Puts of the peer

void MpiProxy::expect_header(Lane& lane) {
  MPI_Irecv(&lane.header, sizeof lane.header, MPI_BYTE, lane.peer, kHeaderTag + lane.lane, ranks_,
            &lane.header_request);
}

bool MpiProxy::take_puts(Lane& lane) {
  bool progress = false;
  for (;; progress = true) {
    int over = lane.has_header ? 1 : 0;
    if (!lane.has_header && MPI_Test(&lane.header_request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) return progress;
    lane.has_header = over != 0;
    if (!lane.has_header) return progress;
    // A rank that is early has its put wait until this one has registered the buffer.
    const Header& header = lane.header;
    if (header.bytes > 0 && header.region < kMostRegions &&
        look_at(fabric_.board(rank_).regions[header.region].registered) == 0)
      return progress;
    lane.puts.push_back(flight_of(header.region, header.offset, header.bytes));
    Flight& flight = lane.puts.back();
    flight.header = header;
    if (flight.outcome == Outcome::Ok && header.bytes > 0) receive_bytes(flight, lane.peer, kPutBytesTag);
    lane.has_header = false;
    expect_header(lane);
  }
}

bool MpiProxy::end_puts(Lane& lane) {
  bool progress = false;
  for (; !lane.puts.empty() && has_arrived(lane.puts.front()); progress = true) {
    const Flight& flight = lane.puts.front();
    // The peer has forgotten the put, so a failure is this rank's to report.
    if (flight.outcome != Outcome::Ok)
      fabric_.give_up(rank_, fmt::format("a put of rank {} to rank {}, {} bytes from {} on in buffer {}, failed: {}",
                                         lane.peer, rank_, flight.header.bytes, flight.header.offset,
                                         flight.header.region, words_for(flight.outcome)));
    else if (flight.header.word < kBoardWords)
      fabric_.set_board_word(rank_, flight.header.word, flight.header.value);
    lane.puts.pop_front();
  }
  return progress;
}

// ---- Giving up, and the end

bool MpiProxy::has_given_up() const { return look_at(fabric_.board(rank_).aborted) != 0; }

bool MpiProxy::pass_on_aborts() {
  int over = 0;
  MPI_Status status{};
  if (reason_request_ != MPI_REQUEST_NULL && MPI_Test(&reason_request_, &over, &status) == MPI_SUCCESS && over != 0) {
    RankBoard& other = fabric_.board(status.MPI_SOURCE);
    Word nobody = 0;
    if (!has_given_up()) std::copy_n(reason_.begin(), other.reason.size(), other.reason.begin());
    std::atomic_ref(fabric_.board(rank_).aborted)
        .compare_exchange_strong(nobody, static_cast<Word>(status.MPI_SOURCE + 1));
    MPI_Irecv(reason_.data(), as_count(reason_.size()), MPI_CHAR, MPI_ANY_SOURCE, kReasonTag, ranks_, &reason_request_);
    return true;
  }
  const bool must_tell = look_at(fabric_.board(rank_).aborted) == static_cast<Word>(rank_ + 1) && told_.empty();
  if (!must_tell) return false;
  const auto& reason = fabric_.board(rank_).reason;
  std::copy(reason.begin(), reason.end(), own_reason_.begin());
  for (int peer = 0; peer < fabric_.ranks(); ++peer) {
    if (peer == rank_) continue;
    told_.push_back(MPI_REQUEST_NULL);
    MPI_Isend(own_reason_.data(), as_count(own_reason_.size()), MPI_CHAR, peer, kReasonTag, ranks_, &told_.back());
  }
  return true;
}

bool MpiProxy::wait_for_all() {
  MPI_Request all_here = MPI_REQUEST_NULL;
  MPI_Ibarrier(ranks_, &all_here);
  auto end = std::chrono::steady_clock::time_point::max();
  for (int over = 0;;) {
    if (MPI_Test(&all_here, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS || std::chrono::steady_clock::now() > end)
      return false;
    if (over != 0) return true;
    static_cast<void>(pass_on_aborts());
    // Until all ranks have come here, this one serves them: they may wait for its acknowledgements. One that died never
    // comes, so where a rank gave up the others are waited for a while only.
    if (!has_given_up())
      for (Lane& lane : lanes_) static_cast<void>(serve(lane));
    else if (end == std::chrono::steady_clock::time_point::max())
      end = std::chrono::steady_clock::now() + kLeaving;
  }
}

void MpiProxy::leave() {
  if (!wait_for_all()) return;  // what is under way stays so, and the communicator with it
  for (MPI_Request& told : told_) MPI_Wait(&told, MPI_STATUS_IGNORE);
  // All proxies stand still: what is under way now never ends.
  const auto drop = [](MPI_Request& request) {
    if (request == MPI_REQUEST_NULL) return;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  };
  for (Lane& lane : lanes_) {
    drop(lane.header_request);
    for (auto* flights : {&lane.sends, &lane.receives, &lane.puts})
      for (Flight& flight : *flights) drop(flight.header_request), drop(flight.bytes_request);
  }
  drop(reason_request_);
  MPI_Comm_free(&ranks_);
  has_left_in_order_ = true;
}

}  // namespace tutti::internal::comm
