#include "apps/wafer_inspection/generator.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/wafer_inspection/die_compare.hpp"
#include "apps/wafer_inspection/die_texture.hpp"
#include "apps/wafer_inspection/errors.hpp"
#include "apps/wafer_inspection/random.hpp"

namespace wafer {

using tutti::Expected;

namespace {

constexpr int max_defects = 1000;
constexpr int max_tries_in_a_row = 4000;
constexpr int max_tries_of_a_kind = 400;
constexpr int clearance = 4;       // px between two defects: more than a gap that the finder closes
constexpr int longest_side = 20;   // px of a scratch
constexpr int largest_speck = 12;  // px of every other defect
constexpr std::uint8_t particle_level = 15;
constexpr std::uint8_t scratch_level = 235;

struct Pixel {
  int x = 0;
  int y = 0;
};
using Shape = std::vector<Pixel>;

Box bounds_of(const Shape& shape) {
  WAFER_EXPECTS(!shape.empty(), "a shape has pixels");
  const auto [left, right] = std::ranges::minmax(shape, {}, &Pixel::x);
  const auto [top, bottom] = std::ranges::minmax(shape, {}, &Pixel::y);
  return {left.x, top.y, right.x - left.x + 1, bottom.y - top.y + 1};
}

Shape rectangle(int width, int height) {
  Shape shape;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) shape.push_back({x, y});
  return shape;
}

Shape disc(int diameter) {
  Shape shape = rectangle(diameter, diameter);
  // The distance from the centre in half pixels, so that even diameters have a centre too.
  const auto from_centre = [&](int x) { return 2 * x + 1 - diameter; };
  std::erase_if(shape, [&](const Pixel& pixel) {
    return from_centre(pixel.x) * from_centre(pixel.x) + from_centre(pixel.y) * from_centre(pixel.y) >
           diameter * diameter;
  });
  return shape;
}

/// A line that climbs by at most one pixel in two, so that its pixels touch.
Shape line(int length, int climb, int thickness, bool upright) {
  Shape shape;
  for (int along = 0; along < length; ++along)
    for (int across = 0; across < thickness; ++across) {
      const int offset = across + climb * along / (length - 1);
      shape.push_back(upright ? Pixel{offset, along} : Pixel{along, offset});
    }
  return shape;
}

/// Finds places for defects until a wafer has enough.
class Planter {
 public:
  /// @param shifts  [rows][columns] that outlive it; `farthest` at most
  Planter(const DieGrid& grid, const DieTexture& texture, std::span<const Shift> shifts, int farthest, Random random)
      : grid_{grid}, texture_{&texture}, shifts_{shifts}, rim_{1 + farthest}, random_{random} {}

  struct Defect {
    PlantedDefect truth = {};
    Shape pixels = {};  // px of the image
    int column = 0;
    int row = 0;
    Box in_die = {};
  };

  /// Plants one more defect; false where many places in a row were refused.
  [[nodiscard]] bool plant() {
    constexpr std::array kinds{DefectKind::Particle, DefectKind::Scratch, DefectKind::MissingMaterial,
                               DefectKind::ExtraMaterial};
    DefectKind kind = kinds.front();
    for (int tries = 0; tries < max_tries_in_a_row; ++tries) {
      // Material defects are hard to place, on some circuits impossible: a kind gets many tries, but not all of them.
      if (tries % max_tries_of_a_kind == 0) kind = kinds[static_cast<std::size_t>(random_.between(0, 3))];
      auto defect = propose(kind);
      if (!defect || !is_decidable(*defect)) continue;
      defects_.push_back(std::move(*defect));
      return true;
    }
    return false;
  }

  [[nodiscard]] const std::vector<Defect>& defects() const { return defects_; }

 private:
  [[nodiscard]] Shape shape_of(DefectKind kind) {
    const int side = std::min(texture_->width, texture_->height);
    const int speck = std::clamp(side / 6, 3, largest_speck);
    if (kind == DefectKind::Particle) return disc(random_.between(2, speck));
    if (kind != DefectKind::Scratch) return rectangle(random_.between(2, speck), random_.between(2, speck));
    const int length = random_.between(4, std::min(longest_side, side - 3));
    const int climb = random_.between(-length / 2, length / 2);
    return line(length, climb, random_.between(1, side < 30 ? 1 : 2), random_.one_in(2));
  }

  [[nodiscard]] bool suits(DefectKind kind, const Pixel& in_die) const {
    const Layer layer = texture_->at(in_die.x, in_die.y);
    if (kind == DefectKind::MissingMaterial) return layer == Layer::Metal || layer == Layer::Pad;
    if (kind == DefectKind::ExtraMaterial) return layer == Layer::Substrate;
    return true;
  }

  /// A defect at a random place, or none where the place does not suit it.
  [[nodiscard]] std::optional<Defect> propose(DefectKind kind) {
    Shape shape = shape_of(kind);
    const Box bounds = bounds_of(shape);
    // A rim of one pixel stays free, wherever the die stands: a defect belongs to one die, and to one part of a split
    // image, and what it is compared with lies in its die.
    if (bounds.width > texture_->width - 2 * rim_ || bounds.height > texture_->height - 2 * rim_) return std::nullopt;
    const int x = random_.between(rim_, texture_->width - rim_ - bounds.width);
    const int y = random_.between(rim_, texture_->height - rim_ - bounds.height);
    for (Pixel& pixel : shape) {
      pixel = {pixel.x - bounds.x + x, pixel.y - bounds.y + y};
      if (!suits(kind, pixel)) return std::nullopt;
    }

    Defect defect{.column = random_.between(0, grid_.columns - 1), .row = random_.between(0, grid_.rows - 1)};
    const Shift shift = shifts_[static_cast<std::size_t>(defect.row * grid_.columns + defect.column)];
    const int left = grid_.left + defect.column * grid_.die_width + shift.x;
    const int top = grid_.top + defect.row * grid_.die_height + shift.y;
    for (Pixel& pixel : shape) pixel = {pixel.x + left, pixel.y + top};
    defect.in_die = {x, y, bounds.width, bounds.height};
    defect.truth = {kind, {x + left, y + top, bounds.width, bounds.height}, static_cast<int>(shape.size())};
    defect.pixels = std::move(shape);
    return defect;
  }

  /// Whether a defect is clear of all others, with no other at its place in a die that it is compared with: two equal
  /// defects would outvote the good die.
  [[nodiscard]] bool is_decidable(const Defect& defect) const {
    return std::ranges::none_of(defects_, [&](const Defect& other) {
      if (shared_area(with_rim(defect.truth.box, clearance), other.truth.box) > 0) return true;
      return defect.column == other.column && std::abs(defect.row - other.row) <= comparison_reach &&
             shared_area(defect.in_die, other.in_die) > 0;
    });
  }

  DieGrid grid_;
  const DieTexture* texture_;
  std::span<const Shift> shifts_;
  int rim_;
  Random random_;
  std::vector<Defect> defects_;
};

std::uint8_t level_of(DefectKind kind) {
  switch (kind) {
    case DefectKind::Particle: return particle_level;
    case DefectKind::Scratch: return scratch_level;
    case DefectKind::MissingMaterial: return level_of(Layer::Substrate);
    case DefectKind::ExtraMaterial: return level_of(Layer::Metal);
  }
  return 0;
}

/// A shift for each die. @param farthest  in each direction, px
std::vector<Shift> draw_shifts(const DieGrid& grid, int farthest, Random random) {
  std::vector<Shift> shifts(static_cast<std::size_t>(grid.rows) * static_cast<std::size_t>(grid.columns));
  const auto draw = [&] { return static_cast<std::int16_t>(random.between(-farthest, farthest)); };
  for (Shift& shift : shifts) shift = {draw(), draw()};
  return shifts;
}

/// A line of a die's place: what the displaced die shows there, and street where it shows nothing.
/// @param levels  of the die
void draw_line(std::span<std::uint8_t> out, std::span<const std::uint8_t> levels, int y, const Shift& shift) {
  const int width = static_cast<int>(out.size()), height = static_cast<int>(levels.size()) / width;
  std::ranges::fill(out, level_of(Layer::Street));
  if (y < shift.y || y - shift.y >= height) return;
  const auto line = levels.subspan(static_cast<std::size_t>(y - shift.y) * out.size(), out.size());
  const auto cut = static_cast<std::size_t>(std::abs(shift.x)), left = out.size() - cut;
  shift.x >= 0 ? std::ranges::copy(line.first(left), out.subspan(cut).begin())
               : std::ranges::copy(line.subspan(cut), out.begin());
}

GrayImage draw_dies(const DieGrid& grid, const DieTexture& texture, std::span<const Shift> shifts) {
  std::vector<std::uint8_t> levels;
  for (const Layer layer : texture.layers) levels.push_back(level_of(layer));
  const auto die_width = static_cast<std::size_t>(grid.die_width);

  GrayImage image{grid.width, grid.height};
  std::ranges::fill(image.bytes(), level_of(Layer::Street));
  for (int y = 0; y < grid.rows * grid.die_height; ++y) {
    auto row = image.row(grid.top + y).subspan(static_cast<std::size_t>(grid.left));
    const auto of_row = shifts.subspan(static_cast<std::size_t>(y / grid.die_height * grid.columns));
    for (int column = 0; column < grid.columns; ++column, row = row.subspan(die_width))
      draw_line(row.first(die_width), levels, y % grid.die_height, of_row[static_cast<std::size_t>(column)]);
  }
  return image;
}

/// Adds to each pixel the count of set bits among 2 x noise fair ones, less their mean: bell-shaped and bounded.
void add_noise(GrayImage& image, int noise, Random random) {
  constexpr std::size_t pixels_per_draw = 4;
  const std::uint64_t mask = (std::uint64_t{1} << (2 * noise)) - 1;
  std::uint64_t draw = 0;
  const auto pixels = image.bytes();
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    draw = i % pixels_per_draw == 0 ? random.next() : draw >> 16;
    // Levels lie between 15 and 235, so nothing is clipped.
    pixels[i] = static_cast<std::uint8_t>(pixels[i] + std::popcount(draw & mask) - noise);
  }
}

Expected<void> check(const WaferSpec& spec) {
  if (spec.noise < 0 || spec.noise > max_noise)
    return invalid_input(
        fmt::format("noise of {} gray levels; 0 to {} can be told from defects", spec.noise, max_noise));
  if (spec.shift < 0) return invalid_input(fmt::format("a shift of {} px; 0 and more are possible", spec.shift));
  if (spec.defects < 0 || spec.defects > max_defects)
    return invalid_input(fmt::format("{} defects on one wafer; 0 to {} are possible", spec.defects, max_defects));
  return {};
}

}  // namespace

Expected<Wafer> make_wafer(const WaferSpec& spec, const std::string& name) {
  if (const auto fine = check(spec); !fine) return tl::unexpected(fine.error());
  const auto grid = default_die_grid(spec.width, spec.height);
  if (!grid) return tl::unexpected(grid.error());

  // A random stream for each, so that a wafer with other defects has the same circuit and the same noise.
  Random seeds{spec.seed};
  Random circuit{seeds.next()};
  const Random places{seeds.next()};
  const Random noise{seeds.next()};
  const Random displaced{seeds.next()};

  const DieTexture texture = make_die_texture(grid->die_width, grid->die_height, circuit);
  const int farthest = std::min(spec.shift, max_shift(grid->die_width, grid->die_height));
  const std::vector<Shift> shifts = draw_shifts(*grid, farthest, displaced);
  Planter planter{*grid, texture, shifts, farthest, places};
  for (int planted = 0; planted < spec.defects; ++planted)
    if (!planter.plant())
      return invalid_input(fmt::format("a wafer of {} x {} pixels has room for {} defects; plant fewer than {}",
                                       spec.width, spec.height, planted, spec.defects));

  Wafer wafer{draw_dies(*grid, texture, shifts), {name, *grid, spec.seed, spec.noise, {}}};
  for (const auto& defect : planter.defects()) {
    for (const Pixel& pixel : defect.pixels) wafer.image.set(pixel.x, pixel.y, level_of(defect.truth.kind));
    wafer.truth.defects.push_back(defect.truth);
  }
  add_noise(wafer.image, spec.noise, noise);
  return wafer;
}

}  // namespace wafer
