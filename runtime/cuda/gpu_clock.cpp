#include "runtime/cuda/gpu_clock.hpp"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "runtime/cuda/kernels.hpp"

namespace tutti::internal::cuda {
namespace {

constexpr std::uint32_t kRounds = 12;
/// Time limit for all rounds; a GPU answers within 3 us, the kernel starts after 10 us, unless others fill the GPU.
constexpr Duration kAnswerPatience = std::chrono::milliseconds{20};
constexpr Duration kPatienceWhenArming = std::chrono::microseconds{300};
constexpr Duration kPause = std::chrono::milliseconds{20};
/// Largest growth of the error of a timer since it was last asked, and for how long that shall hold.
constexpr Duration kWrong = std::chrono::microseconds{1};
constexpr Duration kAhead = std::chrono::milliseconds{20};

}  // namespace

Expected<GpuClock> GpuClock::make(int device, const Clock& clock) {
  auto stream = make_stream(device);
  if (!stream) return tl::unexpected(std::move(stream.error()));
  auto signals = PinnedMemory::make(kCacheLine + kRounds * sizeof(std::uint64_t));
  if (!signals) return tl::unexpected(std::move(signals.error()));
  GpuClock made(device, clock, *std::move(stream), *std::move(signals));
  for (int attempt = 0; attempt < 5; ++attempt) {  // the first one loads the kernel
    const bool answered = made.ask(kAnswerPatience);
    if (auto ok = check(cudaStreamSynchronize(made.stream_.get()), "cudaStreamSynchronize"); !ok)
      return tl::unexpected(std::move(ok.error()));
    if (answered) return made;
  }
  return machine_error(fmt::format(
      "GPU {} does not answer a word of the host within {}, so its timer cannot be set; give --gate polling_kernel",
      device, to_string(kAnswerPatience)));
}

bool GpuClock::ask(Duration patience) {
  if (cudaStreamQuery(stream_.get()) != cudaSuccess) return false;  // the last one is still waiting
  const DeviceGuard guard(device_);
  auto* asked = reinterpret_cast<std::uint32_t*>(board_.data());
  auto* answers = reinterpret_cast<std::uint64_t*>(board_.data() + kCacheLine);
  const std::atomic_ref question(*asked);
  question.store(0, std::memory_order_relaxed);
  for (std::uint32_t round = 0; round < kRounds; ++round)
    std::atomic_ref(answers[round]).store(0, std::memory_order_release);
  launch_echo(stream_.get(), asked, answers, kRounds);
  if (!check(cudaGetLastError(), "launch_echo")) return false;
  const Duration limit = clock_->now() + patience;
  struct {
    Duration asked{}, answered = Duration::max();
    std::uint64_t timer = 0;
  } best;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const Duration before = clock_->now();
    question.store(round + 1, std::memory_order_release);
    Duration after = before;
    std::uint64_t timer = 0;
    while ((timer = std::atomic_ref(answers[round]).load(std::memory_order_acquire)) == 0) {
      after = clock_->now();
      if (after <= limit) continue;
      question.store(kRounds, std::memory_order_release);  // lets it run out
      return false;
    }
    after = clock_->now();
    if (after - before < best.answered - best.asked) best = {before, after, timer};
  }
  fit_.add_exchange(best.asked, best.answered, static_cast<std::int64_t>(best.timer));
  return true;
}

void GpuClock::refresh() {
  const Duration now = clock_->now();
  if (now < next_ || fit_.uncertainty(now + kAhead) <= kWrong) return;
  ask(kPatienceWhenArming);
  next_ = now + kPause;
}

Duration GpuClock::doubt() const { return std::max(fit_.uncertainty(clock_->now()) - kWrong, Duration{0}); }

}  // namespace tutti::internal::cuda
