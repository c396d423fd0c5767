#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/comm/actor.hpp"
#include "runtime/comm/life.hpp"
#include "runtime/comm/stream.hpp"

namespace tutti::internal::comm {

/// A registered buffer of this rank, numbered from 0 in the order of registration.
struct BufferId {
  std::uint32_t number = 0;
  friend bool operator==(const BufferId&, const BufferId&) = default;
};

/// Part of a registered buffer.
struct Slice {
  BufferId buffer;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// A signal of a rank: a word that its peers set with their puts. Ranks have `kSignalsOfRank` of them, 0 at first.
struct SignalId {
  std::uint32_t number = 0;
};
inline constexpr std::uint32_t kSignalsOfRank = 512;

enum class RequestKind : std::uint8_t { Send, Receive, Put };

/// One operation between this rank and a peer. A value: it may be copied, kept and thrown away.
struct Request {
  RequestKind kind = RequestKind::Send;
  int peer = 0;
  std::uint64_t number = 0;   ///< as the transport counts
  std::uint64_t message = 0;  ///< of those of its kind with this peer, from 0
};

/// What the host sees of a request.
enum class RequestState : std::uint8_t { Pending, Done, Failed };

/// A way to the other ranks. Operations are enqueued by one thread, on any stream.
///
/// To add one, write these functions, and a row in `transports.cpp`. What can be checked without a transport has been
/// checked by `Communicator`: peers, buffers and lengths are right.
/// @errors of all that enqueue: InvalidInput, where there is no place for more, or it can do no such thing; Machine
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Memory that can be registered, until the transport ends.
  [[nodiscard]] virtual Expected<std::span<std::byte>> allocate(std::size_t bytes) = 0;
  /// Gives memory to the transport. All ranks register as many buffers, in one order: puts name a peer's by its number.
  [[nodiscard]] virtual Expected<BufferId> register_buffer(std::span<std::byte> memory) = 0;

  /// Where the next message of a peer goes, from now on.
  [[nodiscard]] virtual Expected<Request> post_recv(int peer, Slice to) = 0;
  /// Sends when the stream comes to it, and the peer has posted the receive.
  [[nodiscard]] virtual Expected<Request> send_on_stream(Stream& stream, int peer, Slice from) = 0;
  /// Holds a stream until requests have ended, well or not.
  [[nodiscard]] virtual Expected<void> wait_on_stream(Stream& stream, std::span<const Request> requests) = 0;
  /// Writes into a buffer of a peer when the stream comes to it, and then sets a signal of the peer.
  [[nodiscard]] virtual Expected<Request> put_on_stream(Stream& stream, int peer, Slice from, BufferId to,
                                                        std::uint64_t offset, SignalId signal, Word value) = 0;
  /// Holds a stream until a signal of this rank has reached a value.
  [[nodiscard]] virtual Expected<void> wait_word_on_stream(Stream& stream, SignalId signal, Word value) = 0;
  /// What a signal of this rank is.
  [[nodiscard]] virtual Expected<Word> value_of(SignalId signal) = 0;

  // ---- the host's side

  /// Cleans up what has ended.
  /// @errors Machine: something failed that is part of no request, such as an acknowledgement.
  [[nodiscard]] virtual Expected<void> clean() = 0;
  /// @pre `clean` was called for news
  [[nodiscard]] virtual RequestState look(const Request& request) const = 0;
  /// Why a request failed, or what it waits for: "rank 1 has posted 2 receives, and this is message 3".
  [[nodiscard]] virtual std::string reason(const Request& request) const = 0;
  /// The rank that gave up first and its sentence, if one did.
  [[nodiscard]] virtual std::optional<std::pair<int, std::string>> gave_up() const = 0;
  /// Gives up for all ranks: their streams are let go, and nothing is delivered any more.
  virtual void abort(std::string_view why) = 0;
  /// By what the ranks of this host see each other live; empty: not known.
  [[nodiscard]] virtual std::vector<LifeSign*> life_signs() = 0;
};

}  // namespace tutti::internal::comm
