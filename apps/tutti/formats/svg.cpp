#include "apps/tutti/formats/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

constexpr std::array kSeries{
    SeriesColour{"#0072b2", "on-dark"},  SeriesColour{"#e69f00", "on-light"}, SeriesColour{"#009e73", "on-light"},
    SeriesColour{"#cc79a7", "on-light"}, SeriesColour{"#56b4e9", "on-light"}, SeriesColour{"#d55e00", "on-light"},
    SeriesColour{"#f0e442", "on-light"},
};

constexpr std::string_view kStyle =
    "<style>text{fill:#1c1c1c}.muted{fill:#5a5a5a}.on-light{fill:#111}.on-dark{fill:#fff}.page{fill:#fff}"
    ".lane{fill:#f1f2f4}.grid{stroke:#d9dce0}.axis{stroke:#1c1c1c}.mark{fill:#1c1c1c;stroke:#fff}.setup{fill:#c9cdd2}"
    "@media (prefers-color-scheme:dark){text{fill:#e8e8e8}.muted{fill:#a9aeb4}.on-light{fill:#111}.on-dark{fill:#fff}"
    ".page{fill:#15181c}.lane{fill:#22262b}.grid{stroke:#3a4047}.axis{stroke:#e8e8e8}.mark{fill:#e8e8e8;stroke:#15181c}"
    ".setup{fill:#474e56}}</style>\n";

constexpr double kGlyph = 0.6;  // width of a letter, in font sizes: a wide sans-serif

AxisUnit unit_of(std::span<const AxisUnit> units, double most) {
  for (const AxisUnit& unit : units)
    if (most >= 2 * unit.size) return unit;
  return units.back();
}

}  // namespace

std::string xml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&quot;"; break;
      default:
        if (static_cast<unsigned char>(c) >= ' ') out += c;
    }
  }
  return out;
}

SeriesColour series_colour(std::size_t series) { return kSeries[series % kSeries.size()]; }

AxisUnit byte_unit(double most) {
  return unit_of(std::array{AxisUnit{"GB", 1e9}, AxisUnit{"MB", 1e6}, AxisUnit{"kB", 1e3}, AxisUnit{"B", 1}}, most);
}

AxisUnit time_unit(double most) {
  return unit_of(std::array{AxisUnit{"s", 1e9}, AxisUnit{"ms", 1e6}, AxisUnit{"us", 1e3}, AxisUnit{"ns", 1}}, most);
}

std::vector<double> ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double distance = 10 * power;
  for (const double step : {5.0, 2.0, 1.0})
    if (rough <= step * power) distance = step * power;
  std::vector<double> values;
  for (double number = std::ceil(low / distance); number * distance <= high * 1.0001; ++number)
    values.push_back(number * distance);
  return values;
}

double text_width(std::string_view text, double font_size) {
  return kGlyph * font_size * static_cast<double>(text.size());
}

std::string shortened(std::string_view text, double font_size, double width) {
  if (text_width(text, font_size) <= width) return std::string(text);
  const auto half = static_cast<std::size_t>(std::max(1.0, (width / (kGlyph * font_size) - 1) / 2));
  return fmt::format("{}\u2026{}", text.substr(0, half), text.substr(text.size() - half));
}

void Svg::rect(double x, double y, double width, double height, std::string_view attributes, std::string_view tooltip) {
  body_ +=
      fmt::format("<rect x='{:.2f}' y='{:.2f}' width='{:.2f}' height='{:.2f}' {}", x, y, width, height, attributes);
  body_ += tooltip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", xml(tooltip));
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  body_ += fmt::format("<line x1='{:.2f}' y1='{:.2f}' x2='{:.2f}' y2='{:.2f}' {}/>\n", x1, y1, x2, y2, attributes);
}

void Svg::path(std::string_view steps, std::string_view attributes) {
  body_ += fmt::format("<path d='{}' {}/>\n", steps, attributes);
}

void Svg::text(double x, double y, std::string_view words, std::string_view attributes) {
  body_ += fmt::format("<text x='{:.2f}' y='{:.2f}'{}{}>{}</text>\n", x, y, attributes.empty() ? "" : " ", attributes,
                       xml(words));
}

std::string Svg::file(double width, double height) const {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0:.0f}' height='{1:.0f}' viewBox='0 0 {0:.0f} {1:.0f}' "
      "font-family='sans-serif' font-size='12'>\n{2}<rect width='100%' height='100%' class='page'/>\n{3}</svg>\n",
      width, height, kStyle, body_);
}

}  // namespace tutti::internal
