#include "model/planners/time_division.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tutti::internal {

void plan_time_division(BatchSimulation& loaded, Effort) {
  const auto [order, gates, previous, best, instants] = loaded.room();
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const double kernels_a = loaded.kernels_ns(a);
    const double kernels_b = loaded.kernels_ns(b);
    return kernels_a != kernels_b ? kernels_a > kernels_b : a < b;
  });
  double engine_free = 0;
  for (const std::uint32_t queue : order) {
    const double transfers = loaded.transfers_alone_ns(queue);
    gates[queue] = transfers > 0 ? engine_free : 0;    // kernels alone need no turn
    engine_free = std::ceil(engine_free + transfers);  // gates are whole nanoseconds, and no two turns overlap
  }
  loaded.run_forward(gates);
}

}  // namespace tutti::internal
