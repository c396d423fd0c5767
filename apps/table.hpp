#pragma once
#include <string>
#include <vector>

namespace tutti {

/// Rows of text under a header, printed in columns: the first to the left, the others to the right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}

  /// @pre as many cells as the header has.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Columns of text go to the left, such of numbers to the right.
  void align_left(std::size_t column) { left_.push_back(column); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> left_{0};
};

}  // namespace tutti
