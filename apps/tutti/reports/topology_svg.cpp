#include "apps/tutti/reports/topology_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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
constexpr std::array kHeat{std::pair(0.9, std::string_view("#D55E00")), std::pair(0.6, std::string_view("#E69F00")),
                           std::pair(0.3, std::string_view("#56B4E9"))};  // from that share on; [OI08]

/// Two vertices with a link at least in one direction.
struct Pair {
  VertexId left, right;
  std::optional<LinkId> there, back;  ///< left to right, right to left
};

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
      if (!is_beside(pairs_[p])) gap_ = std::max(gap_, text_width(labels_[p], kLabelFont) + 40);
  }

  std::string file() {
    const double right = kEdge + (kBoxWidth + gap_) * static_cast<double>(columns_.size() - 1) + kBoxWidth;
    svg_.text(kEdge, kEdge + 14, machine_.name(), "font-size='15' font-weight='bold'");
    svg_.text(kEdge, kEdge + 32, title(), "class='muted' font-size='11'");
    for (std::size_t p = 0; p < pairs_.size(); ++p) draw_line(pairs_[p]);
    for (std::size_t p = 0; p < pairs_.size(); ++p) draw_label(p);
    for (std::size_t v = 0; v < machine_.vertices().size(); ++v) draw_vertex(VertexId(v));
    const double bottom = list_shared(kEdge + kTitle + kRow * static_cast<double>(rows_) + 6);
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
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const double above = static_cast<double>(rows_ - columns_[c].size()) / 2;
      for (std::size_t r = 0; r < columns_[c].size(); ++r)
        places_[columns_[c][r].index()] = {static_cast<double>(c), above + static_cast<double>(r)};
    }
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
    const std::string_view all = "effective bandwidths, GB/s: to the right / to the left";
    if (length_ == 0) return std::string(all);
    return fmt::format("{}; in colour and percent: what a batch of {:.3f} ms uses on average", all, length_ / 1e6);
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
    // 1 GB/s and 1000 GB/s lie in one picture, so the width goes with the logarithm.
    const double most = std::max(rate(pair.there), rate(pair.back));
    const double width = std::clamp(2 * std::log10(1 + most), kThinnest, kWidest);
    const double use = use_of(pair);
    const auto heat = std::ranges::find_if(kHeat, [&](const auto& step) { return use >= step.first; });
    const std::string colour = heat == kHeat.end() ? "class='axis'" : fmt::format("stroke='{}'", heat->second);
    const std::string style = fmt::format("{} fill='none' stroke-width='{:.1f}' stroke-opacity='0.75'", colour, width);
    const double middle = kBoxHeight / 2;
    if (is_beside(pair)) {
      const double x = from.x + kBoxWidth, bend = 26 + 10 * (to.y - from.y) / kRow;
      svg_.path(fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x, from.y + middle, x + bend,
                            from.y + middle, x + bend, to.y + middle, x, to.y + middle),
                style);
    } else {
      svg_.line(from.x + kBoxWidth, from.y + middle, to.x, to.y + middle, style);
    }
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

  void draw_label(std::size_t at) {
    const Pair& pair = pairs_[at];
    const Point from = corner(pair.left), to = corner(pair.right);
    const std::string& words = labels_[at];
    const double width = text_width(words, kLabelFont) + 8;
    // Lines to many vertices lie furthest apart at these; a line over several columns is labelled near its end.
    constexpr double kNear = 0.62;
    const bool beside = is_beside(pair), fans_out = degree(pair.left) >= degree(pair.right);
    const double share = fans_out ? kNear : 1 - kNear;
    const double left = from.x + kBoxWidth;
    const double x =
        beside ? left + 34 : std::clamp(left + (to.x - left) * share, left + width / 2 + 2, to.x - width / 2 - 2);
    const double y = beside ? (from.y + to.y) / 2 + kBoxHeight / 2 + 4
                            : from.y + (to.y - from.y) * (x - left) / (to.x - left) + kBoxHeight / 2 + 4;
    svg_.rect(beside ? x - 4 : x - width / 2, y - 12, width, 16, "class='page' fill-opacity='0.85'", tooltip(pair));
    svg_.text(x, y, words, beside ? "font-size='11'" : "font-size='11' text-anchor='middle'");
    widest_ = std::max(widest_, (beside ? x + width : x + width / 2) + kEdge);
  }

  [[nodiscard]] std::size_t degree(VertexId vertex) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(pairs_, [&](const Pair& pair) { return pair.left == vertex || pair.right == vertex; }));
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
