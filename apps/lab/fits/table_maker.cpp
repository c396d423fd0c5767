#include "apps/lab/fits/table_maker.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "apps/lab/fits/measurement_plan.hpp"
#include "model/base/digits.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMostRows = 2'000;

/// A combination with the parts of two GPUs exchanged.
PortSet exchanged(PortSet streams, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t of_a = state_of(streams, a), of_b = state_of(streams, b);
  set_state(streams, a, of_b);
  set_state(streams, b, of_a);
  return streams;
}

PortId exchanged_port(PortId port, std::uint32_t a, std::uint32_t b) {
  const auto [gpu, direction] = CopyPort::at(port);
  return CopyPort{gpu == a ? b : gpu == b ? a : gpu, direction}.id();
}

class TableMaker {
 public:
  TableMaker(std::size_t gpus, const std::vector<Combination>& combinations, const RateCorrections& corrections)
      : gpus_(gpus), combinations_(combinations), corrections_(corrections) {
    if (gpus > kMostEnumerated) {
      for (const Combination& combination : combinations) all_.push_back(combination.streams);
    } else {
      for (std::uint64_t bits = 1; bits < port_sets(gpus); ++bits) all_.push_back(PortSet::of_bits(bits));
    }
  }

  MadeTable make() {
    find_symmetric();
    return {MeasuredTable::make(gpus_, symmetric_, rows()).value(), tolerance_ > 1};
  }

 private:
  /// GPUs whose exchange changes no rate, in groups of two and more. Where that leaves too many combinations to write
  /// down, larger changes are tolerated.
  void find_symmetric() {
    for (;; tolerance_ *= 1.5) {
      symmetric_ = find_symmetric_now();
      if (count_classes() <= kMostRows) return;
    }
  }

  std::vector<std::vector<std::uint32_t>> find_symmetric_now() {
    std::vector<std::vector<std::uint32_t>> groups;
    for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
      const auto fits = [&](const auto& group) {
        return std::all_of(group.begin(), group.end(), [&](std::uint32_t other) { return symmetric(other, gpu); });
      };
      const auto group = std::find_if(groups.begin(), groups.end(), fits);
      if (group == groups.end()) {
        groups.push_back({gpu});
      } else {
        group->push_back(gpu);
      }
    }
    std::erase_if(groups, [](const auto& group) { return group.size() < 2; });
    return groups;
  }

  /// Number of classes of combinations: n symmetric GPUs have C(n + 3, 3), by the numbers that copy up, down, in both
  /// directions.
  [[nodiscard]] std::size_t count_classes() const {
    std::size_t classes = 1, grouped = 0;
    for (const auto& group : symmetric_) {
      classes *= (group.size() + 3) * (group.size() + 2) * (group.size() + 1) / 6;
      grouped += group.size();
    }
    return classes * port_sets(gpus_ - grouped) - 1;
  }

  /// One row of every class of combinations: its measured rates, or else the corrected ones.
  std::vector<PortRates> rows() {
    group_of_.assign(gpus_, 0);
    std::iota(group_of_.begin(), group_of_.end(), 0U);
    for (const auto& group : symmetric_)
      for (const std::uint32_t gpu : group) group_of_[gpu] = group.front();
    std::map<PortSet, Row> classes;
    for (const Combination& combination : combinations_) {
      Row& row = classes[class_of(combination.streams)];
      row.source = RateSource::Table;
      add(row, combination.streams, combination.rates);
    }
    for (std::uint64_t bits = 1; bits < port_sets(gpus_); ++bits)
      if (const PortSet streams = PortSet::of_bits(bits); class_of(streams) == streams) classes.try_emplace(streams);
    for (const PortSet& streams : all_) {
      const auto row = classes.find(class_of(streams));
      if (row != classes.end() && row->second.source != RateSource::Table) add(row->second, streams, rates(streams));
    }
    std::vector<PortRates> rows;
    for (auto& [streams, row] : classes) {
      if (row.sums.empty()) add(row, streams, rates(streams));
      rows.push_back({streams, {}, row.source});
      for (const PortId port : streams) rows.back().rates.push_back(rate_in(row, streams, port));
    }
    cap(rows);
    return rows;
  }

  /// Caps interpolated rates at those of each copy alone: others may only slow it down, and corrections overshoot.
  void cap(std::vector<PortRates>& rows) const {
    std::map<PortSet, double> alone;
    for (const PortRates& row : rows)
      if (row.ports.size() == 1) alone.emplace(row.ports, row.rates.front());
    for (PortRates& row : rows) {
      if (row.source != RateSource::Interpolated) continue;
      std::size_t next = 0;
      for (const PortId port : row.ports) {
        double& rate = row.rates[next++];
        rate = std::min(rate, alone.at(class_of(PortSet(port))));
      }
    }
  }

  using Role = std::pair<std::uint32_t, std::uint32_t>;  // group; direction, and whether its GPU does both
  struct Row {
    RateSource source = RateSource::Interpolated;
    std::map<Role, std::pair<double, double>> sums;  // of rates, and how many
  };

  /// Mean rate of a copy in the combinations of a row.
  [[nodiscard]] double rate_in(const Row& row, const PortSet& streams, PortId port) const {
    const auto& [sum, count] = row.sums.at(role(streams, port));
    return to_digits(sum / count, kTableDigits);
  }

  [[nodiscard]] const std::vector<double>& rates(const PortSet& streams) {
    auto& known = rates_[streams];
    if (known.empty()) known = corrections_.rates(streams);
    return known;
  }

  [[nodiscard]] double rate(const PortSet& streams, PortId port) { return rates(streams)[streams.rank(port)]; }

  [[nodiscard]] bool symmetric(std::uint32_t a, std::uint32_t b) {
    const double tolerance = tolerance_ * std::max(0.02, 4 * corrections_.noise());
    for (const PortSet& streams : all_) {
      const PortSet other = exchanged(streams, a, b);
      for (const PortId port : streams) {
        const double ratio = rate(other, exchanged_port(port, a, b)) / rate(streams, port);
        if (std::abs(std::log(ratio)) > tolerance) return false;
      }
    }
    return true;
  }

  [[nodiscard]] PortSet class_of(const PortSet& streams) const { return canonical(streams, symmetric_); }

  [[nodiscard]] Role role(const PortSet& streams, PortId port) const {
    const auto [gpu, direction] = CopyPort::at(port);
    const std::uint32_t both = state_of(streams, gpu) == 3 ? 2 : 0;
    return {group_of_[gpu], static_cast<std::uint32_t>(direction) + both};
  }

  void add(Row& row, const PortSet& streams, const std::vector<double>& rates) {
    std::size_t next = 0;
    for (const PortId port : streams) {
      auto& [sum, count] = row.sums[role(streams, port)];
      sum += rates[next++];
      count += 1;
    }
  }

  std::size_t gpus_;
  double tolerance_ = 1;
  const std::vector<Combination>& combinations_;
  const RateCorrections& corrections_;
  std::vector<PortSet> all_;
  std::map<PortSet, std::vector<double>> rates_;
  std::vector<std::vector<std::uint32_t>> symmetric_;
  std::vector<std::uint32_t> group_of_;  // [gpus] the first of those that are symmetric
};

}  // namespace

MadeTable make_table(std::size_t gpus, const std::vector<Combination>& combinations,
                     const RateCorrections& corrections) {
  return TableMaker(gpus, combinations, corrections).make();
}

}  // namespace tutti::internal
