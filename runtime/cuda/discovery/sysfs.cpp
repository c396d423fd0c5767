#include "runtime/cuda/discovery/sysfs.hpp"

#include <array>
#include <cmath>
#include <fstream>

namespace tutti::internal::cuda {
namespace {

/// The number that a file begins with; 0 where there is none, as in "Unknown".
double first_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : 0;
}

/// 0 where no generation is that fast.
int generation_of(double gigatransfers) {
  constexpr std::array kSpeeds{2.5, 5.0, 8.0, 16.0, 32.0, 64.0};
  for (std::size_t i = 0; i < kSpeeds.size(); ++i)
    if (std::abs(gigatransfers - kSpeeds[i]) < 0.1) return static_cast<int>(i) + 1;
  return 0;
}

}  // namespace

std::optional<PcieLink> sysfs_link(const std::filesystem::path& device, LinkState state) {
  const std::string which = state == LinkState::Now ? "current" : "max";
  const int generation = generation_of(first_number(device / (which + "_link_speed")));
  const double width = first_number(device / (which + "_link_width"));
  // A port that knows no width of its own reads as 0, 63 or 255.
  if (generation == 0 || width < 1 || width > 32) return std::nullopt;
  return PcieLink{generation, static_cast<int>(width)};
}

}  // namespace tutti::internal::cuda
