#pragma once
#include <charconv>
#include <cstdint>
#include <string>

namespace tutti::programs {

/// Check of a seed option: the error for a text that is no unsigned 64-bit number; empty for a valid one.
inline std::string check_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return status == std::errc{} && end == text.data() + text.size() ? "" : "give a whole number from 0 to 2^64 - 1";
}

}  // namespace tutti::programs
