// The worlds of GPUs: streams are cudaStreams, words lie in pinned memory, and a soft NIC moves the bytes. The same
// program runs on GPUs, and on GPUs that are executed on the host.
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/comm/soft_transport.hpp"
#include "runtime/cuda/comm/comm_memory.hpp"
#include "runtime/cuda/comm/comm_stream.hpp"
#include "runtime/cuda/comm/nccl_transport.hpp"
#include "tests/runtime/comm/comm_worlds.hpp"
#ifdef TUTTI_HOST_CUDA
#include "tests/runtime/comm/host_nccl.hpp"
#endif

namespace tutti::internal::comm::test {
namespace {

constexpr std::size_t kStreamsOfGpuRank = 2;

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// What ranks that have GPUs have in common: streams, pinned memory, and copies of tests.
class RanksOnGpus : public CommWorld {
 public:
  int size() const override { return static_cast<int>(comms_.size()); }
  Communicator& comm(int rank) override { return comms_.at(static_cast<std::size_t>(rank)); }
  Stream& stream(int rank, int which) override {
    return *streams_.at(static_cast<std::size_t>(rank) * kStreamsOfGpuRank + static_cast<std::size_t>(which));
  }
  HostWait& host() override { return wait_; }
  std::byte* staging(int rank) override { return staging_memory_.at(static_cast<std::size_t>(rank)); }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0) return;
    const std::lock_guard lock(mutex_);
    ASSERT_TRUE(copies_->copy(to, from, bytes).has_value());
    ASSERT_EQ(cudaStreamSynchronize(*copies_->on_device()), cudaSuccess);
  }

 protected:
  RanksOnGpus() : copies_(cuda::make_comm_stream(0).value()) {}

  void add_rank(int device, std::unique_ptr<Transport> transport, const Patience& patience) {
    staging_.push_back(cuda::make_gpu_buffers(device, cuda::BufferPlace::Pinned));
    staging_memory_.push_back(staging_.back()->allocate(kStaging).value().data());
    for (std::size_t i = 0; i < kStreamsOfGpuRank; ++i) streams_.push_back(cuda::make_comm_stream(device).value());
    comms_.emplace_back(std::move(transport), wait_, patience);
  }
  /// Returns when no stream waits for a word any more.
  void give_up() {
    for (Communicator& comm : comms_) comm.abort("the test is over");
    for (const auto& stream : streams_)
      static_cast<void>(wait_.until([&] { return stream->is_idle().value_or(true); }, kNever));
  }
  /// Ends the ranks and their streams. @pre `give_up`
  void end() {
    comms_.clear();
    streams_.clear();
  }

  RealClock clock_{WaitKind::Block};
  RealWait wait_{clock_};

 private:
  std::mutex mutex_;
  std::unique_ptr<Stream> copies_;
  std::vector<std::unique_ptr<SoftMemory>> staging_;
  std::vector<std::byte*> staging_memory_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::deque<Communicator> comms_;
};

class GpuWorld final : public RanksOnGpus {
 public:
  GpuWorld(const WorldNeeds& needs, cuda::BufferPlace place)
      : memory_(needs.ranks, kSoftLanes),
        reached_(cuda::ReachedMemory::make(memory_.fabric().memory()).value()),
        gpu_mover_(cuda::make_gpu_mover(device_count()).value()),
        nic_(memory_.fabric(), place == cuda::BufferPlace::Device ? *gpu_mover_ : host_mover_, needs.network) {
    for (int rank = 0; rank < needs.ranks; ++rank) {
      const int device = rank % device_count();
      add_rank(device, make_soft_transport(memory_.fabric(), rank, cuda::make_gpu_buffers(device, place)),
               needs.patience_of(rank));
    }
    thread_.emplace(nic_, clock_);
  }
  /// Memory of GPUs is given back when no stream waits for a word any more: the driver waits for all streams then.
  ~GpuWorld() override {
    give_up();
    thread_.reset();
    end();
  }

 private:
  FabricMemory memory_;
  cuda::ReachedMemory reached_;
  HostMover host_mover_;
  std::unique_ptr<Mover> gpu_mover_;
  SoftNic nic_;
  std::optional<ActorThread> thread_;
};

/// Ranks of this process that NCCL joins, each with a GPU of its own.
class NcclWorld final : public RanksOnGpus {
 public:
  NcclWorld(const cuda::Nccl& nccl, const WorldNeeds& needs) {
    static std::atomic<int> worlds = 0;
    JoinOptions options;
    options.job = {.name = fmt::format("test-nccl-{}-{}", getpid(), ++worlds), .ranks = needs.ranks, .memory = 1 << 16};
    std::vector<Expected<std::unique_ptr<Transport>>> joined(static_cast<std::size_t>(needs.ranks));
    std::vector<std::thread> hosts;
    for (int rank = 0; rank < needs.ranks; ++rank)
      hosts.emplace_back([&, rank, mine = options]() mutable {
        mine.rank = mine.device = rank;
        joined[static_cast<std::size_t>(rank)] = cuda::join_nccl(nccl, mine);
      });
    for (std::thread& host : hosts) host.join();
    for (int rank = 0; rank < needs.ranks; ++rank)
      add_rank(rank, std::move(joined[static_cast<std::size_t>(rank)].value()), needs.patience_of(rank));
  }
  ~NcclWorld() override { give_up(); }
};

CommWorldRow nccl_world(const cuda::Nccl& nccl) {
  CommWorldRow row{"nccl", [=](const WorldNeeds& needs) { return std::make_unique<NcclWorld>(nccl, needs); }};
  row.has_puts = row.has_longer_receives = false;
  return row;
}

/// NCCL joins ranks with a GPU each: 4 at most in the suite.
constexpr int kMostRanksOfSuite = 4;

CommWorldRow gpu_world(std::string name, cuda::BufferPlace place) {
  return {std::move(name), [=](const WorldNeeds& needs) { return std::make_unique<GpuWorld>(needs, place); }, true,
          false};
}

}  // namespace

std::vector<CommWorldRow> comm_worlds() {
  std::vector<CommWorldRow> rows{gpu_world("pinned", cuda::BufferPlace::Pinned),
                                 gpu_world("device", cuda::BufferPlace::Device)};
#ifdef TUTTI_HOST_CUDA
  rows.push_back(nccl_world(cuda::host_nccl()));
#else
  if (const auto nccl = cuda::find_nccl(); nccl && device_count() >= kMostRanksOfSuite)
    rows.push_back(nccl_world(*nccl));
#endif
  return rows;
}

}  // namespace tutti::internal::comm::test

int main(int argc, char** argv) {
  tutti::internal::cuda::set_environment();
  testing::InitGoogleTest(&argc, argv);
  if (tutti::internal::comm::test::device_count() == 0) {
    GTEST_FLAG_SET(filter, "CommGpu.IsThere");
  }
  return RUN_ALL_TESTS();
}

TEST(CommGpu, IsThere) {
  if (tutti::internal::comm::test::device_count() == 0) GTEST_SKIP() << "skipped: no device";
}

// However many streams a program has had: one goes on while others wait for a word.
TEST(CommGpu, StreamsDoNotWaitForEachOther) {
  namespace cuda = tutti::internal::cuda;
  using tutti::internal::comm::Word;
  if (tutti::internal::comm::test::device_count() == 0) GTEST_SKIP() << "skipped: no device";
  const auto words_memory = cuda::make_gpu_buffers(0, cuda::BufferPlace::Pinned);
  auto& words = *reinterpret_cast<std::array<Word, 2>*>(words_memory->allocate(4096).value().data());
  const auto on_device = cuda::make_gpu_buffers(0, cuda::BufferPlace::Device);
  std::byte* const bytes = on_device->allocate(4096).value().data();
  for (Word round = 1; round <= 50; ++round) {
    std::vector<std::unique_ptr<tutti::internal::comm::Stream>> held;
    for (Word i = 0; i < 1 + round % 8; ++i) {
      held.push_back(cuda::make_comm_stream(0).value());
      EXPECT_TRUE(held.back()->wait({&words[0], round}).has_value());
      EXPECT_TRUE(held.back()->copy(bytes, bytes + 64, 64).has_value());
    }
    const auto free = cuda::make_comm_stream(0).value();
    EXPECT_TRUE(free->copy(bytes + 128, bytes + 192, 64).has_value());
    EXPECT_TRUE(free->set({&words[1], round}).has_value());
    EXPECT_EQ(cudaStreamSynchronize(*free->on_device()), cudaSuccess);
    EXPECT_EQ(std::atomic_ref(words[1]).load(), round);
    std::atomic_ref(words[0]).store(round);
  }
}

TEST(CommNccl, IsThere) {
#ifndef TUTTI_HOST_CUDA
  if (const auto nccl = tutti::internal::cuda::find_nccl(); !nccl)
    GTEST_SKIP() << "skipped: transport nccl: " << nccl.error().message;
  if (tutti::internal::comm::test::device_count() < tutti::internal::comm::test::kMostRanksOfSuite)
    GTEST_SKIP() << "skipped: transport nccl: the suite needs " << tutti::internal::comm::test::kMostRanksOfSuite
                 << " GPUs";
#endif
}
