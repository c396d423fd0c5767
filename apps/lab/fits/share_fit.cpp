#include "apps/lab/fits/share_fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "apps/lab/fits/cost_batch.hpp"
#include "apps/lab/fits/cost_fit.hpp"
#include "model/base/quantile.hpp"
#include "model/machine/route_class.hpp"
#include "model/sharing/bandwidth_model.hpp"

namespace tutti::internal {
namespace {

/// Copies that are not an engine's whole ones.
constexpr std::array kOtherCopies{CostWork::SmUp, CostWork::SmDown, CostWork::RowsUp, CostWork::RowsDown};

/// The rates of a class's copy and of an engine's that run at once, byte/ns.
struct MeasuredPair {
  bool engine_up;
  CopyKind kind;
  Bytes row;  ///< of copies of rows
  double other, engine;
};

double median_of(const CostSample& sample) { return quantile(sample.ns, 0.5); }

/// All rows of a sample's copies.
std::int64_t rows_of(const CostSample& sample) { return sample.count * (sample.bytes.count / sample.row.count); }

/// Rate of copies beside others: what more copies of the same size take longer.
std::optional<double> rate_against(std::span<const CostSample> samples, CostWork work, CostWork against) {
  std::vector<double> rates;
  for (const CostSample& more : samples) {
    if (more.work != work || more.against != against || more.ns.empty()) continue;
    for (const CostSample& fewer : samples) {
      if (fewer.work != work || fewer.against != against || fewer.ns.empty()) continue;
      if (fewer.gpu != more.gpu || fewer.bytes != more.bytes || fewer.count >= more.count) continue;
      const double bytes = static_cast<double>(more.bytes.count * (more.count - fewer.count));
      const double ns = median_of(more) - median_of(fewer);
      if (ns > 0) rates.push_back(bytes / ns);
    }
  }
  return rates.empty() ? std::nullopt : std::optional(quantile(std::move(rates), 0.5));
}

std::vector<MeasuredPair> pairs_of(std::span<const CostSample> samples, CostWork copies) {
  std::vector<MeasuredPair> pairs;
  for (const auto& [engine, up] : {std::pair(CostWork::Up, true), std::pair(CostWork::Down, false)}) {
    const auto other = rate_against(samples, copies, engine), of_engine = rate_against(samples, engine, copies);
    if (!other || !of_engine) continue;
    const auto sample = std::ranges::find_if(
        samples, [&, wanted = engine](const CostSample& one) { return one.work == copies && one.against == wanted; });
    pairs.push_back({up, copy_kind(copies), sample->row, *other, *of_engine});
  }
  return pairs;
}

/// Samples of copies of rows with nothing beside them, each one batch.
std::vector<const CostSample*> rows_alone(std::span<const CostSample> samples, CostWork work) {
  std::vector<const CostSample*> found;
  for (const CostSample& one : samples)
    if (one.work == work && one.beside == Bytes{0} && one.in_a_row == 0 && one.row > Bytes{0} && !one.ns.empty())
      found.push_back(&one);
  return found;
}

/// What each row usually takes longer, ns: shorter rows of as many bytes have more of them.
double usual_gap_ns(std::span<const CostSample* const> rows) {
  std::vector<double> gaps;
  for (const CostSample* shorter : rows) {
    for (const CostSample* longer : rows) {
      if (is_across_lines(shorter->row) || is_across_lines(longer->row) || longer->row <= shorter->row) continue;
      if (longer->bytes != shorter->bytes || longer->count != shorter->count) continue;
      const std::int64_t more = rows_of(*shorter) - rows_of(*longer);
      gaps.push_back((median_of(*shorter) - median_of(*longer)) / static_cast<double>(more));
    }
  }
  return gaps.empty() ? 0 : std::max(0.0, quantile(std::move(gaps), 0.5));
}

/// What each row takes longer at most, ns, beside its bytes at the guaranteed rate: what copies of many rows take
/// longer than those of few. Of each length of rows, the two that differ most: a copy that is late once is not by its
/// rows.
/// @param rate  that rate, byte/ns
double most_gap_ns(std::span<const CostSample* const> rows, bool across_lines, double rate) {
  constexpr std::int64_t kMany = 10'000;
  std::map<Bytes, std::pair<std::int64_t, double>> gaps;  // by length: of so many rows, ns
  for (const CostSample* more : rows) {
    for (const CostSample* fewer : rows) {
      if (is_across_lines(more->row) != across_lines || more->row != fewer->row) continue;
      if (more->gpu != fewer->gpu || more->count != fewer->count) continue;
      const std::int64_t added = rows_of(*more) - rows_of(*fewer);
      if (added < kMany) continue;
      const double each = (allowed(more->ns) - median_of(*fewer)) / static_cast<double>(added);
      gaps[more->row] = std::max(gaps[more->row], {added, each - static_cast<double>(more->row.count) / rate});
    }
  }
  double most = 0;
  for (const auto& [row, gap] : gaps) most = std::max(most, gap.second);
  return most;
}

Gap gap_of(std::span<const CostSample* const> rows, const Bandwidth& rate) {
  const auto most = [&](bool across_lines) {
    const double least = rate.guaranteed.value;
    return Bytes{std::llround(std::ceil(most_gap_ns(rows, across_lines, least) * least))};
  };
  const Bytes usual{std::llround(usual_gap_ns(rows) * rate.nominal.value)};
  Gap gap{usual, std::max(usual, most(false))};
  if (const Bytes in_step = most(true); in_step > gap.guaranteed) gap.in_step = in_step;
  return gap;
}

/// A GPU's links to and from the first memory.
class Sharing {
 public:
  explicit Sharing(const Topology& machine) : machine_(machine) {
    if (machine.memories().empty() || machine.gpus().empty()) return;
    const VertexId memory = machine.memories().front(), gpu = machine.gpus().front();
    up_ = machine.route(memory, gpu);
    down_ = machine.route(gpu, memory);
    if (!up_.empty()) met_.push_back(up_.back());
    if (!down_.empty()) met_.push_back(down_.front());
    std::ranges::sort(met_);
    for (const bool up : {false, true}) classes_[up ? 1 : 0] = make_class(up);
  }
  [[nodiscard]] bool found() const { return !up_.empty() && !down_.empty(); }

  /// Rate of a copy of an engine alone.
  [[nodiscard]] const Bandwidth& alone(bool up) const { return class_of(up).alone; }

  /// Distance between predicted and measured rates: the sum of squared logarithms of their ratios.
  [[nodiscard]] double error(bool up, const CopyCost& cost, std::span<const MeasuredPair> pairs) {
    double sum = 0;
    for (const MeasuredPair& pair : pairs) {
      RouteClass other = class_of(up);
      share_as(machine_, up ? up_ : down_, cost, gap_share(cost, pair.kind, pair.row, pitch_of(pair.row)), other);
      const auto [of_other, of_engine] = rates({std::move(other), class_of(pair.engine_up)});
      sum += std::pow(std::log(of_other / pair.other), 2) + std::pow(std::log(of_engine / pair.engine), 2);
    }
    return sum;
  }

 private:
  [[nodiscard]] const RouteClass& class_of(bool up) const { return classes_[up ? 1 : 0]; }
  [[nodiscard]] RouteClass make_class(bool up) const {
    const auto& weights = machine_.weights();
    return make_route_class(machine_, up ? up_ : down_, {}, up ? weights.h2d : weights.d2h, met_);
  }
  [[nodiscard]] std::array<double, 2> rates(const std::array<RouteClass, 2>& classes) {
    model_.reset(machine_, Basis::Nominal, classes, classes.size());
    std::array<std::uint32_t, 2> kinds{};
    for (std::uint32_t i = 0; i < classes.size(); ++i)
      kinds[i] = model_.add_flow(static_cast<std::uint32_t>(machine_.route_classes().size()) + i);
    model_.finish();
    for (const std::uint32_t kind : kinds) model_.start(model_.group(kind));
    model_.solve();
    return {model_.rate(model_.group(kinds[0])).value, model_.rate(model_.group(kinds[1])).value};
  }

  const Topology& machine_;
  std::span<const LinkId> up_, down_;
  std::vector<LinkId> met_;
  std::array<RouteClass, 2> classes_;  // of an engine's copies, down and up
  BandwidthModel model_;
};

/// The weight and load of least error: from a coarse grid on, each finer one around the best of the one before.
CopyCost best_sharing(Sharing& sharing, bool up, CopyCost cost, std::span<const MeasuredPair> pairs) {
  constexpr int kGrids = 4, kSteps = 8;
  constexpr double kPull = 1e-3;  // towards 1, where the measurements do not say
  const auto written = [](double value) { return std::round(value * 100) / 100; };
  double least = sharing.error(up, cost, pairs);
  double step = 2;  // factor between neighbours
  for (int grid = 0; grid < kGrids; ++grid, step = std::sqrt(std::sqrt(step))) {
    const CopyCost middle = cost;
    for (int w = -kSteps; w <= kSteps; ++w)
      for (int l = -kSteps; l <= kSteps; ++l) {
        CopyCost tried = middle;
        tried.weight = std::clamp(written(middle.weight * std::pow(step, w)), 0.05, 20.0);
        tried.load = std::clamp(written(middle.load * std::pow(step, l)), 0.05, 20.0);
        const double error = sharing.error(up, tried, pairs) +
                             kPull * (std::pow(std::log(tried.weight), 2) + std::pow(std::log(tried.load), 2));
        if (error >= least) continue;
        least = error;
        cost = tried;
      }
  }
  return cost;
}

}  // namespace

CopyCosts fit_sharing(const Topology& machine, std::span<const CostSample> samples) {
  CopyCosts costs = machine.setup().transfer;
  Sharing sharing(machine);
  if (!sharing.found()) return costs;
  for (const CostWork copies : kOtherCopies) {
    const CopyKind kind = copy_kind(copies);
    const bool up = base_of(kind) == CopyKind::Up;
    CopyCost& cost = costs.of(kind);
    if (is_of_rows(kind)) cost.gap = gap_of(rows_alone(samples, copies), sharing.alone(up));
    if (const auto pairs = pairs_of(samples, copies); !pairs.empty()) cost = best_sharing(sharing, up, cost, pairs);
  }
  return costs;
}

}  // namespace tutti::internal
