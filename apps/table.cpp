#include "apps/table.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/terminal.hpp"

namespace tutti::programs {

std::string Table::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool left = std::find(left_.begin(), left_.end(), c) != left_.end();
      line += c == 0 ? "" : "  ";
      line += left ? fmt::format("{:<{}}", row[c], widths[c]) : fmt::format("{:>{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += (&row == &rows_.front() ? bold(line) : line) + '\n';
  }
  return text;
}

}  // namespace tutti::programs
