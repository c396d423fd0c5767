// A program that knows nothing of tutti. It runs with libtutti_copy.so preloaded, on GPUs of the host
// (tests/support/host_cuda), with copies from 64 KiB on through buffers of 64 KiB. What it checks holds without the
// library, too.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cuda/status.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using Bytes = std::vector<unsigned char>;
constexpr std::size_t kKiB = 1 << 10;

/// Memory of the current GPU.
class DeviceBytes {
 public:
  explicit DeviceBytes(std::size_t size) { EXPECT_EQ(cudaMalloc(&data_, size), cudaSuccess); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;
  ~DeviceBytes() { static_cast<void>(cudaFree(data_)); }
  [[nodiscard]] unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  void* data_ = nullptr;
};

Bytes random_bytes(test::Random& random, std::size_t size) {
  Bytes bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.next());
  return bytes;
}

/// Calls of the driver's copies: zero where this library is not preloaded.
int copies_of_the_driver() {
  return host_cuda::counted_calls("cuMemcpyHtoDAsync_v2") + host_cuda::counted_calls("cuMemcpyDtoHAsync_v2");
}

/// Of this process and those that it forks.
const std::string& report_file() {
  static const std::string file = testing::TempDir() + "/copies." + std::to_string(getpid());
  return file;
}

class Preload : public testing::Test {
 protected:
  static void TearDownTestSuite() { std::remove(report_file().c_str()); }
  void SetUp() override {
    ASSERT_EQ(setenv("TUTTI_COPY_REPORT", report_file().c_str(), 1), 0);  // before the first copy, which looks
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    CUcontext context = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);  // the program has loaded the driver
    for (const char* call : {"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cudaMemcpy", "cudaMemcpyAsync"})
      host_cuda::count_calls(call);
  }
};

TEST_F(Preload, CopiesEveryByteOfEverySize) {
  test::Random random(1);
  const std::size_t most = 3 << 20;
  const DeviceBytes device(most + 64);
  Bytes host(most + 64), back(most + 64);
  for (int round = 0; round < 60; ++round) {
    const auto size = static_cast<std::size_t>(random.below(std::uint64_t{1} << random.between(10, 21)));
    const auto at = static_cast<std::size_t>(random.below(64)), on_device = static_cast<std::size_t>(random.below(64));
    const Bytes bytes = random_bytes(random, size);
    std::copy(bytes.begin(), bytes.end(), host.begin() + static_cast<std::ptrdiff_t>(at));
    const auto kind = [&](cudaMemcpyKind one) { return random.one_in(2) ? one : cudaMemcpyDefault; };
    ASSERT_EQ(cudaMemcpy(device.data() + on_device, host.data() + at, size, kind(cudaMemcpyHostToDevice)), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(back.data() + at, device.data() + on_device, size, kind(cudaMemcpyDeviceToHost)), cudaSuccess);
    ASSERT_EQ(std::memcmp(back.data() + at, bytes.data(), size), 0) << size << " bytes";
  }
  EXPECT_GT(copies_of_the_driver(), 0) << "the library is not preloaded";
}

// A copy goes behind what is in its stream, and before what comes into it later; the source may change when the call
// has returned.
TEST_F(Preload, KeepsTheOrderOfAStream) {
  test::Random random(2);
  const std::size_t size = 700 * kKiB;
  const DeviceBytes device(size);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (int round = 0; round < 10; ++round) {
    const Bytes bytes = random_bytes(random, size);
    Bytes host = bytes, between(size), last(size);
    ASSERT_EQ(cudaMemsetAsync(device.data(), 0x11, size, stream), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(device.data(), host.data(), size, cudaMemcpyHostToDevice, stream), cudaSuccess);
    std::ranges::fill(host, static_cast<unsigned char>(0));
    ASSERT_EQ(cudaMemcpyAsync(between.data(), device.data(), size, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    ASSERT_EQ(cudaMemsetAsync(device.data(), 0x22, size, stream), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(last.data(), device.data(), size, cudaMemcpyDeviceToHost, stream), cudaSuccess);
    ASSERT_EQ(between, bytes);
    ASSERT_EQ(last, Bytes(size, 0x22));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST_F(Preload, LeavesPinnedMemoryAndOtherCopiesAlone) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size), other(size);
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, size, 0), cudaSuccess);
  Bytes half(4 * size);
  ASSERT_EQ(cudaHostRegister(half.data(), size, 0), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(device.data(), pinned, size, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(other.data(), device.data(), size, cudaMemcpyDeviceToDevice), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(device.data(), half.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
  EXPECT_EQ(copies_of_the_driver(), 0);
  EXPECT_EQ(cudaHostUnregister(half.data()), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(Preload, LeavesErrorsToTheRuntime) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  Bytes host(size);
  // The memory of the GPU ends before the copy, the kind is wrong, or there is no memory.
  EXPECT_EQ(cudaMemcpy(device.data() + 1, host.data(), size, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), size, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(nullptr, host.data(), size, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  // What follows works.
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
}

// 300 KiB and one byte for a GPU's 300 KiB: the runtime refuses the copy, and no piece of it was made before.
TEST_F(Preload, ACopyThatIsTooLongWritesNothing) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  const Bytes zeros(size, 0);
  Bytes host(size + 1, 7), back(size);
  ASSERT_EQ(cudaMemcpy(device.data(), zeros.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
  const int before = copies_of_the_driver();
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), size + 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host.data(), device.data(), size + 1, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(copies_of_the_driver(), before);
  EXPECT_EQ(host, Bytes(size + 1, 7));
  ASSERT_EQ(cudaMemcpy(back.data(), device.data(), size, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, zeros);
}

TEST_F(Preload, LeavesCapturedStreamsAlone) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, size, 0), cudaSuccess);
  Bytes host(size);
  cudaStream_t stream = nullptr, captured = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(device.data(), pinned, size, cudaMemcpyHostToDevice, captured), cudaSuccess);
  // Another thread copies meanwhile, which is no part of the capture and does not end it.
  std::thread([&] {
    EXPECT_EQ(cudaMemcpyAsync(device.data(), host.data(), size, cudaMemcpyHostToDevice, stream), cudaSuccess);
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (const cudaStream_t one : {stream, captured}) EXPECT_EQ(cudaStreamDestroy(one), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// Several threads on several GPUs, all at once: where the copier of a GPU is busy the copy goes its own way.
TEST_F(Preload, CopiesForSeveralThreadsAndDevices) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([t] {
      test::Random random(static_cast<std::uint64_t>(100 + t));
      ASSERT_EQ(cudaSetDevice(t % 3), cudaSuccess);
      const std::size_t size = (100 + static_cast<std::size_t>(t) * 111) * kKiB;
      const DeviceBytes device(size);
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      for (int round = 0; round < 15; ++round) {
        const Bytes bytes = random_bytes(random, size);
        Bytes back(size);
        ASSERT_EQ(cudaMemcpyAsync(device.data(), bytes.data(), size, cudaMemcpyHostToDevice, stream), cudaSuccess);
        ASSERT_EQ(cudaMemcpyAsync(back.data(), device.data(), size, cudaMemcpyDeviceToHost, stream), cudaSuccess);
        ASSERT_EQ(back, bytes);
      }
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    });
  for (std::thread& thread : threads) thread.join();
}

// A stream that belongs to another GPU than the current one, and memory of another GPU.
TEST_F(Preload, CopiesToAnotherDeviceThanTheCurrentOne) {
  const std::size_t size = 300 * kKiB;
  test::Random random(5);
  const Bytes bytes = random_bytes(random, size);
  Bytes back(size);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceBytes there(size);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(there.data(), bytes.data(), size, cudaMemcpyHostToDevice, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(back.data(), there.data(), size, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// The copy engine refuses a piece in the middle: the runtime makes the whole copy, and the next one goes through
// buffers again.
TEST_F(Preload, AFailureInTheMiddleIsNotSeen) {
  test::Random random(6);
  const std::size_t size = 900 * kKiB;
  const DeviceBytes device(size);
  for (const char* call : {"cuMemcpyHtoDAsync_v2", "cuEventRecord"}) {
    const Bytes bytes = random_bytes(random, size);
    Bytes back(size);
    host_cuda::fail_next(call, CUDA_ERROR_INVALID_VALUE, 3);
    ASSERT_EQ(cudaMemcpy(device.data(), bytes.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(cudaMemcpy(back.data(), device.data(), size, cudaMemcpyDeviceToHost), cudaSuccess);
    ASSERT_EQ(back, bytes);
    const int before = copies_of_the_driver();
    ASSERT_EQ(cudaMemcpy(device.data(), bytes.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_GT(copies_of_the_driver(), before);
  }
}

// A child has no thread but its own. What it copies goes its own way.
TEST_F(Preload, AForkedChildIsNotHeldUp) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  const Bytes host(size, 7);
  ASSERT_EQ(cudaMemcpy(device.data(), host.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const int before = copies_of_the_driver();
    // The GPUs of the host have their threads in the parent: the call is refused before it waits for one.
    host_cuda::fail_next("cudaMemcpyAsync", cudaErrorInvalidDevice);
    const cudaError_t status = cudaMemcpyAsync(device.data(), host.data(), size, cudaMemcpyHostToDevice, nullptr);
    _exit(status == cudaErrorInvalidDevice && copies_of_the_driver() == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(cudaMemcpy(device.data(), host.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
}

/// Lines that processes with the library append to their report when they exit.
std::vector<std::string> report_lines() {
  std::ifstream report(report_file());
  std::vector<std::string> lines;
  for (std::string line; std::getline(report, line);) lines.push_back(line);
  return lines;
}

// Of two children that end in order, one copies nothing and one once, 300 KiB in the program's own way: one line,
// without what their parent has copied.
TEST_F(Preload, AForkedChildReportsItsOwnCopies) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  const Bytes host(size, 7);
  ASSERT_EQ(cudaMemcpy(device.data(), host.data(), size, cudaMemcpyHostToDevice), cudaSuccess);
  const std::size_t before = report_lines().size();
  for (const bool copies : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      host_cuda::fail_next("cudaMemcpyAsync", cudaErrorInvalidDevice);
      if (copies) static_cast<void>(cudaMemcpyAsync(device.data(), host.data(), size, cudaMemcpyHostToDevice, nullptr));
      std::exit(0);  // in order: the library reports
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
  }
  const auto lines = report_lines();
  ASSERT_EQ(lines.size(), before + 1);
  EXPECT_NE(lines.back().find("\"up\": {\"calls\": 0, \"bytes\": 0"), std::string::npos) << lines.back();
  EXPECT_NE(lines.back().find("\"plain_up\": {\"calls\": 1, \"bytes\": 307200"), std::string::npos) << lines.back();
}

}  // namespace
}  // namespace tutti::internal
