#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

namespace tutti::internal {

/// The `main` of an attack on bounds: reads how often it is tried, and a seed. Words of benchmarks are passed over.
/// @param program  its name
/// @param option   of the number: "--sets"
/// @param count    where the option is not given
/// @param run      the attack
/// @return the exit code: what `run` returns; 2 where the words are not understood
inline int attack(int argc, char** argv, std::string_view program, std::string_view option, long count,
                  int (*run)(long count, std::uint64_t seed)) {
  std::uint64_t seed = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == option && has_value) {
      count = std::atol(argv[i + 1]);
    } else if (word == "--seed" && has_value) {
      seed = std::strtoull(argv[i + 1], nullptr, 10);
    } else if (word.starts_with("--benchmark_")) {
      --i;  // one word, of other benchmarks
    } else {
      fmt::print("usage: {} [{} N] [--seed S]\n", program, option);
      return word == "--help" || word == "-h" ? 0 : 2;
    }
  }
  return run(count, seed);
}

}  // namespace tutti::internal
