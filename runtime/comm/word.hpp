#pragma once
#include <atomic>
#include <cstdint>

namespace tutti::internal::comm {

/// A word of memory that one side sets and others wait for: hosts, streams and kernels, of one process or several.
/// Words count, and waiters compare with wrap-around.
using Word = std::uint32_t;

/// Whether a waiter for `wanted` goes on at `value`: at most 2^31 - 1 steps behind it, as cuStreamWaitValue32 does.
[[nodiscard]] constexpr bool reached(Word value, Word wanted) { return static_cast<std::int32_t>(value - wanted) >= 0; }

/// Sets a word, as a release: whoever sees the value sees what this thread wrote before.
inline void set_word(Word& word, Word value) { std::atomic_ref(word).store(value, std::memory_order_release); }

/// Looks at a word, as an acquire.
[[nodiscard]] inline Word look_at(const Word& word) {
  // std::atomic_ref of a constant comes with C++26; a load does not write.
  return std::atomic_ref(const_cast<Word&>(word)).load(std::memory_order_acquire);
}

/// Added to a word, it lets all go that wait for the word: half of what a comparison spans.
inline constexpr Word kFarAhead = Word{1} << 30;

/// A word and a value: to set it to, or to wait for.
struct WordValue {
  Word* word = nullptr;
  Word value = 0;
};

}  // namespace tutti::internal::comm
