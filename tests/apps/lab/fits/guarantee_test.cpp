// Guaranteed means guaranteed: no run at a table's rates ends after what the guaranteed graph promises.
#include "apps/lab/fits/guarantee.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "apps/lab/fits/calibration.hpp"
#include "apps/lab/fits/measurement_plan.hpp"
#include "model/base/document.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/machine/ports.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

// ---- a row below the graph

// 400 MB at 20 GB/s are 20 ms by the table, whatever the link is said to guarantee.
TEST(TableBelowTheGraph, LowersWhatIsGuaranteed) {
  const Topology machine = test::star(100, {50}, "  table:\n    - {h2d: {gpu0: 20 GB/s}}\n");
  const LinkId link = *machine.find_link(*machine.find_vertex("hub0"), *machine.find_vertex("gpu0"));
  EXPECT_EQ(machine.link(link).bandwidth, (Bandwidth{{50}, {20}}));
  const Batch batch = test::make_batch(machine, "  - {from: mem0, to: gpu0, size: 400 MB}\n");
  for (const Planner& planner : planners()) {
    EXPECT_EQ(plan(planner, batch).timeline.latency, milliseconds(20)) << planner.name;
    EXPECT_EQ(plan(planner, batch, Basis::Guaranteed).timeline.latency, milliseconds(20)) << planner.name;
  }
}

// Every other link keeps its figure, and the note has the row's place.
TEST(TableBelowTheGraph, IsSaidOnceForEachBandwidth) {
  const Topology machine = test::star(100, {50, 50}, R"(  table:
    - {h2d: {gpu1: 20 GB/s}}
    - {h2d: {gpu0: 50 GB/s, gpu1: 30 GB/s}}
)");
  ASSERT_EQ(machine.notes().size(), 1U);
  EXPECT_EQ(machine.notes()[0].text(),
            "m.yaml:14:7: with [h2d gpu1] active the table gives h2d gpu1 20 GB/s, and the links guarantee it 50; the "
            "link hub0 -> gpu1 counts as guaranteed 20 GB/s in place of 50; write that there, or measure the row "
            "again");
  EXPECT_TRUE(test::star(100, {50, 50}, "  table:\n    - {h2d: {gpu1: 50 GB/s}}\n").notes().empty());
}

// Both directions of gpu0 cannot be active together on one engine, so a row of them says nothing.
TEST(TableBelowTheGraph, DoesNotCountWhatCannotBeActive) {
  const Topology machine = test::make_machine(R"(  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu, copy_engines: 1}}
  links: [{from: mem0, to: gpu0, bandwidth: 50 GB/s, back: 50 GB/s}]
  table: [{h2d: {gpu0: 20 GB/s}, d2h: {gpu0: 20 GB/s}}]
)");
  EXPECT_TRUE(machine.notes().empty());
}

// Written and read again it is the same machine, and nothing is left to say.
TEST(TableBelowTheGraph, IsWrittenAsItCounts) {
  const Topology machine = test::star(100, {50, 50}, "  table:\n    - {h2d: {gpu0: 20 GB/s, gpu1: 12.345 GB/s}}\n");
  EXPECT_FALSE(machine.notes().empty());
  const auto again = parse_document(machine_yaml(machine), "again.yaml").and_then(machine_from).value();
  EXPECT_EQ(again, machine);
  EXPECT_TRUE(again.notes().empty());
}

/// A row of some ports of any kind, at rates of the graph, more or less; nothing where it has the first memory's alone.
std::optional<TableRow> random_row(const Topology& machine, double least, test::Random& random) {
  const std::size_t gpus = machine.gpus().size();
  const std::size_t count = 2 * gpus * machine.memories().size() + gpus * (gpus - 1);
  PortSet ports;
  for (std::size_t tries = 0; tries < 2 * gpus; ++tries) {
    const PortSet more = ports | PortSet(PortId(random.below(count)));
    if (can_be_active(machine, more)) ports = more;
  }
  if (ports.empty() || is_of_first_memory(machine, ports.last())) return std::nullopt;
  const auto rates = SteadyRates().find(machine, Basis::Nominal, ports).rates;
  TableRow row;
  for (const PortId port : ports) {
    const auto [from, to] = ends_of(machine, port);
    const GBps rate{rates[ports.rank(port)] * random.real(least, 1.1)};
    row.copies.push_back({machine.vertex(from).name, machine.vertex(to).name, rate});
  }
  return row;
}

/// A machine with a table of random rows: rates of the graph, more or less.
Topology with_random_table(const Topology& machine, test::Random& random) {
  const std::size_t gpus = machine.gpus().size();
  std::vector<std::vector<std::uint32_t>> symmetric;
  if (gpus > 1 && random.one_in(2)) {
    symmetric.emplace_back();
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
      if (!random.one_in(4)) symmetric.back().push_back(gpu);
  }
  SteadyRates steady;
  const bool complete = random.one_in(2);
  const double least = random.real(0.3, 1);
  MachineSpec spec = graph_of(machine);
  const auto name = [&](std::uint32_t gpu) { return machine.vertex(machine.gpus()[gpu]).name; };
  for (const auto& group : symmetric) {
    std::vector<std::string> names;
    for (const std::uint32_t gpu : group) names.push_back(name(gpu));
    spec.symmetric.push_back(std::move(names));
  }
  const auto group_of = [&](std::uint32_t gpu) {
    for (std::size_t g = 0; g < symmetric.size(); ++g)
      if (std::find(symmetric[g].begin(), symmetric[g].end(), gpu) != symmetric[g].end())
        return static_cast<std::uint32_t>(100 + g);
    return gpu;
  };
  for (std::uint64_t bits = 1; bits < port_sets(gpus); ++bits) {
    const PortSet streams = PortSet::of_bits(bits);
    if (canonical(streams, symmetric) != streams || (!complete && random.one_in(3))) continue;
    const auto rates = steady.find(machine, Basis::Nominal, streams).rates;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> of_role;
    TableRow& entry = spec.table.emplace_back();
    for (const PortId port : streams) {
      const auto [gpu, direction] = CopyPort::at(port);
      const std::uint32_t role = 4 * (state_of(streams, gpu) == 3) + port.value % 2;
      const double rate =
          of_role.emplace(std::pair(group_of(gpu), role), rates[streams.rank(port)] * random.real(least, 1.1))
              .first->second;
      (direction == Direction::HostToDevice ? entry.h2d : entry.d2h).emplace_back(name(gpu), GBps{rate});
    }
  }
  std::set<PortSet> further;
  for (int i = 0; i < 8; ++i) {
    const auto row = random_row(machine, least, random);
    if (!row) continue;
    PortSet ports;
    for (const CopyRate& copy : row->copies)
      ports.insert(*find_port(machine, *machine.find_vertex(copy.from), *machine.find_vertex(copy.to)));
    if (further.insert(ports).second) spec.table.push_back(*row);
  }
  auto built = compile(spec);
  EXPECT_TRUE(built.has_value()) << built.error().text();
  return *std::move(built);
}

/// The most that the guaranteed graph gives a stream above its row, relative, over all combinations; with the slow
/// solver.
double worst_excess(const Topology& machine) {
  const auto capacities = test::slow_capacities(machine, Basis::Guaranteed);
  double worst = -1;
  if (machine.table() == nullptr) return worst;
  for (const auto& [streams, row] : machine.table()->combinations()) {
    if (!can_be_active(machine, streams)) continue;
    std::vector<test::SlowFlow> flows;
    for (const PortId port : streams)
      flows.push_back({class_at(machine, port, {}).weight, test::slow_costs(machine, links_at(machine, port))});
    const auto rates = test::slow_max_min(capacities, flows);
    for (const PortId port : streams)
      worst = std::max(worst, rates[streams.rank(port)] / machine.table()->rate(row, streams, port).value - 1);
  }
  return worst;
}

// Random tables, mostly below the graph: what counts as guaranteed is at or below each row and each exchange of it.
TEST(TableBelowTheGraph, NothingIsGuaranteedThatATableDoesNotGive) {
  test::Random random(7);
  int lowered = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const Topology plain = test::random_machine(seed);
    if (plain.gpus().size() > 4) continue;
    const Topology machine = with_random_table(plain, random);
    EXPECT_LE(worst_excess(machine), 1e-9) << "seed " << seed;
    for (std::size_t i = 0; i < machine.links().size(); ++i)
      EXPECT_LE(machine.links()[i].bandwidth.guaranteed, plain.links()[i].bandwidth.guaranteed);
    lowered += machine.notes().empty() ? 0 : 1;
  }
  EXPECT_GT(lowered, 30);
}

/// How many streams end after their latest finish, of batches that are planned at guaranteed rates and run at nominal
/// ones: those of the table, where it has the combination.
int late_streams(const Topology& machine, std::uint64_t seed, int batches) {
  int late = 0;
  for (int b = 0; b < batches; ++b) {
    const Batch batch = test::random_batch(machine, seed + static_cast<std::uint64_t>(b));
    for (const Planner& planner : planners()) {
      const ExecutionPlan planned = plan(planner, batch, Basis::Guaranteed);
      const LatestFinish latest = latest_finish(planned);
      const Timeline run = replay(planned, Basis::Nominal);
      for (std::size_t s = 0; s < run.streams.size(); ++s) late += run.streams[s].end() > latest.streams[s] ? 1 : 0;
    }
  }
  return late;
}

TEST(TableBelowTheGraph, NoBatchOfARandomTableEndsAfterItsLatestFinish) {
  test::Random random(11);
  for (std::uint64_t seed = 0; seed < test::rounds(100U); ++seed) {
    const Topology plain = test::random_machine(seed);
    if (plain.gpus().size() > 4) continue;
    EXPECT_EQ(late_streams(with_random_table(plain, random), 1000 * seed, 20), 0) << "seed " << seed;
  }
}

// Fixed shares are rates that the machine gives at any instant, so without them no transfer ends later: what
// bandwidth_allocation predicts is never below what a plan can reach. Kernels are left out: who waits for whom is
// another matter.
TEST(TableBelowTheGraph, FixedSharesAreNoFasterThanAllAtOnce) {
  test::Random random(13);
  int shorter = 0;
  for (std::uint64_t seed = 0; seed < test::rounds(300U); ++seed) {
    const Topology plain = test::random_machine(seed);
    if (plain.gpus().size() > 4) continue;
    const Topology machine = with_random_table(plain, random);
    for (std::uint64_t b = 0; b < 10; ++b) {
      std::vector<CommandStream> copies;
      const Batch made = test::random_batch(machine, 10 * seed + b);
      for (CommandStream stream : made.streams()) {
        stream.kernel.reset();
        if (stream.transfer) copies.push_back(stream);
      }
      const auto batch = Batch::make(machine, copies);
      if (!batch || batch->shares_engines()) continue;  // no transfer; or some that wait for each other
      const Timeline shared = plan(*find_planner("bandwidth_allocation"), *batch).timeline;
      const Timeline at_once = plan(*find_planner("all_at_once"), *batch).timeline;
      EXPECT_GE(shared.latency + Duration{2}, at_once.latency) << "seed " << seed << ", batch " << b << "\n"
                                                               << test::describe(machine, *batch);
      shorter += at_once.latency < shared.latency ? 1 : 0;
    }
  }
  EXPECT_GT(shorter, test::rounds(300));
}

// ---- further memories, and copies between GPUs

/// Two memories, four GPUs, a switch between the GPUs that is too slow for all of them.
Topology two_memories() {
  return test::make_machine(R"(  vertices:
    mem0: {kind: memory}
    mem1: {kind: memory}
    cpu0: {kind: cpu}
    cpu1: {kind: cpu}
    sw0: {kind: switch}
    sw1: {kind: switch}
    gpu0: {kind: gpu, copy_engines: 3}
    gpu1: {kind: gpu, copy_engines: 3}
    gpu2: {kind: gpu, copy_engines: 3}
    gpu3: {kind: gpu, copy_engines: 3}
  links:
    - {from: mem0, to: cpu0, bandwidth: 120 GB/s, back: 110 GB/s}
    - {from: mem1, to: cpu1, bandwidth: 90 GB/s, back: 80 GB/s}
    - {from: cpu1, to: cpu0, bandwidth: 70 GB/s, back: 60 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 55 GB/s, back: 54 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 55 GB/s, back: 54 GB/s}
    - {from: cpu0, to: gpu2, bandwidth: 55 GB/s, back: 54 GB/s}
    - {from: cpu0, to: gpu3, bandwidth: 55 GB/s, back: 54 GB/s}
    - {from: gpu0, to: sw0, bandwidth: 390 GB/s, back: 380 GB/s}
    - {from: gpu1, to: sw0, bandwidth: 390 GB/s, back: 380 GB/s}
    - {from: sw0, to: sw1, bandwidth: 500 GB/s, back: 500 GB/s}
    - {from: gpu2, to: sw1, bandwidth: 390 GB/s, back: 380 GB/s}
    - {from: gpu3, to: sw1, bandwidth: 390 GB/s, back: 380 GB/s}
  peer_access: all
)");
}

/// The same links, of which nothing is known.
Topology unknown(const Topology& truth) {
  return test::changed(truth, [](MachineSpec& spec) {
    for (LinkSpec& link : spec.links) link.bandwidth = GBps{100};
  });
}

Measurements measure_all(const Topology& truth, double noise, std::uint64_t seed) {
  test::Random random(seed);
  SteadyRates steady;
  Measurements measurements;
  const MeasurementPlan planned = plan_measurements(truth).value();
  for (int repetition = 0; repetition < 2; ++repetition) {
    for (const PortSet& streams : planned.combinations)
      measurements.rates.push_back({streams, steady.find(truth, Basis::Nominal, streams).rates, ""});
    for (const CopyRouteSet& copy_routes : planned.copy_routes)
      measurements.copy_routes.push_back(
          {copy_routes, steady.find(truth, Basis::Nominal, ports_of(truth, copy_routes)), ""});
  }
  for (MeasuredRates& measured : measurements.rates)
    for (double& rate : measured.rates) rate *= 1 + random.real(-noise, noise);
  for (MeasuredRoutes& measured : measurements.copy_routes)
    for (double& rate : measured.rates) rate *= 1 + random.real(-noise, noise);
  return measurements;
}

// 1 % of noise: no rate of any copy is predicted further off than three times that, and none is guaranteed that was not
// measured in every repetition.
TEST(FurtherWays, AreFittedAndGuaranteed) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers change no figure, and other calibrations run the same code";
  const Topology truth = two_memories();
  const Measurements measured = measure_all(truth, 0.01, 1);
  const Calibration found = calibrate(measured, unknown(truth)).value();
  EXPECT_LE(worst_excess(found.machine), 1e-9);
  EXPECT_EQ(late_streams(found.machine, 5, test::rounds(100)), 0);
  EXPECT_TRUE(found.undetermined.empty() || found.undetermined.front().find("runs at") == std::string::npos);
  SteadyRates rates;
  for (const MeasuredRoutes& one : measured.copy_routes) {
    const std::vector<PortId> ports = ports_of(truth, one.copy_routes);
    const auto is = rates.find(truth, Basis::Nominal, ports);
    const auto fitted = rates.find(found.machine, Basis::Nominal, ports);
    const auto guaranteed = rates.find(found.machine, Basis::Guaranteed, ports);
    for (std::size_t i = 0; i < is.size(); ++i) {
      EXPECT_NEAR(fitted[i] / is[i], 1, 0.03) << routes_text(one.copy_routes);
      EXPECT_LE(guaranteed[i], one.rates[i] * (1 + 1e-6)) << routes_text(one.copy_routes);
      EXPECT_GE(guaranteed[i], 0.85 * is[i]) << routes_text(one.copy_routes);
    }
  }
}

// Copies between GPUs that halve what goes up beside them, over nothing that the graph knows: the table has it,
// guaranteed rates cover it, and it is told. 55 / 2 = 27.5 GB/s.
TEST(FurtherWays, WhatDisturbsOthersIsGuaranteedAndTold) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers change no figure, and other calibrations run the same code";
  const Topology truth = two_memories();
  Measurements measured = measure_all(truth, 0, 1);
  const CopyRouteSet pair{{{false, 0}, {true, 0}}, {{true, 0}, {true, 1}}};
  for (MeasuredRoutes& one : measured.copy_routes)
    if (one.copy_routes == pair) one.rates[0] /= 2;
  const Calibration found = calibrate(measured, unknown(truth)).value();
  EXPECT_LE(SteadyRates().find(found.machine, Basis::Guaranteed, ports_of(truth, pair))[0], 27.5);
  const PortSet ports = PortSet(ports_of(truth, pair)[0]) | PortSet(ports_of(truth, pair)[1]);
  const PortRates nominal = SteadyRates().find(found.machine, Basis::Nominal, ports);
  EXPECT_NEAR(nominal.rates[0], 27.5, 0.01);
  EXPECT_EQ(nominal.source, RateSource::Table);
  EXPECT_TRUE(std::any_of(found.undetermined.begin(), found.undetermined.end(), [](const std::string& sentence) {
    return sentence.starts_with("memory0 -> gpu0 runs at 27.5 GB/s in [memory0 -> gpu0, gpu0 -> gpu1]");
  }));
}

// One GPU copies to another beside each of its own copies and its neighbour's; no two copies of a set need one engine.
TEST(FurtherWays, ArePlannedWithoutTwoOnOneEngine) {
  const Topology machine = two_memories();
  const MeasurementPlan planned = plan_measurements(machine).value();
  for (const CopyRouteSet& copy_routes : planned.copy_routes)
    EXPECT_TRUE(can_be_active(machine, copy_routes)) << routes_text(copy_routes);
  const auto has = [&](const CopyRouteSet& copy_routes) {
    return std::find(planned.copy_routes.begin(), planned.copy_routes.end(), copy_routes) != planned.copy_routes.end();
  };
  EXPECT_TRUE(has({{{false, 1}, {true, 2}}}));
  EXPECT_TRUE(has({{{true, 0}, {true, 1}}, {{true, 1}, {true, 0}}}));
  EXPECT_TRUE(has({{{true, 0}, {true, 1}}, {{true, 1}, {true, 2}}, {{true, 2}, {true, 3}}, {{true, 3}, {true, 0}}}));
  const Topology two = compile(with_copy_engines(graph_of(machine), std::vector{2, 2, 2, 2})).value();
  EXPECT_FALSE(can_be_active(two, {{{true, 0}, {false, 0}}, {{true, 0}, {true, 1}}}));
  EXPECT_TRUE(can_be_active(machine, {{{true, 0}, {false, 0}}, {{true, 0}, {true, 1}}}));
}

// A machine that is not said to have such copies leaves them out, with a sentence.
TEST(FurtherWays, OfAnUnknownMachineAreLeftOut) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers change no figure, and other calibrations run the same code";
  const Calibration found = calibrate(measure_all(two_memories(), 0, 1), std::nullopt).value();
  ASSERT_FALSE(found.left_out.empty());
  EXPECT_NE(found.left_out.front().find("the machine 'calibrated' has no such copies"), std::string::npos);
}

// ---- machines beyond four GPUs, calibrated

/// GPUs on two switches, nearly alike, behind a memory that they share both ways.
Topology synthetic(std::uint64_t seed, int gpus) {
  test::Random random(seed);
  std::string text =
      "  vertices:\n    mem0: {kind: memory}\n    cpu0: {kind: cpu}\n    sw0: {kind: switch}\n    sw1: {kind: "
      "switch}\n";
  std::string links =
      fmt::format("  links:\n    - {{from: mem0, to: cpu0, bandwidth: {:.2f} GB/s, back: {:.2f} GB/s}}\n",
                  random.real(25, 50) * gpus, random.real(20, 45) * gpus);
  const double uplink = random.real(30, 60) * gpus / 2;
  for (int s = 0; s < 2; ++s)
    links += fmt::format("    - {{from: cpu0, to: sw{}, bandwidth: {:.2f} GB/s, back: {:.2f} GB/s}}\n", s, uplink,
                         uplink * random.real(0.9, 1));
  for (int g = 0; g < gpus; ++g) {
    text += fmt::format("    gpu{}: {{kind: gpu}}\n", g);
    links += fmt::format("    - {{from: sw{}, to: gpu{}, bandwidth: {:.2f} GB/s, back: {:.2f} GB/s}}\n", g % 2, g,
                         55 * random.real(0.985, 1.015), 54 * random.real(0.985, 1.015));
  }
  const std::string shared = fmt::format(
      "  shared:\n    - {{name: both, capacity: {:.2f} GB/s, members: [{{from: mem0, to: cpu0}}, {{from: cpu0, to: "
      "mem0, "
      "cost: 1.2}}]}}\n  weights: {{d2h: 1.4}}\n",
      random.real(40, 60) * gpus);
  return test::make_machine(text + links + shared);
}

/// Calibrated from measurements that scatter.
Topology calibrated(const Topology& truth, std::uint64_t seed) {
  test::Random random(seed);
  SteadyRates steady;
  Measurements measurements;
  measurements.host = "synthetic";
  const MeasurementPlan planned = plan_measurements(truth).value();
  for (const PortSet& streams : planned.combinations) {
    auto rates = steady.find(truth, Basis::Nominal, streams).rates;
    for (double& rate : rates) rate *= 1 + random.real(-0.03, 0.03);
    measurements.rates.push_back({streams, std::move(rates), ""});
  }
  return calibrate(measurements, std::nullopt).value().machine;
}

class BeyondFourGpus : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Model, BeyondFourGpus, testing::Values(6, 8));

TEST_P(BeyondFourGpus, NoBatchEndsAfterItsLatestFinish) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers change no figure, and other calibrations run the same code";
  constexpr int kBatches = test::rounds(300);  // 10,000 have been looked at
  const Topology machine = calibrated(synthetic(1, GetParam()), 2);
  EXPECT_EQ(late_streams(machine, 3, kBatches), 0);
  EXPECT_LE(worst_excess(machine), 1e-9);
}

}  // namespace
}  // namespace tutti::internal
