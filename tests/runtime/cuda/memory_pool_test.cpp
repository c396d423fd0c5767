// Memory that was returned, alone; the GPUs are executed on the host.
#include "runtime/cuda/memory/memory_pool.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal::cuda {
namespace {

constexpr std::size_t kPage = 4096;

/// The pool of the program, which has nothing at first.
class MemoryPoolTest : public testing::Test {
 protected:
  MemoryPoolTest() { pool.trim(); }
  ~MemoryPoolTest() override { pool.trim(); }

  [[nodiscard]] PooledMemory take(std::size_t size) { return pool.take_device(0, size, stream.get()).value(); }
  [[nodiscard]] std::size_t kept() const { return pool.kept({0}); }

  DeviceGuard guard{0};
  Stream stream = make_stream(0).value();
  MemoryPool& pool = MemoryPool::instance();
};

// 1 and 4096 bytes are a page, 4097 are two.
TEST_F(MemoryPoolTest, BlocksAreWholePages) {
  for (const auto& [size, block] : {std::pair(std::size_t{1}, kPage), {kPage, kPage}, {kPage + 1, 2 * kPage}}) {
    static_cast<void>(take(size));
    EXPECT_EQ(kept(), block) << size;
    pool.trim();
  }
}

// A page of two wastes half of them, a page of three more.
TEST_F(MemoryPoolTest, ABlockOfUpToTwiceTheSizeIsGivenOutAgain) {
  for (const auto& [pages, again] : {std::pair(2, true), {3, false}}) {
    const std::byte* const returned = take(static_cast<std::size_t>(pages) * kPage).data();
    EXPECT_EQ(take(kPage).data() == returned, again) << pages;
    pool.trim();
  }
}

// 16 MiB stay; with a page more nothing does.
TEST_F(MemoryPoolTest, MoreThan16MiBAreFreedWhereNothingRuns) {
  constexpr std::size_t kStays = std::size_t{16} << 20;
  static_cast<void>(take(kStays));
  EXPECT_EQ(kept(), kStays);
  static_cast<void>(take(kPage));
  EXPECT_EQ(kept(), 0U);
}

// The driver waits for a gate when the first of two blocks is freed. Whoever asks meanwhile sees none of them: not what
// they were, and not the second one, which would fit.
TEST_F(MemoryPoolTest, MemoryThatIsBeingFreedIsNeitherCountedNorGivenOut) {
  const Stream gated = make_stream(0).value();
  { const PooledMemory small = take(kPage), large = take(3 * kPage); }
  EXPECT_EQ(kept(), 4 * kPage);
  std::atomic<bool> open{false};
  host_cuda::launch_gate(gated.get(), [&](host_cuda::Instant, host_cuda::Instant now) {
    return open ? std::optional(now) : std::nullopt;
  });
  std::thread frees([&] { pool.trim(); });
  while (host_cuda::waiting_calls() == 0) std::this_thread::yield();
  std::size_t counted = 1;
  std::thread counts([&] { counted = kept(); });
  PooledMemory taken;
  const std::byte* data = nullptr;
  std::thread takes([&] {
    taken = take(3 * kPage);
    data = taken.data();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // one that did not wait would be through
  open = true;
  for (std::thread* thread : {&frees, &counts, &takes}) thread->join();
  EXPECT_EQ(counted, 0U);
  cudaPointerAttributes attributes{};
  EXPECT_EQ(cudaPointerGetAttributes(&attributes, data), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice) << "freed";
}

}  // namespace
}  // namespace tutti::internal::cuda
