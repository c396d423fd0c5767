#include "apps/lab/measuring/samples.hpp"

#include <algorithm>
#include <cstdint>

#include "model/base/expects.hpp"
#include "model/base/quantile.hpp"

namespace tutti::internal {

SampleSummary summarize_samples(std::span<const Duration> times) {
  if (times.empty()) return {};
  std::vector<double> us;
  double sum = 0;
  for (const Duration time : times) {
    us.push_back(as_ns(time) / 1e3);
    sum += us.back();
  }
  const auto at = [&](double share) { return quantile(us, share); };
  return {times.size(), sum / static_cast<double>(times.size()), at(0.5), at(0.99), at(0.999), at(1)};
}

SampleLimit SampleLimit::wanting(std::size_t most) {
  TUTTI_EXPECTS(most > 0, "at least one sample is wanted");
  return {most, std::min(most, kLeast), kTimeOfOne * static_cast<std::int64_t>(most)};
}

bool SampleLimit::reached(std::size_t count, Duration spent) const {
  return count >= most || (count >= least && spent >= time);
}

SampleLimit SampleLimit::after(std::size_t done, std::size_t parts) const {
  const auto share = [&](std::size_t count) { return (count * done + parts - 1) / parts; };
  return {share(most), share(least), time * static_cast<std::int64_t>(done) / static_cast<std::int64_t>(parts)};
}

std::vector<Bytes> doubled_sizes(Bytes from, Bytes to) {
  TUTTI_EXPECTS(from.count > 0 && from <= to, "sizes grow from one that is not 0");
  std::vector<Bytes> sizes{from};
  while (sizes.back().count <= to.count / 2) sizes.push_back(Bytes{2 * sizes.back().count});
  return sizes;
}

}  // namespace tutti::internal
