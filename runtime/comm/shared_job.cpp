#include "runtime/comm/shared_job.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "runtime/comm/gpu_functions.hpp"
#include "runtime/comm/soft_transport.hpp"

namespace tutti::internal::comm {
namespace {

constexpr std::chrono::milliseconds kLeaveLook{2};
/// How long the beat of a rank may stand still before its NIC stops to wait for it.
constexpr Duration kNicSilence = std::chrono::seconds{10};

/// Waits until whoever gives a sign of life has left in order, has died, or it is over otherwise.
void wait_for_end(LifeSign& sign, const Clock& clock, const std::function<bool()>& is_over) {
  // A watch of it alone: who else has died does not matter.
  LifeSign nobody{};
  LifeWatch watch({&nobody, &sign}, 0, kNicSilence);
  while (look_at(sign.left) == 0 && !is_over() && !watch.dead(clock.now())) std::this_thread::sleep_for(kLeaveLook);
}

/// Moves bytes of ranks that are processes: within shared memory by the caller's thread, others by GPUs.
class SharedJobMover final : public Mover {
 public:
  /// @param gpus  null: no rank has buffers in a GPU
  SharedJobMover(std::span<std::byte> mapping, std::unique_ptr<Mover> gpus)
      : mapping_(mapping), shared_(mapping), gpus_(std::move(gpus)) {}
  Expected<std::byte*> memory_of(const Region& region) override {
    if (region.process == 0) return shared_.memory_of(region);
    if (gpus_ == nullptr) return machine_error("a rank that joined without a GPU has a buffer in one");
    return gpus_->memory_of(region);
  }
  std::uint64_t begin(std::byte* to, const std::byte* from, std::size_t bytes) override {
    // A GPU's copy from memory of the host to memory of the host would hold the caller until it has ended.
    if (!is_shared(to) || !is_shared(from)) return gpus_->begin(to, from, bytes);
    static_cast<void>(shared_.begin(to, from, bytes));
    return kMoved;
  }
  MoveState look(std::uint64_t number) override { return number == kMoved ? MoveState::Done : gpus_->look(number); }

 private:
  static constexpr std::uint64_t kMoved = ~std::uint64_t{0};
  bool is_shared(const std::byte* memory) const {
    return !std::less<>{}(memory, mapping_.data()) && std::less<>{}(memory, mapping_.data() + mapping_.size());
  }

  std::span<std::byte> mapping_;
  SharedMemoryMover shared_;
  std::unique_ptr<Mover> gpus_;
};

/// What a NIC has of GPUs.
struct NicGpus {
  std::shared_ptr<void> reached;  // shared memory, where no rank of this process has it reached
  std::unique_ptr<Mover> mover;   // null: no rank has buffers in a GPU
};

/// @param own_rank  of the process of the NIC; -1: none
/// @param reached   GPUs of this process reach the shared memory already
Expected<NicGpus> gpus_of_nic(const SharedMapping& mapping, int own_rank, const GpuFunctions* functions, bool reached) {
  const Fabric fabric = mapping.fabric();
  int devices = 0;
  for (int rank = 0; rank < fabric.ranks(); ++rank)
    devices = std::max(devices, static_cast<int>(look_at(fabric.board(rank).joined)) - 1);
  if (devices == 0) return {};
  auto gpus = (functions != nullptr ? Expected<const GpuFunctions*>(functions) : gpu_functions())
                  .and_then([&](const GpuFunctions* found) -> Expected<NicGpus> {
                    auto mover = found->make_mover(devices);
                    if (!mover) return tl::unexpected(mover.error());
                    if (reached) return NicGpus{nullptr, std::move(*mover)};
                    return found->reach(mapping.memory()).map([&](std::shared_ptr<void> reaches) {
                      return NicGpus{std::move(reaches), std::move(*mover)};
                    });
                  });
  if (gpus) return gpus;
  // The ranks have met, and hear of it this way.
  const auto why = fmt::format("the soft NIC cannot move bytes of GPUs: {}", gpus.error().message);
  fabric.give_up(std::max(own_rank, 0), why);
  return machine_error(why);
}

/// The NIC of a job, in a thread that serves until all other ranks have left or died.
class SharedNic {
 public:
  /// @param own_rank  is not waited for; -1: all are
  SharedNic(const SharedMapping& mapping, int own_rank, const NetworkOptions& network, NicGpus gpus)
      : fabric_(mapping.fabric()),
        own_rank_(own_rank),
        heart_(gpus.mover == nullptr ? nullptr : std::make_unique<Heart>(fabric_.life_of_nic())),
        reached_(std::move(gpus.reached)),
        mover_(mapping.memory(), std::move(gpus.mover)),
        nic_(mapping.fabric(), mover_, network),
        thread_(std::in_place, nic_, clock_) {}
  SharedNic(const SharedNic&) = delete;  // its thread holds references to it
  SharedNic& operator=(const SharedNic&) = delete;
  ~SharedNic() { wait_for_others(); }

 private:
  void wait_for_others() {
    for (int rank = 0; rank < fabric_.ranks(); ++rank) {
      if (rank == own_rank_) continue;
      RankBoard& board = fabric_.board(rank);
      // Where a rank gave up, nothing is delivered any more.
      wait_for_end(board.life, clock_, [&] { return look_at(board.aborted) != 0; });
    }
  }

  Fabric fabric_;
  int own_rank_;
  RealClock clock_{WaitKind::Block};
  std::unique_ptr<Heart> heart_;  // ends behind the mover, which closes memory of other processes then
  std::shared_ptr<void> reached_;
  SharedJobMover mover_;
  SoftNic nic_;
  std::optional<ActorThread> thread_;
};

/// What a rank holds of its job, and its allocations.
class SharedRank final : public SoftMemory {
 public:
  /// @param reached  by which the GPUs of this process reach the mapping; null: they do not
  SharedRank(SharedMapping mapping, int rank, const RankGpu& gpu, std::shared_ptr<void> reached)
      : mapping_(std::move(mapping)),
        gpu_(gpu),
        reached_(std::move(reached)),
        on_gpu_(gpu.functions == nullptr ? nullptr : gpu.functions->make_buffers(gpu.device, BufferPlace::Device)),
        arena_(mapping_.arena(rank)),
        heart_(mapping_.fabric().board(rank).life) {}
  /// The rank leaves before its NIC waits for the others: they may wait for it in turn. What a NIC has open of a GPU's
  /// memory is not freed.
  ~SharedRank() override {
    heart_.reset();
    nic_.reset();
    LifeSign& nic = mapping_.fabric().life_of_nic();
    const bool has_begun = std::atomic_ref(nic.process).load(std::memory_order_acquire) != 0;
    if (on_gpu_ != nullptr && has_begun) wait_for_end(nic, RealClock(WaitKind::Block), [] { return false; });
  }

  Expected<void> serve(int rank, const NetworkOptions& network) {
    return gpus_of_nic(mapping_, rank, gpu_.functions, reached_ != nullptr).map([&](NicGpus&& gpus) {
      nic_.emplace(mapping_, rank, network, std::move(gpus));
    });
  }
  SharedMapping& mapping() { return mapping_; }

  Expected<std::span<std::byte>> allocate(std::size_t bytes) override {
    if (on_gpu_ != nullptr && gpu_.buffers == BufferPlace::Device) return on_gpu_->allocate(bytes);
    if (bytes > arena_.size())
      return machine_error(fmt::format("{} bytes do not fit into the {} bytes of shared memory that this rank has left",
                                       bytes, arena_.size()));
    const auto found = arena_.first(bytes);
    arena_ = arena_.subspan(std::min(arena_.size(), (bytes + 255) / 256 * 256));
    return found;
  }
  Expected<Region> region_of(std::span<std::byte> memory) override {
    const std::span<std::byte> all = mapping_.memory();
    if (std::less<>{}(memory.data(), all.data()) || memory.size() > all.size() ||
        memory.data() - all.data() > static_cast<std::ptrdiff_t>(all.size() - memory.size())) {
      if (on_gpu_ != nullptr) return region_on_gpu(memory);
      return invalid_input(
          "the buffer is no shared memory, so other ranks do not reach it; use memory that the "
          "communicator allocates");
    }
    Region region;
    region.address = static_cast<std::uint64_t>(memory.data() - all.data());
    region.bytes = memory.size();
    return region;
  }

 private:
  Expected<Region> region_on_gpu(std::span<std::byte> memory) {
    return on_gpu_->region_of(memory).and_then([](const Region& region) -> Expected<Region> {
      if (region.handle != decltype(region.handle){}) return region;
      return invalid_input(
          "the buffer is neither shared memory nor memory of a GPU that CUDA IPC shares, so other ranks do not reach "
          "it; use memory that the communicator allocates");
    });
  }

  SharedMapping mapping_;
  RankGpu gpu_;
  std::shared_ptr<void> reached_;
  std::unique_ptr<SoftMemory> on_gpu_;  // null: the rank has no GPU
  std::span<std::byte> arena_;
  std::optional<Heart> heart_;
  std::optional<SharedNic> nic_;
};

/// Lets the GPUs of a rank's process reach the mapping, if the rank has one.
Expected<std::shared_ptr<void>> reach(const SharedMapping& mapping, int rank, const RankGpu& gpu) {
  if (gpu.functions == nullptr) return nullptr;
  if (const int devices = gpu.functions->devices(); gpu.device < 0 || gpu.device >= devices)
    return invalid_input(
        fmt::format("rank {} asks for GPU {}, and its process sees {} GPUs, counted from 0; run it on "
                    "another host, or without a GPU",
                    rank, gpu.device, devices));
  return gpu.functions->reach(mapping.memory());
}

Expected<std::unique_ptr<SharedRank>> join_as(SharedMapping mapping, int rank, const SharedJob& job,
                                              const RankGpu& gpu) {
  // This may take a second, so it comes before the others see the rank.
  auto reached = reach(mapping, rank, gpu);
  if (!reached) return tl::unexpected(reached.error());
  const auto device = gpu.functions == nullptr ? std::nullopt : std::optional(gpu.device);
  if (auto claimed = mapping.claim(job, rank, device); !claimed) return tl::unexpected(claimed.error());
  return std::make_unique<SharedRank>(std::move(mapping), rank, gpu, std::move(*reached));
}

std::unique_ptr<Transport> transport_of(std::unique_ptr<SharedRank> joined, int rank) {
  const Fabric fabric = joined->mapping().fabric();
  return make_soft_transport(fabric, rank, std::move(joined));
}

}  // namespace

Expected<std::unique_ptr<Transport>> join_shared_job(const SharedJob& job, int rank, const NetworkOptions& network,
                                                     const RankGpu& gpu) {
  if (rank != 0) return join_served_job(job, rank, gpu);
  auto mapping = SharedMapping::create(job);
  if (!mapping) return tl::unexpected(mapping.error());
  auto joined = join_as(std::move(*mapping), rank, job, gpu);
  if (!joined) return tl::unexpected(joined.error());
  if (auto all = (*joined)->mapping().wait_for_all(job.meeting); !all) return tl::unexpected(all.error());
  (*joined)->mapping().remove_name();
  if (auto serves = (*joined)->serve(rank, network); !serves) return tl::unexpected(serves.error());
  return transport_of(std::move(*joined), rank);
}

Expected<std::unique_ptr<Transport>> join_served_job(const SharedJob& job, int rank, const RankGpu& gpu) {
  auto mapping = SharedMapping::join(job);
  if (!mapping) return tl::unexpected(mapping.error());
  auto joined = join_as(std::move(*mapping), rank, job, gpu);
  if (!joined) return tl::unexpected(joined.error());
  if (auto all = (*joined)->mapping().wait_for_all(job.meeting); !all) return tl::unexpected(all.error());
  return transport_of(std::move(*joined), rank);
}

Expected<void> serve_shared_job(const SharedJob& job, const NetworkOptions& network, const GpuFunctions* gpus) {
  auto mapping = SharedMapping::create(job);
  if (!mapping) return tl::unexpected(mapping.error());
  if (auto all = mapping->wait_for_all(job.meeting); !all) return all;
  mapping->remove_name();
  return gpus_of_nic(*mapping, -1, gpus, false).map([&](NicGpus&& found) {
    const SharedNic nic(*mapping, -1, network, std::move(found));
  });
}

}  // namespace tutti::internal::comm
