#include "runtime/cuda/comm_memory.hpp"

#include <cstring>
#include <optional>

#include <unistd.h>

#include "runtime/cuda/comm_stream.hpp"

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

class GpuBuffers final : public comm::SoftMemory {
 public:
  GpuBuffers(int device, BufferPlace place) : device_(device), place_(place) {}

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override {
    if (place_ == BufferPlace::Pinned)
      return make_pinned(bytes).map(
          [&](PinnedBlock&& block) { return std::span(pinned_.emplace_back(std::move(block)).get(), bytes); });
    return make_device_memory(device_, bytes).map([&](DeviceMemory&& block) {
      return std::span(on_device_.emplace_back(std::move(block)).get(), bytes);
    });
  }
  Expected<comm::Region> region_of(std::span<std::byte> memory) override {
    comm::Region region;
    region.address = reinterpret_cast<std::uintptr_t>(memory.data());
    region.bytes = memory.size();
    region.process = getpid();
    if (!device_of_memory(memory.data())) return region;
    // Other processes map the whole allocation; a buffer is where it begins, as those that this object allocates.
    cudaIpcMemHandle_t handle{};
    static_assert(sizeof handle == sizeof region.handle);
    if (answer(cudaIpcGetMemHandle(&handle, memory.data())) == cudaSuccess)
      std::memcpy(region.handle.data(), &handle, sizeof handle);
    return region;
  }

 private:
  int device_;
  BufferPlace place_;
  std::vector<PinnedBlock> pinned_;
  std::vector<DeviceMemory> on_device_;
};

class GpuMover final : public comm::Mover {
 public:
  explicit GpuMover(std::vector<cudaStream_t> streams) : streams_(std::move(streams)) {}
  ~GpuMover() override {
    for (const cudaStream_t stream : streams_) static_cast<void>(cudaStreamSynchronize(stream));
    for (const auto& [handle, memory] : opened_) static_cast<void>(cudaIpcCloseMemHandle(memory));
  }

  std::byte* memory_of(const comm::Region& region) override {
    if (region.process == getpid()) return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(region.address));
    if (const auto opened = opened_.find(region.handle); opened != opened_.end()) return opened->second;
    cudaIpcMemHandle_t handle{};
    std::memcpy(&handle, region.handle.data(), sizeof handle);
    void* memory = nullptr;
    if (answer(cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess)) != cudaSuccess) return nullptr;
    return opened_[region.handle] = static_cast<std::byte*>(memory);
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
