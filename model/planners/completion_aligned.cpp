#include "model/planners/completion_aligned.hpp"

#include <algorithm>

namespace tutti {
namespace {

/// Opens gates as if all that runs before them were faster by the spread of the machine's rates.
void begin_earlier(BatchSimulation& loaded) {
  const auto gates = loaded.room().gates;
  std::ranges::transform(loaded.gates(), gates.begin(),
                         [&](double gate) { return as_ns(round_down_ns(gate * (1 - loaded.spread()))); });
  loaded.run_forward(gates);
}

}  // namespace

void plan_completion_aligned(BatchSimulation& loaded) {
  loaded.run_backward();
  if (loaded.spread() > 0) {
    begin_earlier(loaded);
  } else if (loaded.contended()) {
    loaded.rerun_forward();
  }
}

}  // namespace tutti
