#include "apps/lab/fits/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

BatchResidual compare_batch(const Topology& machine, const MeasuredBatch& measured, BatchSimulation& workspace) {
  const double predicted =
      predict(*find_planner("all_at_once"), batch_of(machine, measured), Basis::Nominal, workspace);
  BatchResidual result{measured.place, 0, predicted / 1e6, {}};
  for (std::size_t s = 0; s < measured.streams.size(); ++s) {
    const double finish = measured.streams[s].finish_ns;
    result.measured_ms = std::max(result.measured_ms, finish / 1e6);
    result.streams.push_back(workspace.times()[s].transfer_end / finish - 1);
  }
  return result;
}

/// Collects the parts that are further off than they may be.
class Drift {
 public:
  void look_at(std::string what, double before, double now, double tolerance) {
    if (std::abs(now / before - 1) > tolerance) moved_.push_back({std::move(what), before, now});
  }

  std::vector<Moved> result() {
    std::stable_sort(moved_.begin(), moved_.end(), [](const Moved& a, const Moved& b) {
      return std::abs(std::log(a.now / a.before)) > std::abs(std::log(b.now / b.before));
    });
    return std::move(moved_);
  }

 private:
  std::vector<Moved> moved_;
};

}  // namespace

Batch batch_of(const Topology& machine, const MeasuredBatch& measured) {
  std::vector<CommandStream> streams;
  for (const auto& [stream, bytes, finish] : measured.streams) {
    CommandStream& command = streams.emplace_back();
    command.name = fmt::format("s{}", stream.id().value);
    const auto [from, to] = ends_of(machine, stream.id());
    command.transfer = Transfer{from, to, {static_cast<std::int64_t>(bytes)}, {}, {}};
  }
  return Batch::make(machine, std::move(streams)).value();
}

std::vector<double> Comparison::rate_errors() const {
  std::vector<double> errors;
  for (const Residual& residual : rates)
    for (std::size_t i = 0; i < residual.measured.size(); ++i)
      errors.push_back(std::abs(residual.predicted[i] / residual.measured[i] - 1));
  return errors;
}

std::vector<double> Comparison::length_errors() const {
  std::vector<double> errors;
  for (const BatchResidual& batch : batches) errors.push_back(std::abs(batch.deviation()));
  return errors;
}

Comparison compare_with(const Topology& machine, const CleanMeasurements& measurements) {
  Comparison comparison;
  SteadyRates steady;
  for (const Combination& combination : measurements.combinations) {
    PortRates predicted = steady.find(machine, Basis::Nominal, combination.streams);
    comparison.rates.push_back({combination.streams, combination.rates, std::move(predicted.rates), predicted.source});
  }
  BatchSimulation workspace;
  for (const MeasuredBatch& batch : measurements.batches)
    comparison.batches.push_back(compare_batch(machine, batch, workspace));
  return comparison;
}

Topology plain_model(const Topology& machine) {
  MachineSpec spec = graph_of(machine);
  spec.shared.clear();
  spec.weights.d2h = spec.weights.peer = spec.weights.h2d;
  return compile(spec).value();
}

std::vector<Moved> find_drift(const Comparison& now) {
  constexpr double kTolerance = 0.05, kCombination = 0.15, kInterpolated = 0.4;
  Drift drift;
  std::map<PortId, std::vector<double>> of_stream;
  std::vector<double> of_all;
  for (const Residual& residual : now.rates) {
    double before = 0, measured = 0;
    std::size_t i = 0;
    for (const PortId port : residual.streams) {
      of_all.push_back(residual.measured[i] / residual.predicted[i]);
      of_stream[port].push_back(of_all.back());
      before += residual.predicted[i];
      measured += residual.measured[i++];
    }
    const bool alone = residual.streams.size() == 1;
    const bool known = residual.source == RateSource::Table;
    drift.look_at(ports_text(residual.streams) + (alone ? " alone" : " together"), before, measured,
                  alone   ? kTolerance
                  : known ? kCombination
                          : kInterpolated);
  }
  for (const auto& [port, of_one] : of_stream)
    drift.look_at(ports_text(PortSet(port)) + ", median of all its combinations, of 1", 1, median(of_one), kTolerance);
  if (!of_all.empty()) drift.look_at("all rates, median, of 1", 1, median(of_all), kTolerance);
  std::vector<double> lengths;
  for (const BatchResidual& batch : now.batches) {
    lengths.push_back(batch.measured_ms / batch.predicted_ms);
    drift.look_at(batch.place + ", its length in ms", batch.predicted_ms, batch.measured_ms, kInterpolated);
  }
  if (!lengths.empty()) drift.look_at("lengths of all batches, median, of 1", 1, median(lengths), kTolerance);
  return drift.result();
}

}  // namespace tutti::internal
