#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/ids.hpp"
#include "model/machine/rate.hpp"
#include "model/machine/rate_source.hpp"

namespace tutti::internal {

/// Direction of a transfer between host memory and a GPU.
enum class Direction : std::uint8_t { HostToDevice, DeviceToHost };

/// "h2d", "d2h".
[[nodiscard]] constexpr const char* to_string(Direction direction) {
  return direction == Direction::HostToDevice ? "h2d" : "d2h";
}

/// The stream of one GPU and direction. There is one of each at a time, since each has one copy engine.
struct CopyPort {
  std::uint32_t gpu = 0;  ///< position among the machine's GPUs
  Direction direction = Direction::HostToDevice;

  [[nodiscard]] std::uint32_t position() const { return 2 * gpu + static_cast<std::uint32_t>(direction); }
  [[nodiscard]] static CopyPort at(std::uint32_t position) { return {position / 2, Direction{position % 2 == 1}}; }
  friend auto operator<=>(const CopyPort&, const CopyPort&) = default;
};

/// A set of streams that are active together: bit `position()` for each.
using PortSet = std::uint32_t;

/// The representative of the combinations that differ by exchanges of GPUs of one group: in each group, the busiest
/// GPUs come first.
[[nodiscard]] PortSet canonical(PortSet streams, std::span<const std::vector<std::uint32_t>> symmetric);

/// Streams active together and the steady rate of each.
struct PortRates {
  PortSet streams = 0;
  std::vector<double> rates;  ///< GB/s, in the order of the streams' positions
  RateSource source = RateSource::Table;

  friend bool operator==(const PortRates&, const PortRates&) = default;
};

/// Number of sets of the streams of `gpus` GPUs, the empty set included.
[[nodiscard]] constexpr std::size_t stream_sets(std::size_t gpus) { return std::size_t{1} << (2 * gpus); }

/// Streams of one GPU in a set: bit 0 h2d, bit 1 d2h.
[[nodiscard]] constexpr std::uint32_t state_of(PortSet streams, std::uint32_t gpu) { return streams >> (2 * gpu) & 3U; }

/// Number of streams of a set before a position: the index of its rate.
[[nodiscard]] constexpr std::size_t place_in(PortSet streams, std::uint32_t position) {
  return static_cast<std::size_t>(std::popcount(streams & ((PortSet{1} << position) - 1)));
}

/// The positions of a set's streams, rising.
[[nodiscard]] std::vector<std::uint32_t> positions_of(PortSet streams);

/// The rates of combinations of streams between one host memory and the GPUs, as they were measured or interpolated.
///
/// *symmetric* GPUs may change places: a combination stands for all that come from it by such changes. An
/// immutable value.
class MeasuredTable {
 public:
  /// The look-up has 4^GPUs places.
  static constexpr std::size_t kMostGpus = 8;
  /// Up to this many GPUs, every combination is checked when a table is made.
  static constexpr std::size_t kMostEnumerated = 4;
  static constexpr std::uint32_t kNoRow = 0;

  /// @param symmetric  groups of GPUs that may change places; a GPU in no group is symmetric to no other.
  /// @param entries  combinations; no two of them the same up to such changes.
  /// @errors InvalidInput at `table[row]` or `symmetric`: more than kMostGpus GPUs, a GPU beyond them or in two groups,
  /// an empty combination, a
  ///         combination twice, a rate that is not above 0 and finite, symmetric GPUs that do the same at different
  ///         rates.
  [[nodiscard]] static Expected<MeasuredTable> make(std::size_t gpus, std::vector<std::vector<std::uint32_t>> symmetric,
                                                    std::vector<PortRates> entries);

  /// The row of a combination; kNoRow where there is none.
  [[nodiscard]] std::uint32_t row(PortSet streams) const { return row_of_[streams]; }
  [[nodiscard]] RateSource source(std::uint32_t row) const { return entries_[row - 1].source; }
  /// The rate of one of the streams of a row's combination.
  [[nodiscard]] const Rate& rate(std::uint32_t row, PortSet streams, std::uint32_t stream) const {
    const std::uint32_t both = streams >> (stream & ~1U) & streams >> (stream | 1U) & 1U;
    return rates_[row * row_size_ + first_[stream] + 2 * both];
  }
  /// Whether every combination has a row.
  [[nodiscard]] bool complete() const { return complete_; }

  [[nodiscard]] std::span<const std::vector<std::uint32_t>> symmetric() const { return symmetric_; }
  [[nodiscard]] std::span<const PortRates> entries() const { return entries_; }

  friend bool operator==(const MeasuredTable& a, const MeasuredTable& b) {
    return a.symmetric_ == b.symmetric_ && a.entries_ == b.entries_;
  }

 private:
  [[nodiscard]] std::optional<Error> group_gpus(std::size_t gpus);
  [[nodiscard]] std::optional<Error> add_row(std::uint32_t row);

  std::vector<std::vector<std::uint32_t>> symmetric_;
  std::vector<PortRates> entries_;
  std::vector<std::uint32_t> row_of_;  // [4^gpus]
  std::vector<std::uint32_t> first_;   // [2 x gpus] where a stream's rate stands in a row
  std::size_t row_size_ = 0;
  std::vector<Rate> rates_;  // [1 + entries][groups][h2d and d2h alone, h2d and d2h where both are active]
  bool complete_ = false;
};

}  // namespace tutti::internal
