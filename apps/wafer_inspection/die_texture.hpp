#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/wafer_inspection/random.hpp"

namespace wafer {

/// The layer that a pixel of a good die shows.
enum class Layer : std::uint8_t { Street, Substrate, Metal, Pad, Via };

/// The gray level of a layer before noise.
[[nodiscard]] constexpr std::uint8_t level_of(Layer layer) {
  switch (layer) {
    case Layer::Street: return 70;
    case Layer::Substrate: return 100;
    case Layer::Metal: return 150;
    case Layer::Pad: return 180;
    case Layer::Via: return 60;
  }
  return 0;
}

/// One good die: layers, row after row.
struct DieTexture {
  int width = 0;
  int height = 0;
  std::vector<Layer> layers;

  [[nodiscard]] Layer at(int x, int y) const {
    return layers[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
  }

  friend bool operator==(const DieTexture&, const DieTexture&) = default;
};

/// Draws a circuit: a street at the upper and left edge, wires on two sets of tracks with vias where they meet, and on
/// larger dies a block of memory cells and pads along the edges. Equal arguments give equal circuits.
/// @pre  width and height >= 8.
[[nodiscard]] DieTexture make_die_texture(int width, int height, Random& random);

}  // namespace wafer
