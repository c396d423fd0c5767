#include "apps/lab/fits/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "model/base/quantile.hpp"
#include "model/sharing/rate_residual.hpp"

namespace tutti::internal {
namespace {

constexpr double kNear = 0.125;      // a repetition, to the median of its combination
constexpr double kNearRoutes = 0.3;  // the same of other copies: threads of the host do those of pageable memory
constexpr double kAgree = 2.0 / 3;   // share of repetitions that must be near
constexpr double kTooSlow = 3;       // a batch's stream, against its slowest combination
constexpr double kTooFast = 1.15;    // a rate beside others, against the same stream alone
constexpr double kBatchSlack = 0.8;  // a finish, against its stream alone

class Cleaner {
 public:
  explicit Cleaner(const Measurements& measurements) : measurements_(measurements) {}

  CleanMeasurements result() {
    clean_.left_out = measurements_.left_out;
    std::map<PortSet, std::vector<const MeasuredRates*>> repetitions;
    for (const MeasuredRates& rates : measurements_.rates) repetitions[rates.streams].push_back(&rates);
    for (const auto& [streams, measured] : repetitions) put_together(streams, measured);
    std::map<CopyRouteSet, std::vector<const MeasuredRoutes*>> of_routes;
    for (const MeasuredRoutes& measured : measurements_.copy_routes)
      of_routes[measured.copy_routes].push_back(&measured);
    for (const auto& [copy_routes, measured] : of_routes) put_together(copy_routes, measured);
    find_alone();
    doubt_slow_alone();
    std::erase_if(clean_.combinations, [&](const Combination& combination) { return too_fast(combination); });
    for (const Combination& combination : clean_.combinations) {
      for (const PortId port : combination.streams) {
        const double rate = combination.rates[combination.streams.rank(port)];
        auto& slowest = slowest_.emplace(port, rate).first->second;
        slowest = std::min(slowest, rate);
      }
    }
    for (const MeasuredBatch& batch : measurements_.batches)
      if (!impossible(batch)) clean_.batches.push_back(batch);
    return std::move(clean_);
  }

 private:
  void put_together(const PortSet& streams, const std::vector<const MeasuredRates*>& measured) {
    Combination combination{streams, {}, {}, static_cast<int>(measured.size())};
    const bool sound = find_medians(measured, ports_text(streams), kNear, combination.rates, combination.lowest);
    place_of_[streams] = measured.front()->place;
    (sound ? clean_.combinations : clean_.doubtful).push_back(std::move(combination));
  }

  void put_together(const CopyRouteSet& copy_routes, const std::vector<const MeasuredRoutes*>& measured) {
    RouteCombination combination{copy_routes, {}, {}};
    const bool sound =
        find_medians(measured, routes_text(copy_routes), kNearRoutes, combination.rates, combination.lowest);
    (sound ? clean_.copy_routes : clean_.doubtful_routes).push_back(std::move(combination));
  }

  /// @return false where the repetitions contradict each other
  template <class Measured>
  bool find_medians(const std::vector<const Measured*>& measured, const std::string& name, double close,
                    std::vector<double>& rates, std::vector<double>& lowest) {
    bool sound = true;
    for (std::size_t i = 0; i < measured.front()->rates.size(); ++i) {
      std::vector<double> values;
      for (const Measured* one : measured) values.push_back(one->rates[i]);
      const auto [low, high] = std::minmax_element(values.begin(), values.end());
      const double middle = median(values);
      const auto near = std::count_if(values.begin(), values.end(),
                                      [&](double value) { return std::abs(value - middle) <= close * middle; });
      if (static_cast<double>(near) < kAgree * static_cast<double>(values.size()) && sound) {
        sound = false;
        clean_.left_out.push_back(
            fmt::format("{}: {} was measured {} times, from {:.1f} to {:.1f} GB/s; measure it again",
                        measured.back()->place, name, measured.size(), *low, *high));
      }
      rates.push_back(middle);
      lowest.push_back(*low);
    }
    return sound;
  }

  void find_alone() {
    for (const Combination& combination : clean_.combinations)
      if (combination.streams.size() == 1) alone_[combination.streams.last()] = combination.rates.front();
  }

  /// Leaves out a stream's rate alone where the stream is too fast for it in most combinations.
  void doubt_slow_alone() {
    for (auto alone = alone_.begin(); alone != alone_.end();) {
      std::size_t in_company = 0, faster = 0;
      for (const Combination& combination : clean_.combinations) {
        if (!combination.streams.contains(alone->first) || combination.streams.size() == 1) continue;
        ++in_company;
        faster += combination.rates[combination.streams.rank(alone->first)] > kTooFast * alone->second ? 1 : 0;
      }
      if (2 * faster <= in_company || in_company < 3) {
        ++alone;
        continue;
      }
      clean_.left_out.push_back(
          fmt::format("{}: {} runs at {:.1f} GB/s alone and faster in most combinations; measure it again",
                      place_of_[PortSet(alone->first)], ports_text(PortSet(alone->first)), alone->second));
      std::erase_if(clean_.combinations, [&](const Combination& c) { return c.streams == PortSet(alone->first); });
      alone = alone_.erase(alone);
    }
  }

  [[nodiscard]] bool too_fast(const Combination& combination) {
    for (const PortId port : combination.streams) {
      const auto alone = alone_.find(port);
      const double rate = combination.rates[combination.streams.rank(port)];
      if (alone == alone_.end() || rate <= kTooFast * alone->second) continue;
      clean_.left_out.push_back(
          fmt::format("{}: {} runs at {:.1f} GB/s in {}, more than its link carries alone ({:.1f}); measure it again",
                      place_of_[combination.streams], ports_text(PortSet(port)), rate, ports_text(combination.streams),
                      alone->second));
      return true;
    }
    return false;
  }

  [[nodiscard]] bool impossible(const MeasuredBatch& batch) {
    for (const auto& [stream, bytes, finish] : batch.streams) {
      const PortId port = stream.id();
      if (const auto slowest = slowest_.find(port);
          slowest != slowest_.end() && finish > kTooSlow * bytes / slowest->second) {
        clean_.left_out.push_back(fmt::format("{}: {} is over after {:.1f} us, far slower than in any combination",
                                              batch.place, ports_text(PortSet(port)), finish / 1e3));
        return true;
      }
      const auto alone = alone_.find(port);
      if (alone == alone_.end() || finish >= kBatchSlack * bytes / alone->second) continue;
      clean_.left_out.push_back(fmt::format("{}: {} is over after {:.1f} us, faster than its link carries it alone",
                                            batch.place, ports_text(PortSet(port)), finish / 1e3));
      return true;
    }
    return false;
  }

  const Measurements& measurements_;
  CleanMeasurements clean_;
  std::map<PortSet, std::string> place_of_;
  std::map<PortId, double> alone_;
  std::map<PortId, double> slowest_;  // rate in any combination
};

}  // namespace

std::string_view to_string(CostWork work) {
  constexpr std::array<std::string_view, kCostWorks.size()> names{
      "up",     "down",         "peer",      "peer_turns", "staged",      "pageable_up", "pageable_down",
      "sm_up",  "sm_down",      "inline_up", "mapped_up",  "mapped_down", "rows_up",     "rows_down",
      "kernel", "lone_kernels", "host"};
  return names[static_cast<std::size_t>(work)];
}

CopyKind copy_kind(CostWork work) {
  switch (work) {
    case CostWork::Down: return CopyKind::Down;
    case CostWork::Peer:
    case CostWork::PeerTurns: return CopyKind::Peer;
    case CostWork::Staged: return CopyKind::Staged;
    case CostWork::PageableUp: return CopyKind::PageableUp;
    case CostWork::PageableDown: return CopyKind::PageableDown;
    case CostWork::SmUp: return CopyKind::SmUp;
    case CostWork::SmDown: return CopyKind::SmDown;
    case CostWork::InlineUp: return CopyKind::InlineUp;
    case CostWork::MappedUp: return CopyKind::MappedUp;
    case CostWork::MappedDown: return CopyKind::MappedDown;
    case CostWork::RowsUp: return CopyKind::RowsUp;
    case CostWork::RowsDown: return CopyKind::RowsDown;
    default: return CopyKind::Up;
  }
}

std::size_t Measurements::gpus() const {
  std::size_t gpus = 0;
  for (const MeasuredRates& measured : rates) {
    if (measured.streams.empty()) continue;
    gpus = std::max(gpus, std::size_t{CopyPort::at(measured.streams.last()).gpu} + 1);
  }
  for (const MeasuredBatch& batch : batches)
    for (const auto& stream : batch.streams) gpus = std::max(gpus, std::size_t{stream.stream.gpu} + 1);
  for (const MeasuredRoutes& measured : copy_routes)
    for (const CopyRoute& copy_route : measured.copy_routes)
      for (const RouteEnd& end : {copy_route.from, copy_route.to})
        if (end.gpu) gpus = std::max(gpus, std::size_t{end.position} + 1);
  return gpus;
}

CleanMeasurements clean(const Measurements& measurements) { return Cleaner(measurements).result(); }

double spread_of(const Measurements& measurements) {
  constexpr std::size_t kLeast = 3;
  std::map<PortSet, std::vector<double>> totals;
  for (const MeasuredRates& measured : measurements.rates)
    totals[measured.streams].push_back(std::accumulate(measured.rates.begin(), measured.rates.end(), 0.0));
  std::vector<double> deviations;
  for (const auto& [streams, of_one] : totals) {
    if (of_one.size() < kLeast) continue;
    const double middle = median(of_one);
    for (const double total : of_one) deviations.push_back(std::abs(total / middle - 1));
  }
  return quantile(std::move(deviations), 0.8);
}

std::string to_string(const RouteEnd& end) { return fmt::format("{}{}", end.gpu ? "gpu" : "memory", end.position); }

std::string routes_text(const CopyRouteSet& copy_routes) {
  std::string text;
  for (const CopyRoute& copy_route : copy_routes)
    text += fmt::format("{}{} -> {}", text.empty() ? "" : ", ", to_string(copy_route.from), to_string(copy_route.to));
  return text;
}

}  // namespace tutti::internal
