// A program that knows nothing of tutti. It runs with libtutti_copy.so preloaded, on GPUs of the host
// (tests/support/host_cuda), with copies from 64 KiB on through buffers of 64 KiB. What it checks holds without the
// library, too. It copies by the driver, as runtimes do, and finds the driver's functions in each way that there is.
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

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/host_cuda/found_copies.hpp"
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

/// Pieces that went through buffers, each with an event: zero where this library is not preloaded.
int pieces() { return host_cuda::counted_calls("cuEventRecord"); }

/// Of this process and those that it forks.
const std::string& report_file() {
  static const std::string file = testing::TempDir() + "/copies." + std::to_string(getpid());
  return file;
}

class Preload : public testing::TestWithParam<test::Route> {
 protected:
  static void TearDownTestSuite() { std::remove(report_file().c_str()); }
  void SetUp() override {
    ASSERT_EQ(setenv("TUTTI_COPY_REPORT", report_file().c_str(), 1), 0);  // before the first copy, which looks
    ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
    CUcontext context = nullptr;
    ASSERT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);  // the program has loaded the driver
    host_cuda::count_calls("cuEventRecord");
  }

  [[nodiscard]] CUresult copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) const {
    return copies_.copy(to, from, size, kind);
  }
  [[nodiscard]] CUresult copy_async(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                                    cudaStream_t stream) const {
    return copies_.copy_async(to, from, size, kind, stream);
  }
  /// The driver's name of its copies up, for failures that are planned.
  [[nodiscard]] std::string name_of(const char* function, const char* variant) const {
    return std::string(function) + (GetParam() == test::Route::AskedPerThread ? variant : "");
  }

  const test::DriverCopies copies_ = test::find_copies(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Routes, Preload, testing::ValuesIn(test::kRoutes),
                         [](const auto& route) { return std::string(test::to_string(route.param)); });

TEST_P(Preload, CopiesEveryByteOfEverySize) {
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
    ASSERT_EQ(copy(device.data() + on_device, host.data() + at, size, kind(cudaMemcpyHostToDevice)), CUDA_SUCCESS);
    ASSERT_EQ(copy(back.data() + at, device.data() + on_device, size, kind(cudaMemcpyDeviceToHost)), CUDA_SUCCESS);
    ASSERT_EQ(std::memcmp(back.data() + at, bytes.data(), size), 0) << size << " bytes";
  }
  EXPECT_GT(pieces(), 0) << "the library is not preloaded";
}

// A copy goes behind what is in its stream, and before what comes into it later; the source may change when the call
// has returned.
TEST_P(Preload, KeepsTheOrderOfAStream) {
  test::Random random(2);
  const std::size_t size = 700 * kKiB;
  const DeviceBytes device(size);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  for (int round = 0; round < 10; ++round) {
    const Bytes bytes = random_bytes(random, size);
    Bytes host = bytes, between(size), last(size);
    ASSERT_EQ(cudaMemsetAsync(device.data(), 0x11, size, stream), cudaSuccess);
    ASSERT_EQ(copy_async(device.data(), host.data(), size, cudaMemcpyHostToDevice, stream), CUDA_SUCCESS);
    std::ranges::fill(host, static_cast<unsigned char>(0));
    ASSERT_EQ(copy_async(between.data(), device.data(), size, cudaMemcpyDeviceToHost, stream), CUDA_SUCCESS);
    ASSERT_EQ(cudaMemsetAsync(device.data(), 0x22, size, stream), cudaSuccess);
    ASSERT_EQ(copy_async(last.data(), device.data(), size, cudaMemcpyDeviceToHost, stream), CUDA_SUCCESS);
    ASSERT_EQ(between, bytes);
    ASSERT_EQ(last, Bytes(size, 0x22));
  }
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// 100 rows of 3000 bytes, up as one layer and down as two: through buffers. Rows with gaps on the host go their own
// way.
TEST_P(Preload, CopiesRowsThatFollowEachOtherOnTheHost) {
  const std::size_t width = 3000, pitch = 3072, rows = 100;
  test::Random random(3);
  const DeviceBytes device(rows * pitch);
  const Bytes there = random_bytes(random, rows * width);
  Bytes back(there.size()), all(rows * pitch), with_gaps(rows * pitch);
  CUDA_MEMCPY2D up{};
  up.srcMemoryType = CU_MEMORYTYPE_HOST, up.srcHost = there.data(), up.srcPitch = width;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE, up.dstDevice = copies_.address(device.data()), up.dstPitch = pitch;
  up.WidthInBytes = width, up.Height = rows;
  ASSERT_EQ(copies_.rows(&up), CUDA_SUCCESS);
  const int after_up = pieces();
  EXPECT_GT(after_up, 0);
  CUDA_MEMCPY3D down{};
  down.srcMemoryType = CU_MEMORYTYPE_UNIFIED, down.srcDevice = up.dstDevice, down.srcPitch = pitch;
  down.dstMemoryType = CU_MEMORYTYPE_HOST, down.dstHost = back.data(), down.dstPitch = width;
  down.srcHeight = down.dstHeight = down.Height = rows / 2;
  down.WidthInBytes = width, down.Depth = 2;
  ASSERT_EQ(copies_.box_async(&down, nullptr), CUDA_SUCCESS);
  const int after_down = pieces();
  EXPECT_GT(after_down, after_up);
  EXPECT_EQ(back, there);
  down.dstHost = with_gaps.data(), down.dstPitch = pitch;
  ASSERT_EQ(copies_.box(&down), CUDA_SUCCESS);
  EXPECT_EQ(pieces(), after_down);
  ASSERT_EQ(cudaMemcpy(all.data(), device.data(), all.size(), cudaMemcpyDeviceToHost), cudaSuccess);
  for (std::size_t row = 0; row < rows; ++row)
    for (const Bytes* bytes : {&all, &with_gaps})
      ASSERT_EQ(std::memcmp(&(*bytes)[row * pitch], &there[row * width], width), 0) << row;
}

TEST_P(Preload, LeavesPinnedMemoryAndOtherCopiesAlone) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size), other(size);
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, size, 0), cudaSuccess);
  Bytes half(4 * size);
  ASSERT_EQ(cudaHostRegister(half.data(), size, 0), cudaSuccess);
  EXPECT_EQ(copy(device.data(), pinned, size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
  EXPECT_EQ(copy(other.data(), device.data(), size, cudaMemcpyDeviceToDevice), CUDA_SUCCESS);
  EXPECT_EQ(copy(device.data(), half.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
  EXPECT_EQ(pieces(), 0);
  EXPECT_EQ(cudaHostUnregister(half.data()), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_P(Preload, LeavesErrorsToTheDriver) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  Bytes host(size);
  // The memory of the GPU ends before the copy, the kind is wrong, or there is no memory.
  EXPECT_EQ(copy(device.data() + 1, host.data(), size, cudaMemcpyHostToDevice), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(device.data(), host.data(), size, cudaMemcpyDeviceToHost), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(nullptr, host.data(), size, cudaMemcpyHostToDevice), CUDA_ERROR_INVALID_VALUE);
  // What follows works.
  EXPECT_EQ(copy(device.data(), host.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
}

// 300 KiB and one byte for a GPU's 300 KiB: the driver refuses the copy, and no piece of it was made before.
TEST_P(Preload, ACopyThatIsTooLongWritesNothing) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  const Bytes zeros(size, 0);
  Bytes host(size + 1, 7), back(size);
  ASSERT_EQ(copy(device.data(), zeros.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
  const int before = pieces();
  EXPECT_EQ(copy(device.data(), host.data(), size + 1, cudaMemcpyHostToDevice), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(copy(host.data(), device.data(), size + 1, cudaMemcpyDeviceToHost), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(pieces(), before);
  EXPECT_EQ(host, Bytes(size + 1, 7));
  ASSERT_EQ(copy(back.data(), device.data(), size, cudaMemcpyDeviceToHost), CUDA_SUCCESS);
  EXPECT_EQ(back, zeros);
}

TEST_P(Preload, LeavesCapturedStreamsAlone) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  void* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(&pinned, size, 0), cudaSuccess);
  Bytes host(size);
  cudaStream_t stream = nullptr, captured = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(copy_async(device.data(), pinned, size, cudaMemcpyHostToDevice, captured), CUDA_SUCCESS);
  // Another thread copies meanwhile, which is no part of the capture and does not end it.
  std::thread([&] {
    EXPECT_EQ(copy_async(device.data(), host.data(), size, cudaMemcpyHostToDevice, stream), CUDA_SUCCESS);
  }).join();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(captured, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  for (const cudaStream_t one : {stream, captured}) EXPECT_EQ(cudaStreamDestroy(one), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

// A copy that waits ends a capture of its thread, as the driver's own does; one of a thread that has relaxed that, not.
TEST_P(Preload, CopiesThatWaitEndACapture) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  const Bytes host(size, 3);
  ASSERT_EQ(copy(device.data(), host.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
  for (const bool relaxed : {false, true}) {
    cudaStream_t captured = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamBeginCapture(captured, cudaStreamCaptureModeGlobal), cudaSuccess);
    CUstreamCaptureMode mode = relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL;
    ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    EXPECT_EQ(copy(device.data(), host.data(), size, cudaMemcpyHostToDevice),
              relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ASSERT_EQ(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(captured, &graph), relaxed ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph != nullptr, relaxed);
    static_cast<void>(cudaGraphDestroy(graph));
    EXPECT_EQ(cudaStreamDestroy(captured), cudaSuccess);
  }
}

// Memory that the program has given back, or may not read: the driver has the call, and its error is the program's.
TEST_P(Preload, MemoryThatIsNotThereIsTheDriversError) {
  const std::size_t size = 512 * kKiB;
  const DeviceBytes device(size);
  const auto map = [&] { return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  void* const freed = map();
  void* const forbidden = map();
  void* const read_only = map();
  ASSERT_EQ(munmap(static_cast<std::byte*>(freed) + size / 2, 4 * kKiB), 0);
  ASSERT_EQ(mprotect(forbidden, size, PROT_NONE), 0);
  ASSERT_EQ(mprotect(read_only, size, PROT_READ), 0);
  for (void* const memory : {freed, forbidden}) {
    host_cuda::fail_next(name_of("cuMemcpyHtoD_v2", "_ptds"), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(copy(device.data(), memory, size, cudaMemcpyHostToDevice), CUDA_ERROR_INVALID_VALUE);
  }
  for (void* const memory : {freed, forbidden, read_only}) {
    host_cuda::fail_next(name_of("cuMemcpyDtoH_v2", "_ptds"), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(copy(memory, device.data(), size, cudaMemcpyDeviceToHost), CUDA_ERROR_INVALID_VALUE);
  }
  EXPECT_EQ(pieces(), 0);
  for (void* const memory : {freed, forbidden, read_only}) EXPECT_EQ(munmap(memory, size), 0);
}

// Several threads on several GPUs, all at once: where the copier of a GPU is busy the copy goes its own way.
TEST_P(Preload, CopiesForSeveralThreadsAndDevices) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([this, t] {
      test::Random random(static_cast<std::uint64_t>(100 + t));
      ASSERT_EQ(cudaSetDevice(t % 3), cudaSuccess);
      const std::size_t size = (100 + static_cast<std::size_t>(t) * 111) * kKiB;
      const DeviceBytes device(size);
      cudaStream_t stream = nullptr;
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
      for (int round = 0; round < 15; ++round) {
        const Bytes bytes = random_bytes(random, size);
        Bytes back(size);
        ASSERT_EQ(copy_async(device.data(), bytes.data(), size, cudaMemcpyHostToDevice, stream), CUDA_SUCCESS);
        ASSERT_EQ(copy_async(back.data(), device.data(), size, cudaMemcpyDeviceToHost, stream), CUDA_SUCCESS);
        ASSERT_EQ(back, bytes);
      }
      EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    });
  for (std::thread& thread : threads) thread.join();
}

// A stream that belongs to another GPU than the current one, and memory of another GPU.
TEST_P(Preload, CopiesToAnotherDeviceThanTheCurrentOne) {
  const std::size_t size = 300 * kKiB;
  test::Random random(5);
  const Bytes bytes = random_bytes(random, size);
  Bytes back(size);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const DeviceBytes there(size);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(copy_async(there.data(), bytes.data(), size, cudaMemcpyHostToDevice, stream), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(copy_async(back.data(), there.data(), size, cudaMemcpyDeviceToHost, stream), CUDA_SUCCESS);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

// The copy engine refuses a piece in the middle: the driver makes the whole copy, and the next one goes through
// buffers again.
TEST_P(Preload, AFailureInTheMiddleIsNotSeen) {
  test::Random random(6);
  const std::size_t size = 900 * kKiB;
  const DeviceBytes device(size);
  for (const char* call : {"cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventQuery"}) {
    const Bytes bytes = random_bytes(random, size);
    Bytes back(size);
    host_cuda::fail_next(call, CUDA_ERROR_INVALID_VALUE, 3);
    ASSERT_EQ(copy(device.data(), bytes.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
    ASSERT_EQ(copy(back.data(), device.data(), size, cudaMemcpyDeviceToHost), CUDA_SUCCESS);
    ASSERT_EQ(back, bytes);
    const int before = pieces();
    ASSERT_EQ(copy(device.data(), bytes.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
    EXPECT_GT(pieces(), before);
  }
}

// A child has no thread but its own. What it copies goes its own way.
TEST_P(Preload, AForkedChildIsNotHeldUp) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  const Bytes host(size, 7);
  ASSERT_EQ(copy(device.data(), host.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    const int before = pieces();
    // The GPUs of the host have their threads in the parent: the call is refused before it waits for one.
    host_cuda::fail_next(name_of("cuMemcpyHtoDAsync_v2", "_ptsz"), CUDA_ERROR_INVALID_DEVICE);
    const CUresult status = copy_async(device.data(), host.data(), size, cudaMemcpyHostToDevice, nullptr);
    _exit(status == CUDA_ERROR_INVALID_DEVICE && pieces() == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(copy(device.data(), host.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
}

/// The library that has an address.
std::string library_of(const void* address) {
  Dl_info info{};
  return address != nullptr && dladdr(address, &info) != 0 ? info.dli_fname : "";
}

// What follows the program in the order of loading is what was preloaded; a library that takes the driver's place keeps
// it; what is not there has its error.
TEST_P(Preload, LooksUpForTheCaller) {
  EXPECT_NE(library_of(dlsym(RTLD_NEXT, "dlsym")).find("tutti_copy"), std::string::npos);
  EXPECT_EQ(dlsym(RTLD_NEXT, "cudaMalloc"), reinterpret_cast<void*>(cudaMalloc));
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "cuMemcpyHtoD_v2"), reinterpret_cast<void*>(cuMemcpyHtoD));
  void* const other = dlopen(library_of(reinterpret_cast<void*>(cudaMalloc)).c_str(), RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(library_of(dlsym(other, "cuMemcpyHtoD_v2")).find("host_cudart"), std::string::npos);
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  EXPECT_EQ(dlsym(driver, "cuMemcpyNowhere"), nullptr);
  EXPECT_NE(std::string(dlerror()).find("cuMemcpyNowhere"), std::string::npos);
  EXPECT_EQ(dlclose(other), 0);
  EXPECT_EQ(dlclose(driver), 0);
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
TEST_P(Preload, AForkedChildReportsItsOwnCopies) {
  const std::size_t size = 300 * kKiB;
  const DeviceBytes device(size);
  const Bytes host(size, 7);
  ASSERT_EQ(copy(device.data(), host.data(), size, cudaMemcpyHostToDevice), CUDA_SUCCESS);
  const std::size_t before = report_lines().size();
  for (const bool copies : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      host_cuda::fail_next(name_of("cuMemcpyHtoDAsync_v2", "_ptsz"), CUDA_ERROR_INVALID_DEVICE);
      if (copies) static_cast<void>(copy_async(device.data(), host.data(), size, cudaMemcpyHostToDevice, nullptr));
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
