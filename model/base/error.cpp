#include "model/base/error.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "model/base/expects.hpp"

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
  std::string lines = line_of(*this);
  for (const Error& error : more) lines += "\n" + error.text();
  return lines;
}

}  // namespace tutti

namespace tutti::internal {

void detail::broken_precondition(const char* condition, const char* sentence, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken precondition (%s): %s\n", file, line, condition, sentence);
  std::abort();
}

}  // namespace tutti::internal
