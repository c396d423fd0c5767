#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace tutti::programs {

/// Rows of text under a header, printed in columns: the first is aligned left, the others right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}

  /// @pre as many cells as the header has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Aligns a column left; use it for text, since columns of numbers are aligned right.
  void align_left(std::size_t column) { left_.push_back(column); }
  /// One more column, aligned left. @param cells  [rows]
  void add_column(std::string header, std::vector<std::string> cells);
  /// Columns of the longest line, if no cell is colored.
  [[nodiscard]] std::size_t width() const;
  [[nodiscard]] std::string text() const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;

  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> left_{0};
};

}  // namespace tutti::programs
