#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tutti::internal {

/// Text of an XML file: & < > and quotes escaped, control characters left out.
[[nodiscard]] std::string xml(std::string_view text);

/// Colour of a series (a stream, a planner), and the class of a text on it.
struct SeriesColour {
  std::string_view fill;
  std::string_view text;
};
/// Seven colours that colour-blind readers can distinguish, in a fixed order; further series begin again.
/// @source [OI08]
[[nodiscard]] SeriesColour series_colour(std::size_t series);

/// A unit in which an axis has few digits, and its size in bytes or ns.
struct AxisUnit {
  std::string_view name;
  double size = 1;
};
/// @param most  largest value of the axis, bytes
[[nodiscard]] AxisUnit byte_unit(double most);
/// @param most  largest value of the axis, ns
[[nodiscard]] AxisUnit time_unit(double most);

/// Round values (1, 2 or 5 times a power of ten apart) from `low` to `high`, about `count` of them.
/// @pre low < high, count > 0
[[nodiscard]] std::vector<double> ticks(double low, double high, int count);

/// Estimated width of a text, in pixels: no font is known where a picture is made.
[[nodiscard]] double text_width(std::string_view text, double font_size);
/// The text; where it is wider, its beginning, an ellipsis and its end. @pre it is ASCII
[[nodiscard]] std::string shortened(std::string_view text, double font_size, double width);

/// A picture as SVG: light on paper and dark on a dark screen, without scripts and without fonts of its own. Equal
/// calls give equal bytes.
///
/// Colours that change with the screen are classes. Lines: `axis`, `grid`. Fills: `page`, `lane`, `setup`, `mark`.
/// Texts: none (ink), `muted`, and on the colour of a series its `text`.
class Svg {
 public:
  /// @param attributes  of the element, as they stand in the file
  /// @param tooltip     text that a browser shows under the pointer; empty: none
  void rect(double x, double y, double width, double height, std::string_view attributes,
            std::string_view tooltip = "");
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  void path(std::string_view steps, std::string_view attributes);
  void text(double x, double y, std::string_view words, std::string_view attributes = "");
  /// The whole file.
  /// @param width, height  of the page, in pixels
  [[nodiscard]] std::string file(double width, double height) const;

 private:
  std::string body_;
};

}  // namespace tutti::internal
