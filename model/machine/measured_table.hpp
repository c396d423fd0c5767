#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/ids.hpp"
#include "model/machine/port_set.hpp"
#include "model/machine/rate.hpp"
#include "model/machine/rate_source.hpp"

namespace tutti::internal {

/// Direction of a transfer between host memory and a GPU.
enum class Direction : std::uint8_t { HostToDevice, DeviceToHost };

/// "h2d", "d2h".
[[nodiscard]] constexpr const char* to_string(Direction direction) {
  return direction == Direction::HostToDevice ? "h2d" : "d2h";
}

/// The copy port between the first memory and one GPU, in one direction: the first numbers of every machine's ports
/// (`machine/ports.hpp`).
struct CopyPort {
  std::uint32_t gpu = 0;  ///< position among the machine's GPUs
  Direction direction = Direction::HostToDevice;

  [[nodiscard]] PortId id() const { return PortId(2 * std::size_t{gpu} + static_cast<std::size_t>(direction)); }
  [[nodiscard]] static CopyPort at(PortId port) { return {port.value / 2, Direction{port.value % 2 == 1}}; }
  friend auto operator<=>(const CopyPort&, const CopyPort&) = default;
};

/// Number of sets of the first memory's ports with `gpus` GPUs, the empty set included.
/// @pre few GPUs
[[nodiscard]] constexpr std::uint64_t port_sets(std::size_t gpus) { return std::uint64_t{1} << (2 * gpus); }

/// Ports of the first memory and one GPU in a set: bit 0 h2d, bit 1 d2h.
[[nodiscard]] inline std::uint32_t state_of(const PortSet& ports, std::uint32_t gpu) {
  return (ports.contains(CopyPort{gpu, Direction::HostToDevice}.id()) ? 1U : 0U) |
         (ports.contains(CopyPort{gpu, Direction::DeviceToHost}.id()) ? 2U : 0U);
}
/// Gives a GPU this state in a set.
void set_state(PortSet& ports, std::uint32_t gpu, std::uint32_t state);

/// The representative of the combinations of the first memory's ports that differ by exchanges of GPUs of one group: in
/// each group, the busiest GPUs come first.
[[nodiscard]] PortSet canonical(PortSet ports, std::span<const std::vector<std::uint32_t>> symmetric);

/// Ports whose copies are active together and the steady rate of each.
struct PortRates {
  PortSet ports;
  std::vector<double> rates;  ///< GB/s, [ports] rising
  RateSource source = RateSource::Table;

  friend bool operator==(const PortRates&, const PortRates&) = default;
};

/// The rates of combinations of copies, as they were measured or interpolated.
///
/// *symmetric* GPUs may change places: a combination of the first memory's ports stands for all that come from it by
/// such changes. A combination with other ports stands for itself. All combinations are kept, and found by hashing. An
/// immutable value.
class MeasuredTable {
 public:
  /// Combinations that a table can hold, those by exchange of symmetric GPUs included: guarantees are checked against
  /// each. All combinations of 9 GPUs.
  static constexpr std::size_t kMostCombinations = std::size_t{1} << 18;
  static constexpr std::uint32_t kNoRow = 0;

  /// A combination and the row that has its rates.
  struct Known {
    PortSet ports;
    std::uint32_t row = kNoRow;
  };

  /// @param symmetric  groups of GPUs that may change places; a GPU in no group is symmetric to no other.
  /// @param entries  combinations; no two of them the same up to such changes.
  /// @errors InvalidInput at `table[row]` or `symmetric`: a GPU beyond them or in two groups, an empty combination, a
  ///         combination twice, a rate that is not above 0 and finite, symmetric GPUs that do the same at different
  ///         rates, more than kMostCombinations.
  [[nodiscard]] static Expected<MeasuredTable> make(std::size_t gpus, std::vector<std::vector<std::uint32_t>> symmetric,
                                                    std::vector<PortRates> entries);

  /// The row of a combination; kNoRow where there is none.
  [[nodiscard]] std::uint32_t row(const PortSet& ports) const {
    const std::uint64_t hash = ports.hash();
    for (std::size_t i = hash >> shift_;; i = (i + 1) & slot_mask_) {
      const Slot& slot = slots_[i];
      if (slot.row == kNoRow || (slot.hash == hash && is_in(slot, ports))) return slot.row;
    }
  }
  [[nodiscard]] RateSource source(std::uint32_t row) const { return places_[row].source; }
  /// The rates of a row's combination. They refer to it and to the table.
  class RowRates {
   public:
    /// The rate at one of its ports.
    [[nodiscard]] const Rate& at(PortId port) const {
      if (first_ == nullptr) return begin_[ports_->rank(port)];
      return begin_[first_[port.index()] + (ports_->contains(PortId(port.index() ^ 1U)) ? 2U : 0U)];
    }

   private:
    friend class MeasuredTable;
    RowRates(const Rate* begin, const std::uint32_t* first, const PortSet& ports)
        : begin_(begin), first_(first), ports_(&ports) {}
    const Rate* begin_;
    const std::uint32_t* first_;  // [ports of the first memory] of a row by role
    const PortSet* ports_;
  };
  [[nodiscard]] RowRates rates(std::uint32_t row, const PortSet& ports) const {
    const Place& place = places_[row];
    return {rates_.data() + place.begin, place.by_role ? first_.data() : nullptr, ports};
  }
  [[nodiscard]] const Rate& rate(std::uint32_t row, const PortSet& ports, PortId port) const {
    return rates(row, ports).at(port);
  }
  /// The rate at a port with nothing else active; 0 where there is no row.
  [[nodiscard]] double alone(PortId port) const { return port.index() < alone_.size() ? alone_[port.index()] : 0; }
  /// Whether every combination of the first memory's ports has a row.
  [[nodiscard]] bool complete() const { return complete_; }
  /// Whether the port can be in a combination: all of the first memory, and those of the rows.
  [[nodiscard]] bool covers(PortId port) const { return is_first(port) || named_.contains(port); }
  /// Whether the port is of the first memory.
  [[nodiscard]] bool is_first(PortId port) const { return port.index() < first_.size(); }
  /// The ports of a set that are of the first memory.
  [[nodiscard]] PortSet first_of(const PortSet& ports) const { return ports.before(PortId(first_.size())); }

  [[nodiscard]] std::span<const std::vector<std::uint32_t>> symmetric() const { return symmetric_; }
  [[nodiscard]] std::span<const PortRates> entries() const { return entries_; }
  /// All combinations that have a row, rising.
  [[nodiscard]] std::span<const Known> combinations() const { return combinations_; }
  /// All ports of the combinations.
  [[nodiscard]] const PortSet& named() const { return named_; }

  friend bool operator==(const MeasuredTable& a, const MeasuredTable& b) {
    return a.symmetric_ == b.symmetric_ && a.entries_ == b.entries_;
  }

 private:
  /// Where the rates of a row stand, and where they come from.
  struct Place {
    std::size_t begin = 0;
    bool by_role = false;  // [groups][h2d and d2h alone, h2d and d2h where both are active]; otherwise by port
    RateSource source = RateSource::Table;
  };
  /// A combination, hashed.
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t row = kNoRow;
    std::uint32_t large = kNone;  // its position among all combinations; of a small one, whose hash says all, none
  };
  [[nodiscard]] bool is_in(const Slot& slot, const PortSet& ports) const {
    if (ports.is_small()) return slot.large == kNone;
    return slot.large != kNone && combinations_[slot.large].ports == ports;
  }

  [[nodiscard]] std::optional<Error> group_gpus(std::size_t gpus);
  [[nodiscard]] std::optional<Error> add_row(std::uint32_t row);
  [[nodiscard]] std::optional<Error> add_combinations(PortSet ports, std::uint32_t row, std::size_t group);
  void make_slots();

  std::vector<std::vector<std::uint32_t>> symmetric_;
  std::vector<PortRates> entries_;
  std::vector<std::uint32_t> first_;  // [ports of the first memory] where a port's rate stands in a row by role
  std::size_t row_size_ = 0;          // of a row by role
  std::vector<Place> places_;         // [1 + entries]
  std::vector<Rate> rates_;
  PortSet named_;
  std::vector<double> alone_;  // [ports up to the last of `named_`]
  std::vector<Known> combinations_;
  std::vector<Slot> slots_;  // at most half of them in use
  std::size_t slot_mask_ = 0;
  int shift_ = 0;  // from a hash to a slot
  bool complete_ = false;
};

}  // namespace tutti::internal
