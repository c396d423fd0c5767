#include "model/machine/port_set.hpp"

namespace tutti::internal {

void PortSet::insert_high(PortId port) {
  const std::size_t place = port.index() / kBits - 1;
  if (place >= high_.size()) high_.resize(place + 1);
  high_[place] |= std::uint64_t{1} << port.index() % kBits;
}

void PortSet::erase_high(PortId port) {
  const std::size_t place = port.index() / kBits - 1;
  if (place >= high_.size()) return;
  high_[place] &= ~(std::uint64_t{1} << port.index() % kBits);
  trim();
}

void PortSet::trim() {
  while (!high_.empty() && high_.back() == 0) high_.pop_back();
}

PortSet PortSet::before(PortId port) const {
  PortSet ports = *this;
  const std::size_t place = port.index() / kBits;
  if (place > high_.size()) return ports;
  (place == 0 ? ports.low_ : ports.high_[place - 1]) &= (std::uint64_t{1} << port.index() % kBits) - 1;
  ports.high_.resize(place);
  ports.trim();
  return ports;
}

PortSet& PortSet::operator|=(const PortSet& other) {
  low_ |= other.low_;
  if (other.high_.size() > high_.size()) high_.resize(other.high_.size());
  for (std::size_t i = 0; i < other.high_.size(); ++i) high_[i] |= other.high_[i];
  return *this;
}

PortSet& PortSet::operator&=(const PortSet& other) {
  low_ &= other.low_;
  high_.resize(std::min(high_.size(), other.high_.size()));
  for (std::size_t i = 0; i < high_.size(); ++i) high_[i] &= other.high_[i];
  trim();
  return *this;
}

PortSet operator-(PortSet a, const PortSet& b) {
  a.low_ &= ~b.low_;
  for (std::size_t i = 0; i < std::min(a.high_.size(), b.high_.size()); ++i) a.high_[i] &= ~b.high_[i];
  a.trim();
  return a;
}

std::size_t differing_pairs(const PortSet& a, const PortSet& b) {
  constexpr std::uint64_t kFirst = 0x5555'5555'5555'5555U;  // of each pair
  std::size_t pairs = 0;
  for (std::size_t i = 0; i <= std::max(a.high_.size(), b.high_.size()); ++i) {
    const std::uint64_t differs = a.word(i) ^ b.word(i);
    pairs += PortSet::count((differs | differs >> 1) & kFirst);
  }
  return pairs;
}

std::strong_ordering operator<=>(const PortSet& a, const PortSet& b) {
  if (a.high_.size() != b.high_.size()) return a.high_.size() <=> b.high_.size();
  for (std::size_t i = a.high_.size(); i > 0; --i)
    if (a.high_[i - 1] != b.high_[i - 1]) return a.high_[i - 1] <=> b.high_[i - 1];
  return a.low_ <=> b.low_;
}

std::uint64_t PortSet::hash_high() const {
  std::uint64_t hash = low_ * kGolden;
  for (const std::uint64_t word : high_) hash = ((hash ^ hash >> 32) + word) * kGolden;
  return hash;
}

std::vector<PortId> list_of(const PortSet& ports) {
  std::vector<PortId> list;
  list.reserve(ports.size());
  for (const PortId port : ports) list.push_back(port);
  return list;
}

}  // namespace tutti::internal
