#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "model/base/units.hpp"

namespace tutti::internal {

/// Moves bytes from GPU to GPU through host memory, in chunks and two buffers, as copy engines do it: while one chunk
/// leaves the host, the next one enters it.
class StagedCopy {
 public:
  /// @param chunk  0: copies are not cut.
  explicit StagedCopy(Bytes chunk)
      : chunk_(chunk.count > 0 ? static_cast<std::size_t>(chunk.count) : kWhole), buffers_{{}, {}} {}

  /// Takes the memory that copies up to `size` need; `move` then allocates nothing.
  void reserve(Bytes size);

  /// Copies everything.
  /// @pre both have one size, for which memory was reserved.
  void move(std::span<const std::byte> source, std::span<std::byte> destination);

 private:
  static constexpr std::size_t kWhole = std::size_t{1} << 53;  // no copy is larger

  std::size_t chunk_;
  std::vector<std::byte> buffers_[2];
};

}  // namespace tutti::internal
