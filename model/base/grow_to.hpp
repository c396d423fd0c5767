#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace tutti::internal {

/// Makes a vector that is kept between uses at least so long; it never shrinks.
///
/// Whoever uses it counts what is written: one check for many elements, where `push_back` would cost more than the
/// element.
template <class T>
inline void grow_to(std::vector<T>& elements, std::size_t count) {
  if (elements.size() < count) [[unlikely]]
    elements.resize(std::max(count, 2 * elements.size()));
}

}  // namespace tutti::internal
