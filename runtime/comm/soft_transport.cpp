#include "runtime/comm/soft_transport.hpp"

#include <utility>

#include <fmt/format.h>

#include "model/base/expects.hpp"

namespace tutti::internal::comm {
namespace {

static_assert(kSignals == kSignalsOfRank);

/// Places of the words of a board.
Word acknowledgement_word(int peer) { return static_cast<Word>(peer); }
Word signal_word(SignalId signal) { return kMostRanks + signal.number; }

/// Acknowledgements that fail one after the other, before the network counts as broken.
constexpr int kMostLost = 16;

/// A ring, and what is known of entries that were cleaned up.
struct RingLog {
  RingWriter writer;
  std::map<std::uint64_t, Outcome> failed = {};

  void clean() {
    while (const auto end = writer.clean())
      if (end->outcome != Outcome::Ok) failed.emplace(end->number, end->outcome);
  }
  [[nodiscard]] RequestState state(std::uint64_t number) const {
    if (number >= writer.cleaned()) return RequestState::Pending;
    return failed.contains(number) ? RequestState::Failed : RequestState::Done;
  }
};

/// The connections with one peer.
struct Peer {
  RingLog sends, receives, acknowledgements;
  std::uint64_t messages = 0, puts = 0;  // sent
  int lost = 0;                          // acknowledgements in a row
  const Stream* last_stream = nullptr;   // that rings the doorbell of `sends`
};

class SoftTransport final : public Transport {
 public:
  SoftTransport(Fabric fabric, int rank, std::unique_ptr<SoftMemory> memory, std::string_view name)
      : fabric_(fabric), rank_(rank), memory_(std::move(memory)), name_(name) {
    TUTTI_EXPECTS(fabric.lanes() >= kSoftLanes, "the fabric has a lane for acknowledgements");
    for (int peer = 0; peer < fabric.ranks(); ++peer)
      if (peer != rank) peers_.emplace(peer, peer_of(peer));
  }

  std::string_view name() const override { return name_; }
  int rank() const override { return rank_; }
  int size() const override { return fabric_.ranks(); }

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  Expected<BufferId> register_buffer(std::span<std::byte> memory) override;

  Expected<Request> post_recv(int peer, Slice to) override;
  Expected<Request> send_on_stream(Stream& stream, int peer, Slice from) override;
  Expected<void> wait_on_stream(Stream& stream, std::span<const Request> requests) override;
  Expected<Request> put_on_stream(Stream& stream, int peer, Slice from, BufferId to, std::uint64_t offset,
                                  SignalId signal, Word value) override;
  Expected<void> wait_word_on_stream(Stream& stream, SignalId signal, Word value) override;
  Expected<Word> value_of(SignalId signal) override { return look_at(own().words[signal_word(signal)]); }

  Expected<void> clean() override;
  RequestState look(const Request& request) const override { return log_of(request).state(request.number); }
  std::string reason(const Request& request) const override;
  std::optional<std::pair<int, std::string>> gave_up() const override { return fabric_.gave_up(rank_); }
  void abort(std::string_view why) override;
  std::vector<LifeSign*> life_signs() override { return fabric_.life_signs(); }

 private:
  Peer peer_of(int peer) const;
  RankBoard& own() const { return fabric_.board(rank_); }
  const RingLog& log_of(const Request& request) const {
    const Peer& peer = peers_.at(request.peer);
    return request.kind == RequestKind::Receive ? peer.receives : peer.sends;
  }
  static Piece piece_of(const Slice& slice) { return {slice.buffer.number, 0, slice.offset, slice.bytes}; }
  Expected<void> clean_acknowledgements(int number, Peer& peer);
  /// Tells a peer how many receives are posted for it.
  Expected<void> acknowledge(Peer& peer);
  /// The stream rings for entry `number`, behind the entries before it.
  Expected<void> ring_on_stream(Stream& stream, Peer& peer, std::uint64_t number);
  /// Streams that wait for completions of a ring go on.
  static void let_go(Ring& ring);

  Fabric fabric_;
  int rank_;
  std::unique_ptr<SoftMemory> memory_;
  std::string_view name_;
  std::map<int, Peer> peers_;
  Word buffers_ = 0;
  bool has_let_go_ = false;  // completions say nothing any more
};

Peer SoftTransport::peer_of(int peer) const {
  const auto log = [](Ring& ring, std::string name) { return RingLog{RingWriter(ring, std::move(name))}; };
  Endpoint& messages = fabric_.endpoint(rank_, peer, 0);
  Endpoint& words = fabric_.endpoint(rank_, peer, 1);
  return {log(messages.send, fmt::format("send ring of rank {} to rank {}", rank_, peer)),
          log(messages.receive, fmt::format("receive ring of rank {} from rank {}", rank_, peer)),
          log(words.send, fmt::format("ring of acknowledgements of rank {} to rank {}", rank_, peer))};
}

Expected<BufferId> SoftTransport::register_buffer(std::span<std::byte> memory) {
  if (buffers_ == kMostRegions)
    return invalid_input(
        fmt::format("rank {} has registered {} buffers, which is the most; use larger ones", rank_, kMostRegions));
  return memory_->region_of(memory).map([&](const Region& region) {
    Region& entry = own().regions[buffers_];
    entry.device = region.device;
    entry.address = region.address;
    entry.bytes = region.bytes;
    entry.process = region.process;
    entry.offset = region.offset;
    entry.handle = region.handle;
    set_word(entry.registered, 1);
    return BufferId{buffers_++};
  });
}

// [AGO17] Algorithm 4: the receive is there before the sender sees its acknowledgement.
Expected<Request> SoftTransport::post_recv(int peer, Slice to) {
  Peer& other = peers_.at(peer);
  const auto number = other.receives.writer.write({.kind = WorkKind::Receive, .local = piece_of(to)});
  if (!number) return tl::unexpected(number.error());
  other.receives.writer.ring(*number);
  // A receive ends behind its acknowledgement, so where there was a place for the one there is one for the other.
  if (auto sent = acknowledge(other); !sent) return tl::unexpected(sent.error());
  return Request{RequestKind::Receive, peer, *number, *number};
}

Expected<void> SoftTransport::ring_on_stream(Stream& stream, Peer& peer, std::uint64_t number) {
  Expected<void> result;
  // Another stream has the entry before this one: the doorbell of this one says that both may be taken.
  if (peer.last_stream != &stream && number > 0) result = stream.wait(peer.sends.writer.rung(number - 1));
  peer.last_stream = &stream;
  return result.and_then([&] { return stream.set(peer.sends.writer.rung(number)); });
}

Expected<Request> SoftTransport::send_on_stream(Stream& stream, int peer, Slice from) {
  Peer& other = peers_.at(peer);
  const auto number = other.sends.writer.write({.kind = WorkKind::Send, .local = piece_of(from)});
  if (!number) return tl::unexpected(number.error());
  const std::uint64_t message = other.messages++;
  const WordValue acknowledged{&own().words[acknowledgement_word(peer)], static_cast<Word>(message + 1)};
  return stream.wait(acknowledged).and_then([&] { return ring_on_stream(stream, other, *number); }).map([&] {
    return Request{RequestKind::Send, peer, *number, message};
  });
}

Expected<Request> SoftTransport::put_on_stream(Stream& stream, int peer, Slice from, BufferId to, std::uint64_t offset,
                                               SignalId signal, Word value) {
  Peer& other = peers_.at(peer);
  const auto number = other.sends.writer.write({.kind = WorkKind::Put,
                                                .word = signal_word(signal),
                                                .value = value,
                                                .local = piece_of(from),
                                                .target_region = to.number,
                                                .target_offset = offset});
  if (!number) return tl::unexpected(number.error());
  return ring_on_stream(stream, other, *number).map([&] {
    return Request{RequestKind::Put, peer, *number, other.puts++};
  });
}

Expected<void> SoftTransport::wait_on_stream(Stream& stream, std::span<const Request> requests) {
  for (const Request& request : requests)
    if (auto held = stream.wait(log_of(request).writer.ended(request.number)); !held) return held;
  return {};
}

Expected<void> SoftTransport::wait_word_on_stream(Stream& stream, SignalId signal, Word value) {
  return stream.wait({&own().words[signal_word(signal)], value});
}

Expected<void> SoftTransport::clean() {
  if (has_let_go_) return {};
  for (auto& [number, peer] : peers_) {
    peer.sends.clean();
    peer.receives.clean();
    if (auto cleaned = clean_acknowledgements(number, peer); !cleaned) return cleaned;
  }
  return {};
}

Expected<void> SoftTransport::clean_acknowledgements(int number, Peer& peer) {
  RingLog& log = peer.acknowledgements;
  const std::uint64_t before = log.writer.cleaned();
  log.clean();
  const std::size_t failed = log.failed.size();
  if (log.writer.cleaned() - before > failed) peer.lost = 0;
  if (failed == 0 || gave_up()) return {};
  peer.lost += static_cast<int>(failed);
  if (peer.lost > kMostLost)
    return machine_error(fmt::format("rank {} cannot acknowledge its receives to rank {}: {}, {} times in a row", rank_,
                                     number, words_for(log.failed.begin()->second), peer.lost));
  log.failed.clear();
  return acknowledge(peer);
}

// Acknowledgements count, so the last one stands for those before it, and may come twice.
Expected<void> SoftTransport::acknowledge(Peer& peer) {
  RingWriter& writer = peer.acknowledgements.writer;
  WorkEntry entry;
  entry.kind = WorkKind::Put;
  entry.word = acknowledgement_word(rank_);
  entry.value = static_cast<Word>(peer.receives.writer.written());
  const auto written = writer.write(entry);
  if (!written) return machine_error(written.error().message);
  writer.ring(*written);
  return {};
}

std::string SoftTransport::reason(const Request& request) const {
  const RingLog& log = log_of(request);
  if (const auto failed = log.failed.find(request.number); failed != log.failed.end()) return words_for(failed->second);
  const Word posted = look_at(own().words[acknowledgement_word(request.peer)]);
  if (request.kind == RequestKind::Send && !reached(posted, static_cast<Word>(request.message + 1)))
    return fmt::format("rank {} has posted {} receives for rank {}; it must post one for each message", request.peer,
                       posted, rank_);
  if (request.kind == RequestKind::Receive) return fmt::format("rank {} has not sent it", request.peer);
  const WordValue bell = log.writer.rung(request.number);
  return reached(look_at(*bell.word), bell.value) ? "the network has not delivered it"
                                                  : "its stream has not come to it";
}

void SoftTransport::abort(std::string_view why) {
  if (has_let_go_) return;
  has_let_go_ = true;
  fabric_.give_up(rank_, why);
  // Each rank lets its own streams go: the NIC may have died.
  for (auto& [number, peer] : peers_) {
    let_go(fabric_.endpoint(rank_, number, 0).send);
    let_go(fabric_.endpoint(rank_, number, 0).receive);
  }
  // A NIC that sets a word behind this sees `aborted`, since both are in one order.
  for (Word& word : own().words) std::atomic_ref(word).fetch_add(kFarAhead, std::memory_order_seq_cst);
}

void SoftTransport::let_go(Ring& ring) {
  for (CompletionEntry& entry : ring.completions) set_word(entry.turn, look_at(entry.turn) + kFarAhead);
}

}  // namespace

Expected<std::span<std::byte>> ProcessMemory::allocate(std::size_t bytes) {
  blocks_.emplace_back(bytes);
  return std::span<std::byte>(blocks_.back());
}

Expected<Region> ProcessMemory::region_of(std::span<std::byte> memory) {
  return Region{.address = reinterpret_cast<std::uintptr_t>(memory.data()), .bytes = memory.size()};
}

std::unique_ptr<Transport> make_soft_transport(Fabric fabric, int rank, std::unique_ptr<SoftMemory> memory,
                                               std::string_view name) {
  return std::make_unique<SoftTransport>(fabric, rank, std::move(memory), name);
}

}  // namespace tutti::internal::comm
