// Memory of the program as buffers of batches: of a GPU, pinned, or pinned for the time of the buffer.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/memory/memory_pool.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::pattern;
using test::Station;

/// Memory of a program, in pages of its own.
struct alignas(4096) Pages {
  std::array<std::byte, 16'384> bytes{};
};

class WrappedMemory : public testing::Test {
 protected:
  WrappedMemory() : station(std::make_unique<test::DeviceClock>(), test::make_cuda<GateKind::MemoryWait>) {}

  Station station;
};

TEST_F(WrappedMemory, WrapsMemoryOfGpusAndPinnedMemoryAsTheyAre) {
  const cuda::MemoryPool& pool = cuda::MemoryPool::instance();
  const std::size_t before = pool.users();
  const VertexId mem0 = station.at("mem0"), gpu0 = station.at("gpu0");
  const std::span<std::byte> pinned = test::pinned(4096);
  const Buffer there = station.allocate(gpu0, 4096);
  const Buffer host = station.backend->wrap(mem0, pinned.subspan(100, 2000), nullptr).value();
  const Buffer device = station.backend->wrap(gpu0, there.view().bytes().subspan(100, 2000), nullptr).value();
  EXPECT_EQ(pool.users(), before);
  const auto sent = pattern(2000, 5);
  station.write(host.view(), sent);
  station.copy(host.view(), device.view());
  EXPECT_EQ(station.read(there.view().part(Bytes{100}, Bytes{2000})), sent);
}

TEST_F(WrappedMemory, RefusesToWrapWhatLiesElsewhere) {
  const VertexId mem0 = station.at("mem0"), gpu0 = station.at("gpu0");
  const auto refusal = [&](VertexId where, std::span<std::byte> memory) {
    const auto wrapped = station.backend->wrap(where, memory, nullptr);
    return wrapped ? std::string() : wrapped.error().message;
  };
  Pages pages;
  const Buffer there = station.allocate(gpu0, 4096);
  EXPECT_EQ(
      refusal(mem0, there.view().bytes()),
      "the memory to wrap is memory of GPU 0, and 'mem0' is a memory of the host; name the place that it lies in");
  EXPECT_EQ(
      refusal(gpu0, pages.bytes),
      "the memory to wrap is host memory that is not pinned, and 'gpu0' is GPU 0; name the place that it lies in");
  EXPECT_EQ(refusal(gpu0, test::pinned(64)),
            "the memory to wrap is pinned host memory, and 'gpu0' is GPU 0; name the place that it lies in");
}

// A page is pinned once: what lies in a buffer shares in it, and keeps it pinned when that buffer has gone. All owners
// stay until then.
TEST_F(WrappedMemory, WrappedMemoryIsPinnedOnce) {
  const cuda::MemoryPool& pool = cuda::MemoryPool::instance();
  const std::size_t before = pool.users();
  const VertexId mem0 = station.at("mem0");
  Pages pages;
  const std::span<std::byte> all = pages.bytes;
  const auto first = std::make_shared<int>(), second = std::make_shared<int>();
  {
    auto whole = station.backend->wrap(mem0, all.subspan(4096, 8192), first);
    const auto part = station.backend->wrap(mem0, all.subspan(5000, 1000), second);
    ASSERT_TRUE(whole.has_value() && part.has_value());
    EXPECT_EQ(pool.users(), before + 1);
    EXPECT_EQ(
        station.backend->wrap(mem0, all.subspan(8192, 8000), nullptr).error().message,
        "part of the memory to wrap is pinned by another buffer, or by one that went while a batch was armed; wrap the "
        "whole once, and then what lies in it");
    whole = Buffer();
    EXPECT_EQ(pool.users(), before + 1);
    EXPECT_EQ(first.use_count(), 2);
    station.copy(part->view(), station.allocate(station.at("gpu0"), 1000).view());
  }
  EXPECT_EQ(pool.users(), before);
  EXPECT_EQ(first.use_count() + second.use_count(), 2);
}

// Unpinning waits for closed gates, so it comes once all runs are over. Until then the memory has its owner, and may be
// wrapped again.
TEST_F(WrappedMemory, WrappedMemoryIsUnpinnedOnceNothingRuns) {
  const cuda::MemoryPool& pool = cuda::MemoryPool::instance();
  const std::size_t before = pool.users();
  const VertexId mem0 = station.at("mem0");
  const Buffer source = station.allocate(mem0, 4096), device = station.allocate(station.at("gpu0"), 4096);
  auto batch = station.copying(source.view(), device.view());
  const auto first = std::make_shared<Pages>(), second = std::make_shared<Pages>();
  for (int run = 0; run < 3; ++run) {
    station.executor.arm(batch);
    for (const auto& pages : {first, second, first}) {
      const auto wrapped = station.backend->wrap(mem0, pages->bytes, pages);
      ASSERT_TRUE(wrapped.has_value()) << wrapped.error().text();
    }
    station.backend->unpin_given_up();
    EXPECT_EQ(pool.users(), before + 2);
    EXPECT_GT(first.use_count(), 1);
    station.run(batch);
    station.backend->unpin_given_up();
    EXPECT_EQ(pool.users(), before);
    EXPECT_EQ(first.use_count() + second.use_count(), 2);
  }
}

// The program has pinned bytes in the middle. What the driver refuses is no error of the next call.
TEST_F(WrappedMemory, RefusesToWrapAroundWhatIsPinned) {
  Pages pages;
  ASSERT_EQ(cudaHostRegister(pages.bytes.data() + 4096, 4096, cudaHostRegisterDefault), cudaSuccess);
  EXPECT_EQ(
      station.backend->wrap(station.at("mem0"), pages.bytes, nullptr).error().message,
      "a page of the memory to wrap is pinned already, for other memory in it; wrap memory that has its pages for "
      "itself, as aligned_alloc gives it");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaHostUnregister(pages.bytes.data() + 4096), cudaSuccess);
}

// Two threads wrap one memory again and again.
TEST_F(WrappedMemory, WrapsInTwoThreads) {
  const cuda::MemoryPool& pool = cuda::MemoryPool::instance();
  const std::size_t before = pool.users();
  const auto pages = std::make_shared<Pages>();
  const auto wrap_often = [&] {
    for (int i = 0; i < 2000; ++i) {
      const auto wrapped = station.backend->wrap(station.at("mem0"), pages->bytes, pages);
      ASSERT_TRUE(wrapped.has_value()) << wrapped.error().text();
      EXPECT_GT(pool.users(), before) << "one of both has pinned it";
    }
  };
  std::thread other(wrap_often);
  wrap_often();
  other.join();
  station.backend->unpin_given_up();
  EXPECT_EQ(pool.users(), before);
  EXPECT_EQ(pages.use_count(), 1);
}

TEST_F(WrappedMemory, ManyWrapsLeaveNothingPinned) {
  const cuda::MemoryPool& pool = cuda::MemoryPool::instance();
  const std::size_t before = pool.users();
  const auto pages = std::make_shared<Pages>();
  for (int i = 0; i < 10'000; ++i)
    ASSERT_TRUE(station.backend->wrap(station.at("mem0"), pages->bytes, pages).has_value()) << i;
  EXPECT_EQ(pool.users(), before);
  EXPECT_EQ(pages.use_count(), 1);
}

}  // namespace
}  // namespace tutti::internal
