#include "model/error.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "model/expects.hpp"

namespace tutti {

std::string Error::text() const {
  if (place.line > 0) return fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, message);
  return place.file.empty() ? message : fmt::format("{}: {}", place.file, message);
}

}  // namespace tutti

namespace tutti::internal {

void detail::broken_precondition(const char* condition, const char* sentence, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken precondition (%s): %s\n", file, line, condition, sentence);
  std::abort();
}

}  // namespace tutti::internal
