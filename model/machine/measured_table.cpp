#include "model/machine/measured_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "model/base/faults.hpp"

namespace tutti::internal {
namespace {

Error invalid(std::string sentence) { return {ErrorCode::InvalidInput, std::move(sentence), {}}; }

}  // namespace

void set_state(PortSet& ports, std::uint32_t gpu, std::uint32_t state) {
  for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost}) {
    const PortId port = CopyPort{gpu, direction}.id();
    (state >> static_cast<std::uint32_t>(direction) & 1U) != 0 ? ports.insert(port) : ports.erase(port);
  }
}

PortSet canonical(PortSet ports, std::span<const std::vector<std::uint32_t>> symmetric) {
  for (const auto& group : symmetric) {
    std::array<std::size_t, 4> gpus_in{};  // by state
    for (const std::uint32_t gpu : group) ++gpus_in[state_of(ports, gpu)];
    std::uint32_t state = 3;
    for (const std::uint32_t gpu : group) {
      while (gpus_in[state] == 0) --state;
      --gpus_in[state];
      set_state(ports, gpu, state);
    }
  }
  return ports;
}

Expected<MeasuredTable> MeasuredTable::make(std::size_t gpus, std::vector<std::vector<std::uint32_t>> symmetric,
                                            std::vector<PortRates> entries) {
  constexpr std::size_t kMostComplete = 9;  // GPUs: more have more combinations than a table holds
  MeasuredTable table;
  table.symmetric_ = std::move(symmetric);
  table.entries_ = std::move(entries);
  table.places_.resize(table.entries_.size() + 1);
  if (auto error = table.group_gpus(gpus)) {
    error->field = "symmetric";
    return tl::unexpected(*std::move(error));
  }
  for (std::uint32_t row = 1; row <= table.entries_.size(); ++row)
    if (auto error = table.add_row(row)) {
      error->field = path_of("table", row - 1);
      return tl::unexpected(*std::move(error));
    }
  const auto of_first = std::count_if(table.combinations_.begin(), table.combinations_.end(),
                                      [&](const Known& known) { return table.is_first(known.ports.last()); });
  table.make_slots();
  const auto twice = std::adjacent_find(table.combinations_.begin(), table.combinations_.end(),
                                        [](const Known& a, const Known& b) { return a.ports == b.ports; });
  if (twice != table.combinations_.end()) {
    Error error = invalid("the same combination stands twice, up to exchanges of symmetric GPUs; keep one");
    error.field = path_of("table", std::next(twice)->row - 1);
    return tl::unexpected(std::move(error));
  }
  for (const auto& [ports, row] : table.combinations_) {
    if (ports.size() > 1) continue;
    table.alone_.resize(std::max(table.alone_.size(), ports.last().index() + 1));
    table.alone_[ports.last().index()] = table.rate(row, ports, ports.last()).value;
  }
  table.complete_ = gpus <= kMostComplete && static_cast<std::uint64_t>(of_first) + 1 == port_sets(gpus);
  return table;
}

std::optional<Error> MeasuredTable::group_gpus(std::size_t gpus) {
  std::vector<bool> grouped(gpus, false);
  auto groups = symmetric_;  // and every other GPU as a group of its own
  for (const auto& group : groups) {
    for (const std::uint32_t gpu : group) {
      if (gpu >= gpus) return invalid(fmt::format("there is no GPU {}", gpu));
      if (grouped[gpu]) return invalid("a GPU stands twice in the symmetric groups; name it once");
      grouped[gpu] = true;
    }
  }
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
    if (!grouped[gpu]) groups.push_back({gpu});
  row_size_ = 4 * groups.size();
  first_.resize(2 * gpus);
  for (std::uint32_t g = 0; g < groups.size(); ++g)
    for (const std::uint32_t gpu : groups[g])
      for (const std::uint32_t direction : {0U, 1U}) first_[2 * gpu + direction] = 4 * g + direction;
  return std::nullopt;
}

std::optional<Error> MeasuredTable::add_row(std::uint32_t row) {
  const PortRates& entry = entries_[row - 1];
  if (entry.ports.empty()) return invalid("a combination without streams");
  if (entry.ports.size() != entry.rates.size()) return invalid("a combination has one rate for each of its streams");
  for (const double value : entry.rates)
    if (!(value > 0) || !std::isfinite(value)) return invalid("a rate is not above 0; leave the stream out");
  const bool by_role = is_first(entry.ports.last());
  places_[row] = {rates_.size(), by_role, entry.source};
  if (!by_role) {
    for (const double value : entry.rates) rates_.push_back({value, 1 / value});
    return add_combinations(entry.ports, row, symmetric_.size());
  }
  rates_.resize(rates_.size() + row_size_);
  std::size_t next = 0;
  for (const PortId port : entry.ports) {
    const double value = entry.rates[next++];
    const std::size_t both = state_of(entry.ports, port.value / 2) == 3 ? 2 : 0;
    Rate& place = rates_[places_[row].begin + first_[port.index()] + both];
    if (place.value != 0 && place.value != value)
      return invalid("symmetric GPUs do the same at different rates; give them one rate");
    place = {value, 1 / value};
  }
  return add_combinations(entry.ports, row, 0);
}

/// Adds a combination and all that come from it by exchanges in this symmetric group and those behind it.
std::optional<Error> MeasuredTable::add_combinations(PortSet ports, std::uint32_t row, std::size_t group) {
  if (group == symmetric_.size()) {
    if (combinations_.size() == kMostCombinations)
      return invalid(
          fmt::format("up to this row and with exchanges of symmetric GPUs the table has more than {} "
                      "combinations; leave rows out, or name fewer GPUs symmetric",
                      kMostCombinations));
    named_ |= ports;
    combinations_.push_back({std::move(ports), row});
    return std::nullopt;
  }
  std::vector<std::uint32_t> states;
  for (const std::uint32_t gpu : symmetric_[group]) states.push_back(state_of(ports, gpu));
  std::sort(states.begin(), states.end());
  do {
    for (std::size_t i = 0; i < states.size(); ++i) set_state(ports, symmetric_[group][i], states[i]);
    if (auto error = add_combinations(ports, row, group + 1)) return error;
  } while (std::next_permutation(states.begin(), states.end()));
  return std::nullopt;
}

/// Sorts the combinations, and hashes them.
void MeasuredTable::make_slots() {
  std::sort(combinations_.begin(), combinations_.end(),
            [](const Known& a, const Known& b) { return std::tie(a.ports, a.row) < std::tie(b.ports, b.row); });
  const std::size_t size = std::bit_ceil(2 * combinations_.size() + 2);
  shift_ = 64 - std::countr_zero(size);
  slot_mask_ = size - 1;
  slots_.assign(size, {});
  for (std::uint32_t known = 0; known < combinations_.size(); ++known) {
    const auto& [ports, row] = combinations_[known];
    std::size_t i = ports.hash() >> shift_;
    while (slots_[i].row != kNoRow) i = (i + 1) & slot_mask_;
    slots_[i] = {ports.hash(), row, ports.is_small() ? kNone : known};
  }
}

}  // namespace tutti::internal
