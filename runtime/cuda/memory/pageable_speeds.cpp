#include "runtime/cuda/memory/pageable_speeds.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <latch>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/quantile.hpp"
#include "runtime/cuda/base/device_copier.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/memory/pinned_memory.hpp"
#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal {
namespace {

using namespace cuda;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kLarge = std::size_t{256} << 20;
constexpr std::size_t kBuffer = std::size_t{4} << 20;
constexpr std::size_t kPinned = 16 * kBuffer;
constexpr std::size_t kSmallest = std::size_t{256} << 10, kLargest = std::size_t{16} << 20;  // crossovers tried
constexpr int kMostProducers = 16;
constexpr int kMostThreads = 64;  // whose share of the memory is measured: those of several GPUs
/// A copy by double queuing is taken where it is quicker by so much: less may be chance.
constexpr double kWorthIt = 1.03;

double seconds_of(const std::function<void()>& work) {
  const auto start = Steady::now();
  work();
  return std::chrono::duration<double>(Steady::now() - start).count();
}

double median_seconds(int rounds, const std::function<void()>& work) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) times.push_back(seconds_of(work));
  return median(std::move(times));
}

GBps rate_of(std::size_t bytes, double seconds) { return GBps{static_cast<double>(bytes) / seconds / 1e9}; }

/// One GPU and the memory for its measurement.
class Bench {
 public:
  static Expected<std::unique_ptr<Bench>> make(int device);
  Expected<PageableMeasurement> measure();

 private:
  explicit Bench(int device) : guard_(device) {}

  void copy_plainly(CopyDirection direction, std::byte* host, std::size_t bytes);
  void copy_by_queues(DeviceCopier& copier, CopyDirection direction, std::size_t bytes);
  double threads_rate(CopyDirection direction, CopyBytes how, int threads);
  double threads_rate(CopyDirection direction, int threads);
  ProducerChoice choose(CopyDirection direction, PageableMeasurement& found);
  void measure_alone(CopyDirection direction, PageableDirection& into);
  Expected<std::unique_ptr<DeviceCopier>> copier_for(const PageableMeasurement& found);
  Bytes crossover(DeviceCopier& copier, CopyDirection direction);

  DeviceGuard guard_;
  CopyDriver driver_{};
  std::vector<int> cores_;
  DeviceMemory device_;
  PinnedMemory pinned_;
  std::vector<std::byte> ordinary_;
  Stream stream_;
  cudaError_t status_ = cudaSuccess;  // the first failure of a copy
};

Expected<std::unique_ptr<Bench>> Bench::make(int device) {
  if (auto ok = check_device(device); !ok) return tl::unexpected(ok.error());
  std::unique_ptr<Bench> made(new Bench(device));
  auto memory = make_device_memory(device, kLarge);
  if (!memory) return tl::unexpected(memory.error());
  made->device_ = *std::move(memory);
  auto pinned = PinnedMemory::make(kPinned);
  if (!pinned) return tl::unexpected(pinned.error());
  made->pinned_ = *std::move(pinned);
  auto stream = make_stream(device);
  if (!stream) return tl::unexpected(stream.error());
  made->stream_ = *std::move(stream);
  auto driver = find_copy_driver();
  if (!driver) return tl::unexpected(driver.error());
  made->driver_ = *driver;
  made->ordinary_.resize(kLarge);
  made->cores_ = cores_near_device(made->driver_);
  return made;
}

void Bench::copy_plainly(CopyDirection direction, std::byte* host, std::size_t bytes) {
  const cudaError_t status = direction == CopyDirection::Up
                                 ? cudaMemcpyAsync(device_.get(), host, bytes, cudaMemcpyHostToDevice, stream_.get())
                                 : cudaMemcpyAsync(host, device_.get(), bytes, cudaMemcpyDeviceToHost, stream_.get());
  const cudaError_t ended = cudaStreamSynchronize(stream_.get());
  if (status_ == cudaSuccess) status_ = status != cudaSuccess ? status : ended;
}

void Bench::copy_by_queues(DeviceCopier& copier, CopyDirection direction, std::size_t bytes) {
  const auto device = reinterpret_cast<CUdeviceptr>(device_.get());
  const CopyEnd end = copier.copy(direction, ordinary_.data(), device, bytes, stream_.get());
  const cudaError_t ended = cudaStreamSynchronize(stream_.get());
  if (status_ == cudaSuccess) status_ = end != CopyEnd::Done ? cudaErrorUnknown : ended;
}

/// All of the ordinary memory through buffers, by so many threads.
double Bench::threads_rate(CopyDirection direction, CopyBytes how, int threads) {
  const CopyRoutine copy = routine_of(how);
  const auto count = static_cast<std::size_t>(threads);
  const std::size_t piece = std::min(kBuffer, kPinned / count);
  const std::size_t part = kLarge / count / piece * piece;
  const auto work = [&](std::size_t thread, std::latch& ready) {
    pin_this_thread(cores_);
    ready.arrive_and_wait();
    std::byte* const buffer = pinned_.data() + thread * piece;
    for (std::size_t at = 0; at < part; at += piece) {
      std::byte* const ordinary = ordinary_.data() + thread * part + at;
      if (direction == CopyDirection::Up)
        copy(buffer, ordinary, piece);
      else
        copy(ordinary, buffer, piece);
    }
  };
  std::vector<double> seconds;
  for (int round = 0; round < 3; ++round) {
    std::latch ready(threads + 1);
    std::vector<std::thread> all;
    for (std::size_t thread = 0; thread < count; ++thread) all.emplace_back(work, thread, std::ref(ready));
    ready.arrive_and_wait();
    seconds.push_back(seconds_of([&] {
      for (std::thread& thread : all) thread.join();
    }));
  }
  return rate_of(part * count, median(std::move(seconds))).value;
}

/// In the quicker way.
double Bench::threads_rate(CopyDirection direction, int threads) {
  double rate = 0;
  for (const CopyBytes how : kCopyBytes) rate = std::max(rate, threads_rate(direction, how, threads));
  return rate;
}

/// For one direction. A thread beside others is slower than one alone, since they share the memory: so many threads as
/// would fill the link alone are measured together.
ProducerChoice Bench::choose(CopyDirection direction, PageableMeasurement& found) {
  PageableDirection& one = found.directions[static_cast<std::size_t>(direction)];
  const int most = std::min(found.cores, kMostProducers);
  const auto chosen = [&] {
    return choose_producers({one.pinned, one.thread, found.memory}, most, MemoryPasses::Cached);
  };
  one.thread = GBps{threads_rate(direction, 1)};
  const int threads = chosen().threads;
  one.thread = GBps{threads_rate(direction, threads) / threads};
  return chosen();
}

void Bench::measure_alone(CopyDirection direction, PageableDirection& into) {
  copy_plainly(direction, pinned_.data(), kPinned);
  into.pinned = rate_of(kPinned, median_seconds(5, [&] { copy_plainly(direction, pinned_.data(), kPinned); }));
  into.plain = rate_of(kLarge, median_seconds(3, [&] { copy_plainly(direction, ordinary_.data(), kLarge); }));
}

Expected<std::unique_ptr<DeviceCopier>> Bench::copier_for(const PageableMeasurement& found) {
  CopierOptions options;
  options.threads = static_cast<unsigned>(found.choice.threads);
  options.buffer = kBuffer;
  options.up = routine_of(found.of(CopyDirection::Up).how);
  options.down = routine_of(found.of(CopyDirection::Down).how);
  options.cores = cores_;
  auto copier = DeviceCopier::make(driver_, options);
  if (!copier) return machine_error("the host has no room for pinned buffers, or no thread left");
  return copier;
}

/// The smallest size of those tried from which on all are worth it.
Bytes Bench::crossover(DeviceCopier& copier, CopyDirection direction) {
  std::size_t from = kLargest * 2;
  for (std::size_t size = kLargest; size >= kSmallest; size /= 2) {
    std::vector<double> plain, queued;
    for (int round = 0; round < 15; ++round) {
      plain.push_back(seconds_of([&] { copy_plainly(direction, ordinary_.data(), size); }));
      queued.push_back(seconds_of([&] { copy_by_queues(copier, direction, size); }));
    }
    if (median(plain) < kWorthIt * median(queued)) break;
    from = size;
  }
  return Bytes{static_cast<std::int64_t>(from)};
}

Expected<PageableMeasurement> Bench::measure() {
  PageableMeasurement found;
  cudaDeviceProp properties{};
  int device = 0;
  if (auto ok = check(cudaGetDevice(&device), "cudaGetDevice"); !ok) return tl::unexpected(ok.error());
  if (auto ok = check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"); !ok)
    return tl::unexpected(ok.error());
  std::copy_n(properties.name, std::min(std::strlen(properties.name), found.gpu.size() - 1), found.gpu.begin());
  found.buffer = Bytes{static_cast<std::int64_t>(kBuffer)};
  found.cores =
      cores_.empty() ? static_cast<int>(std::thread::hardware_concurrency()) : static_cast<int>(cores_.size());
  found.cores = std::max(found.cores, 1);
  for (const CopyDirection direction : kCopyDirections)
    measure_alone(direction, found.directions[static_cast<std::size_t>(direction)]);
  for (int threads = 1; threads <= std::min(found.cores, kMostThreads); threads *= 2)
    found.memory.value = std::max(found.memory.value, 2 * threads_rate(CopyDirection::Up, CopyBytes::Cached, threads));
  for (const CopyDirection direction : kCopyDirections) {
    const ProducerChoice choice = choose(direction, found);
    if (choice.threads > found.choice.threads) found.choice = choice;
  }
  for (const CopyDirection direction : kCopyDirections) {
    PageableDirection& one = found.directions[static_cast<std::size_t>(direction)];
    PageableMeasurement trial = found;
    for (const CopyBytes how : kCopyBytes) {
      trial.directions[static_cast<std::size_t>(direction)].how = how;
      const auto copier = copier_for(trial);
      if (!copier) return tl::unexpected(copier.error());
      copy_by_queues(**copier, direction, kLarge);
      const GBps rate = rate_of(kLarge, median_seconds(5, [&] { copy_by_queues(**copier, direction, kLarge); }));
      if (rate > one.copied) {
        one.copied = rate;
        one.how = how;
      }
    }
  }
  const auto copier = copier_for(found);
  if (!copier) return tl::unexpected(copier.error());
  for (const CopyDirection direction : kCopyDirections)
    found.directions[static_cast<std::size_t>(direction)].from = crossover(**copier, direction);
  if (auto ok = check(status_, "a copy"); !ok) return tl::unexpected(ok.error());
  return found;
}

}  // namespace

Expected<PageableMeasurement> measure_pageable(int device) {
  auto bench = Bench::make(device);
  if (!bench) return tl::unexpected(std::move(bench.error()));
  return (*bench)->measure();
}

}  // namespace tutti::internal
