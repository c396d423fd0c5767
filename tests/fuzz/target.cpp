#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

void require(bool holds, const std::string& promise) {
  if (!holds) throw Broken{promise};
}

}  // namespace tutti::internal::fuzz
