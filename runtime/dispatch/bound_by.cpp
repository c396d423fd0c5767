#include "runtime/dispatch/bound_by.hpp"

#include <algorithm>

#include "model/base/expects.hpp"

namespace tutti::internal {

double amdahl_ceiling(double parallel) {
  constexpr double kProcessors = 2;
  return kProcessors / (kProcessors * (1 - parallel) + parallel);
}

BoundBy bound_by(const JobLoad& load) {
  TUTTI_EXPECTS(load.host >= Duration{0} && load.machine >= Duration{0} && load.host <= load.length - load.machine,
                "host and machine share the length of jobs");
  if (load.length == Duration{0}) return {};
  const auto share = [&](Duration part) {
    return static_cast<double>(part.count()) / static_cast<double>(load.length.count());
  };
  BoundBy bound{share(load.host), share(load.machine), {}, 1};
  if (load.host != load.machine) bound.processor = load.host > load.machine ? Processor::Cpu : Processor::Gpu;
  bound.amdahl_ceiling = amdahl_ceiling(2 * std::min(bound.cpu_share, bound.gpu_share));
  return bound;
}

}  // namespace tutti::internal
