#pragma once
#include <string>

#include "apps/lab/measuring/memory_load.hpp"

namespace tutti::internal {

/// As a table, with a sentence before it.
[[nodiscard]] std::string memory_load_text(const MemoryLoadEffect& effect, const Topology& machine);

}  // namespace tutti::internal
