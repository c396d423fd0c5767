// Which blocks of instructions an input has reached, for libFuzzer; only fuzzers have it. GCC calls a function in each
// block of what is compiled with -fsanitize-coverage=trace-pc; libFuzzer reads clang's tables, and these counters.
#include <cstddef>
#include <cstdint>

extern "C" {
extern const char __executable_start;  // of the linker
// The calls go here (-Wl,--wrap), not to no_coverage.cpp.
void __wrap___sanitizer_cov_trace_pc();
}

namespace {

constexpr unsigned kBits = 17;  // of some 100,000 blocks few share a counter

// The section's name makes libFuzzer look at it.
__attribute__((section("__libfuzzer_extra_counters"))) std::uint8_t counters[std::size_t{1} << kBits];

}  // namespace

void __wrap___sanitizer_cov_trace_pc() {
  // Fibonacci hashing of the block's offset, which is the same in each run.
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const char*>(__builtin_return_address(0)) - &__executable_start);
  std::uint8_t& counter = counters[(offset * 0x9e3779b97f4a7c15U) >> (64 - kBits)];
  if (counter < 255) ++counter;
}
