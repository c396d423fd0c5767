#include "runtime/cuda/comm/comm_memory.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/cuda/comm/comm_stream.hpp"

namespace tutti::internal::cuda {
namespace {

using PinnedBlock = std::unique_ptr<std::byte, Destroy<cudaFreeHost>>;

Expected<PinnedBlock> make_pinned(std::size_t bytes) {
  void* memory = nullptr;
  // Portable: all GPUs reach it.
  return check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc").map([&] {
    return PinnedBlock(static_cast<std::byte*>(memory));
  });
}

/// The GPU that memory is in; nothing: memory of the host.
std::optional<int> device_of_memory(const std::byte* memory) {
  cudaPointerAttributes attributes{};
  if (answer(cudaPointerGetAttributes(&attributes, memory)) != cudaSuccess) return std::nullopt;
  return attributes.type == cudaMemoryTypeDevice ? std::optional(attributes.device) : std::nullopt;
}

/// CUDA IPC shares whole blocks of this size, of which `cudaMalloc` may give several memories: each buffer has its own.
constexpr std::size_t kIpcBlock = std::size_t{2} << 20;

/// Buffers in a GPU, which other processes open from their first byte on.
struct DeviceBlock {
  DeviceMemory memory;
  std::size_t bytes = 0;
};

class GpuBuffers final : public comm::SoftMemory {
 public:
  GpuBuffers(int device, BufferPlace place) : device_(device), place_(place) {}

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override {
    if (place_ == BufferPlace::Pinned)
      return make_pinned(bytes).map(
          [&](PinnedBlock&& block) { return std::span(pinned_.emplace_back(std::move(block)).get(), bytes); });
    const std::size_t whole = (std::max<std::size_t>(bytes, 1) + kIpcBlock - 1) / kIpcBlock * kIpcBlock;
    return make_device_memory(device_, whole).map([&](DeviceMemory&& block) {
      return std::span(on_device_.emplace_back(DeviceBlock{std::move(block), whole}).memory.get(), bytes);
    });
  }
  Expected<comm::Region> region_of(std::span<std::byte> memory) override {
    comm::Region region;
    region.address = reinterpret_cast<std::uintptr_t>(memory.data());
    region.bytes = memory.size();
    region.process = getpid();
    const auto block = std::ranges::find_if(on_device_, [&](const DeviceBlock& one) { return holds(one, memory); });
    if (block == on_device_.end()) return region;
    region.device = static_cast<comm::Word>(device_);
    region.offset = static_cast<std::uint64_t>(memory.data() - block->memory.get());
    // Without it other processes do not reach the buffer.
    cudaIpcMemHandle_t handle{};
    static_assert(sizeof handle == sizeof region.handle);
    const DeviceGuard guard(device_);
    if (answer(cudaIpcGetMemHandle(&handle, block->memory.get())) == cudaSuccess)
      std::memcpy(region.handle.data(), &handle, sizeof handle);
    return region;
  }

 private:
  static bool holds(const DeviceBlock& block, std::span<std::byte> memory) {
    const std::byte* const first = block.memory.get();
    return !std::less<>{}(memory.data(), first) && !std::less<>{}(first + block.bytes, memory.data() + memory.size());
  }

  int device_;
  BufferPlace place_;
  std::vector<PinnedBlock> pinned_;
  std::vector<DeviceBlock> on_device_;
};

class GpuMover final : public comm::Mover {
 public:
  explicit GpuMover(std::vector<cudaStream_t> streams) : streams_(std::move(streams)) {}
  ~GpuMover() override {
    for (const cudaStream_t stream : streams_) static_cast<void>(cudaStreamSynchronize(stream));
    for (const auto& [handle, memory] : opened_) static_cast<void>(cudaIpcCloseMemHandle(memory));
  }

  Expected<std::byte*> memory_of(const comm::Region& region) override {
    if (region.process == getpid()) return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(region.address));
    // Several buffers of one allocation have one handle, which is opened once.
    if (const auto opened = opened_.find(region.handle); opened != opened_.end()) return opened->second + region.offset;
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, region.handle.data(), sizeof handle);
    // Another process may see other GPUs; then GPU 0 opens it as a peer.
    const DeviceGuard guard(region.device < streams_.size() ? static_cast<int>(region.device) : 0);
    void* memory = nullptr;
    if (auto opened =
            check(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
        !opened)
      return machine_error(fmt::format("the soft NIC does not reach memory of GPU {} of process {}: {}", region.device,
                                       region.process, opened.error().message));
    return (opened_[region.handle] = static_cast<std::byte*>(memory)) + region.offset;
  }

  std::uint64_t begin(std::byte* to, const std::byte* from, std::size_t bytes) override {
    const std::uint64_t number = next_++;
    // The receiving GPU issues the copy, else the sending one, else the first.
    const int device = device_of_memory(to).value_or(device_of_memory(from).value_or(0));
    const auto stream = static_cast<std::size_t>(device) < streams_.size() ? static_cast<std::size_t>(device) : 0;
    auto end = take_event(static_cast<int>(stream));
    const bool enqueued =
        end && answer(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, streams_[stream])) == cudaSuccess &&
        answer(cudaEventRecord(end->get(), streams_[stream])) == cudaSuccess;
    moves_.emplace(number, Move{static_cast<int>(stream), enqueued ? std::move(*end) : Event{}});
    return number;
  }

  comm::MoveState look(std::uint64_t number) override {
    const auto found = moves_.find(number);
    Move& move = found->second;
    const cudaError_t status = move.end ? answer(cudaEventQuery(move.end.get())) : cudaErrorUnknown;
    if (status == cudaErrorNotReady) return comm::MoveState::UnderWay;
    if (move.end) free_events_[move.device].push_back(std::move(move.end));
    moves_.erase(found);
    return status == cudaSuccess ? comm::MoveState::Done : comm::MoveState::Failed;
  }

 private:
  struct Move {
    int device = 0;
    Event end;  // null: it could not begin
  };

  Expected<Event> take_event(int device) {
    auto& free = free_events_[device];
    if (free.empty()) return make_event(device, cudaEventDisableTiming);
    Event event = std::move(free.back());
    free.pop_back();
    return event;
  }

  std::vector<cudaStream_t> streams_;  // [GPUs]
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, Move> moves_;
  std::map<int, std::vector<Event>> free_events_;
  std::map<std::array<std::byte, 64>, std::byte*> opened_;  // by handle
};

class GpuProxyMemory final : public comm::ProxyMemory {
 public:
  explicit GpuProxyMemory(cudaStream_t stream) : stream_(stream) {}

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override {
    return make_pinned(bytes).map([&](PinnedBlock&& block) {
      std::memset(block.get(), 0, bytes);
      const std::lock_guard lock(mutex_);
      return std::span(pinned_.emplace_back(std::move(block)).get(), bytes);
    });
  }
  Expected<void> reach(std::span<std::byte> memory) override {
    return ReachedMemory::make(memory).map([&](ReachedMemory&& reached) { reached_.push_back(std::move(reached)); });
  }
  bool is_host(const std::byte* memory) const override { return !device_of_memory(memory); }
  Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    const std::lock_guard lock(mutex_);
    return copy_and_wait(to, from, bytes, stream_);
  }

 private:
  std::mutex mutex_;
  cudaStream_t stream_;
  std::vector<PinnedBlock> pinned_;
  std::vector<ReachedMemory> reached_;
};

}  // namespace

Expected<ReachedMemory> ReachedMemory::make(std::span<std::byte> memory) {
  return check(cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable), "cudaHostRegister").map([&] {
    return ReachedMemory(Pinned(memory.data()));
  });
}

std::unique_ptr<comm::SoftMemory> make_gpu_buffers(int device, BufferPlace place) {
  return std::make_unique<GpuBuffers>(device, place);
}

Expected<std::unique_ptr<comm::Mover>> make_gpu_mover(int devices) {
  std::vector<cudaStream_t> streams;
  for (int device = 0; device < devices; ++device) {
    const auto stream = stream_without_waits(device);
    if (!stream) return tl::unexpected(stream.error());
    streams.push_back(*stream);
  }
  return std::make_unique<GpuMover>(std::move(streams));
}

Expected<std::unique_ptr<comm::ProxyMemory>> make_gpu_proxy_memory(int device) {
  return stream_without_waits(device).map([](cudaStream_t stream) -> std::unique_ptr<comm::ProxyMemory> {
    return std::make_unique<GpuProxyMemory>(stream);
  });
}

}  // namespace tutti::internal::cuda
