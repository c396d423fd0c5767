#include "model/base/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace tutti {

namespace {

std::string line_of(const Error& error) {
  if (error.place.line > 0)
    return fmt::format("{}:{}:{}: {}", error.place.file, error.place.line, error.place.column, error.message);
  if (!error.place.file.empty()) return fmt::format("{}: {}", error.place.file, error.message);
  return error.field.empty() ? error.message : fmt::format("{}: {}", error.field, error.message);
}

}  // namespace

std::string Error::text() const {
  constexpr std::size_t kMostLines = 20;
  std::string lines = line_of(*this);
  for (std::size_t i = 0; i < std::min(more.size(), kMostLines - 1); ++i) lines += "\n" + more[i].text();
  if (more.size() >= kMostLines) lines += fmt::format("\nand {} more", more.size() - (kMostLines - 1));
  return lines;
}

}  // namespace tutti
