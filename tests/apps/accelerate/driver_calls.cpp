// A program that knows nothing of tutti: 200 calls of the driver's copies, of any kind, shape, size, stream and error,
// on GPUs of the host. It prints the status of each and a checksum of all memory behind it: `preload_test.py` compares
// what it prints with and without libtutti_copy.so. Arguments: the route to the functions (`test::Route`), a seed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/support/host_cuda/found_copies.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

constexpr int kCalls = 200, kLostAt = 170;
constexpr std::size_t kSize = 512 << 10;

/// Memory that calls copy between: ordinary, pinned, of two GPUs.
struct Memory {
  unsigned char* data;
  cudaMemcpyKind as_source;  // where the other end is on the other side
  CUmemorytype type;
};

void check(cudaError_t status) {
  if (status != cudaSuccess) std::exit(3);
}

class Program {
 public:
  Program(test::Route route, std::uint64_t seed) : copies_(test::find_copies(route)), random_(seed), ordinary_(kSize) {
    void* pinned = nullptr;
    check(cudaHostAlloc(&pinned, kSize, 0));
    memory_.push_back(on_host(ordinary_.data()));
    memory_.push_back(on_host(static_cast<unsigned char*>(pinned)));
    streams_ = {nullptr, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
    for (const int gpu : {1, 0}) {
      void* device = nullptr;
      cudaStream_t stream = nullptr;
      check(cudaSetDevice(gpu));
      check(cudaMalloc(&device, kSize));
      check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      memory_.push_back({static_cast<unsigned char*>(device), cudaMemcpyDeviceToHost, CU_MEMORYTYPE_DEVICE});
      streams_.push_back(stream);
    }
    for (const Memory& one : memory_) {
      for (unsigned char& byte : ordinary_) byte = static_cast<unsigned char>(random_.next());
      check(cudaMemcpy(one.data, ordinary_.data(), kSize, cudaMemcpyDefault));
    }
  }

  void run() {
    for (int call = 0; call < kCalls; ++call) {
      if (call == kLostAt) host_cuda::device(1).lose();  // its errors stay
      if (random_.one_in(4)) static_cast<void>(cudaSetDevice(random_.between(0, 1)));
      const int status = random_.one_in(20) ? captured() : any_copy();
      for (const cudaStream_t stream : streams_)
        if (stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD)
          static_cast<void>(cudaStreamSynchronize(stream));
      std::printf("%d: %d, %016llx\n", call, status, static_cast<unsigned long long>(checksum()));
    }
  }

 private:
  static Memory on_host(unsigned char* data) { return {data, cudaMemcpyHostToDevice, CU_MEMORYTYPE_HOST}; }

  /// Mostly between the program's own memory and a GPU.
  const Memory& draw() { return random_.one_in(3) ? memory_[random_.below(memory_.size())] : memory_.front(); }
  std::size_t draw_size() {
    if (random_.one_in(20)) return 0;
    return 1 + random_.below(random_.one_in(3) ? 64 << 10 : kSize);
  }
  /// Within the memory, or beyond its end.
  std::size_t draw_offset(std::size_t size) {
    return random_.one_in(15) ? kSize - size / 2 : random_.below(kSize - std::min(size, kSize) + 1);
  }

  int any_copy() {
    const Memory* to = &draw();
    const Memory* from = &memory_[2 + random_.below(2)];
    if (random_.one_in(2)) std::swap(to, from);
    return random_.one_in(4) ? shaped(*to, *from) : linear(*to, *from);
  }

  int linear(const Memory& to, const Memory& from) {
    const std::size_t size = draw_size();
    void* const there = random_.one_in(25) ? nullptr : to.data + draw_offset(size);
    const void* const here = from.data + draw_offset(size);
    // Of memory of a process beyond its end nobody knows: those ends hold.
    if ((to.type == CU_MEMORYTYPE_HOST && static_cast<unsigned char*>(there) + size > to.data + kSize) ||
        (from.type == CU_MEMORYTYPE_HOST && static_cast<const unsigned char*>(here) + size > from.data + kSize))
      return -1;
    const bool crosses = to.type != from.type;
    cudaMemcpyKind kind = crosses && random_.one_in(2) ? from.as_source : cudaMemcpyDefault;
    if (random_.one_in(15)) kind = random_.one_in(2) ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    const cudaStream_t stream = streams_[random_.below(streams_.size())];
    return random_.one_in(2) ? copies_.copy(there, here, size, kind)
                             : copies_.copy_async(there, here, size, kind, stream);
  }

  /// A box whose rows follow each other at both ends, or not.
  int shaped(const Memory& to, const Memory& from) {
    CUDA_MEMCPY3D box{};
    const bool has_gaps = random_.one_in(2);
    box.WidthInBytes = 1 + random_.below(4096);
    box.Height = 1 + random_.below(48);
    box.Depth = random_.one_in(2) ? 1 : 1 + random_.below(2);
    box.srcPitch = box.dstPitch = box.WidthInBytes;
    box.srcHeight = box.dstHeight = box.Height;
    if (has_gaps && random_.one_in(2)) box.srcPitch += random_.below(64);
    if (has_gaps && random_.one_in(2)) box.dstPitch += 8 + random_.below(56), box.dstXInBytes = random_.below(8);
    if (random_.one_in(15)) box.srcPitch = box.WidthInBytes / 2;
    box.srcMemoryType = random_.one_in(4) ? CU_MEMORYTYPE_UNIFIED : from.type;
    box.dstMemoryType = random_.one_in(4) ? CU_MEMORYTYPE_UNIFIED : to.type;
    box.srcHost = from.data, box.srcDevice = test::DriverCopies::address(from.data);
    box.dstHost = to.data, box.dstDevice = test::DriverCopies::address(to.data);
    const cudaStream_t stream = streams_[random_.below(streams_.size())];
    const bool waits = random_.one_in(2);
    if (random_.one_in(2)) return waits ? copies_.box(&box) : copies_.box_async(&box, stream);
    const CUDA_MEMCPY2D rows = first_layer(box);
    return waits ? copies_.rows(&rows) : copies_.rows_async(&rows, stream);
  }

  static CUDA_MEMCPY2D first_layer(const CUDA_MEMCPY3D& box) {
    CUDA_MEMCPY2D rows{};
    rows.srcMemoryType = box.srcMemoryType, rows.dstMemoryType = box.dstMemoryType;
    rows.srcHost = box.srcHost, rows.srcDevice = box.srcDevice, rows.srcPitch = box.srcPitch;
    rows.dstHost = box.dstHost, rows.dstDevice = box.dstDevice, rows.dstPitch = box.dstPitch;
    rows.dstXInBytes = box.dstXInBytes, rows.WidthInBytes = box.WidthInBytes, rows.Height = box.Height;
    return rows;
  }

  /// Copies while a stream is captured: into it, or one that waits, which ends the capture.
  int captured() {
    const cudaStream_t stream = streams_.back();
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) != cudaSuccess) return -2;
    const Memory& device = memory_[3];
    const bool waits = random_.one_in(2);
    int status = copies_.copy_async(device.data, memory_[1].data, kSize, cudaMemcpyHostToDevice, stream);
    if (waits) status = copies_.copy(device.data, ordinary_.data(), kSize, cudaMemcpyHostToDevice);
    cudaGraph_t graph = nullptr;
    const int end = cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) static_cast<void>(cudaGraphDestroy(graph));
    return 1000 * status + end;
  }

  std::uint64_t checksum() {
    std::uint64_t sum = 0;
    std::vector<unsigned char> bytes(kSize);
    for (const Memory& one : memory_) {
      std::memcpy(bytes.data(), one.data, kSize);  // these GPUs are the host's
      for (std::size_t at = 0; at < kSize; at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, &bytes[at], sizeof word);
        sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
      }
    }
    return sum;
  }

  test::DriverCopies copies_;
  test::Random random_;
  std::vector<unsigned char> ordinary_;
  std::vector<Memory> memory_;
  std::vector<cudaStream_t> streams_;
};

}  // namespace
}  // namespace tutti::internal

int main(int count, char** arguments) {
  using namespace tutti::internal;
  if (count != 3) return 2;
  for (const test::Route route : test::kRoutes)
    if (test::to_string(route) == arguments[1]) Program(route, std::strtoull(arguments[2], nullptr, 10)).run();
  return std::fflush(stdout);
}
