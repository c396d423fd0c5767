#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/comm/transport.hpp"

namespace tutti::internal::comm {

/// How long a communicator waits.
struct Patience {
  /// Of a wait on the host, before the communicator gives up for all ranks.
  Duration limit = std::chrono::seconds{10};
  /// How long a peer may show no sign of life. A peer whose process is gone is seen sooner, within 0.2 s.
  Duration silence = std::chrono::seconds{10};
};

/// A rank among others: messages and puts on streams, receives before sends, and the host's clean-up of what has ended.
///
/// There are no tags and no collectives: the i-th send of a rank to a peer meets the i-th receive that the peer has
/// posted for it. A send leaves when its stream comes to it and its receive is posted: the stream waits for the peer's
/// acknowledgement, so nothing is lost where a rank is early, and no host takes part. What fails is seen by `wait`,
/// which then gives up for all ranks: each of them ends with an error that names the cause.
/// @source [AGO17] section 3 and Algorithm 4: acknowledgement words
class Communicator {
 public:
  /// @param host  how this thread waits; outlives this object
  Communicator(std::unique_ptr<Transport> transport, HostWait& host, Patience patience = {});

  [[nodiscard]] int rank() const { return transport_->rank(); }
  [[nodiscard]] int size() const { return transport_->size(); }
  [[nodiscard]] std::string_view transport() const { return transport_->name(); }

  /// Memory that the transport reaches, of its own; it lives as long as this object.
  /// @errors Machine: there is not so much.
  [[nodiscard]] Expected<std::span<std::byte>> allocate(std::size_t bytes);
  /// Gives memory to the transport. It outlives this object and stays where it is. All ranks register as many buffers,
  /// in one order.
  /// @errors InvalidInput: it is empty, there are too many, or the transport does not reach it.
  [[nodiscard]] Expected<BufferId> register_buffer(std::span<std::byte> memory);

  // All of these enqueue and return. @errors InvalidInput: no such peer, buffer or signal, a slice that leaves its
  // buffer, a full ring; Machine: the driver refuses, or a rank has given up

  /// Where the next message of a peer goes, from now on until it has come.
  [[nodiscard]] Expected<Request> post_recv(int peer, Slice to);
  /// Sends when the stream comes to it, and the peer has posted the receive. The stream waits for that receive.
  [[nodiscard]] Expected<Request> send_on_stream(Stream& stream, int peer, Slice from);
  /// Holds a stream until a request has ended, well or not.
  [[nodiscard]] Expected<void> wait_on_stream(Stream& stream, const Request& request);
  [[nodiscard]] Expected<void> wait_all_on_stream(Stream& stream, std::span<const Request> requests);
  /// Writes bytes into a buffer of a peer, and sets a signal of the peer behind them.
  /// @param to  the peer's buffer of this number
  [[nodiscard]] Expected<Request> put_on_stream(Stream& stream, int peer, Slice from, BufferId to, std::uint64_t offset,
                                                SignalId signal, Word value);
  /// Holds a stream until a signal of this rank has reached a value.
  [[nodiscard]] Expected<void> wait_word_on_stream(Stream& stream, SignalId signal, Word value);

  // The host waits; each cleans up what has ended. An error gives up for all ranks.
  // @errors Machine: a request failed, a peer has died or given up, or the limit of `Patience` has passed. The sentence
  //         names the peer, and what was waited for.

  /// Waits until requests have ended.
  /// @errors InvalidInput: one that this communicator has not made; nothing is given up
  [[nodiscard]] Expected<void> wait(std::span<const Request> requests);
  /// Waits until a signal of this rank has reached a value.
  [[nodiscard]] Expected<void> wait_word(SignalId signal, Word value);
  /// Waits until a stream has done all that it was given.
  [[nodiscard]] Expected<void> finish(Stream& stream);
  /// Gives up for all ranks: their streams are let go, and their waits end with this sentence.
  void abort(std::string_view why);

 private:
  /// A stream's wait for a signal, for sentences.
  struct AwaitedSignal {
    SignalId signal;
    Word value = 0;
  };

  [[nodiscard]] Expected<void> check_open();
  [[nodiscard]] Expected<void> check_peer(int peer) const;
  [[nodiscard]] Expected<void> check_slice(const Slice& slice, std::string_view what) const;
  [[nodiscard]] Expected<void> check_signal(SignalId signal) const;
  [[nodiscard]] Expected<void> check_requests(std::span<const Request> requests) const;
  Request noted(const Request& request);
  /// What an operation on a stream ends in: a stream that took part of it only is of no use any more.
  template <class T>
  [[nodiscard]] Expected<T> enqueued(Expected<T> result);
  /// Waits for `ended`; `what` says what did not end.
  [[nodiscard]] Expected<void> wait_until(const std::function<Expected<bool>()>& ended,
                                          const std::function<std::string()>& what);
  [[nodiscard]] Expected<void> look_at_others();
  [[nodiscard]] std::string text_of(const Request& request) const;
  [[nodiscard]] std::string text_of_stream() const;

  std::unique_ptr<Transport> transport_;
  HostWait& host_;
  Patience patience_;
  LifeWatch watch_;
  std::vector<std::uint64_t> buffers_;                         // [registered] lengths
  std::map<std::pair<int, RequestKind>, std::uint64_t> made_;  // requests, by peer and kind
  std::vector<Request> open_;                                  // not known to have ended
  std::vector<AwaitedSignal> awaited_;                         // by streams, not known to be there
};

}  // namespace tutti::internal::comm
