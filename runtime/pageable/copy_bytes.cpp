#include "runtime/pageable/copy_bytes.hpp"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tutti::internal {
namespace {

void copy_cached(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#if defined(__x86_64__)
constexpr std::size_t kLine = 64;
constexpr std::size_t kBlock = 4 * kLine;
constexpr std::size_t kAhead = 16 * kLine;  // of the loads, that prefetches go

/// @pre `to` begins a line
/// @return bytes that are copied: whole blocks
__attribute__((target("avx2"))) std::size_t stream_blocks(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kWord = sizeof(__m256i);
  std::size_t at = 0;
  for (; at + kBlock <= bytes; at += kBlock) {
    for (std::size_t line = 0; line < kBlock; line += kLine)
      _mm_prefetch(reinterpret_cast<const char*>(from + at + kAhead + line), _MM_HINT_NTA);
    __m256i words[kBlock / kWord];
    for (std::size_t i = 0; i < kBlock / kWord; ++i)
      words[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + i * kWord));
    for (std::size_t i = 0; i < kBlock / kWord; ++i)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + at + i * kWord), words[i]);
  }
  _mm_sfence();
  return at;
}

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t into_line = reinterpret_cast<std::uintptr_t>(to) % kLine;
  const std::size_t head = into_line == 0 ? 0 : kLine - into_line;
  if (bytes < head + kBlock || !__builtin_cpu_supports("avx2")) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  const std::size_t streamed = head + stream_blocks(to + head, from + head, bytes - head);
  std::memcpy(to + streamed, from + streamed, bytes - streamed);
}

__attribute__((target("cldemote"))) void demote_lines(std::byte* data, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kLine) _cldemote(data + at);
}
#endif

}  // namespace

CopyRoutine routine_of(CopyBytes how) {
#if defined(__x86_64__)
  if (how == CopyBytes::Streaming) return stream_bytes;
#endif
  static_cast<void>(how);
  return copy_cached;
}

void push_out([[maybe_unused]] std::byte* data, [[maybe_unused]] std::size_t bytes) {
#if defined(__x86_64__)
  demote_lines(data, bytes);  // processors without the instruction take it for one that does nothing
#endif
}

}  // namespace tutti::internal
