#pragma once
#include <string>
#include <vector>

#include "model/machine/port_set.hpp"
#include "model/machine/rate_source.hpp"

namespace tutti::internal {

/// A measured combination, and a machine's prediction of it.
struct Residual {
  PortSet streams;
  std::vector<double> measured;   ///< [streams] GB/s
  std::vector<double> predicted;  ///< GB/s
  RateSource source = RateSource::Graph;

  /// The largest relative deviation of a stream's prediction, with its sign.
  [[nodiscard]] double worst() const;
};

/// Sorts residuals by deviation, the largest first.
[[nodiscard]] std::vector<Residual> worst_first(std::vector<Residual> residuals);

/// "h2d 0 1, d2h 2": GPUs by position.
[[nodiscard]] std::string ports_text(const PortSet& streams);
/// The rates of a combination in the order of that text, GB/s: "55.3 55.3, 54.8".
[[nodiscard]] std::string rates_text(const PortSet& streams, const std::vector<double>& rates);

}  // namespace tutti::internal
