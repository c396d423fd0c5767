#pragma once
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include <tutti/error.hpp>

namespace tutti::bench {

/// The value; where there is none, the program says why and ends.
template <class T>
T value_of(Expected<T> value) {
  if constexpr (std::is_void_v<T>) {
    if (value) return;
  } else {
    if (value) return *std::move(value);
  }
  std::fprintf(stderr, "%s\n", value.error().text().c_str());
  std::exit(value.error().code == ErrorCode::InvalidInput ? 2 : 3);
}

}  // namespace tutti::bench
