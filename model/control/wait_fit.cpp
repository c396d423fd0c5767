#include "model/control/wait_fit.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>

#include "model/base/linear_algebra.hpp"
#include "model/base/quantile.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kLeastSleeps = 16;
constexpr double kLeastStepsAPeriod = 4;
constexpr double kPhasesAPeriod = 24;
constexpr double kDriftOverRange = 0.1;  // of a period, from one period of the grid to the next
constexpr std::size_t kRefinedPeriods = 3;
constexpr int kRefinements = 12;
constexpr double kShrink = 1.7;           // of the steps, from one refinement to the next
constexpr double kMostNoise = 4;          // a residual counts no more than this many times the noise
constexpr double kStandardErrors = 10;    // of an amplitude that is no chance
constexpr double kLeastAmplitude = 0.01;  // of the median time
constexpr double kGridError = 0.15;       // of an amplitude, which the best shape of the grid may be wrong by
constexpr int kScanRounds = 2, kFitRounds = 4;
constexpr double kNormalMad = 1.4826;  // standard deviation over median absolute deviation, normal distribution
constexpr std::size_t kMostPairs = 1'000'000;
constexpr double kFence = 3;  // quartile distances: Tukey's outer fence, beyond which no part of a sawtooth lies

/// Samples, or the medians of them: times over sleeps and numbers of streams.
struct Readings {
  std::vector<double> sleep, streams, time;  // [n]

  [[nodiscard]] std::size_t size() const { return time.size(); }
  void add(double at, double n, double ns) { sleep.push_back(at), streams.push_back(n), time.push_back(ns); }
};

struct ToothShape {
  double period = 1, phase = 0;

  /// Position in its tooth, in [0, 1).
  [[nodiscard]] double position(double sleep) const {
    const double teeth = (sleep - phase) / period;
    return teeth - std::floor(teeth);
  }
};

/// time = base + height * position + slope * streams, and how badly it fits.
struct ToothLine {
  double base = 0, height = 0, slope = 0, cost = 0;
};

/// The most that the residuals of a fit may count, and which terms it has.
struct FitTerms {
  bool has_sawtooth = true, has_slope = true;
  double cap = 0;  // ns
};

/// Least squares with residuals capped: those above the cap are left out, until the set is stable or four rounds are
/// over.
class CappedFit {
 public:
  CappedFit(const Readings& readings, FitTerms terms) : readings_(readings), terms_(terms) {}

  [[nodiscard]] ToothLine fit(const ToothShape& shape, int rounds = kFitRounds) const {
    ToothLine line;
    double previous = -1;
    for (int round = 0; round < rounds; ++round) {
      line = solve(shape, line, round == 0);
      line.cost = cost(shape, line);
      if (line.cost == previous) break;
      previous = line.cost;
    }
    return line;
  }

  [[nodiscard]] double residual(const ToothShape& shape, const ToothLine& line, std::size_t i) const {
    return readings_.time[i] - line.base - line.height * position(shape, i) - line.slope * readings_.streams[i];
  }

 private:
  [[nodiscard]] double position(const ToothShape& shape, std::size_t i) const {
    return terms_.has_sawtooth ? shape.position(readings_.sleep[i]) : 0;
  }

  [[nodiscard]] double cost(const ToothShape& shape, const ToothLine& line) const {
    double sum = 0;
    for (std::size_t i = 0; i < readings_.size(); ++i) {
      const double r = std::min(std::abs(residual(shape, line, i)), terms_.cap);
      sum += r * r;
    }
    return sum;
  }

  /// Normal equations of the readings near `line`, or of all; a term that is left out has the equation "0".
  [[nodiscard]] ToothLine solve(const ToothShape& shape, const ToothLine& line, bool all) const {
    Eigen::Matrix3d a = Eigen::Matrix3d::Zero();
    Eigen::Vector3d b = Eigen::Vector3d::Zero();
    for (std::size_t i = 0; i < readings_.size(); ++i) {
      if (!all && std::abs(residual(shape, line, i)) > terms_.cap) continue;
      const double u = position(shape, i), n = terms_.has_slope ? readings_.streams[i] : 0, y = readings_.time[i];
      a(0, 0) += 1, a(0, 1) += u, a(0, 2) += n, a(1, 1) += u * u, a(1, 2) += u * n, a(2, 2) += n * n;
      b(0) += y, b(1) += u * y, b(2) += n * y;
    }
    if (a(0, 0) == 0) return line;
    if (!terms_.has_sawtooth) a(1, 1) = 1;
    if (!terms_.has_slope) a(2, 2) = 1;
    a(1, 0) = a(0, 1), a(2, 0) = a(0, 2), a(2, 1) = a(1, 2);
    const Eigen::Vector3d x = solve_symmetric(a, b);
    return x.allFinite() ? ToothLine{x(0), x(1), x(2), 0} : line;
  }

  const Readings& readings_;
  FitTerms terms_;
};

/// Noise of a curve by its second differences, in which slopes cancel and the few jumps of a sawtooth do not count.
double noise_of_curve(const Readings& curve) {
  std::vector<double> bends;
  for (std::size_t i = 1; i + 1 < curve.size(); ++i)
    bends.push_back(std::abs(curve.time[i - 1] - 2 * curve.time[i] + curve.time[i + 1]));
  return kNormalMad * median(std::move(bends)) / std::sqrt(6.0);  // variances 1 + 4 + 1
}

struct ToothCandidate {
  ToothShape shape;
  ToothLine line;
};

/// The best phase of each period of the grid.
std::vector<ToothCandidate> scan_periods(const Readings& curve, double cap) {
  const CappedFit fit(curve, {.has_slope = false, .cap = cap});
  const double range = curve.sleep.back() - curve.sleep.front();
  const double step = range / static_cast<double>(curve.size() - 1);
  std::vector<ToothCandidate> best;
  for (double period = kLeastStepsAPeriod * step; period <= range;
       period += kDriftOverRange * period * period / range) {
    ToothCandidate& of_period = best.emplace_back();
    for (int i = 0; i < static_cast<int>(kPhasesAPeriod); ++i) {
      const ToothShape shape{period, i * period / kPhasesAPeriod};
      const ToothLine line = fit.fit(shape, kScanRounds);
      if (i == 0 || line.cost < of_period.line.cost) of_period = {shape, line};
    }
  }
  std::ranges::stable_sort(best, {}, [](const ToothCandidate& each) { return each.line.cost; });
  return best;
}

/// Looks around a candidate in ever smaller steps, with a cap that falls to the one of `terms` as the shape gets exact.
ToothCandidate refine_period(const Readings& all, ToothCandidate best, FitTerms terms, double first_cap, double range) {
  double of_period = kDriftOverRange * best.shape.period * best.shape.period / range;
  double of_phase = best.shape.period / kPhasesAPeriod;
  const double last_cap = terms.cap;
  for (int round = 0; round < kRefinements; ++round) {
    terms.cap = std::max(last_cap, first_cap);
    const CappedFit fit(all, terms);
    best.line = fit.fit(best.shape);
    const ToothShape centre = best.shape;
    for (int i = -2; i <= 2; ++i)
      for (int j = -2; j <= 2; ++j) {
        const ToothShape shape{centre.period + i * of_period / 2, centre.phase + j * of_phase / 2};
        if (shape.period <= 0) continue;
        if (const ToothLine line = fit.fit(shape); line.cost < best.line.cost) best = {shape, line};
      }
    of_period /= kShrink, of_phase /= kShrink, first_cap /= kShrink;
  }
  terms.cap = last_cap;
  best.line = CappedFit(all, terms).fit(best.shape);
  return best;
}

/// Standard deviation of the residuals, outliers apart.
double noise_around(const CappedFit& fit, const ToothCandidate& best, std::size_t count) {
  std::vector<double> sizes;
  for (std::size_t i = 0; i < count; ++i) sizes.push_back(std::abs(fit.residual(best.shape, best.line, i)));
  return kNormalMad * median(std::move(sizes));
}

Sawtooth sawtooth_of(const ToothCandidate& best) {
  const double turns = best.shape.phase / best.shape.period;
  return {best.shape.period, std::abs(best.line.height), (turns - std::floor(turns)) * best.shape.period,
          best.line.height > 0};
}

Expected<Readings> readings_of(std::span<const WaitSample> samples) {
  Readings all;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const WaitSample& sample = samples[i];
    if (sample.sleep < Duration{0} || sample.time <= Duration{0} || sample.streams < 1)
      return invalid_input(fmt::format(
          "sample {} has a sleep of {} ns, {} streams and a time of {} ns; a sleep is not negative, there is a stream, "
          "and a time is above 0",
          i, sample.sleep.count(), sample.streams, sample.time.count()));
    all.add(as_ns(sample.sleep), sample.streams, as_ns(sample.time));
  }
  return all;
}

/// The medians of repetitions: of samples with one sleep and one number of streams.
Readings medians_of(const Readings& all) {
  std::map<std::pair<double, double>, std::vector<double>> repetitions;
  for (std::size_t i = 0; i < all.size(); ++i) repetitions[{all.sleep[i], all.streams[i]}].push_back(all.time[i]);
  Readings medians;
  for (auto& [at, times] : repetitions) medians.add(at.first, at.second, median(std::move(times)));
  return medians;
}

/// Readings by their sleeps: streams and times.
using BySleep = std::map<double, std::vector<std::pair<double, double>>>;

BySleep by_sleep_of(const Readings& readings) {
  BySleep groups;
  for (std::size_t i = 0; i < readings.size(); ++i)
    groups[readings.sleep[i]].emplace_back(readings.streams[i], readings.time[i]);
  return groups;
}

/// The median change of the time from one more stream, over pairs of samples with the same sleep.
double slope_of_pairs(const BySleep& by_sleep) {
  std::vector<double> slopes;
  for (const auto& [sleep, samples] : by_sleep)
    for (std::size_t i = 0; i < samples.size() && slopes.size() < kMostPairs; ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (samples[i].first != samples[j].first)
          slopes.push_back((samples[i].second - samples[j].second) / (samples[i].first - samples[j].first));
  return median(std::move(slopes));
}

/// The readings whose times without the slope lie inside the fences.
Readings without_far_outliers(const Readings& all, double slope) {
  std::vector<double> times;
  for (std::size_t i = 0; i < all.size(); ++i) times.push_back(all.time[i] - slope * all.streams[i]);
  const double low = quantile(times, 0.25), high = quantile(times, 0.75);
  const double reach = kFence * (high - low) + 1;  // 1 ns: times are whole ones
  Readings kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (times[i] >= low - reach && times[i] <= high + reach) kept.add(all.sleep[i], all.streams[i], all.time[i]);
  return kept;
}

/// The median of each sleep, without the slope.
Readings curve_of(const Readings& readings, double slope) {
  Readings curve;
  for (const auto& [sleep, samples] : by_sleep_of(readings)) {
    std::vector<double> times;
    for (const auto& [streams, time] : samples) times.push_back(time - slope * streams);
    curve.add(sleep, 1, median(std::move(times)));
  }
  return curve;
}

/// The fit with a sawtooth, and whether the readings show one.
class WaitFitter {
 public:
  /// @param all  medians of repetitions
  WaitFitter(const Readings& all, bool has_slope) : all_(all), has_slope_(has_slope) {}

  [[nodiscard]] WaitFit fit(const Readings& curve) const {
    const double typical = median(all_.time);
    // Times are whole nanoseconds, and equal ones have no noise.
    const double noise = std::max(noise_of_curve(curve), 1.0);
    const double range = curve.sleep.back() - curve.sleep.front();
    const double spread = quantile(curve.time, 0.95) - quantile(curve.time, 0.05);
    const double first_cap = std::max(kMostNoise * noise, kGridError * spread);
    const std::vector<ToothCandidate> candidates = scan_periods(curve, first_cap);
    // A reading has the noise of several in a median.
    const double readings_a_sleep = static_cast<double>(all_.size()) / static_cast<double>(curve.size());
    const double cap = kMostNoise * noise * std::sqrt(readings_a_sleep);
    const FitTerms terms{.has_slope = has_slope_, .cap = cap};
    ToothCandidate best;
    for (std::size_t i = 0; i < std::min(kRefinedPeriods, candidates.size()); ++i)
      if (const auto refined = refine_period(all_, candidates[i], terms, first_cap, range);
          i == 0 || refined.line.cost < best.line.cost)
        best = refined;
    const CappedFit full(all_, terms);
    const double around = noise_around(full, best, all_.size());
    // A position that is uniform in [0, 1) has the variance 1/12.
    const double standard_error = around * std::sqrt(12 / static_cast<double>(all_.size()));
    const double amplitude = std::abs(best.line.height);
    if (amplitude >= kStandardErrors * standard_error && amplitude >= kLeastAmplitude * typical)
      return result(best, true);
    const CappedFit flat(all_, {.has_sawtooth = false, .has_slope = has_slope_, .cap = cap});
    best.line = flat.fit(best.shape);
    return result(best, false);
  }

 private:
  [[nodiscard]] WaitFit result(const ToothCandidate& best, bool has_sawtooth) const {
    WaitFit fit;
    fit.min_ns = best.line.base + (has_sawtooth ? std::min(0.0, best.line.height) : 0);
    if (has_sawtooth) fit.sawtooth = sawtooth_of(best);
    if (has_slope_) fit.slope_ns = best.line.slope;
    return fit;
  }

  const Readings& all_;
  bool has_slope_;
};

}  // namespace

double Sawtooth::at(double sleep_ns) const {
  const double position = ToothShape{period_ns, phase_ns}.position(sleep_ns);
  return amplitude_ns * (rises ? position : 1 - position);
}

double WaitFit::at(double sleep_ns, int streams) const {
  return min_ns + (sawtooth ? sawtooth->at(sleep_ns) : 0) + slope_ns.value_or(0) * streams;
}

Expected<WaitFit> fit_wait(std::span<const WaitSample> samples) {
  const auto all = readings_of(samples);
  if (!all) return tl::unexpected(all.error());
  const Readings medians = medians_of(*all);
  const BySleep groups = by_sleep_of(medians);
  if (groups.size() < kLeastSleeps)
    return invalid_input(
        fmt::format("the samples have {} different sleeps; a fit needs at least {}", groups.size(), kLeastSleeps));
  const double slope = slope_of_pairs(groups);
  const Readings kept = without_far_outliers(medians, slope);
  const auto [fewest, most] = std::ranges::minmax(kept.streams);
  WaitFit fit = WaitFitter(kept, fewest < most).fit(curve_of(kept, slope));
  fit.worst_ns = *std::ranges::max_element(all->time);
  std::vector<double> residuals;
  for (const WaitSample& sample : samples)
    residuals.push_back(std::abs(as_ns(sample.time) - fit.at(as_ns(sample.sleep), sample.streams)));
  fit.noise_ns = kNormalMad * median(std::move(residuals));
  return fit;
}

}  // namespace tutti::internal
