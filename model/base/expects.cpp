#include "model/base/expects.hpp"

#include <cstdio>
#include <cstdlib>

namespace tutti::internal {

void detail::broken_precondition(const char* condition, const char* sentence, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken precondition (%s): %s\n", file, line, condition, sentence);
  std::abort();
}

}  // namespace tutti::internal
