#include "apps/tutti/reports/topology_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/tutti/formats/svg.hpp"
#include "model/base/units.hpp"
#include "model/planners/planner.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

constexpr double kEdge = 20, kBoxWidth = 92, kBoxHeight = 34, kLeastGap = 120, kRow = 74, kTitle = 56, kLine = 18,
                 kLabelFont = 11;
constexpr double kThinnest = 1, kWidest = 7;  // lines
constexpr double kSlope = 64;                 // px, in which lines to many vertices part, before their labels
constexpr double kLift = 5;                   // px between a line and its label
constexpr double kPost = 12;                  // px, where a line to the vertex below begins
constexpr double kAlong = 0.36;               // share of a line at which its label stands
constexpr std::array kSampleRates{10.0, 100.0, 1000.0};  // GB/s, in the legend
constexpr std::array kHeat{std::pair(0.9, std::string_view("#D55E00")), std::pair(0.6, std::string_view("#E69F00")),
                           std::pair(0.3, std::string_view("#56B4E9"))};  // from that share on; [OI08]

/// Two vertices with a link at least in one direction.
struct Pair {
  VertexId left, right;
  std::optional<LinkId> there, back;  ///< left to right, right to left
};

/// Where the line of a pair has its label.
enum class LabelEnd : std::uint8_t { Left, Right, Along };

/// 1 GB/s and 1000 GB/s lie in one picture, so the width goes with the logarithm.
double line_width(double gbps) { return std::clamp(2 * std::log10(1 + gbps), kThinnest, kWidest); }

/// Three digits, or all in front of the point.
std::string in_digits(double rate) { return rate < 100 ? fmt::format("{:.3g}", rate) : fmt::format("{:.0f}", rate); }

class TopologyPicture {
 public:
  TopologyPicture(const Topology& machine, const std::optional<Batch>& batch)
      : machine_(machine), use_(machine.links().size(), 0) {
    place_vertices();
    for (std::size_t i = 0; i < machine.links().size(); ++i) add_link(LinkId(i));
    if (batch) find_use(*batch);
    for (const Pair& pair : pairs_) labels_.push_back(label_of(pair));
    for (std::size_t p = 0; p < pairs_.size(); ++p)
      if (!is_beside(pairs_[p]))
        gap_ = std::max(gap_, text_width(labels_[p], kLabelFont) + 16 + (is_level(pairs_[p]) ? 0 : kSlope));
  }

  std::string file() {
    const double right = kEdge + (kBoxWidth + gap_) * static_cast<double>(columns_.size() - 1) + kBoxWidth;
    svg_.text(kEdge, kEdge + 14, machine_.name(), "font-size='15' font-weight='bold'");
    svg_.text(kEdge, kEdge + 32, title(), "class='muted' font-size='11'");
    for (std::size_t p = 0; p < pairs_.size(); ++p) draw_line(pairs_[p]);
    draw_labels();
    for (std::size_t v = 0; v < machine_.vertices().size(); ++v) draw_vertex(VertexId(v));
    const double bottom = legend(list_shared(kEdge + kTitle + kRow * static_cast<double>(rows_) + 6) + 4);
    return svg_.file(std::max({right, widest_ - kEdge, 560.0}) + kEdge, bottom + kEdge);
  }

 private:
  struct Place {
    double column = 0, row = 0;
  };
  struct Point {
    double x = 0, y = 0;
  };

  /// The upper left corner of a vertex.
  [[nodiscard]] Point corner(VertexId vertex) const {
    const Place& place = places_[vertex.index()];
    return {kEdge + (kBoxWidth + gap_) * place.column, kEdge + kTitle + kRow * place.row};
  }
  [[nodiscard]] bool is_beside(const Pair& pair) const {
    return places_[pair.left.index()].column == places_[pair.right.index()].column;
  }

  /// Whether one stands right below the other.
  [[nodiscard]] bool is_below(const Pair& pair) const {
    return is_beside(pair) && places_[pair.right.index()].row == places_[pair.left.index()].row + 1;
  }
  /// How far the line between two vertices of a column bends out.
  [[nodiscard]] double bend_of(const Pair& pair) const {
    return 26 + 10 * (places_[pair.right.index()].row - places_[pair.left.index()].row);
  }
  [[nodiscard]] bool is_level(const Pair& pair) const {
    return places_[pair.left.index()].row == places_[pair.right.index()].row;
  }

  /// Columns by the number of links from the next memory or device.
  void place_vertices() {
    const auto vertices = machine_.vertices();
    std::vector<int> depth(vertices.size(), -1);
    for (std::size_t v = 0; v < vertices.size(); ++v)
      if (vertices[v].kind == VertexKind::Memory || vertices[v].kind == VertexKind::Device) depth[v] = 0;
    for (bool more = true; more;) {
      more = false;
      for (const Link& link : machine_.links()) {
        for (const auto& [from, to] : {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
          int &near = depth[from.index()], &far = depth[to.index()];
          if (near < 0 || (far >= 0 && far <= near + 1)) continue;
          far = near + 1;
          more = true;
        }
      }
    }
    for (std::size_t v = 0; v < vertices.size(); ++v) {
      const auto column = static_cast<std::size_t>(std::max(depth[v], 0));
      columns_.resize(std::max(columns_.size(), column + 1));
      columns_[column].push_back(VertexId(v));
    }
    for (const auto& column : columns_) rows_ = std::max(rows_, column.size());
    places_.resize(vertices.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) place_column(c);
    // Beside their neighbours: fewer lines cross.
    for (std::size_t c = columns_.size() - 1; c-- > 0;) order_column(c, c + 1);
    for (std::size_t c = 1; c < columns_.size(); ++c) order_column(c, c - 1);
  }
  void place_column(std::size_t c) {
    const double above = static_cast<double>(rows_ - columns_[c].size()) / 2;
    for (std::size_t r = 0; r < columns_[c].size(); ++r)
      places_[columns_[c][r].index()] = {static_cast<double>(c), above + static_cast<double>(r)};
  }
  /// Orders a column by the mean rows of its vertices' neighbours in another one.
  void order_column(std::size_t c, std::size_t other) {
    const auto wanted = [&](VertexId vertex) {
      double sum = 0, count = 0;
      for (const Link& link : machine_.links()) {
        if (link.from != vertex && link.to != vertex) continue;
        const Place& place = places_[(link.from == vertex ? link.to : link.from).index()];
        if (place.column != static_cast<double>(other)) continue;
        sum += place.row;
        ++count;
      }
      return count > 0 ? sum / count : places_[vertex.index()].row;
    };
    std::vector<std::pair<double, VertexId>> order;
    for (const VertexId vertex : columns_[c]) order.emplace_back(wanted(vertex), vertex);
    std::ranges::stable_sort(order, {}, &std::pair<double, VertexId>::first);
    std::ranges::transform(order, columns_[c].begin(), &std::pair<double, VertexId>::second);
    place_column(c);
  }

  void add_link(LinkId id) {
    const Link& link = machine_.link(id);
    const auto known = std::ranges::find_if(pairs_, [&](const Pair& pair) {
      return (pair.left == link.from && pair.right == link.to) || (pair.left == link.to && pair.right == link.from);
    });
    if (known != pairs_.end()) {
      (known->left == link.from ? known->there : known->back) = id;
      return;
    }
    const Place &from = places_[link.from.index()], &to = places_[link.to.index()];
    const bool is_there = std::pair(from.column, from.row) <= std::pair(to.column, to.row);
    Pair pair{is_there ? link.from : link.to, is_there ? link.to : link.from, {}, {}};
    (is_there ? pair.there : pair.back) = id;
    pairs_.push_back(pair);
  }

  void find_use(const Batch& batch) {
    const Timeline timeline = plan(planners().front(), batch).timeline;
    for (const CommandStream& stream : batch.streams()) {
      if (!stream.transfer) continue;
      const RouteView route = find_route(machine_, *stream.transfer);
      for (const auto links : {route.first, route.second})
        for (const LinkId link : links) use_[link.index()] += static_cast<double>(stream.transfer->size.count);
    }
    length_ = static_cast<double>(timeline.latency.count());
    for (std::size_t i = 0; i < use_.size(); ++i)
      use_[i] /= std::max(length_, 1.0) * machine_.capacities(Basis::Nominal)[i];
  }

  [[nodiscard]] std::string title() const {
    const bool has_beside = std::ranges::any_of(pairs_, [&](const Pair& pair) { return is_beside(pair); });
    std::string text = fmt::format("effective bandwidths, GB/s: to the right{0} / to the left{1}",
                                   has_beside ? " or down" : "", has_beside ? " or up" : "");
    if (length_ > 0) text += fmt::format("; in percent: what a batch of {:.3f} ms uses on average", length_ / 1e6);
    return text;
  }

  [[nodiscard]] double rate(const std::optional<LinkId>& link) const {
    return link ? machine_.link(*link).bandwidth.nominal.value : 0;
  }

  /// Of the direction that is used more.
  [[nodiscard]] double use_of(const Pair& pair) const {
    double most = 0;
    for (const auto& link : {pair.there, pair.back})
      if (link) most = std::max(most, use_[link->index()]);
    return most;
  }

  void draw_line(const Pair& pair) {
    const Point from = corner(pair.left), to = corner(pair.right);
    const double use = use_of(pair);
    const auto heat = std::ranges::find_if(kHeat, [&](const auto& step) { return use >= step.first; });
    const std::string style =
        line_style(line_width(most_of(pair)), heat == kHeat.end() ? std::string_view{} : heat->second);
    const double middle = kBoxHeight / 2;
    if (is_below(pair)) {
      svg_.line(from.x + kPost, from.y + kBoxHeight, from.x + kPost, to.y, style);
    } else if (is_beside(pair)) {
      const double x = from.x + kBoxWidth, bend = bend_of(pair);
      svg_.path(fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x, from.y + middle, x + bend,
                            from.y + middle, x + bend, to.y + middle, x, to.y + middle),
                style);
    } else {
      // A bend, so that a label stands above a level line, off the lines that part.
      const double left = from.x + kBoxWidth;
      const LabelEnd end = label_end(pair);
      const Point bend{end == LabelEnd::Left ? to.x - kSlope : left + kSlope, end == LabelEnd::Left ? from.y : to.y};
      svg_.path(is_level(pair) || end == LabelEnd::Along
                    ? fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", left, from.y + middle, to.x, to.y + middle)
                    : fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}", left, from.y + middle, bend.x,
                                  bend.y + middle, to.x, to.y + middle),
                style);
    }
  }
  [[nodiscard]] double most_of(const Pair& pair) const { return std::max(rate(pair.there), rate(pair.back)); }
  [[nodiscard]] static std::string line_style(double width, std::string_view colour) {
    return fmt::format("{} fill='none' stroke-linejoin='round' stroke-width='{:.1f}' stroke-opacity='0.75'",
                       colour.empty() ? "class='axis'" : fmt::format("stroke='{}'", colour), width);
  }

  /// The end at which no other line of the same side arrives; labels of others stand along their lines.
  [[nodiscard]] LabelEnd label_end(const Pair& pair) const {
    const auto lines = [&](VertexId Pair::*side, VertexId vertex) {
      return std::ranges::count_if(pairs_, [&](const Pair& one) { return one.*side == vertex && !is_beside(one); });
    };
    if (lines(&Pair::right, pair.right) == 1) return LabelEnd::Right;
    return lines(&Pair::left, pair.left) == 1 ? LabelEnd::Left : LabelEnd::Along;
  }

  /// Bandwidths in both directions, and the numbers of the shared capacities.
  [[nodiscard]] std::string label_of(const Pair& pair) const {
    const auto side = [&](const std::optional<LinkId>& link) {
      if (!link) return std::string("-");
      const std::string rate = in_digits(machine_.link(*link).bandwidth.nominal.value);
      return length_ == 0 ? rate : fmt::format("{} ({:.0f} %)", rate, 100 * use_[link->index()]);
    };
    std::string words = side(pair.there) + " / " + side(pair.back);
    if (const auto groups = groups_of(pair); !groups.empty()) words += fmt::format(" [{}]", fmt::join(groups, " "));
    return words;
  }

  /// A text on a plate that keeps lines off it.
  struct Label {
    double x = 0, y = 0;  ///< its middle; its base line
    std::string words{}, tooltip{}, transform{};
  };

  void draw_labels() {
    std::vector<Label> all;
    for (std::size_t p = 0; p < pairs_.size(); ++p) add_labels(pairs_[p], labels_[p], all);
    for (const Label& label : all) {
      const double width = text_width(label.words, kLabelFont);
      svg_.rect(label.x - width / 2, label.y - 10, width, 13, "class='page' " + label.transform, label.tooltip);
      widest_ = std::max(widest_, label.x + width / 2 + kEdge);
    }
    for (const Label& label : all)
      svg_.text(label.x, label.y, label.words, "font-size='11' text-anchor='middle' " + label.transform);
  }

  /// Above a line; beside that of two vertices in one column.
  void add_labels(const Pair& pair, const std::string& words, std::vector<Label>& all) const {
    const Point from = corner(pair.left), to = corner(pair.right);
    const double width = text_width(words, kLabelFont);
    const double left = from.x + kBoxWidth, middle = kBoxHeight / 2, lift = line_width(most_of(pair)) / 2 + kLift;
    if (is_below(pair)) {
      const double x = from.x + kPost + 8, y = (from.y + kBoxHeight + to.y) / 2 + 4, room = kBoxWidth - kPost - 8;
      if (width <= room) return all.push_back({x + width / 2, y, words, tooltip(pair)});
      const std::size_t slash = words.find(" / ");
      for (const auto& [part, base] : {std::pair(words.substr(0, slash + 2), y - 7), {words.substr(slash + 3), y + 7}})
        all.push_back({x + text_width(part, kLabelFont) / 2, base, part, tooltip(pair)});
      return;
    }
    if (is_beside(pair))
      return all.push_back(
          {left + 0.75 * bend_of(pair) + 12 + width / 2, (from.y + to.y) / 2 + middle + 4, words, tooltip(pair)});
    const LabelEnd end = label_end(pair);
    if (is_level(pair)) return all.push_back({(left + to.x) / 2, to.y + middle - lift, words, tooltip(pair)});
    if (end == LabelEnd::Along) {  // parallel to the line, nearer to the left end
      const double x = left + (to.x - left) * kAlong, y = from.y + (to.y - from.y) * kAlong + middle;
      const double degrees = std::atan2(to.y - from.y, to.x - left) * 180 / std::numbers::pi;
      return all.push_back(
          {x, y - lift, words, tooltip(pair), fmt::format("transform='rotate({:.1f} {:.1f} {:.1f})'", degrees, x, y)});
    }
    const double room = to.x - left - kSlope;
    all.push_back({end == LabelEnd::Left ? left + room / 2 : to.x - room / 2,
                   (end == LabelEnd::Left ? from.y : to.y) + middle - lift, words, tooltip(pair)});
  }

  [[nodiscard]] std::string tooltip(const Pair& pair) const {
    std::string text;
    for (const auto& link : {pair.there, pair.back}) {
      if (!link) continue;
      const Link& of = machine_.link(*link);
      text += fmt::format("{}{} -> {}: {:.5g} GB/s, guaranteed {:.5g}", text.empty() ? "" : "; ",
                          machine_.vertex(of.from).name, machine_.vertex(of.to).name, of.bandwidth.nominal.value,
                          of.bandwidth.guaranteed.value);
    }
    return text;
  }

  /// Numbers, from 1, of the shared capacities that limit a line.
  [[nodiscard]] std::vector<std::size_t> groups_of(const Pair& pair) const {
    std::vector<std::size_t> groups;
    for (std::size_t s = 0; s < machine_.shared().size(); ++s)
      if (std::ranges::any_of(machine_.shared()[s].members, [&](const CapacityMember& member) {
            return pair.there == std::optional(member.link) || pair.back == std::optional(member.link);
          }))
        groups.push_back(s + 1);
    return groups;
  }

  void draw_vertex(VertexId id) {
    const Vertex& vertex = machine_.vertex(id);
    const Point at = corner(id);
    const bool is_gpu = vertex.kind == VertexKind::Gpu;
    svg_.rect(at.x, at.y, kBoxWidth, kBoxHeight,
              is_gpu ? fmt::format("rx='4' fill='{}'", series_colour(0).fill) : "rx='4' class='lane' stroke='#888'");
    svg_.text(at.x + kBoxWidth / 2, at.y + kBoxHeight / 2 + 4, shortened(vertex.name, 12, kBoxWidth - 8),
              is_gpu ? fmt::format("text-anchor='middle' font-size='12' class='{}'", series_colour(0).text)
                     : "text-anchor='middle' font-size='12'");
  }

  /// @return where it ends
  double list_shared(double top) {
    for (std::size_t s = 0; s < machine_.shared().size(); ++s) {
      const SharedCapacity& shared = machine_.shared()[s];
      std::vector<std::string> members;
      for (const CapacityMember& member : shared.members) {
        const Link& link = machine_.link(member.link);
        members.push_back(fmt::format("{}{} to {}", member.cost == 1 ? "" : fmt::format("{:.3g} x ", member.cost),
                                      machine_.vertex(link.from).name, machine_.vertex(link.to).name));
      }
      const std::string words = fmt::format("[{}] {}: {:.5g} GB/s for {}", s + 1, shared.name,
                                            shared.capacity.nominal.value, fmt::join(members, " + "));
      svg_.text(kEdge, top + 11, words, "font-size='11'");
      widest_ = std::max(widest_, kEdge + text_width(words, kLabelFont) + kEdge);
      top += kLine;
    }
    return top;
  }

  /// What widths and colours mean.
  /// @return where it ends
  double legend(double top) {
    double x = kEdge;
    const auto sample = [&](double width, std::string_view colour, const std::string& words) {
      svg_.line(x, top + 7, x + 28, top + 7, line_style(width, colour));
      svg_.text(x + 34, top + 11, words, "class='muted' font-size='11'");
      x += 34 + text_width(words, kLabelFont) + 16;
    };
    const auto title = [&](std::string_view words) {
      svg_.text(x, top + 11, words, "class='muted' font-size='11'");
      x += text_width(words, kLabelFont) + 8;
    };
    title("width:");
    for (const double rate : kSampleRates) sample(line_width(rate), "", fmt::format("{} GB/s", rate));
    if (length_ > 0) {
      widest_ = std::max(widest_, x + kEdge);
      x = kEdge;
      top += kLine;
      title("used by the batch:");
      sample(4, "", "less");
      for (auto step = kHeat.rbegin(); step != kHeat.rend(); ++step)
        sample(4, step->second, fmt::format("{:.0f} % and more", 100 * step->first));
    }
    widest_ = std::max(widest_, x + kEdge);
    return top + kLine;
  }

  const Topology& machine_;
  std::vector<double> use_;  // [links] share of the capacity
  double length_ = 0;        // of the batch, ns; 0: there is none
  std::vector<std::vector<VertexId>> columns_;
  std::size_t rows_ = 1;
  std::vector<Place> places_;  // [vertices]
  std::vector<Pair> pairs_;
  std::vector<std::string> labels_;  // [pairs]
  double gap_ = kLeastGap;           // between columns
  double widest_ = 0;                // right end of the texts
  Svg svg_;
};

}  // namespace

std::string topology_svg(const Topology& machine, const std::optional<Batch>& batch) {
  return TopologyPicture(machine, batch).file();
}

}  // namespace tutti::internal
