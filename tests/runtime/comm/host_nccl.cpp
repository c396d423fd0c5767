// NCCL on GPUs that are executed on the host: as much of it as the transport calls.
#include "tests/runtime/comm/host_nccl.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal::cuda {

/// What two ranks of a communicator share: sends that nobody has received yet. 1 to 0 is not used.
struct NcclPair {
  std::mutex mutex;
  std::deque<std::vector<std::byte>> sent;
  std::uint64_t received = 0, posted = 0;
  int connected = 0;  ///< ends that have begun a transfer
  std::condition_variable connects;
};

struct NcclComm {
  std::shared_ptr<NcclPair> pair;
  bool connected = false;
  std::atomic<bool> aborted = false;
};

namespace {

std::mutex pairs_mutex;
std::map<std::string, std::shared_ptr<NcclPair>> pairs;

std::string key_of(const Nccl::UniqueId& id) { return {id.bytes.data(), id.bytes.size()}; }

Nccl::Result get_unique_id(Nccl::UniqueId* id) {
  static std::atomic<std::uint64_t> next = 1;
  const std::uint64_t number = next++;
  id->bytes.fill('x');
  std::memcpy(id->bytes.data(), &number, sizeof number);
  return 0;
}

Nccl::Result init_rank(Nccl::Comm* comm, int ranks, Nccl::UniqueId id, int) {
  if (ranks != 2) return 4;  // ncclInvalidArgument
  const std::lock_guard lock(pairs_mutex);
  auto& pair = pairs[key_of(id)];
  if (!pair) pair = std::make_shared<NcclPair>();
  *comm = new NcclComm;
  (*comm)->pair = pair;
  return 0;
}

/// The operations of a group, which begin as it ends.
struct Group {
  bool open = false;
  std::vector<std::pair<Nccl::Comm, std::function<void()>>> operations;
};
thread_local Group group;

/// As NCCL does: the first transfer of a communicator holds the host until that of its other end.
void begin(const std::vector<std::pair<Nccl::Comm, std::function<void()>>>& operations) {
  for (const auto& [comm, launch] : operations) {
    const std::lock_guard lock(comm->pair->mutex);
    if (!std::exchange(comm->connected, true)) ++comm->pair->connected;
    comm->pair->connects.notify_all();
  }
  for (const auto& [comm, launch] : operations) {
    std::unique_lock lock(comm->pair->mutex);
    comm->pair->connects.wait(lock, [&, one = comm] { return one->pair->connected == 2 || one->aborted; });
  }
  for (const auto& [comm, launch] : operations) launch();
}

Nccl::Result enqueue(Nccl::Comm comm, std::function<void()> launch) {
  if (group.open) {
    group.operations.emplace_back(comm, std::move(launch));
  } else {
    begin({{comm, std::move(launch)}});
  }
  return 0;
}

/// Operations of all communicators that were begun and have not ended.
std::atomic<int> under_way = 0;

/// Operations of an aborted communicator end, and the call waits for those of all others: it gives memory back that the
/// GPUs reach. The communicator is not freed: streams may still look at it.
Nccl::Result abort_comm(Nccl::Comm comm) {
  {
    const std::lock_guard lock(comm->pair->mutex);
    comm->aborted = true;
    comm->pair->connects.notify_all();
  }
  while (under_way > 0) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  return 0;
}

/// A send of so many bytes ends before its receive is there.
constexpr std::size_t kShort = 4096;

Nccl::Result send(const void* from, std::size_t bytes, int, int, Nccl::Comm comm, cudaStream_t stream) {
  return enqueue(comm, [=] {
    ++under_way;
    host_cuda::launch(stream, [=, mine = std::uint64_t{0}](host_cuda::Instant, host_cuda::Instant now) mutable {
      const std::lock_guard lock(comm->pair->mutex);
      if (mine == 0) {
        const auto* const data = static_cast<const std::byte*>(from);
        comm->pair->sent.emplace_back(data, data + bytes);
        mine = ++comm->pair->posted;
      }
      const bool goes_on = bytes <= kShort || comm->pair->received >= mine || comm->aborted;
      if (!goes_on) return std::optional<host_cuda::Instant>{};
      --under_way;
      return std::optional(now);
    });
  });
}

Nccl::Result receive(void* to, std::size_t bytes, int, int, Nccl::Comm comm, cudaStream_t stream) {
  return enqueue(comm, [=] {
    ++under_way;
    host_cuda::launch(stream, [=](host_cuda::Instant, host_cuda::Instant now) -> std::optional<host_cuda::Instant> {
      const std::lock_guard lock(comm->pair->mutex);
      if (!comm->aborted && comm->pair->sent.empty()) return std::nullopt;
      --under_way;
      if (comm->aborted) return now;
      const std::vector<std::byte>& data = comm->pair->sent.front();
      std::memcpy(to, data.data(), std::min(bytes, data.size()));
      comm->pair->sent.pop_front();
      ++comm->pair->received;
      return now;
    });
  });
}

}  // namespace

Nccl host_nccl() {
  Nccl nccl{};
  nccl.get_version = [](int* version) { return *version = 22800, 0; };
  nccl.get_unique_id = get_unique_id;
  nccl.init_rank = init_rank;
  nccl.abort = abort_comm;
  nccl.destroy = [](Nccl::Comm) { return 0; };
  nccl.async_error = [](Nccl::Comm, Nccl::Result* result) { return *result = 0; };
  nccl.error_text = [](Nccl::Result) { return "an error of NCCL"; };
  nccl.send = send;
  nccl.receive = receive;
  nccl.group_start = [] { return group.open = true, 0; };
  nccl.group_end = [] {
    group.open = false;
    begin(std::exchange(group.operations, {}));
    return 0;
  };
  return nccl;
}

}  // namespace tutti::internal::cuda
