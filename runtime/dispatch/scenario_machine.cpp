#include "runtime/dispatch/scenario_machine.hpp"

#include <algorithm>

#include "model/base/wide.hpp"

namespace tutti::internal {

ScenarioTimes::ScenarioTimes(Duration dispatch) : dispatch_(dispatch) {
  shorter_.times = [this](Timeline& times) { shorten(times, length_); };
}

const BatchFault* ScenarioTimes::of(const BatchRun& run) {
  if (!until_) return nullptr;
  length_ = std::max(*until_ - run.at - dispatch_, Duration{0});
  return length_ < run.times.latency ? &shorter_ : nullptr;
}

ScenarioMachine::ScenarioMachine(Executor& on)
    : times(on.machine().setup().dispatch.nominal),
      backend(on.backend(), on.clock(), times),
      executor(on.machine(), backend, on.clock(), on.role()) {}

void shorten(Timeline& times, Duration length) {
  const Duration whole = times.latency;
  if (whole <= length) return;
  const auto scale = [&](Duration& instant) {
    instant = Duration{static_cast<std::int64_t>(Wide{instant.count()} * length.count() / whole.count())};
  };
  for (StreamTimeline& line : times.streams) {
    if (line.transfer) {
      scale(line.transfer->start);
      scale(line.transfer->end);
      for (Segment& segment : line.transfer->segments) {
        scale(segment.start);
        scale(segment.end);
      }
    }
    if (line.kernel) {
      scale(line.kernel->start);
      scale(line.kernel->end);
    }
    scale(line.gate);
  }
  scale(times.setup);
  times.latency = length;
}

}  // namespace tutti::internal
