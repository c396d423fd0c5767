#include "apps/lab/fits/rate_corrections.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "model/base/linear_algebra.hpp"

namespace tutti::internal {
namespace {

// Relative standard deviations and lengths of the random function. They were settled on measurements of three hosts
// with four H200s, not the second host of tests/golden; none of them is critical.
constexpr double kByNumber = 0.1, kByNumberLength = 1;
constexpr double kSameNumbers = 0.04;
constexpr double kByGpuNumberLength = 2, kByGpuLength = 1.5;
constexpr double kSameCombination = 2;                    // extra similarity of the streams of one combination
constexpr double kSameStream = 1, kSameStreamLength = 8;  // extra similarity of one stream in all combinations
constexpr std::array kByGpu{0.003, 0.015, 0.03, 0.06};
constexpr std::array kNoise{0.004, 0.012, 0.03};
constexpr double kBatchNoise = 0.004;  // more than that of steady rates
constexpr double kClockNs = 5'000;     // of a finish
constexpr double kSetupNs = 10'000, kSetupSpreadNs = 20'000;
constexpr double kBatchSpeed = 0.005;

double square(double x) { return x * x; }

}  // namespace

RateCorrections::RateCorrections(std::size_t gpus, GraphRates graph, const std::vector<Combination>& combinations,
                                 const std::vector<MeasuredBatch>& batches)
    : gpus_(gpus), graph_(std::move(graph)) {
  for (const Combination& combination : combinations) observe(combination);
  for (const MeasuredBatch& batch : batches) observe(batch);
  learn();
  graph_rates_.clear();
}

const std::vector<double>& RateCorrections::graph_rates(const PortSet& streams) {
  auto& rates = graph_rates_[streams];
  if (rates.empty()) rates = graph_(streams);
  return rates;
}

RateCorrections::Entry RateCorrections::make_entry(const PortSet& streams, PortId port, double graph) const {
  const std::uint32_t own = CopyPort::at(port).gpu;
  Entry entry{streams, port, graph, state_of(streams, own), {}};
  for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu)
    if (gpu != own) ++entry.others[state_of(streams, gpu)];
  return entry;
}

std::size_t RateCorrections::entry(const PortSet& streams, PortId port) {
  const auto [known, is_new] = entry_of_.emplace(std::pair(streams, port), entries_.size());
  if (is_new) {
    entries_.push_back(make_entry(streams, port, graph_rates(streams)[streams.rank(port)]));
  }
  return known->second;
}

void RateCorrections::observe(const Combination& combination) {
  std::size_t next = 0;
  for (const PortId port : combination.streams) {
    const std::size_t e = entry(combination.streams, port);
    observations_.push_back({{{e, 1}}, measurements_, 0, 0, combination.rates[next++] / entries_[e].graph - 1, 0});
  }
  ++measurements_;
}

void RateCorrections::observe(const MeasuredBatch& batch) {
  auto streams = batch.streams;
  std::stable_sort(streams.begin(), streams.end(),
                   [](const auto& a, const auto& b) { return a.finish_ns < b.finish_ns; });
  PortSet active;
  for (const auto& stream : streams) active.insert(stream.stream.id());
  std::vector<std::pair<PortSet, double>> stretches;  // what is active, for how long
  double at = 0;
  for (const auto& [stream, bytes, finish] : streams) {
    if (finish > at) stretches.emplace_back(active, finish - at);
    at = std::max(at, finish);
    active.erase(stream.id());
    Observation observation{{}, measurements_, 0, 1, 1, kClockNs / finish};
    for (const auto& [together, time] : stretches) {
      const std::size_t e = entry(together, stream.id());
      const double part = entries_[e].graph * time / bytes;
      if (observation.parts.empty()) observation.late = entries_[e].graph / bytes;
      observation.parts.emplace_back(e, part);
      observation.value -= part;
    }
    observations_.push_back(std::move(observation));
  }
  ++measurements_;
}

RateCorrections::Nearness RateCorrections::nearness(const Entry& a, const Entry& b) const {
  const CopyPort of_a = CopyPort::at(a.port), of_b = CopyPort::at(b.port);
  if (of_a.direction != of_b.direction) return {0, 0};
  int numbers = a.own != b.own ? 1 : 0;
  for (std::size_t state = 1; state < 4; ++state) numbers += std::abs(a.others[state] - b.others[state]);
  const auto gpus = static_cast<int>(differing_pairs(a.streams, b.streams)) + (of_a.gpu != of_b.gpu ? 1 : 0);
  const double same_combination = a.streams == b.streams ? square(kSameCombination) : 0;
  const double same_stream = a.port == b.port ? square(kSameStream) * std::exp(-numbers / kSameStreamLength) : 0;
  return {square(kByNumber) * std::exp(-numbers / kByNumberLength) + (numbers == 0 ? square(kSameNumbers) : 0),
          std::exp(-numbers / kByGpuNumberLength - gpus / kByGpuLength) + same_combination + same_stream};
}

/// The observations as a system of equations: their covariances, and the observed values.
struct RateCorrections::Equations {
  Eigen::MatrixXd by_number, by_gpu;          // [observations, observations]
  Eigen::VectorXd value, late, speed, clock;  // [observations]

  [[nodiscard]] Equations some(const std::vector<Eigen::Index>& rows) const {
    return {by_number(rows, rows), by_gpu(rows, rows), value(rows), late(rows), speed(rows), clock(rows)};
  }

  /// The pull of each observation, and the log-likelihood of all; nothing where rounding makes it unsolvable.
  struct Solution {
    Eigen::VectorXd pulls;
    double likelihood;
  };
  [[nodiscard]] std::optional<Solution> solve(const Choice& choice) const {
    Eigen::MatrixXd S = by_number + square(choice.by_gpu) * by_gpu;
    S += square(kSetupSpreadNs) * late * late.transpose() + square(kBatchSpeed) * speed * speed.transpose();
    for (Eigen::Index o = 0; o < value.size(); ++o)
      S(o, o) += speed(o) == 0 ? square(choice.noise) : square(choice.noise + kBatchNoise) + clock(o);
    const auto solved = solve_definite(S, value);
    if (!solved) return std::nullopt;
    return Solution{solved->x, -0.5 * value.dot(solved->x) - solved->half_log_determinant};
  }
};

RateCorrections::Equations RateCorrections::equations() const {
  const auto n = static_cast<Eigen::Index>(entries_.size());
  const auto m = static_cast<Eigen::Index>(observations_.size());
  Eigen::MatrixXd by_number(n, n), by_gpu(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      const auto near = nearness(entries_[static_cast<std::size_t>(i)], entries_[static_cast<std::size_t>(j)]);
      by_number(i, j) = by_number(j, i) = near.by_number;
      by_gpu(i, j) = by_gpu(j, i) = near.by_gpu;
    }
  }
  // A K A', K being the covariances of the entries.
  const auto between = [&](const Eigen::MatrixXd& K) {
    Eigen::MatrixXd KA = Eigen::MatrixXd::Zero(n, m);
    Eigen::MatrixXd S = Eigen::MatrixXd::Zero(m, m);
    for_parts([&](Eigen::Index o, Eigen::Index e, double part) { KA.col(o) += part * K.col(e); });
    for_parts([&](Eigen::Index o, Eigen::Index e, double part) { S.row(o) += part * KA.row(e); });
    return S;
  };
  Equations result{between(by_number), between(by_gpu),    Eigen::VectorXd(m),
                   Eigen::VectorXd(m), Eigen::VectorXd(m), Eigen::VectorXd(m)};
  for (Eigen::Index o = 0; o < m; ++o) {
    const Observation& observation = observations_[static_cast<std::size_t>(o)];
    result.late(o) = observation.late;
    result.speed(o) = observation.speed;
    result.clock(o) = square(observation.clock);
    result.value(o) = observation.value + observation.late * kSetupNs;
  }
  return result;
}

template <class Visit>
void RateCorrections::for_parts(Visit visit) const {
  for (std::size_t o = 0; o < observations_.size(); ++o)
    for (const auto& [e, part] : observations_[o].parts)
      visit(static_cast<Eigen::Index>(o), static_cast<Eigen::Index>(e), part);
}

/// The observations of every n-th combination and batch, about `kEnough` in all.
std::vector<Eigen::Index> RateCorrections::sample() const {
  constexpr std::size_t kEnough = 1000;
  const std::size_t step = (observations_.size() + kEnough - 1) / kEnough;
  std::vector<Eigen::Index> rows;
  for (std::size_t o = 0; o < observations_.size(); ++o)
    if (observations_[o].measurement % step == 0) rows.push_back(static_cast<Eigen::Index>(o));
  return rows;
}

/// Chooses the parameters by the likelihood of a sample, and solves for all observations.
void RateCorrections::learn() {
  const Equations all = equations();
  const Equations some = all.some(sample());
  double best = -std::numeric_limits<double>::infinity();
  for (const double by_gpu : kByGpu) {
    for (const double noise : kNoise) {
      const auto solution = some.solve({by_gpu, noise});
      if (!solution || !(solution->likelihood > best)) continue;
      best = solution->likelihood;
      choice_ = {by_gpu, noise};
    }
  }
  pull_ = Eigen::VectorXd::Zero(static_cast<Eigen::Index>(entries_.size()));
  const auto solution = all.solve(choice_);
  if (!solution) return;  // the graph stays as it is
  for_parts([&](Eigen::Index o, Eigen::Index e, double part) { pull_(e) += part * solution->pulls(o); });
  if (all.speed.sum() > 0) {
    setup_ns_ = std::max(0.0, kSetupNs - square(kSetupSpreadNs) * all.late.dot(solution->pulls));
    batch_speed_ = square(kBatchSpeed) * all.speed.dot(solution->pulls);
  }
}

std::vector<double> RateCorrections::rates(const PortSet& streams) const {
  std::vector<double> rates = graph_(streams);
  for (const PortId port : streams) {
    double& rate = rates[streams.rank(port)];
    const Entry here = make_entry(streams, port, rate);
    double deviation = 0;
    for (std::size_t e = 0; e < entries_.size(); ++e) {
      const auto [by_number, by_gpu] = nearness(here, entries_[e]);
      deviation += (by_number + square(choice_.by_gpu) * by_gpu) * pull_(static_cast<Eigen::Index>(e));
    }
    rate *= std::max(0.1, 1 + deviation);
  }
  return rates;
}

}  // namespace tutti::internal
