#include "runtime/cuda/fused/fused_group.hpp"

#include <algorithm>
#include <atomic>
#include <new>
#include <thread>

#include <fmt/format.h>

#include "model/base/expects.hpp"

namespace tutti::internal::cuda {

Expected<void> check_limits(std::string_view what, std::uint64_t value, std::uint64_t least, std::uint64_t most) {
  if (value >= least && value <= most) return {};
  return invalid_input(fmt::format("{} {} are not possible; give {} to {}", value, what, least, most));
}

Expected<void> check_threads_of_block(std::uint32_t threads) {
  if (auto ok = check_limits("threads a block", threads, 32, 1024); !ok) return ok;
  if (threads % 32 == 0) return {};
  return invalid_input(fmt::format("{} threads a block are no multiple of 32; give one", threads));
}

FusedGroup::~FusedGroup() {
  if (abandoned_) {
    static_cast<void>(words_.release());
    return;
  }
  for (const auto& [gpu, peer] : enabled_) {
    const DeviceGuard guard(gpu);
    static_cast<void>(cudaDeviceDisablePeerAccess(peer));
  }
}

Expected<void> FusedGroup::prepare(std::size_t ranks) {
  TUTTI_EXPECTS(ranks <= kMostReports, "a group has a report for each rank");
  ranks_ = ranks;
  void* pinned = nullptr;
  return check(cudaHostAlloc(&pinned, sizeof(Words), cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc")
      .map([&] { words_.reset(new (pinned) Words{}); });
}

Expected<void> FusedGroup::reach_each_other(std::span<const int> gpus, std::string_view purpose) {
  for (const int a : gpus)
    for (const int b : gpus)
      if (a != b)
        if (auto ok = reach(a, b, purpose); !ok) return ok;
  return {};
}

Expected<void> FusedGroup::reach(int gpu, int peer, std::string_view purpose) {
  int reaches = 0;
  if (auto ok = check(cudaDeviceCanAccessPeer(&reaches, gpu, peer), "cudaDeviceCanAccessPeer"); !ok) return ok;
  if (reaches == 0)
    return invalid_input(
        fmt::format("GPU {} does not reach the memory of GPU {}, {}; name GPUs with peer access", gpu, peer, purpose));
  const DeviceGuard guard(gpu);
  const cudaError_t status = answer(cudaDeviceEnablePeerAccess(peer, 0));
  if (status == cudaErrorPeerAccessAlreadyEnabled) return {};
  if (auto ok = check(status, "cudaDeviceEnablePeerAccess"); !ok) return ok;
  enabled_.emplace_back(gpu, peer);
  return {};
}

Expected<void> FusedGroup::wait(std::span<const Kernel> kernels, std::chrono::steady_clock::time_point begin,
                                const Watch& watch) {
  const auto limit = begin + limits_.limit;
  while (true) {
    const auto running = find_running(kernels);
    if (!running) return tl::unexpected(running.error());
    if (*running == nullptr) return {};
    const auto now = std::chrono::steady_clock::now();
    if (now > limit) stop();
    if (now > limit + limits_.last_wait) {
      abandoned_ = true;
      return machine_error(fmt::format(
          "the {} of GPU {} is not over within {}, and did not give up in the {} that followed; end this program, and "
          "see whether the GPU still works",
          watch.what, (*running)->gpu, to_string(limits_.limit), to_string(limits_.last_wait)));
    }
    watch.nap == Duration{0} ? std::this_thread::yield() : std::this_thread::sleep_for(watch.nap);
  }
}

/// A kernel that is not over; null: none.
Expected<const FusedGroup::Kernel*> FusedGroup::find_running(std::span<const Kernel> kernels) {
  const Kernel* running = nullptr;
  for (const Kernel& kernel : kernels) {
    const cudaError_t status = answer(cudaStreamQuery(kernel.stream));
    if (status == cudaErrorNotReady) {
      running = &kernel;
    } else if (auto ok = check(status, "cudaStreamQuery"); !ok) {
      return tl::unexpected(std::move(ok.error()));
    }
  }
  return running;
}

void FusedGroup::stop() {
  if (words_) std::atomic_ref(words_->stop).store(1, std::memory_order_release);
}

bool FusedGroup::has_given_up() const {
  return std::ranges::any_of(reports(), [](const FusedReport& report) { return report.gave_up != 0; });
}

}  // namespace tutti::internal::cuda
