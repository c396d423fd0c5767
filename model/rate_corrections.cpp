#include "model/rate_corrections.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tutti {
namespace {

// Relative standard deviations and lengths of the random function. They were settled on measurements of three hosts
// with four H200s, not the second host of tests/golden; none of them is critical.
constexpr double kByNumber = 0.1, kByNumberLength = 1;
constexpr double kSameNumbers = 0.04;
constexpr double kByGpuNumberLength = 2, kByGpuLength = 1.5;
constexpr double kSameCombination = 2;  // how much more alike the streams of one combination deviate
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

const std::vector<double>& RateCorrections::graph_rates(StreamSet streams) {
  auto& rates = graph_rates_[streams];
  if (rates.empty()) rates = graph_(streams);
  return rates;
}

RateCorrections::Entry RateCorrections::make_entry(StreamSet streams, std::uint32_t position, double graph) const {
  Entry entry{streams, position, graph, state_of(streams, position / 2), {}};
  for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu)
    if (gpu != position / 2) ++entry.others[state_of(streams, gpu)];
  return entry;
}

std::size_t RateCorrections::entry(StreamSet streams, std::uint32_t position) {
  const auto [known, is_new] = entry_of_.emplace(std::pair(streams, position), entries_.size());
  if (is_new) {
    entries_.push_back(make_entry(streams, position, graph_rates(streams)[place_in(streams, position)]));
  }
  return known->second;
}

void RateCorrections::observe(const Combination& combination) {
  const auto positions = positions_of(combination.streams);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const std::size_t e = entry(combination.streams, positions[i]);
    observations_.push_back({{{e, 1}}, 0, 0, combination.rates[i] / entries_[e].graph - 1, 0});
  }
}

void RateCorrections::observe(const MeasuredBatch& batch) {
  auto streams = batch.streams;
  std::stable_sort(streams.begin(), streams.end(),
                   [](const auto& a, const auto& b) { return a.finish_ns < b.finish_ns; });
  StreamSet active = 0;
  for (const auto& stream : streams) active |= StreamSet{1} << stream.stream.position();
  std::vector<std::pair<StreamSet, double>> stretches;  // what is active, for how long
  double at = 0;
  for (const auto& [stream, bytes, finish] : streams) {
    if (finish > at) stretches.emplace_back(active, finish - at);
    at = std::max(at, finish);
    active &= ~(StreamSet{1} << stream.position());
    Observation observation{{}, 0, 1, 1, kClockNs / finish};
    for (const auto& [together, time] : stretches) {
      const std::size_t e = entry(together, stream.position());
      const double part = entries_[e].graph * time / bytes;
      if (observation.parts.empty()) observation.late = entries_[e].graph / bytes;
      observation.parts.emplace_back(e, part);
      observation.value -= part;
    }
    observations_.push_back(std::move(observation));
  }
}

RateCorrections::Nearness RateCorrections::nearness(const Entry& a, const Entry& b) const {
  if (a.position % 2 != b.position % 2) return {0, 0};
  int numbers = a.own != b.own ? 1 : 0;
  for (std::size_t state = 1; state < 4; ++state) numbers += std::abs(a.others[state] - b.others[state]);
  const StreamSet differs = a.streams ^ b.streams;
  const int gpus = std::popcount((differs | differs >> 1) & 0x5555'5555U) + (a.position / 2 != b.position / 2 ? 1 : 0);
  return {
      square(kByNumber) * std::exp(-numbers / kByNumberLength) + (numbers == 0 ? square(kSameNumbers) : 0),
      std::exp(-numbers / kByGpuNumberLength - gpus / kByGpuLength) + (differs == 0 ? square(kSameCombination) : 0)};
}

void RateCorrections::learn() {
  const auto n = static_cast<Eigen::Index>(entries_.size());
  const auto m = static_cast<Eigen::Index>(observations_.size());
  Eigen::MatrixXd by_number(n, n), by_gpu(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j <= i; ++j) {
      const auto near = nearness(entries_[static_cast<std::size_t>(i)], entries_[static_cast<std::size_t>(j)]);
      by_number(i, j) = by_number(j, i) = near.by_number;
      by_gpu(i, j) = by_gpu(j, i) = near.by_gpu;
    }
  // Covariance of the observations: A K A', K that of the entries.
  const auto between = [&](const Eigen::MatrixXd& K) {
    Eigen::MatrixXd KA = Eigen::MatrixXd::Zero(n, m);
    for (Eigen::Index o = 0; o < m; ++o)
      for (const auto& [e, part] : observations_[static_cast<std::size_t>(o)].parts)
        KA.col(o) += part * K.col(static_cast<Eigen::Index>(e));
    Eigen::MatrixXd S(m, m);
    for (Eigen::Index o = 0; o < m; ++o) {
      S.row(o).setZero();
      for (const auto& [e, part] : observations_[static_cast<std::size_t>(o)].parts)
        S.row(o) += part * KA.row(static_cast<Eigen::Index>(e));
    }
    return S;
  };
  const Eigen::MatrixXd S_number = between(by_number);
  const Eigen::MatrixXd S_gpu = between(by_gpu);
  Eigen::VectorXd value(m), late(m), speed(m), clock(m);
  for (Eigen::Index o = 0; o < m; ++o) {
    const Observation& observation = observations_[static_cast<std::size_t>(o)];
    late(o) = observation.late;
    speed(o) = observation.speed;
    clock(o) = square(observation.clock);
    value(o) = observation.value + late(o) * kSetupNs;
  }
  const Eigen::MatrixXd S_batch =
      square(kSetupSpreadNs) * late * late.transpose() + square(kBatchSpeed) * speed * speed.transpose();
  double best = -std::numeric_limits<double>::infinity();
  Eigen::VectorXd weights;
  for (const double by : kByGpu) {
    for (const double noise : kNoise) {
      Eigen::MatrixXd S = S_number + square(by) * S_gpu + S_batch;
      for (Eigen::Index o = 0; o < m; ++o)
        S(o, o) += speed(o) == 0 ? square(noise) : square(noise + kBatchNoise) + clock(o);
      const Eigen::LLT<Eigen::MatrixXd> factor(S);
      if (factor.info() != Eigen::Success) continue;
      const Eigen::VectorXd solved = factor.solve(value);
      const double likelihood =
          -0.5 * value.dot(solved) - Eigen::VectorXd(factor.matrixLLT().diagonal()).array().log().sum();
      if (!(likelihood > best)) continue;
      best = likelihood;
      choice_ = {by, noise};
      weights = solved;
    }
  }
  pull_ = Eigen::VectorXd::Zero(n);
  if (weights.size() == 0) return;  // nothing could be solved: the graph stays as it is
  for (Eigen::Index o = 0; o < m; ++o)
    for (const auto& [e, part] : observations_[static_cast<std::size_t>(o)].parts)
      pull_(static_cast<Eigen::Index>(e)) += part * weights(o);
  if (speed.sum() > 0) {
    setup_ns_ = std::max(0.0, kSetupNs - square(kSetupSpreadNs) * late.dot(weights));
    batch_speed_ = square(kBatchSpeed) * speed.dot(weights);
  }
}

std::vector<double> RateCorrections::rates(StreamSet streams) const {
  const auto positions = positions_of(streams);
  std::vector<double> rates = graph_(streams);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Entry here = make_entry(streams, positions[i], rates[i]);
    double deviation = 0;
    for (std::size_t e = 0; e < entries_.size(); ++e) {
      const auto [by_number, by_gpu] = nearness(here, entries_[e]);
      deviation += (by_number + square(choice_.by_gpu) * by_gpu) * pull_(static_cast<Eigen::Index>(e));
    }
    rates[i] *= std::max(0.1, 1 + deviation);
  }
  return rates;
}

}  // namespace tutti
