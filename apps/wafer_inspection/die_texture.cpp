#include "apps/wafer_inspection/die_texture.hpp"

#include <algorithm>
#include <cstddef>

#include "apps/wafer_inspection/box.hpp"
#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

namespace {

/// Draws one die. Everything lies on tracks of one line width with one line width between them.
class Draughtsman {
 public:
  Draughtsman(int width, int height, Random& random)
      : die_{width, height, {}}, random_{&random}, street_{std::max(1, height / 24)}, line_{2 + height / 48} {
    die_.layers.assign(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), Layer::Substrate);
  }

  [[nodiscard]] DieTexture draw() {
    for (int y = 0; y < tracks_down(); ++y) draw_wires_along(y);
    for (int x = 0; x < tracks_across(); ++x)
      if (random_->one_in(3)) draw_wire_down(x);
    draw_vias();
    if (die_.height >= 30) draw_memory();
    if (die_.height >= 16) draw_pads();
    fill({0, 0, die_.width, street_}, Layer::Street);
    fill({0, 0, street_, die_.height}, Layer::Street);
    return die_;
  }

 private:
  [[nodiscard]] int pitch() const { return 2 * line_; }
  [[nodiscard]] int track(int index) const { return street_ + 1 + index * pitch(); }
  [[nodiscard]] int tracks_across() const { return (die_.width - street_ - 1) / pitch(); }
  [[nodiscard]] int tracks_down() const { return (die_.height - street_ - 1) / pitch(); }

  void fill(const Box& box, Layer layer) {
    for (int y = std::max(box.y, 0); y < std::min(box.y + box.height, die_.height); ++y)
      for (int x = std::max(box.x, 0); x < std::min(box.x + box.width, die_.width); ++x)
        die_.layers[static_cast<std::size_t>(y) * static_cast<std::size_t>(die_.width) + static_cast<std::size_t>(x)] =
            layer;
  }

  void draw_wires_along(int track_down) {
    int from = random_->between(0, std::min(2, tracks_across() - 1));
    while (from < tracks_across()) {
      const int length = random_->between(2, std::max(3, tracks_across() / 2));
      const int to = std::min(from + length, tracks_across()) - 1;
      fill({track(from), track(track_down), (to - from) * pitch() + line_, line_}, Layer::Metal);
      from = to + 1 + random_->between(1, 3);
    }
  }

  void draw_wire_down(int track_across) {
    const int from = random_->between(0, tracks_down() - 1);
    const int to = random_->between(from, tracks_down() - 1);
    fill({track(track_across), track(from), line_, (to - from) * pitch() + line_}, Layer::Metal);
  }

  /// Draws sparse vias, only on metal where two tracks cross.
  void draw_vias() {
    for (int y = 0; y < tracks_down(); ++y)
      for (int x = 0; x < tracks_across(); ++x)
        if (random_->one_in(9) && die_.at(track(x), track(y)) == Layer::Metal)
          fill({track(x), track(y), line_, line_}, Layer::Via);
  }

  /// Draws a memory block: regular upright lines with a rim of bare substrate.
  void draw_memory() {
    const int across = tracks_across() / 3;
    const int down = tracks_down() / 2;
    const int x = random_->between(1, tracks_across() - across - 2);
    const int y = random_->between(1, tracks_down() - down - 1);
    fill({track(x) - line_, track(y) - line_, (across + 1) * pitch(), (down + 1) * pitch()}, Layer::Substrate);
    for (int i = 0; i < across; ++i) fill({track(x + i), track(y), line_, down * pitch() - line_}, Layer::Metal);
    fill({track(x), track(y), across * pitch() - line_, line_}, Layer::Metal);
  }

  void draw_pads() {
    const int side = die_.height >= 30 ? 2 * line_ : line_ + 1;
    const int top = street_ + 1;
    const int bottom = die_.height - 1 - side;
    fill({street_, top - 1, die_.width, side + 2}, Layer::Substrate);
    fill({street_, bottom - 1, die_.width, side + 2}, Layer::Substrate);
    for (int x = street_ + line_; x + side < die_.width; x += 2 * side) {
      fill({x, top, side, side}, Layer::Pad);
      fill({x, bottom, side, side}, Layer::Pad);
    }
  }

  DieTexture die_;
  Random* random_;
  int street_;
  int line_;
};

}  // namespace

DieTexture make_die_texture(int width, int height, Random& random) {
  WAFER_EXPECTS(width >= 8 && height >= 8, "a die has room for a circuit");
  return Draughtsman{width, height, random}.draw();
}

}  // namespace wafer
