#include "model/sharing/rate_residual.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "model/machine/ports.hpp"

namespace tutti::internal {

double Residual::worst() const {
  double worst = 0;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double deviation = predicted[i] / measured[i] - 1;
    if (std::abs(deviation) > std::abs(worst)) worst = deviation;
  }
  return worst;
}

std::vector<Residual> worst_first(std::vector<Residual> residuals) {
  std::stable_sort(residuals.begin(), residuals.end(),
                   [](const Residual& a, const Residual& b) { return std::abs(a.worst()) > std::abs(b.worst()); });
  return residuals;
}

std::string ports_text(const PortSet& streams) {
  std::string text;
  for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost}) {
    std::string gpus;
    for (const PortId port : streams)
      if (CopyPort::at(port).direction == direction) gpus += fmt::format(" {}", CopyPort::at(port).gpu);
    if (!gpus.empty()) text += fmt::format("{}{}{}", text.empty() ? "" : ", ", to_string(direction), gpus);
  }
  return text;
}

std::string rates_text(const PortSet& streams, const std::vector<double>& rates) {
  std::string of_direction[2];
  for (const PortId port : streams) {
    std::string& text = of_direction[static_cast<std::size_t>(CopyPort::at(port).direction)];
    text += fmt::format("{}{:.1f}", text.empty() ? "" : " ", rates[streams.rank(port)]);
  }
  const bool both = !of_direction[0].empty() && !of_direction[1].empty();
  return of_direction[0] + (both ? ", " : "") + of_direction[1];
}

}  // namespace tutti::internal
