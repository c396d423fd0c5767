#include "apps/lab/measuring/wait_reactions.hpp"

#include "apps/terminal.hpp"

namespace tutti::internal {

std::vector<Duration> sleeps_up_to(Duration most, Duration step) {
  std::vector<Duration> sleeps;
  for (Duration sleep{}; sleep <= most; sleep += step) sleeps.push_back(sleep);
  return sleeps;
}

Expected<std::vector<WaitSample>> measure_waits(WaitProbe& probe, const WaitSweep& sweep,
                                                const std::atomic<bool>* interrupted) {
  std::vector<WaitSample> samples;
  programs::Progress progress(
      "waits", (1 + static_cast<std::size_t>(sweep.repetitions)) * sweep.sleeps.size() * sweep.streams.size());
  for (int repetition = -1; repetition < sweep.repetitions; ++repetition) {
    for (const Duration sleep : sweep.sleeps) {
      for (const int streams : sweep.streams) {
        if (interrupted != nullptr && *interrupted) return invalid_input("interrupted; there is nothing to report yet");
        const auto took = probe.react(sleep, streams);
        if (!took) return tl::unexpected(took.error());
        progress.step();
        if (repetition >= 0) samples.push_back({sleep, streams, *took});
      }
    }
  }
  return samples;
}

}  // namespace tutti::internal
