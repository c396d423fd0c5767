#include "model/transfer/double_queuing.hpp"

#include <algorithm>
#include <cmath>

#include "model/base/expects.hpp"

namespace tutti {
namespace {

constexpr double kMostThreads = 1024;  // a host with more of them is none

/// A ratio as a count, within what counts are made of.
int count_of(double ratio) { return static_cast<int>(std::clamp(ratio, 0.0, kMostThreads)); }

}  // namespace

GBps double_queuing_rate(const DoubleQueuingSpeeds& speeds, int threads, MemoryPasses passes) {
  TUTTI_EXPECTS(threads > 0, "threads copy");
  return GBps{
      std::min({speeds.link.value, threads * speeds.thread.value, speeds.memory.value / static_cast<double>(passes)})};
}

ProducerChoice choose_producers(const DoubleQueuingSpeeds& speeds, int cores, MemoryPasses passes) {
  TUTTI_EXPECTS(cores > 0 && speeds.link.value > 0 && speeds.thread.value > 0, "speeds and cores are above 0");
  ProducerChoice choice{};
  choice.least = std::max(1, count_of(std::ceil(speeds.link.value / speeds.thread.value)));
  // The engine's share of the memory is S_B2D where it reads there, and nothing where it reads caches.
  const double engine = passes == MemoryPasses::Memory ? speeds.link.value : 0;
  choice.most = count_of(std::floor((speeds.memory.value - engine) / (2 * speeds.thread.value)));
  choice.threads = std::min(choice.least, cores);
  choice.rate = double_queuing_rate(speeds, choice.threads, passes);
  choice.fills_link = choice.threads >= choice.least && choice.most >= choice.least;
  return choice;
}

}  // namespace tutti
