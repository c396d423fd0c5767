#include "runtime/cuda/gates/gpu_clock.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/cuda/base/kernels.hpp"

namespace tutti::internal::cuda {
namespace {

constexpr std::uint32_t kRounds = 12;
/// Time limit for all rounds; a GPU answers within 3 us, the kernel starts after 10 us, unless others fill the GPU.
constexpr Duration kAnswerPatience = std::chrono::milliseconds{20};
constexpr Duration kPatienceWhenArming = std::chrono::microseconds{300};
constexpr Duration kPause = std::chrono::milliseconds{20};
/// Growth of the error of a timer that gates allow for.
constexpr Duration kWrong = std::chrono::microseconds{1};
/// For how long a timer that was asked shall be known well enough.
constexpr Duration kAhead = std::chrono::milliseconds{20};

}  // namespace

Expected<GpuClock> GpuClock::make(int device, const Clock& clock) {
  auto stream = make_stream(device);
  if (!stream) return tl::unexpected(std::move(stream.error()));
  auto board = make_signal_board(1 + kRounds);
  if (!board) return tl::unexpected(std::move(board.error()));
  GpuClock made(device, clock, *std::move(stream), *std::move(board));
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

GpuClock::GpuClock(int device, const Clock& clock, Stream stream, SignalBoard board)
    : device_(device),
      clock_(&clock),
      stream_(std::move(stream)),
      board_(std::move(board)),
      asked_(board_.take<Count>()),
      answers_(board_.take_lines<SignalLine<TimerValue>>(kRounds)) {}

bool GpuClock::ask(Duration patience) {
  if (answer(cudaStreamQuery(stream_.get())) != cudaSuccess) return false;  // the last one is still waiting
  const DeviceGuard guard(device_);
  const auto answer = [&](std::uint32_t round) { return HostSignal<TimerValue>(&answers_[round].word); };
  asked_.set(0);
  for (std::uint32_t round = 0; round < kRounds; ++round) answer(round).set(0);
  launch_echo(stream_.get(), asked_.on_gpu(), answers_.data(), kRounds);
  if (!check(cudaGetLastError(), "launch_echo")) return false;
  const Duration limit = clock_->now() + patience;
  struct {
    Duration asked{}, answered = Duration::max();
    TimerValue timer = 0;
  } best;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const Duration before = clock_->now();
    asked_.set(round + 1);
    Duration after = before;
    TimerValue timer = 0;
    while ((timer = answer(round).value()) == 0) {
      after = clock_->now();
      if (after <= limit) continue;
      asked_.set(kRounds);  // lets it run out
      return false;
    }
    after = clock_->now();
    if (after - before < best.answered - best.asked) best = {before, after, timer};
  }
  fit_.add_exchange(best.asked, best.answered, static_cast<std::int64_t>(best.timer));
  return true;
}

void GpuClock::refresh(Duration wrong) {
  const Duration now = clock_->now();
  if (now < next_ || fit_.uncertainty(now + kAhead) <= wrong) return;
  ask(kPatienceWhenArming);
  next_ = now + kPause;
}

Duration GpuClock::doubt() const { return std::max(fit_.uncertainty(clock_->now()) - kWrong, Duration{0}); }

}  // namespace tutti::internal::cuda
