#pragma once
#include <algorithm>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "model/base/ids.hpp"

namespace tutti::internal {

/// A set of copy ports, of any number. Sets are ordered as binary numbers are, with bit n for port n.
///
/// The first 64 ports take no memory of their own: all ports of one memory and 32 GPUs.
class PortSet {
 public:
  PortSet() = default;
  explicit PortSet(PortId port) { insert(port); }
  /// Port n for each bit n that is set.
  [[nodiscard]] static PortSet of_bits(std::uint64_t bits) {
    PortSet ports;
    ports.low_ = bits;
    return ports;
  }

  [[nodiscard]] bool empty() const { return low_ == 0 && high_.empty(); }
  [[nodiscard]] std::size_t size() const { return count(low_) + count_high(high_.size()); }
  [[nodiscard]] bool contains(PortId port) const {
    if (port.index() < kBits) return (low_ >> port.index() & 1U) != 0;
    return (word(port.index() / kBits) >> port.index() % kBits & 1U) != 0;
  }
  /// Number of ports of the set before this one: its place in lists that have a value for each.
  [[nodiscard]] std::size_t rank(PortId port) const {
    const std::uint64_t before = word(port.index() / kBits) & ((std::uint64_t{1} << port.index() % kBits) - 1);
    if (port.index() < kBits) return count(before);
    return count(low_) + count_high(port.index() / kBits - 1) + count(before);
  }
  /// The highest port. @pre not empty
  [[nodiscard]] PortId last() const {
    const std::uint64_t top = high_.empty() ? low_ : high_.back();
    return PortId(kBits * high_.size() + static_cast<std::size_t>(std::bit_width(top)) - 1);
  }

  void insert(PortId port) {
    if (port.index() >= kBits) return insert_high(port);
    low_ |= std::uint64_t{1} << port.index();
  }
  void erase(PortId port) {
    if (port.index() >= kBits) return erase_high(port);
    low_ &= ~(std::uint64_t{1} << port.index());
  }
  /// Empties the set and keeps its memory.
  void clear() {
    low_ = 0;
    high_.clear();
  }
  /// The ports of the set that come before this one.
  [[nodiscard]] PortSet before(PortId port) const;

  [[nodiscard]] bool includes(const PortSet& other) const { return (other - *this).empty(); }
  PortSet& operator|=(const PortSet& other);
  friend PortSet operator|(PortSet a, const PortSet& b) { return a |= b; }
  PortSet& operator&=(const PortSet& other);
  friend PortSet operator&(PortSet a, const PortSet& b) { return a &= b; }
  /// The ports of the first set that the second lacks.
  friend PortSet operator-(PortSet a, const PortSet& b);
  /// Number of pairs of ports 2n and 2n + 1 in which the sets differ.
  friend std::size_t differing_pairs(const PortSet& a, const PortSet& b);

  friend bool operator==(const PortSet& a, const PortSet& b) {
    return a.low_ == b.low_ && ((a.high_.empty() && b.high_.empty()) || a.high_ == b.high_);
  }
  friend std::strong_ordering operator<=>(const PortSet& a, const PortSet& b);
  /// Whether all ports are among the first 64.
  [[nodiscard]] bool is_small() const { return high_.empty(); }
  /// A number that equal sets have in common; its upper bits are the most different. No two small sets have the same.
  [[nodiscard]] std::uint64_t hash() const { return high_.empty() ? low_ * kGolden : hash_high(); }

  /// Goes over the ports in rising order.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = PortId;
    using difference_type = std::ptrdiff_t;
    using pointer = const PortId*;
    using reference = PortId;

    Iterator(const PortSet& ports, std::size_t place) : ports_(&ports), place_(place), left_(ports.word(place)) {
      find();
    }
    PortId operator*() const { return PortId(kBits * place_ + static_cast<std::size_t>(std::countr_zero(left_))); }
    Iterator& operator++() {
      left_ &= left_ - 1;
      find();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.place_ == b.place_ && a.left_ == b.left_; }

   private:
    void find() {
      while (left_ == 0 && place_ <= ports_->high_.size()) left_ = ports_->word(++place_);
    }
    const PortSet* ports_;
    std::size_t place_;
    std::uint64_t left_;  // of the word at `place_`
  };
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, high_.size() + 1}; }

 private:
  static constexpr std::size_t kBits = 64;
  static constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15U;  // 2^64 / golden ratio

  void insert_high(PortId port);
  void erase_high(PortId port);
  [[nodiscard]] std::uint64_t hash_high() const;
  [[nodiscard]] static std::size_t count(std::uint64_t bits) { return static_cast<std::size_t>(std::popcount(bits)); }
  [[nodiscard]] std::size_t count_high(std::size_t words) const {
    std::size_t ports = 0;
    for (std::size_t i = 0; i < std::min(words, high_.size()); ++i) ports += count(high_[i]);
    return ports;
  }
  [[nodiscard]] std::uint64_t word(std::size_t place) const {
    if (place == 0) return low_;
    return place <= high_.size() ? high_[place - 1] : 0;
  }
  void trim();

  std::uint64_t low_ = 0;            // ports 0 to 63
  std::vector<std::uint64_t> high_;  // the ports behind them; the last word is not 0
};

/// The ports of a set, rising.
[[nodiscard]] std::vector<PortId> list_of(const PortSet& ports);

}  // namespace tutti::internal
