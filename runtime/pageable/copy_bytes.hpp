#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti::internal {

/// How a thread of the host copies bytes.
enum class CopyBytes : std::uint8_t {
  Cached,     ///< by ordinary stores: what was written stays in the caches, where a copy engine reads it soonest
  Streaming,  ///< past the caches, without reading the destination first; as `Cached` on processors that cannot
};
inline constexpr std::array kCopyBytes{CopyBytes::Cached, CopyBytes::Streaming};

/// "cached", "streaming".
[[nodiscard]] constexpr std::string_view to_string(CopyBytes how) {
  return how == CopyBytes::Cached ? "cached" : "streaming";
}

/// Copies bytes. What it wrote is visible to other threads and to devices when it returns.
/// @pre the ranges do not overlap
using CopyRoutine = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);
[[nodiscard]] CopyRoutine routine_of(CopyBytes how);

/// Moves bytes that this core has written from its own caches to the one that all cores share, where an engine reads
/// them quicker. Does nothing on processors that cannot.
void push_out(std::byte* data, std::size_t bytes);

}  // namespace tutti::internal
