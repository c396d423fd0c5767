#pragma once
#include <cstdint>

namespace tutti::internal::test {

/// How often this program has asked the heap for memory: `allocations.cpp` replaces `operator new`, so only programs
/// of their own link it.
[[nodiscard]] std::uint64_t allocations();

}  // namespace tutti::internal::test
