// What others do on the GPUs: memory that another process has allocated (CUDA IPC) and memory that a descriptor carries
// (cuMemExportToShareableHandle), as buffers of batches, and streams of the program beside closed gates. Needs a GPU.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/lanes/lane_pool.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::pattern;
using test::Station;

constexpr std::size_t kSize = 1 << 20;
constexpr auto kHandle = "TUTTI_TEST_IPC_HANDLE";

std::vector<std::byte> device_bytes(const void* memory) {
  std::vector<std::byte> bytes(kSize);
  EXPECT_EQ(cudaMemcpy(bytes.data(), memory, kSize, cudaMemcpyDeviceToHost), cudaSuccess);
  return bytes;
}

/// A station whose gpu0 has this memory; copies it out, and a pattern in.
void expect_copies(Station& station, void* memory) {
  const auto before = device_bytes(memory);
  const auto wrapped = station.backend->wrap(station.at("gpu0"), {static_cast<std::byte*>(memory), kSize}, nullptr);
  ASSERT_TRUE(wrapped.has_value()) << wrapped.error().text();
  EXPECT_EQ(station.read(wrapped->view()), before);
  const Buffer host = station.allocate(station.at("mem0"), kSize);
  const auto sent = pattern(kSize, 7);
  station.write(host.view(), sent);
  station.copy(host.view(), wrapped->view());
  EXPECT_EQ(device_bytes(memory), sent);
}

std::unique_ptr<Station> make_station() {
  return std::make_unique<Station>(std::make_unique<test::DeviceClock>(), test::make_cuda<GateKind::PollingKernel>);
}

// ---- another process

std::string text_of(const cudaIpcMemHandle_t& handle) {
  std::string text;
  for (const char byte : handle.reserved) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

cudaIpcMemHandle_t handle_of(const std::string& text) {
  cudaIpcMemHandle_t handle{};
  for (std::size_t i = 0; i < sizeof handle.reserved; ++i)
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  return handle;
}

void use_memory_of_the_other_process() {
  void* memory = nullptr;
  {
    const auto station = make_station();
    const cuda::DeviceGuard guard(0);
    if (cudaIpcOpenMemHandle(&memory, handle_of(std::getenv(kHandle)), cudaIpcMemLazyEnablePeerAccess) != cudaSuccess)
      std::exit(3);
    if (device_bytes(memory) != pattern(kSize, 5)) std::exit(4);
    expect_copies(*station, memory);
  }
  cudaIpcCloseMemHandle(memory);
  std::exit(testing::Test::HasFailure() ? 5 : 0);
}

TEST(ForeignMemoryDeathTest, OfAnotherProcessIsWrapped) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  void* memory = nullptr;
  if (std::getenv(kHandle) == nullptr) {  // the one that owns it
    const cuda::DeviceGuard guard(0);
    ASSERT_EQ(cudaMalloc(&memory, kSize), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(memory, pattern(kSize, 5).data(), kSize, cudaMemcpyHostToDevice), cudaSuccess);
    cudaIpcMemHandle_t handle{};
    ASSERT_EQ(cudaIpcGetMemHandle(&handle, memory), cudaSuccess);
    setenv(kHandle, text_of(handle).c_str(), 1);
  }
  EXPECT_EXIT(use_memory_of_the_other_process(), testing::ExitedWithCode(0), "");
  unsetenv(kHandle);
  EXPECT_EQ(device_bytes(memory), pattern(kSize, 7));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

// ---- a descriptor

/// A function of the driver.
template <class Function>
Function* driver(const char* name) {
  void* found = nullptr;
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, nullptr), cudaSuccess) << name;
  return reinterpret_cast<Function*>(found);
}

TEST(ForeignMemory, BehindADescriptorIsWrapped) {
  const auto station = make_station();
  CUmemAllocationProp what{};
  what.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  what.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  what.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t size = 0;
  ASSERT_EQ(driver<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(
                &size, &what, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  ASSERT_GE(size, kSize);
  CUmemGenericAllocationHandle made{}, imported{};
  int descriptor = -1;
  ASSERT_EQ(driver<decltype(cuMemCreate)>("cuMemCreate")(&made, size, &what, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver<decltype(cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
                &descriptor, made, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  ASSERT_EQ(driver<decltype(cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
                &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  CUdeviceptr address = 0;
  ASSERT_EQ(driver<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&address, size, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver<decltype(cuMemMap)>("cuMemMap")(address, size, 0, imported, 0), CUDA_SUCCESS);
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(driver<decltype(cuMemSetAccess)>("cuMemSetAccess")(address, size, &access, 1), CUDA_SUCCESS);
  expect_copies(*station, reinterpret_cast<void*>(address));
  EXPECT_EQ(driver<decltype(cuMemUnmap)>("cuMemUnmap")(address, size), CUDA_SUCCESS);
  for (const CUmemGenericAllocationHandle handle : {made, imported})
    EXPECT_EQ(driver<decltype(cuMemRelease)>("cuMemRelease")(handle), CUDA_SUCCESS);
  EXPECT_EQ(driver<decltype(cuMemAddressFree)>("cuMemAddressFree")(address, size), CUDA_SUCCESS);
  close(descriptor);
}

// ---- streams of the program

// So a stream may fire a trigger whatever is armed.
TEST(ForeignStream, CallsTheHostWhileTheGatesOfAllLanesAreClosed) {
  const auto station = make_station();
  std::vector<PreparedBatch> batches;
  for (std::size_t i = 0; i < cuda::LanePool::kMostLanes; ++i)
    batches.push_back(station->prepare({test::kernel_stream("s", station->at("gpu0"), "spin", 1000)}, {{}}));
  const cuda::DeviceGuard guard(0);
  const cuda::Stream stream = cuda::make_stream(0).value();
  std::atomic<int> calls = 0;
  for (PreparedBatch& batch : batches) station->executor.arm(batch);
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(cudaLaunchHostFunc(
                  stream.get(), [](void* count) { ++*static_cast<std::atomic<int>*>(count); }, &calls),
              cudaSuccess);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{10};
  while (calls < 3 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(calls, 3);
  for (PreparedBatch& batch : batches) station->run(batch);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
}

}  // namespace
}  // namespace tutti::internal
