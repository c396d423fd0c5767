#pragma once
#include <charconv>
#include <cstdint>
#include <string>

namespace tutti {

/// For options that are a seed: what is wrong with a text that is no whole number of 64 bits; empty where it is one.
inline std::string check_seed(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seed);
  return status == std::errc{} && end == text.data() + text.size() ? "" : "give a whole number from 0 to 2^64 - 1";
}

}  // namespace tutti
