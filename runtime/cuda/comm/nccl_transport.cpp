#include "runtime/cuda/comm/nccl_transport.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/comm/shared_mapping.hpp"
#include "runtime/cuda/base/handles.hpp"

namespace tutti::internal::cuda {
namespace {

using comm::Request;
using comm::RequestKind;
using comm::RequestState;
using comm::Word;

Expected<void> check_nccl(const Nccl& nccl, Nccl::Result result, std::string_view call) {
  if (result == 0 || result == Nccl::kInProgress) return {};
  return machine_error(fmt::format("{} failed: {}; NCCL_DEBUG=WARN says more", call, nccl.error_text(result)));
}

/// Where the ranks of a job find the names of their communicators: in the arena of the rank that sends.
struct PublishedId {
  Word there;  ///< set last
  Nccl::UniqueId id;
};

PublishedId& published_id(const comm::SharedMapping& mapping, int from, int to) {
  return reinterpret_cast<PublishedId*>(mapping.arena(from).data())[to];
}

/// One direction between this rank and a peer.
struct MessageFlow {
  Nccl::Comm comm = nullptr;
  Stream stream;
  std::uint64_t enqueued = 0, ended = 0;
  std::deque<Event> ends;  // of those enqueued and not ended, in order
};

struct NcclPeer {
  MessageFlow sends, receives;
};

class NcclTransport final : public comm::Transport {
 public:
  NcclTransport(const Nccl& nccl, comm::SharedMapping mapping, int rank, int device)
      : nccl_(nccl), mapping_(std::move(mapping)), rank_(rank), device_(device), fabric_(mapping_.fabric()) {}
  ~NcclTransport() override {
    end_comms();
    heart_.reset();
    for (std::thread& thread : aborting_) thread.join();
  }

  /// Makes the communicators and their connections; all ranks call it.
  Expected<void> start(Duration meeting);

  std::string_view name() const override { return "nccl"; }
  int rank() const override { return rank_; }
  int size() const override { return fabric_.ranks(); }

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override {
    return make_device_memory(device_, bytes).map([&](DeviceMemory&& block) {
      return std::span(memory_.emplace_back(std::move(block)).get(), bytes);
    });
  }
  Expected<comm::BufferId> register_buffer(std::span<std::byte> memory) override {
    buffers_.push_back(memory.data());
    return comm::BufferId{static_cast<std::uint32_t>(buffers_.size() - 1)};
  }

  Expected<Request> post_recv(int peer, comm::Slice to) override;
  Expected<Request> send_on_stream(comm::Stream& stream, int peer, comm::Slice from) override;
  Expected<void> wait_on_stream(comm::Stream& stream, std::span<const Request> requests) override;
  Expected<Request> put_on_stream(comm::Stream&, int, comm::Slice, comm::BufferId, std::uint64_t, comm::SignalId,
                                  Word) override {
    return invalid_input("the transport nccl has no puts; send a message, or use the transport soft or nvshmem");
  }
  Expected<void> wait_word_on_stream(comm::Stream&, comm::SignalId, Word) override {
    return invalid_input("the transport nccl has no puts, which set signals; use the transport soft or nvshmem");
  }
  Expected<Word> value_of(comm::SignalId) override { return Word{0}; }

  Expected<void> clean() override;
  RequestState look(const Request& request) const override {
    const bool is_received = request.kind == RequestKind::Receive || is_posted(request);
    return is_received && request.number < direction_of(request).ended ? RequestState::Done : RequestState::Pending;
  }
  std::string reason(const Request& request) const override;
  std::optional<std::pair<int, std::string>> gave_up() const override { return fabric_.gave_up(rank_); }
  void abort(std::string_view why) override {
    fabric_.give_up(rank_, why);
    abort_comms();
  }
  std::vector<comm::LifeSign*> life_signs() override { return fabric_.life_signs(); }

 private:
  const MessageFlow& direction_of(const Request& request) const {
    const NcclPeer& peer = peers_.at(request.peer);
    return request.kind == RequestKind::Receive ? peer.receives : peer.sends;
  }
  std::byte* memory_of(const comm::Slice& slice) const { return buffers_[slice.buffer.number] + slice.offset; }
  Expected<void> make_comms(Duration meeting);
  /// Sends a byte over each communicator.
  Expected<void> connect(Duration meeting);
  /// Notes the end of what a direction has so far.
  Expected<void> note_end(MessageFlow& direction);
  Expected<Event> take_event();
  Expected<void> clean(MessageFlow& direction);
  /// Ends all kernels of NCCL, whatever they wait for. Does not wait for them.
  void abort_comms();
  /// Gives the communicators back; the last to do so waits for the peer.
  void end_comms();
  /// How many receives a peer has posted for messages of this rank.
  Word& posted_by(int peer) const { return fabric_.board(rank_).words[static_cast<std::size_t>(peer)]; }

  /// Whether the peer has posted the receive of a send.
  bool is_posted(const Request& request) const {
    return comm::reached(comm::look_at(posted_by(request.peer)), static_cast<Word>(request.message + 1));
  }

  Nccl nccl_;
  comm::SharedMapping mapping_;
  int rank_, device_;
  comm::Fabric fabric_;
  std::optional<comm::Heart> heart_;
  std::vector<DeviceMemory> memory_;
  std::vector<std::byte*> buffers_;
  std::vector<Event> free_events_;
  std::map<int, NcclPeer> peers_;
  std::vector<std::thread> aborting_;
};

Expected<void> NcclTransport::start(Duration meeting) {
  heart_.emplace(fabric_.board(rank_).life);
  if (auto all = mapping_.wait_for_all(meeting); !all) return all;
  mapping_.remove_name();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank_) continue;
    auto sends = make_stream(device_), receives = make_stream(device_);
    if (!sends || !receives) return tl::unexpected((sends ? receives : sends).error());
    NcclPeer& made = peers_[peer];
    made.sends.stream = std::move(*sends);
    made.receives.stream = std::move(*receives);
    PublishedId& published = published_id(mapping_, rank_, peer);
    if (auto named = check_nccl(nccl_, nccl_.get_unique_id(&published.id), "ncclGetUniqueId"); !named) return named;
    comm::set_word(published.there, 1);
  }
  if (auto made = make_comms(meeting); !made) return made;
  return connect(meeting);
}

Expected<void> NcclTransport::make_comms(Duration meeting) {
  const DeviceGuard guard(device_);
  for (auto& [peer, made] : peers_)
    if (!comm::holds_within(meeting, [&] { return comm::look_at(published_id(mapping_, peer, rank_).there) != 0; }))
      return machine_error(
          fmt::format("rank {} has joined, and has not named its communicators within {}", peer, to_string(meeting)));
  // In one group: the order in which ranks make them does not matter.
  if (auto begun = check_nccl(nccl_, nccl_.group_start(), "ncclGroupStart"); !begun) return begun;
  Expected<void> result;
  for (auto& [peer, made] : peers_) {
    const auto sends = nccl_.init_rank(&made.sends.comm, 2, published_id(mapping_, rank_, peer).id, 0);
    const auto receives = nccl_.init_rank(&made.receives.comm, 2, published_id(mapping_, peer, rank_).id, 1);
    if (result) result = check_nccl(nccl_, std::max(sends, receives), "ncclCommInitRank");
  }
  const auto ended = check_nccl(nccl_, nccl_.group_end(), "ncclGroupEnd");
  return result ? ended : result;
}

/// The first transfer of a communicator holds the host until that of its other end: ranks that begin with different
/// peers would wait for each other. In one group all of them begin at once.
Expected<void> NcclTransport::connect(Duration meeting) {
  const DeviceGuard guard(device_);
  auto bytes = make_device_memory(device_, peers_.size() + 1);
  if (!bytes) return tl::unexpected(bytes.error());
  std::byte* to = bytes->get();
  const std::byte* const from = to + peers_.size();
  if (auto begun = check_nccl(nccl_, nccl_.group_start(), "ncclGroupStart"); !begun) return begun;
  Expected<void> result;
  for (auto& [peer, made] : peers_) {
    const auto sent = nccl_.send(from, 1, Nccl::kBytes, 1, made.sends.comm, made.sends.stream.get());
    const auto received = nccl_.receive(to++, 1, Nccl::kBytes, 0, made.receives.comm, made.receives.stream.get());
    if (result) result = check_nccl(nccl_, std::max(sent, received), "the first transfer of NCCL");
  }
  if (auto ended = check_nccl(nccl_, nccl_.group_end(), "ncclGroupEnd"); result) result = ended;
  if (!result) return result;
  for (auto& [peer, made] : peers_)
    for (const cudaStream_t stream : {made.sends.stream.get(), made.receives.stream.get()})
      if (!comm::holds_within(meeting, [&] { return answer(cudaStreamQuery(stream)) != cudaErrorNotReady; }))
        return machine_error(
            fmt::format("NCCL has not moved a byte to and from rank {} within {}", peer, to_string(meeting)));
  return {};
}

Expected<Event> NcclTransport::take_event() {
  if (free_events_.empty()) return make_event(device_, cudaEventDisableTiming);
  Event event = std::move(free_events_.back());
  free_events_.pop_back();
  return event;
}

Expected<void> NcclTransport::note_end(MessageFlow& direction) {
  return take_event().and_then([&](Event&& event) {
    return check(cudaEventRecord(event.get(), direction.stream.get()), "cudaEventRecord").map([&] {
      direction.ends.push_back(std::move(event));
      ++direction.enqueued;
    });
  });
}

Expected<Request> NcclTransport::post_recv(int peer, comm::Slice to) {
  const DeviceGuard guard(device_);
  MessageFlow& direction = peers_.at(peer).receives;
  const std::uint64_t number = direction.enqueued;
  return check_nccl(nccl_,
                    nccl_.receive(memory_of(to), to.bytes, Nccl::kBytes, 0, direction.comm, direction.stream.get()),
                    "ncclRecv")
      .and_then([&] { return note_end(direction); })
      .map([&] {
        comm::set_word(fabric_.board(peer).words[static_cast<std::size_t>(rank_)], static_cast<Word>(number + 1));
        return Request{RequestKind::Receive, peer, number, number};
      });
}

Expected<Request> NcclTransport::send_on_stream(comm::Stream& stream, int peer, comm::Slice from) {
  const auto own = stream.on_device();
  if (!own) return invalid_input("the transport nccl sends from streams of a GPU, and this one is the host's");
  const DeviceGuard guard(device_);
  MessageFlow& direction = peers_.at(peer).sends;
  const std::uint64_t number = direction.enqueued;
  auto before = take_event();
  if (!before) return tl::unexpected(before.error());
  return check(cudaEventRecord(before->get(), *own), "cudaEventRecord")
      .and_then(
          [&] { return check(cudaStreamWaitEvent(direction.stream.get(), before->get(), 0), "cudaStreamWaitEvent"); })
      .and_then([&] {
        // A wait is for what the event noted at the call, so it may be recorded again.
        free_events_.push_back(std::move(*before));
        return check_nccl(
            nccl_, nccl_.send(memory_of(from), from.bytes, Nccl::kBytes, 1, direction.comm, direction.stream.get()),
            "ncclSend");
      })
      .and_then([&] { return note_end(direction); })
      .map([&] {
        return Request{RequestKind::Send, peer, number, number};
      });
}

Expected<void> NcclTransport::wait_on_stream(comm::Stream& stream, std::span<const Request> requests) {
  const auto own = stream.on_device();
  if (!own) return invalid_input("the transport nccl holds streams of a GPU, and this one is the host's");
  const DeviceGuard guard(device_);
  for (const Request& request : requests) {
    const MessageFlow& direction = direction_of(request);
    if (request.number < direction.ended) continue;
    const Event& end = direction.ends[request.number - direction.ended];
    if (auto held = check(cudaStreamWaitEvent(*own, end.get(), 0), "cudaStreamWaitEvent"); !held) return held;
  }
  return {};
}

Expected<void> NcclTransport::clean(MessageFlow& direction) {
  if (direction.comm == nullptr) return {};
  Nccl::Result fault = 0;
  if (auto asked = check_nccl(nccl_, nccl_.async_error(direction.comm, &fault), "ncclCommGetAsyncError"); !asked)
    return asked;
  if (auto runs = check_nccl(nccl_, fault, "a transfer of NCCL"); !runs) return runs;
  while (!direction.ends.empty()) {
    const cudaError_t status = answer(cudaEventQuery(direction.ends.front().get()));
    if (status == cudaErrorNotReady) return {};
    if (auto ended = check(status, "cudaEventQuery"); !ended) return ended;
    free_events_.push_back(std::move(direction.ends.front()));
    direction.ends.pop_front();
    ++direction.ended;
  }
  return {};
}

Expected<void> NcclTransport::clean() {
  for (auto& [number, peer] : peers_)
    for (MessageFlow* direction : {&peer.sends, &peer.receives})
      if (auto cleaned = clean(*direction); !cleaned) return cleaned;
  return {};
}

std::string NcclTransport::reason(const Request& request) const {
  if (request.kind == RequestKind::Receive) return fmt::format("rank {} has not sent it", request.peer);
  if (!is_posted(request))
    return fmt::format("rank {} has posted {} receives for rank {}; it must post one for each message", request.peer,
                       comm::look_at(posted_by(request.peer)), rank_);
  return "its stream has not come to it, or NCCL has not delivered it";
}

/// The call gives pinned memory back, for which the driver waits for all kernels of the process: those of the other
/// communicators, too. So each has a thread.
void NcclTransport::abort_comms() {
  for (auto& [number, peer] : peers_)
    for (MessageFlow* direction : {&peer.sends, &peer.receives})
      if (const auto comm = std::exchange(direction->comm, nullptr))
        aborting_.emplace_back([abort = nccl_.abort, comm] { static_cast<void>(abort(comm)); });
}

void NcclTransport::end_comms() {
  if (gave_up()) return abort_comms();
  for (auto& [number, peer] : peers_) {
    // In one order at all ranks, since they may wait for each other.
    MessageFlow* const first = rank_ < number ? &peer.sends : &peer.receives;
    for (MessageFlow* direction : {first, first == &peer.sends ? &peer.receives : &peer.sends})
      if (direction->comm != nullptr) static_cast<void>(nccl_.destroy(std::exchange(direction->comm, nullptr)));
  }
}

}  // namespace

Expected<std::unique_ptr<comm::Transport>> join_nccl(const Nccl& nccl, const comm::JoinOptions& options) {
  auto mapping = options.rank == 0 ? comm::SharedMapping::create(options.job) : comm::SharedMapping::join(options.job);
  if (!mapping) return tl::unexpected(mapping.error());
  if (auto claimed = mapping->claim(options.job, options.rank); !claimed) return tl::unexpected(claimed.error());
  auto transport = std::make_unique<NcclTransport>(nccl, std::move(*mapping), options.rank, options.device);
  if (auto started = transport->start(options.job.meeting); !started) return tl::unexpected(started.error());
  return transport;
}

}  // namespace tutti::internal::cuda
