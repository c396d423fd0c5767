// A program that knows nothing of tutti: copies between ordinary memory and all GPUs at once, by cudaMemcpy. Run it by
// itself, and as `tutti accelerate -- plain_copies`. It prints medians of 9, GB/s, and whether all bytes came back.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

namespace {

constexpr std::size_t kLargest = std::size_t{1} << 30;
constexpr std::size_t kSmallest = std::size_t{64} << 10;
constexpr int kRounds = 9;

struct Rates {
  double up = 0, down = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// The copies of one GPU, each begun together with those of the others.
class Copies {
 public:
  Copies(int gpu, std::barrier<>& together) : gpu_(gpu), together_(together), there_(kLargest), back_(kLargest) {
    for (std::size_t i = 0; i < there_.size(); ++i) there_[i] = static_cast<unsigned char>(i * 31 + i / 4096);
  }

  void run() {
    cudaSetDevice(gpu_);
    cudaMalloc(&device_, kLargest);
    for (std::size_t size = kSmallest; size <= kLargest; size *= 4) rates_.push_back(measure(size));
    equal_ = there_ == back_;
    cudaFree(device_);
  }
  [[nodiscard]] const std::vector<Rates>& rates() const { return rates_; }
  [[nodiscard]] bool equal() const { return equal_; }

 private:
  double seconds(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) {
    together_.arrive_and_wait();
    const auto start = std::chrono::steady_clock::now();
    cudaMemcpy(to, from, size, kind);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  Rates measure(std::size_t size) {
    std::vector<double> up, down;
    for (int round = 0; round < kRounds; ++round) {
      up.push_back(seconds(device_, there_.data(), size, cudaMemcpyHostToDevice));
      down.push_back(seconds(back_.data(), device_, size, cudaMemcpyDeviceToHost));
    }
    const double gb = static_cast<double>(size) / 1e9;
    return {gb / median(up), gb / median(down)};
  }

  int gpu_;
  std::barrier<>& together_;
  std::vector<unsigned char> there_, back_;
  void* device_ = nullptr;
  std::vector<Rates> rates_;
  bool equal_ = false;
};

}  // namespace

int main() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    std::puts("no GPU");
    return 3;
  }
  std::barrier<> together(gpus);
  std::vector<Copies> copies;
  copies.reserve(static_cast<std::size_t>(gpus));
  for (int gpu = 0; gpu < gpus; ++gpu) copies.emplace_back(gpu, together);
  std::vector<std::thread> threads;
  for (Copies& one : copies) threads.emplace_back([&one] { one.run(); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < copies.front().rates().size(); ++i) {
    std::printf("%7zu KiB", (kSmallest << 2 * i) >> 10);
    for (const Copies& one : copies) std::printf("   up %5.1f down %5.1f", one.rates()[i].up, one.rates()[i].down);
    std::printf("\n");
  }
  const bool equal = std::ranges::all_of(copies, [](const Copies& one) { return one.equal(); });
  std::puts(equal ? "all bytes came back" : "bytes DIFFER");
  return equal ? 0 : 1;
}
