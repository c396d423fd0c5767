#include "runtime/comm/communicator.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tutti::internal::comm {

Communicator::Communicator(std::unique_ptr<Transport> transport, HostWait& host, Patience patience)
    : transport_(std::move(transport)),
      host_(host),
      patience_(patience),
      watch_(transport_->life_signs(), transport_->rank(), patience.silence) {}

// ---- What can be checked without a transport

Expected<void> Communicator::check_open() {
  const auto other = transport_->gave_up();
  if (!other) return {};
  if (other->first == rank()) return machine_error(other->second);
  return machine_error(fmt::format("rank {} gave up: {}", other->first, other->second));
}

Expected<void> Communicator::check_peer(int peer) const {
  if (peer >= 0 && peer < size() && peer != rank()) return {};
  return invalid_input(
      fmt::format("rank {} has no peer {}; its peers are the others of the ranks 0 to {}", rank(), peer, size() - 1));
}

Expected<void> Communicator::check_slice(const Slice& slice, std::string_view what) const {
  if (slice.buffer.number >= buffers_.size())
    return invalid_input(fmt::format("{} is in buffer {}, and rank {} has registered {}", what, slice.buffer.number,
                                     rank(), buffers_.size()));
  const std::uint64_t length = buffers_[slice.buffer.number];
  if (slice.offset <= length && slice.bytes <= length - slice.offset) return {};
  return invalid_input(fmt::format("{} is {} bytes from {} on in buffer {}, which has {}", what, slice.bytes,
                                   slice.offset, slice.buffer.number, length));
}

Expected<void> Communicator::check_signal(SignalId signal) const {
  if (signal.number < kSignalsOfRank) return {};
  return invalid_input(
      fmt::format("there is no signal {}; a rank has those from 0 to {}", signal.number, kSignalsOfRank - 1));
}

Expected<void> Communicator::check_requests(std::span<const Request> requests) const {
  for (const Request& request : requests) {
    const auto made = made_.find({request.peer, request.kind});
    if (made == made_.end() || request.message >= made->second)
      return invalid_input(
          fmt::format("{} was never asked for; wait for what post_recv, send_on_stream and "
                      "put_on_stream of this communicator have returned",
                      text_of(request)));
  }
  return {};
}

Request Communicator::noted(const Request& request) {
  open_.push_back(request);
  ++made_[{request.peer, request.kind}];
  return request;
}

template <class T>
Expected<T> Communicator::enqueued(Expected<T> result) {
  if (!result && result.error().code != ErrorCode::InvalidInput) transport_->abort(result.error().message);
  return result;
}

Expected<std::span<std::byte>> Communicator::allocate(std::size_t bytes) { return transport_->allocate(bytes); }

Expected<BufferId> Communicator::register_buffer(std::span<std::byte> memory) {
  if (memory.empty()) return invalid_input("a buffer without bytes cannot be registered; leave it out");
  return transport_->register_buffer(memory).map([&](BufferId id) {
    buffers_.push_back(memory.size());
    return id;
  });
}

// ---- What is enqueued

Expected<Request> Communicator::post_recv(int peer, Slice to) {
  return check_open()
      .and_then([&] { return check_peer(peer); })
      .and_then([&] { return check_slice(to, "the receive"); })
      .and_then([&] { return transport_->clean(); })
      .and_then([&] { return enqueued(transport_->post_recv(peer, to)); })
      .map([&](const Request& request) { return noted(request); });
}

Expected<Request> Communicator::send_on_stream(Stream& stream, int peer, Slice from) {
  return check_open()
      .and_then([&] { return check_peer(peer); })
      .and_then([&] { return check_slice(from, "the message"); })
      .and_then([&] { return transport_->clean(); })
      .and_then([&] { return enqueued(transport_->send_on_stream(stream, peer, from)); })
      .map([&](const Request& request) { return noted(request); });
}

Expected<void> Communicator::wait_on_stream(Stream& stream, const Request& request) {
  return wait_all_on_stream(stream, {&request, 1});
}

Expected<void> Communicator::wait_all_on_stream(Stream& stream, std::span<const Request> requests) {
  return check_open().and_then([&] { return check_requests(requests); }).and_then([&] {
    return enqueued(transport_->wait_on_stream(stream, requests));
  });
}

Expected<Request> Communicator::put_on_stream(Stream& stream, int peer, Slice from, BufferId to, std::uint64_t offset,
                                              SignalId signal, Word value) {
  return check_open()
      .and_then([&] { return check_peer(peer); })
      .and_then([&] { return check_slice(from, "what is put"); })
      .and_then([&] { return check_signal(signal); })
      .and_then([&] { return transport_->clean(); })
      .and_then([&] { return enqueued(transport_->put_on_stream(stream, peer, from, to, offset, signal, value)); })
      .map([&](const Request& request) { return noted(request); });
}

Expected<void> Communicator::wait_word_on_stream(Stream& stream, SignalId signal, Word value) {
  return check_open()
      .and_then([&] { return check_signal(signal); })
      .and_then([&] { return enqueued(transport_->wait_word_on_stream(stream, signal, value)); })
      .map([&] {
        awaited_.push_back({signal, value});
      });
}

// ---- The host waits

Expected<void> Communicator::look_at_others() {
  if (auto open = check_open(); !open) return open;
  if (const auto dead = watch_.dead(host_.now()))
    return machine_error(
        fmt::format("rank {} has died: its process is gone, or has shown no sign of life for {}; what it "
                    "printed last says why",
                    *dead, to_string(patience_.silence)));
  return {};
}

Expected<void> Communicator::wait_until(const std::function<Expected<bool>()>& ended,
                                        const std::function<std::string()>& what) {
  Expected<void> fault;
  const auto is_over = [&] {
    if (fault = transport_->clean(); !fault) return true;
    const Expected<bool> end = ended();
    if (!end) return fault = tl::unexpected(end.error()), true;
    if (*end) return true;
    return !(fault = look_at_others());
  };
  if (!host_.until(is_over, add_saturating(host_.now(), patience_.limit)))
    fault = machine_error(fmt::format("rank {} has waited {} for {}", rank(), to_string(patience_.limit), what()));
  // Where another rank gave up, this lets the own streams go.
  if (!fault) transport_->abort(fault.error().message);
  return fault;
}

Expected<void> Communicator::wait(std::span<const Request> requests) {
  if (auto known = check_requests(requests); !known) return known;
  const auto pending = [&](const Request& request) { return transport_->look(request) == RequestState::Pending; };
  const auto ended = [&]() -> Expected<bool> {
    for (const Request& request : requests)
      if (transport_->look(request) == RequestState::Failed) {
        // A rank that gave up says more than what failed through it.
        if (auto open = check_open(); !open) return tl::unexpected(open.error());
        return machine_error(fmt::format("{} failed: {}", text_of(request), transport_->reason(request)));
      }
    return std::ranges::none_of(requests, pending);
  };
  const auto what = [&] {
    const auto late = std::ranges::find_if(requests, pending);
    return late == requests.end() ? std::string("its requests")
                                  : fmt::format("{}: {}", text_of(*late), transport_->reason(*late));
  };
  auto result = wait_until(ended, what);
  std::erase_if(open_, [&](const Request& request) { return !pending(request); });
  return result;
}

Expected<void> Communicator::wait_word(SignalId signal, Word value) {
  if (auto known = check_signal(signal); !known) return known;
  const auto ended = [&] { return transport_->value_of(signal).map([&](Word is) { return reached(is, value); }); };
  const auto what = [&] {
    return fmt::format("its signal {} to reach {}: it is {}; a peer sets it with a put", signal.number, value,
                       transport_->value_of(signal).value_or(0));
  };
  return wait_until(ended, what);
}

Expected<void> Communicator::finish(Stream& stream) {
  const auto ended = [&]() -> Expected<bool> {
    for (const Request& request : open_)
      if (transport_->look(request) == RequestState::Failed) {
        if (auto open = check_open(); !open) return tl::unexpected(open.error());
        return machine_error(fmt::format("{} failed: {}", text_of(request), transport_->reason(request)));
      }
    return stream.is_idle().and_then([&](bool idle) -> Expected<bool> {
      // A stream that was let go has ended, too.
      if (auto open = check_open(); idle && !open) return tl::unexpected(open.error());
      return idle;
    });
  };
  auto result = wait_until(ended, [&] { return "its stream, " + text_of_stream(); });
  std::erase_if(open_, [&](const Request& request) { return transport_->look(request) != RequestState::Pending; });
  if (result) awaited_.clear();
  return result;
}

void Communicator::abort(std::string_view why) { transport_->abort(why); }

// ---- Sentences

std::string Communicator::text_of(const Request& request) const {
  switch (request.kind) {
    case RequestKind::Send:
      return fmt::format("message {} of rank {} to rank {}", request.message, rank(), request.peer);
    case RequestKind::Receive:
      return fmt::format("message {} of rank {} to rank {}", request.message, request.peer, rank());
    case RequestKind::Put: return fmt::format("put {} of rank {} to rank {}", request.message, rank(), request.peer);
  }
  return "a request";
}

std::string Communicator::text_of_stream() const {
  for (const Request& request : open_)
    if (transport_->look(request) == RequestState::Pending)
      return fmt::format("in which {} has not ended: {}", text_of(request), transport_->reason(request));
  for (const AwaitedSignal& awaited : awaited_) {
    const Word is = transport_->value_of(awaited.signal).value_or(0);
    if (!reached(is, awaited.value))
      return fmt::format("which waits for its signal {} to reach {}: it is {}; a peer sets it with a put",
                         awaited.signal.number, awaited.value, is);
  }
  return "which has work that takes longer";
}

}  // namespace tutti::internal::comm
