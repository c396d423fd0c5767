#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tutti::internal {

/// Which way a copy goes.
enum class CopyDirection : std::uint8_t {
  Up,    ///< host to device
  Down,  ///< device to host
};
inline constexpr std::array kCopyDirections{CopyDirection::Up, CopyDirection::Down};

/// "up", "down".
[[nodiscard]] constexpr std::string_view to_string(CopyDirection direction) {
  return direction == CopyDirection::Up ? "up" : "down";
}

/// The engine's part of copies through pinned buffers, for one device. To move pieces by something else, write these
/// functions and give them to a `Copier`.
///
/// Called by the thread that copies, for one copy at a time.
class Dma {
 public:
  enum class State : std::uint8_t { UnderWay, Ended, Failed };

  virtual ~Dma() = default;
  /// Enqueues the move of a piece between a buffer and the device, behind those enqueued before. Does not wait for it.
  /// @param buffer  number of the buffer, which holds one piece at a time
  /// @param offset  of the piece in the device's memory
  /// @return false: the device refuses it
  [[nodiscard]] virtual bool start(std::uint32_t buffer, std::byte* data, std::size_t offset, std::size_t bytes) = 0;
  /// Of the last move that was enqueued for a buffer.
  [[nodiscard]] virtual State state(std::uint32_t buffer) = 0;
};

}  // namespace tutti::internal
