#include "apps/table.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/terminal.hpp"

namespace tutti::programs {
namespace {

constexpr std::string_view kGap = "  ";  // between columns

}  // namespace

void Table::add_column(std::string header, std::vector<std::string> cells) {
  align_left(rows_.front().size());
  rows_.front().push_back(std::move(header));
  for (std::size_t i = 0; i < cells.size(); ++i) rows_[i + 1].push_back(std::move(cells[i]));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  return widths;
}

std::size_t Table::width() const {
  const std::vector<std::size_t> each = widths();
  return std::accumulate(each.begin(), each.end(), kGap.size() * (each.size() - 1));
}

std::string Table::text() const {
  const std::vector<std::size_t> widths = this->widths();
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool left = std::find(left_.begin(), left_.end(), c) != left_.end();
      line += c == 0 ? "" : kGap;
      line += left ? fmt::format("{:<{}}", row[c], widths[c]) : fmt::format("{:>{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (&row == &rows_.front() ? bold(line) : line) + '\n';
  }
  return text;
}

}  // namespace tutti::programs
