#include "model/sharing/below_table.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "model/base/digits.hpp"
#include "model/machine/route.hpp"
#include "model/sharing/lower_capacity.hpp"

namespace tutti::internal {

std::optional<std::vector<double>> BelowTable::lower_once(const Topology& machine, bool gently) {
  load(machine);
  const auto values = machine.capacities(Basis::Guaranteed);
  reasons_.resize(values.size());
  found_.clear();
  fewest_ = std::numeric_limits<int>::max();
  const MeasuredTable& table = *machine.table();
  const PortSet one_way = waiting_streams(machine, static_cast<PortSet>(stream_sets(machine.gpus().size()) - 1));
  PortSet streams = 0;
  const std::uint32_t end = std::uint32_t{1} << positions_.size();
  for (std::uint32_t i = 1; i < end; ++i) {  // Gray's code: one stream starts or stops
    const auto changed = static_cast<std::size_t>(std::countr_zero(i));
    const std::uint32_t group = bandwidth_.group(kinds_[changed]);
    streams ^= PortSet{1} << positions_[changed];
    (streams >> positions_[changed] & 1U) != 0 ? bandwidth_.start(group) : bandwidth_.stop(group);
    const bool possible = (streams & streams >> 1 & one_way) == 0;
    if (possible && table.row(streams) != MeasuredTable::kNoRow) look_at(machine, streams, gently);
  }
  if (found_.empty()) return std::nullopt;
  std::vector<double> lowered(values.begin(), values.end());
  for (const auto& [value, reason] : found_) {
    double& place = lowered[reason.capacity.index()];
    if (value >= place) continue;
    place = value;
    reasons_[reason.capacity.index()] = reason;
  }
  return lowered;
}

void BelowTable::load(const Topology& machine) {
  positions_.clear();
  kinds_.clear();
  for (std::uint32_t position = 0; position < 2 * machine.gpus().size(); ++position)
    if (has_routes(machine, PortSet{1} << position)) positions_.push_back(position);
  bandwidth_.reset(machine, Basis::Guaranteed, {}, positions_.size());
  for (const std::uint32_t position : positions_) {
    const auto [from, to] = ends_of(machine, CopyPort::at(position));
    kinds_.push_back(bandwidth_.add_flow(machine.route_class(from, to)));
  }
  bandwidth_.finish();
  bandwidth_.restart();
}

/// Combinations of the fewest streams come first: their changes may suffice for larger ones.
void BelowTable::look_at(const Topology& machine, PortSet streams, bool gently) {
  constexpr double kTolerance = 1e-10;  // of sums that are added up in another order
  const MeasuredTable& table = *machine.table();
  const std::uint32_t row = table.row(streams);
  const int count = std::popcount(streams);
  if (count > fewest_) return;
  bandwidth_.solve();
  const auto graph = [&](std::size_t i) { return bandwidth_.rate(bandwidth_.group(kinds_[i])).value; };
  const auto too_fast = [&](std::size_t i) {
    return (streams >> positions_[i] & 1U) != 0 &&
           graph(i) > table.rate(row, streams, positions_[i]).value * (1 + kTolerance);
  };
  std::size_t first = 0;
  while (first < positions_.size() && !too_fast(first)) ++first;
  if (first == positions_.size()) return;
  if (count < fewest_) found_.clear();
  fewest_ = count;
  const auto links = links_of(machine, streams);
  std::vector<double> rates;
  for (std::size_t i = 0; i < positions_.size(); ++i)
    if ((streams >> positions_[i] & 1U) != 0) rates.push_back(graph(i));
  const auto load = loads_of(machine, links, rates);
  for (std::size_t i = first; i < positions_.size(); ++i) {
    if (!too_fast(i)) continue;
    const double most = table.rate(row, streams, positions_[i]).value;
    const Links route = links_at(machine, positions_[i]);
    const LowerCapacity step =
        gently ? least_loss(machine, route, load, graph(i) - most) : hold_alone(machine, route, most);
    found_.emplace_back(down_to_digits(step.value, kFloorDigits),
                        Reason{CapacityId(step.capacity), streams, positions_[i], most, graph(i)});
  }
}

std::vector<BelowTable::Reason> BelowTable::reasons() const {
  std::vector<Reason> reasons;
  for (const auto& reason : reasons_)
    if (reason) reasons.push_back(*reason);
  return reasons;
}

}  // namespace tutti::internal
