// Copies of ordinary memory, on GPUs and on those of the host.
#include "runtime/cuda/device_copier.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cuda/handles.hpp"
#include "runtime/cuda/pageable_speeds.hpp"
#include "tests/support/random.hpp"
#if defined(TUTTI_HOST_CUDA)
#include "tests/support/host_cuda/host_cuda.hpp"
#endif

namespace tutti::internal::cuda {
namespace {

struct Station {
  explicit Station(const CopierOptions& options, std::size_t bytes = std::size_t{8} << 20) {
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
    driver = find_copy_driver().value();
    memory = *make_device_memory(0, bytes);
    stream = *make_stream(0);
    copier = DeviceCopier::make(driver, options);
  }
  CopyEnd copy(CopyDirection direction, std::byte* host, std::size_t bytes) const {
    const CopyEnd end = copier->copy(direction, host, reinterpret_cast<CUdeviceptr>(memory.get()), bytes, stream.get());
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    return end;
  }

  CopyDriver driver{};
  DeviceMemory memory;
  Stream stream;
  std::unique_ptr<DeviceCopier> copier;
};

CopierOptions small_options() {
  CopierOptions options;
  options.threads = 3;
  options.buffer = 64 << 10;
  return options;
}

TEST(DeviceCopier, MovesEveryByteBothWays) {
  const Station station(small_options());
  ASSERT_TRUE(station.copier);
  EXPECT_EQ(station.copier->buffers(), 6U);
  test::Random random(4);
  for (int round = 0; round < test::rounds(100); ++round) {
    const auto bytes = static_cast<std::size_t>(1 + random.below(std::uint64_t{1} << random.between(1, 23)));
    std::vector<std::byte> there(bytes), back(bytes);
    for (std::size_t i = 0; i < bytes; i += 1 + bytes / 5000) there[i] = static_cast<std::byte>(random.next());
    ASSERT_EQ(station.copy(CopyDirection::Up, there.data(), bytes), CopyEnd::Done);
    ASSERT_EQ(station.copy(CopyDirection::Down, back.data(), bytes), CopyEnd::Done);
    ASSERT_EQ(there, back) << bytes << " bytes";
  }
}

#if defined(TUTTI_HOST_CUDA)

// The driver pins neither six buffers nor three; one is too few, and none is left.
TEST(DeviceCopier, TakesFewerBuffersWhereLittleCanBePinned) {
  host_cuda::fail_next("cuMemHostRegister_v2", CUDA_ERROR_OUT_OF_MEMORY);
  const Station station(small_options());
  ASSERT_TRUE(station.copier);
  EXPECT_EQ(station.copier->buffers(), 3U);
  std::vector<std::byte> bytes(700'000, std::byte{9});
  EXPECT_EQ(station.copy(CopyDirection::Up, bytes.data(), bytes.size()), CopyEnd::Done);
  host_cuda::fail_next("cuEventCreate", CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(DeviceCopier::make(station.driver, small_options()));
}

// Upwards a copy is done when all is in buffers, whatever the engine then says of them, and the copy after it asks
// about them first; downwards each move counts. So the failing question comes first, and downwards.
TEST(DeviceCopier, WorksAgainAfterAFailure) {
  const Station station(small_options());
  std::vector<std::byte> bytes(900'000, std::byte{9});
  for (const auto& [call, direction] : {std::pair("cuEventQuery", CopyDirection::Down),
                                        {"cuMemcpyDtoHAsync_v2", CopyDirection::Down},
                                        {"cuMemcpyHtoDAsync_v2", CopyDirection::Up},
                                        {"cuEventRecord", CopyDirection::Up}}) {
    host_cuda::fail_next(call, CUDA_ERROR_INVALID_VALUE, 4);
    EXPECT_EQ(station.copy(direction, bytes.data(), bytes.size()), CopyEnd::Failed) << call;
    EXPECT_EQ(station.copy(direction, bytes.data(), bytes.size()), CopyEnd::Done) << call;
  }
}

#endif

TEST(PageableSpeeds, AreMeasured) {
  if (test::kSanitized) return;  // it moves gigabytes
  const auto found = measure_pageable(0);
  ASSERT_TRUE(found.has_value()) << found.error().text();
  for (const PageableDirection& one : found->directions) {
    for (const GBps rate : {one.pinned, one.plain, one.thread, one.copied}) EXPECT_GT(rate.value, 0);
    EXPECT_GT(one.from.count, 0);
  }
  EXPECT_GE(found->choice.threads, 1);
  EXPECT_LE(found->choice.threads, found->cores);
}

TEST(PageableSpeeds, NameAGpuThatIsNotThere) {
  const auto found = measure_pageable(100);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message.find("there is no GPU 100; this host has "), 0U) << found.error().message;
}

}  // namespace
}  // namespace tutti::internal::cuda
