#include "apps/lab/benches/ping_pong_bench.hpp"

#include <algorithm>
#include <atomic>

#include "apps/interrupt.hpp"
#include "apps/terminal.hpp"
#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

Expected<PingPongCase> measure_case(PingPong& ping_pong, const PingPongPlan& plan, Bytes bytes, Duration kernel) {
  const std::atomic<bool>& interrupted = programs::watch_for_interrupt();
  for (const PingPongMode mode : kPingPongModes) {
    const std::uint64_t rounds = std::min(plan.checked, ping_pong.most_fresh_rounds(bytes));
    const auto right = ping_pong.run({mode, bytes, kernel, rounds, true});
    if (!right) return tl::unexpected(right.error());
  }
  std::array<std::vector<Duration>, kPingPongModes.size()> times;
  for (int sample = -1; sample < plan.samples; ++sample) {
    for (const PingPongMode mode : kPingPongModes) {
      if (interrupted) return invalid_input("interrupted; there is nothing to report yet");
      const auto took = ping_pong.run({mode, bytes, kernel, plan.rounds, false});
      if (!took) return tl::unexpected(took.error());
      if (sample >= 0) times[static_cast<std::size_t>(mode)].push_back(*took);
    }
  }
  PingPongCase result{bytes, kernel, {}};
  for (std::size_t m = 0; m < times.size(); ++m) result.times[m] = summarize_samples(times[m]);
  return result;
}

}  // namespace

PingPongMode PingPongCase::best() const {
  PingPongMode best = PingPongMode::Host;
  for (const PingPongMode mode : {PingPongMode::Stream, PingPongMode::Kernel})
    if (of(mode).median < of(best).median) best = mode;
  return best;
}

std::vector<Bytes> ping_pong_sizes(Bytes from, Bytes to) {
  TUTTI_EXPECTS(Bytes{0} < from && from <= to, "sizes go up from 1 byte at least");
  std::vector<Bytes> sizes;
  for (Bytes size = from; size <= to; size.count *= 4) sizes.push_back(size);
  return sizes;
}

Expected<std::vector<PingPongCase>> measure_ping_pong(PingPong& ping_pong, const PingPongPlan& plan) {
  std::vector<PingPongCase> cases;
  programs::Progress progress("round trips", plan.kernels.size() * plan.sizes.size());
  for (const Duration kernel : plan.kernels)
    for (const Bytes bytes : plan.sizes) {
      auto one = measure_case(ping_pong, plan, bytes, kernel);
      if (!one) return tl::unexpected(std::move(one.error()));
      cases.push_back(*std::move(one));
      progress.step();
    }
  return cases;
}

std::vector<PingPongWinner> winners_of(const std::vector<PingPongCase>& cases) {
  std::vector<PingPongWinner> winners;
  for (const PingPongCase& one : cases) {
    const bool goes_on = !winners.empty() && winners.back().mode == one.best() && winners.back().kernel == one.kernel;
    if (goes_on)
      winners.back().to = one.bytes;
    else
      winners.push_back({one.best(), one.kernel, one.bytes, one.bytes});
  }
  return winners;
}

const PingPongCase* worst_beside_by_hand(const std::vector<PingPongCase>& cases) {
  const auto ratio = [](const PingPongCase& one) { return one.ratio(PingPongMode::Stream, PingPongMode::ByHand); };
  const auto worst = std::ranges::max_element(cases, {}, ratio);
  return worst == cases.end() ? nullptr : &*worst;
}

}  // namespace tutti::internal
