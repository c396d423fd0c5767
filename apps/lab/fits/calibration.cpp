#include "apps/lab/fits/calibration.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "apps/lab/fits/graph_fit.hpp"
#include "apps/lab/fits/guarantee.hpp"
#include "apps/lab/fits/measurement_plan.hpp"
#include "apps/lab/fits/rate_corrections.hpp"
#include "apps/lab/fits/route_fit.hpp"
#include "apps/lab/fits/share_fit.hpp"
#include "apps/lab/fits/table_maker.hpp"
#include "model/base/digits.hpp"
#include "model/base/quantile.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

// ---- before the fit

/// One memory, one processor, every GPU on a link of its own. The bandwidths are to be fitted.
Topology star(std::size_t gpus) {
  const GBps any{50};
  MachineSpec spec{
      .name = "calibrated",
      .vertices = {{.name = "mem0", .kind = VertexKind::Memory}, {.name = "cpu0", .kind = VertexKind::Cpu}},
      .links = {{"mem0", "cpu0", any, any}}};
  for (std::size_t g = 0; g < gpus; ++g) {
    spec.vertices.push_back({.name = fmt::format("gpu{}", g), .kind = VertexKind::Gpu});
    spec.links.push_back({"cpu0", spec.vertices.back().name, any, any});
  }
  return compile(spec).value();
}

/// Leaves out combinations that move more over a link than it can carry by its standard.
void leave_out_impossible(const Topology& machine, CleanMeasurements& clean) {
  constexpr double kSlack = 1.02;
  const auto exceeded = [&](const Combination& combination) {
    if (!first_memory_has(machine, combination.streams)) return false;
    std::vector<double> load(machine.links().size(), 0);
    for (const PortId port : combination.streams)
      for (const LinkId link : links_at(machine, port))
        load[link.index()] += combination.rates[combination.streams.rank(port)];
    for (std::size_t l = 0; l < load.size(); ++l) {
      const Link& link = machine.links()[l];
      const auto& theoretical = link.bandwidth.theoretical;
      if (!theoretical || load[l] <= kSlack * theoretical->value) continue;
      clean.left_out.push_back(fmt::format("{} moves {:.1f} GB/s over {} -> {}, which carries {} at most",
                                           ports_text(combination.streams), load[l], machine.vertex(link.from).name,
                                           machine.vertex(link.to).name, to_string(*theoretical)));
      return true;
    }
    return false;
  };
  std::erase_if(clean.combinations, exceeded);
}

/// The reason why the measurements cannot be used with the machine; nothing where they can.
std::optional<std::string> misfit(const Topology& machine, const CleanMeasurements& clean, std::size_t measured_gpus) {
  if (clean.combinations.empty()) return "there is no combination of streams that can be used; measure some rates";
  if (machine.memories().empty()) return "the machine has no memory; add a vertex of kind memory";
  if (measured_gpus > machine.gpus().size()) {
    return fmt::format("gpu {} was measured, and the machine '{}' has {} GPUs; name the machine that was measured",
                       measured_gpus - 1, machine.name(), machine.gpus().size());
  }
  if (machine.gpus().size() > kMostCalibrated) {
    return fmt::format("{} GPUs; a calibration serves {} at most", machine.gpus().size(), kMostCalibrated);
  }
  PortSet measured;
  for (const Combination& combination : clean.combinations) measured |= combination.streams;
  for (std::size_t p = 0; p < 2 * machine.gpus().size(); ++p) {
    const PortSet port(PortId{p});
    if (!first_memory_has(machine, port))
      return fmt::format("the machine '{}' has no way for {}; add the missing links", machine.name(), ports_text(port));
    if (!measured.includes(port))
      return fmt::format("{} was never measured; measure every stream at least once, best alone", ports_text(port));
  }
  return std::nullopt;
}

/// Leaves out copies that the machine cannot do.
void leave_out_strangers(const Topology& machine, CleanMeasurements& clean) {
  for (auto* combinations : {&clean.copy_routes, &clean.doubtful_routes})
    std::erase_if(*combinations, [&](const RouteCombination& combination) {
      if (can_be_active(machine, combination.copy_routes)) return false;
      clean.left_out.push_back(
          fmt::format("[{}]: the machine '{}' has no such copies, or not together; name the machine "
                      "that was measured",
                      routes_text(combination.copy_routes), machine.name()));
      return true;
    });
}

/// The machine with the copy engines that were seen at work.
Expected<Topology> with_engines(const Topology& machine, const std::vector<int>& copy_engines) {
  if (copy_engines.size() != machine.gpus().size()) return machine;
  return compile(with_copy_engines(graph_of(machine), copy_engines));
}

// ---- together

/// A hash: equal measurements have equal fingerprints.
std::string fingerprint(const CleanMeasurements& clean, const CostMeasurements& costs) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325U;  // FNV-1a
  const auto add = [&](double value) {
    for (auto bits = std::bit_cast<std::uint64_t>(value); const int shift : {0, 8, 16, 24, 32, 40, 48, 56})
      hash = (hash ^ (bits >> shift & 0xffU)) * 0x100'0000'01b3U;
  };
  for (const Combination& combination : clean.combinations) {
    double streams = 0;  // as a binary number
    for (const PortId port : combination.streams) streams += std::exp2(port.value);
    add(streams);
    for (const double rate : combination.rates) add(rate);
    for (const double rate : combination.lowest) add(rate);
  }
  for (const MeasuredBatch& batch : clean.batches)
    for (const auto& stream : batch.streams) {
      add(stream.stream.id().value);
      add(stream.bytes);
      add(stream.finish_ns);
    }
  for (const auto& combinations : {clean.copy_routes, clean.doubtful_routes})
    for (const RouteCombination& combination : combinations) {
      for (const CopyRoute& copy_route : combination.copy_routes)
        for (const RouteEnd& end : {copy_route.from, copy_route.to}) add(2.0 * end.position + (end.gpu ? 1 : 0));
      for (const double rate : combination.rates) add(rate);
      for (const double rate : combination.lowest) add(rate);
    }
  for (const CostSample& sample : costs.samples)
    for (const double ns : sample.ns) add(ns);
  for (const auto* times : {&costs.gates, &costs.gates_busy, &costs.gates_loaded, &costs.pauses})
    for (const double ns : *times) add(ns);
  return fmt::format("{:016x}", hash);
}

Provenance provenance(const Measurements& measurements, const CleanMeasurements& clean) {
  constexpr std::size_t kLongest = 300;
  Provenance result;
  result.date = measurements.date.empty() ? "unknown" : measurements.date.substr(0, kLongest);
  result.host = measurements.host.substr(0, kLongest);
  result.sizes = measurements.sizes.empty() ? "unknown" : measurements.sizes.substr(0, kLongest);
  result.fingerprint = fingerprint(clean, measurements.costs);
  result.combinations = static_cast<int>(clean.combinations.size());
  result.batches = static_cast<int>(clean.batches.size());
  result.repetitions = clean.combinations.front().repetitions;
  for (const Combination& combination : clean.combinations)
    result.repetitions = std::min(result.repetitions, combination.repetitions);
  if (const auto& starts = measurements.costs.gates_loaded; !starts.empty())
    result.sizes +=
        fmt::format("; starts behind gates on a busy host: 99 % {:.1f} us late, 99.9 % {:.1f} us, worst {:.1f} us",
                    quantile(starts, 0.99) / 1e3, quantile(starts, 0.999) / 1e3, quantile(starts, 1) / 1e3);
  return result;
}

/// The table with a row for each measured combination that has copies of further memories or between GPUs.
MeasuredTable with_further_rows(const Topology& machine, const MeasuredTable& table,
                                const std::vector<RouteCombination>& combinations) {
  std::vector<PortRates> rows(table.entries().begin(), table.entries().end());
  for (const RouteCombination& combination : combinations) {
    const std::vector<PortId> ports = ports_of(machine, combination.copy_routes);
    PortRates& row = rows.emplace_back();
    for (const PortId port : ports) row.ports.insert(port);
    row.rates.resize(ports.size());
    for (std::size_t i = 0; i < ports.size(); ++i)
      row.rates[row.ports.rank(ports[i])] = to_digits(combination.rates[i], kTableDigits);
    if (is_of_first_memory(machine, row.ports.last())) rows.pop_back();  // its class has a row
  }
  const auto symmetric = table.symmetric();
  return MeasuredTable::make(machine.gpus().size(), {symmetric.begin(), symmetric.end()}, std::move(rows)).value();
}

/// A row as a file has it.
TableRow table_row(const Topology& machine, const PortRates& row) {
  TableRow entry;
  entry.source = row.source;
  const auto name = [&](VertexId vertex) { return machine.vertex(vertex).name; };
  for (const PortId port : row.ports) {
    const GBps rate{row.rates[row.ports.rank(port)]};
    const auto [from, to] = ends_of(machine, port);
    if (!is_of_first_memory(machine, port)) {
      entry.copies.push_back({name(from), name(to), rate});
    } else if (CopyPort::at(port).direction == Direction::HostToDevice) {
      entry.h2d.emplace_back(name(to), rate);
    } else {
      entry.d2h.emplace_back(name(from), rate);
    }
  }
  return entry;
}

/// Why measured costs give no machine; nothing: they do.
std::optional<std::string> absurd_rate(const SetupTimes& setup) {
  for (const CopyCost& cost : setup.transfer.classes)
    if (cost.small && cost.small->guaranteed.value < kLeastRate)
      return fmt::format(
          "small copies would be guaranteed less than {}: a measured one took absurdly long; measure again",
          to_string(GBps{kLeastRate}));
  return std::nullopt;
}

/// Copies of these classes are never faster.
void set_rates(const std::map<CopyKind, Bandwidth>& rates, CopyCosts& costs) {
  for (const auto& [kind, rate] : rates) {
    costs.of(kind).small = rate;
    costs.of(kind).below = kEverySize;
  }
}

}  // namespace

Expected<Calibration> calibrate(const Measurements& measurements, const std::optional<Topology>& base) {
  CleanMeasurements clean_data = clean(measurements);
  const std::size_t gpus = measurements.gpus();
  if (gpus > kMostCalibrated)
    return invalid_input(
        fmt::format("gpu {} was measured; a calibration serves {} GPUs at most", gpus - 1, kMostCalibrated));
  auto engines_known = with_engines(base ? without_background(*base) : star(gpus), measurements.copy_engines);
  if (!engines_known) return tl::unexpected(std::move(engines_known.error()));
  const Topology blank = *std::move(engines_known);
  leave_out_impossible(blank, clean_data);
  leave_out_strangers(blank, clean_data);
  if (auto sentence = misfit(blank, clean_data, gpus)) {
    for (const std::string& left_out : clean_data.left_out) *sentence += "\n  left out: " + left_out;
    return invalid_input(*std::move(sentence));
  }
  GraphFit fit = fit_graph(blank, clean_data.combinations);
  SteadyRates steady;
  const auto graph = [&](const PortSet& streams) { return steady.find(fit.machine, Basis::Nominal, streams).rates; };
  const RateCorrections corrections(blank.gpus().size(), graph, clean_data.combinations, clean_data.batches);
  const auto [of_first_memory, strained] = make_table(blank.gpus().size(), clean_data.combinations, corrections);
  if (strained)
    fit.undetermined.push_back(
        "GPUs are taken for symmetric whose rates differ more than the measurements scatter: the "
        "table would have too many rows otherwise");

  const RouteFit route_fit = fit_routes(fit.machine, clean_data.copy_routes);
  fit.undetermined.insert(fit.undetermined.end(), route_fit.undetermined.begin(), route_fit.undetermined.end());
  const MeasuredTable table = with_further_rows(blank, of_first_memory, clean_data.copy_routes);
  MachineSpec spec = graph_of(guarantee(route_fit.machine, clean_data, table));
  spec.provenance = provenance(measurements, clean_data);
  spec.spread = std::min(std::ceil(spread_of(measurements) * 1000) / 1000, kWidestSpread);
  const auto gpu_name = [&](std::uint32_t gpu) { return blank.vertex(blank.gpus()[gpu]).name; };
  for (const auto& group : table.symmetric()) {
    std::vector<std::string> names;
    for (const std::uint32_t gpu : group) names.push_back(gpu_name(gpu));
    spec.symmetric.push_back(std::move(names));
  }
  for (const PortRates& row : table.entries()) spec.table.push_back(table_row(blank, row));
  spec.setup = blank.setup();
  if (!clean_data.batches.empty()) spec.setup.batch = round_up_ns(std::round(corrections.setup_ns() / 100) * 100);
  set_rates(route_fit.of_one_copy, spec.setup.transfer);
  std::optional<CostFit> costs;
  if (!measurements.costs.samples.empty()) {
    spec.setup = {};
    set_rates(route_fit.of_one_copy, spec.setup.transfer);
    spec.setup.transfer = fit_sharing(compile(spec).value(), measurements.costs.samples);
    costs = fit_costs(compile(spec).value(), measurements.costs);
    spec.setup = costs->setup;
    if (auto absurd = absurd_rate(spec.setup)) return invalid_input(*std::move(absurd));
  }
  const Topology measured = compile(spec).value();
  const Topology by_graph = compile(graph_of(measured)).value();
  if (base) spec.background = base->spec().background;
  const auto machine = compile(spec);
  if (!machine) return tl::unexpected(machine.error());
  return Calibration{*machine,
                     compare_with(by_graph, clean_data),
                     compare_with(plain_model(by_graph), clean_data),
                     compare_with(measured, clean_data),
                     corrections.noise(),
                     corrections.batch_speed(),
                     std::move(clean_data.left_out),
                     std::move(fit.undetermined),
                     std::move(costs)};
}

}  // namespace tutti::internal
