// Copies of ordinary memory, on GPUs and on those of the host.
#include "runtime/cuda/base/device_copier.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/memory/pageable_speeds.hpp"
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
  CopyEnd copy(CopyDirection direction, std::byte* host, std::size_t bytes, const DeviceRows& rows = {}) const {
    const CopyEnd end =
        copier->copy(direction, host, reinterpret_cast<CUdeviceptr>(memory.get()), bytes, stream.get(), rows);
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

// Rows go where they belong, and what lies between them stays; pieces end within rows.
TEST(DeviceCopier, MovesRowsWithGapsBetweenThem) {
  const Station station(small_options());
  ASSERT_TRUE(station.copier);
  test::Random random(7);
  for (int round = 0; round < test::rounds(16); ++round) {
    const std::size_t width = 1 + random.below(random.one_in(4) ? 200'000 : 5'000), pitch = width + random.below(100);
    const std::size_t rows = 1 + random.below((std::size_t{1} << 20) / pitch), all = (rows - 1) * pitch + width;
    std::vector<std::byte> there(rows * width), back(rows * width), on_device(all, std::byte{0xee}),
        expected = on_device;
    for (std::byte& byte : there) byte = static_cast<std::byte>(random.next());
    for (std::size_t row = 0; row < rows; ++row) std::copy_n(&there[row * width], width, &expected[row * pitch]);
    ASSERT_EQ(cudaMemcpy(station.memory.get(), on_device.data(), all, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(station.copy(CopyDirection::Up, there.data(), there.size(), {width, pitch}), CopyEnd::Done);
    ASSERT_EQ(station.copy(CopyDirection::Down, back.data(), back.size(), {width, pitch}), CopyEnd::Done);
    ASSERT_EQ(cudaMemcpy(on_device.data(), station.memory.get(), all, cudaMemcpyDeviceToHost), cudaSuccess);
    ASSERT_EQ(there, back) << rows << " rows of " << width << " bytes";
    ASSERT_EQ(on_device, expected) << rows << " rows of " << width << " bytes";
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
