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
  [[nodiscard]] bool contains(PortId port) const { return (word(port.index() / kBits) >> port.index() % kBits & 1U) != 0; }
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
    const std::size_t place = port.index() / kBits;
    if (place > high_.size()) high_.resize(place);
    (place == 0 ? low_ : high_[place - 1]) |= std::uint64_t{1} << port.index() % kBits;
  }
  void erase(PortId port) {
    const std::size_t place = port.index() / kBits;
    if (place > high_.size()) return;
    (place == 0 ? low_ : high_[place - 1]) &= ~(std::uint64_t{1} << port.index() % kBits);
    trim();
  }
  /// Empties the set and keeps its memory.
  void clear() {
    low_ = 0;
    high_.clear();
  }
  /// The ports of the set that come before this one.
  [[nodiscard]] PortSet before(PortId port) const {
    PortSet ports = *this;
    const std::size_t place = port.index() / kBits;
    if (place > high_.size()) return ports;
    (place == 0 ? ports.low_ : ports.high_[place - 1]) &= (std::uint64_t{1} << port.index() % kBits) - 1;
    ports.high_.resize(place);
    ports.trim();
    return ports;
  }

  [[nodiscard]] bool includes(const PortSet& other) const { return (other - *this).empty(); }
  PortSet& operator|=(const PortSet& other) {
    low_ |= other.low_;
    if (other.high_.size() > high_.size()) high_.resize(other.high_.size());
    for (std::size_t i = 0; i < other.high_.size(); ++i) high_[i] |= other.high_[i];
    return *this;
  }
  friend PortSet operator|(PortSet a, const PortSet& b) { return a |= b; }
  PortSet& operator&=(const PortSet& other) {
    low_ &= other.low_;
    high_.resize(std::min(high_.size(), other.high_.size()));
    for (std::size_t i = 0; i < high_.size(); ++i) high_[i] &= other.high_[i];
    trim();
    return *this;
  }
  friend PortSet operator&(PortSet a, const PortSet& b) { return a &= b; }
  /// The ports of the first set that the second lacks.
  friend PortSet operator-(PortSet a, const PortSet& b) {
    a.low_ &= ~b.low_;
    for (std::size_t i = 0; i < std::min(a.high_.size(), b.high_.size()); ++i) a.high_[i] &= ~b.high_[i];
    a.trim();
    return a;
  }
  /// Number of pairs of ports 2n and 2n + 1 in which the sets differ.
  [[nodiscard]] friend std::size_t differing_pairs(const PortSet& a, const PortSet& b) {
    constexpr std::uint64_t kFirst = 0x5555'5555'5555'5555U;  // of each pair
    std::size_t pairs = 0;
    for (std::size_t i = 0; i <= std::max(a.high_.size(), b.high_.size()); ++i) {
      const std::uint64_t differs = a.word(i) ^ b.word(i);
      pairs += count((differs | differs >> 1) & kFirst);
    }
    return pairs;
  }

  friend bool operator==(const PortSet&, const PortSet&) = default;
  friend std::strong_ordering operator<=>(const PortSet& a, const PortSet& b) {
    if (a.high_.size() != b.high_.size()) return a.high_.size() <=> b.high_.size();
    for (std::size_t i = a.high_.size(); i > 0; --i)
      if (a.high_[i - 1] != b.high_[i - 1]) return a.high_[i - 1] <=> b.high_[i - 1];
    return a.low_ <=> b.low_;
  }
  /// A number that equal sets have in common; its upper bits are the most different.
  [[nodiscard]] std::uint64_t hash() const {
    constexpr std::uint64_t kGolden = 0x9e37'79b9'7f4a'7c15U;  // 2^64 / golden ratio
    std::uint64_t hash = low_ * kGolden;
    for (const std::uint64_t word : high_) hash = ((hash ^ hash >> 32) + word) * kGolden;
    return hash;
  }

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
  void trim() {
    while (!high_.empty() && high_.back() == 0) high_.pop_back();
  }

  std::uint64_t low_ = 0;            // ports 0 to 63
  std::vector<std::uint64_t> high_;  // the ports behind them; the last word is not 0
};

/// The ports of a set, rising.
[[nodiscard]] inline std::vector<PortId> list_of(const PortSet& ports) {
  std::vector<PortId> list;
  list.reserve(ports.size());
  for (const PortId port : ports) list.push_back(port);
  return list;
}

}  // namespace tutti::internal
