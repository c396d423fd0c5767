#include "apps/lab/fits/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "apps/lab/fits/graph_fit.hpp"
#include "apps/lab/fits/measurement_plan.hpp"
#include "apps/lab/fits/rate_corrections.hpp"
#include "apps/lab/fits/table_maker.hpp"
#include "apps/lab/reports/measured_json.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/machine/ports.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"
#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

// ---- a hidden machine is found back

constexpr const char* kFourGpus = R"(
  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu}
    gpu3: {kind: gpu}
  links:
    - {from: mem0, to: cpu0, bandwidth: 190 GB/s, back: 150 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 55 GB/s, back: 52 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 55 GB/s, back: 52 GB/s}
    - {from: cpu0, to: gpu2, bandwidth: 55 GB/s, back: 52 GB/s}
)";

Topology hidden(const std::string& rest) { return test::make_machine(kFourGpus + rest); }

constexpr const char* kFourth = "    - {from: cpu0, to: gpu3, bandwidth: 55 GB/s, back: 52 GB/s}\n";
constexpr const char* kSlowFourth = "    - {from: cpu0, to: gpu3, bandwidth: 27 GB/s, back: 26 GB/s}\n";
constexpr const char* kBothWays = R"(  shared:
    - name: hidden
      capacity: 220 GB/s
      members: [{from: mem0, to: cpu0}, {from: cpu0, to: mem0, cost: 1.3}]
  weights: {d2h: 1.5}
)";
constexpr const char* kReadsBehindWrites = R"(  shared:
    - {name: total, capacity: 220 GB/s, members: [{from: mem0, to: cpu0}, {from: cpu0, to: mem0, cost: 1.3}]}
    - {name: r0, capacity: 150 GB/s, members: [{from: cpu0, to: gpu0}, {from: cpu0, to: mem0, cost: 0.9}]}
    - {name: r1, capacity: 150 GB/s, members: [{from: cpu0, to: gpu1}, {from: cpu0, to: mem0, cost: 0.9}]}
    - {name: r2, capacity: 150 GB/s, members: [{from: cpu0, to: gpu2}, {from: cpu0, to: mem0, cost: 0.9}]}
    - {name: r3, capacity: 150 GB/s, members: [{from: cpu0, to: gpu3}, {from: cpu0, to: mem0, cost: 0.9}]}
  weights: {d2h: 1.5}
)";

/// What the plan of measurements finds on a machine.
/// @param noise  relative; every rate is off by up to so much.
Measurements measure(const Topology& machine, double noise = 0) {
  test::Random random(1);
  SteadyRates steady;
  Measurements measurements;
  measurements.host = "hidden";
  const MeasurementPlan plan = plan_measurements(machine).value();
  for (const PortSet& streams : plan.combinations) {
    auto rates = steady.find(machine, Basis::Nominal, streams).rates;
    for (double& rate : rates) rate *= 1 + random.real(-noise, noise);
    measurements.rates.push_back({streams, std::move(rates), "plan"});
  }
  return measurements;
}

/// The largest relative deviation of a rate, over all 255 combinations.
double worst_rate(const Topology& found, const Topology& truth) {
  SteadyRates steady;
  double worst = 0;
  for (std::uint64_t bits = 1; bits < 256; ++bits) {
    const PortSet streams = PortSet::of_bits(bits);
    const auto is = steady.find(truth, Basis::Nominal, streams).rates;
    const auto fitted = steady.find(found, Basis::Nominal, streams).rates;
    for (std::size_t i = 0; i < is.size(); ++i) worst = std::max(worst, std::abs(fitted[i] / is[i] - 1));
  }
  return worst;
}

/// What is found of a hidden machine; each is calibrated once.
const Calibration& found(const std::string& rest, double noise = 0) {
  static std::map<std::pair<std::string, double>, Calibration> known;
  const auto entry = known.find({rest, noise});
  if (entry != known.end()) return entry->second;
  Calibration made = calibrate(measure(hidden(rest), noise), std::nullopt).value();
  return known.emplace(std::pair(rest, noise), std::move(made)).first->second;
}

class HiddenMachine : public testing::TestWithParam<std::string> {};

// Without noise the graph alone gives every rate of the hidden machine back, measured or not.
TEST_P(HiddenMachine, IsFoundBack) {
  const Topology truth = hidden(GetParam());
  const Topology& machine = found(GetParam()).machine;
  EXPECT_LT(worst_rate(compile(graph_of(machine)).value(), truth), 0.005);
  EXPECT_LT(worst_rate(machine, truth), 0.005);
}

constexpr const char* kAccuracyAlone = "sanitizers change no figure, and other calibrations run the same code";

// Each rate off by up to 1 %: what is found is no further off than three times that.
TEST_P(HiddenMachine, IsFoundBackThroughNoise) {
  if (test::kSanitized) GTEST_SKIP() << kAccuracyAlone;
  const Topology truth = hidden(GetParam());
  EXPECT_LT(worst_rate(found(GetParam(), 0.01).machine, truth), 0.03);
}

// Each takes seconds with sanitizers; the last two have all that the others have.
constexpr int kFirstShape = test::kSanitized ? 2 : 0;

std::string shape_name(const testing::TestParamInfo<std::string>& of) {
  constexpr const char* kNames[] = {"LinksAlone", "BothWays", "OneSlowLink", "ReadsBehindWrites"};
  return kNames[kFirstShape + of.index];
}

std::vector<std::string> shapes() {
  const std::string links = kFourth, slow = kSlowFourth;
  const std::vector<std::string> all{links, links + kBothWays, slow + kBothWays, links + kReadsBehindWrites};
  return {all.begin() + kFirstShape, all.end()};
}

INSTANTIATE_TEST_SUITE_P(Model, HiddenMachine, testing::ValuesIn(shapes()), shape_name);

// The figures themselves: 220 GB/s, cost 1.3, weight 1.5.
TEST(GraphFit, FindsCapacityCostAndWeight) {
  if (test::kSanitized) GTEST_SKIP() << kAccuracyAlone;
  const Topology& machine = found(std::string(kFourth) + kBothWays).machine;
  ASSERT_EQ(machine.shared().size(), 1U);
  EXPECT_EQ(machine.shared()[0].name, "mem0-cpu0-both-ways");
  EXPECT_NEAR(machine.shared()[0].capacity.nominal.value, 220, 0.5);
  EXPECT_NEAR(machine.shared()[0].members[1].cost, 1.3, 0.01);
  EXPECT_NEAR(machine.weights().d2h, 1.5, 0.01);
  EXPECT_NEAR(machine.links()[1].bandwidth.nominal.value, 150, 0.5);  // four down
}

// Three GPUs alike and a slow one: what the measurements of the machine say, not its file.
TEST(Calibration, FindsWhichGpusAreAlike) {
  const auto symmetric_to = [](const std::string& rest) {
    const Topology& machine = found(rest).machine;
    return std::vector(machine.table()->symmetric().begin(), machine.table()->symmetric().end());
  };
  using Groups = std::vector<std::vector<std::uint32_t>>;
  if (!test::kSanitized) {
    EXPECT_EQ(symmetric_to(std::string(kFourth) + kBothWays), (Groups{{0, 1, 2, 3}}));
  }
  EXPECT_EQ(symmetric_to(std::string(kSlowFourth) + kBothWays), (Groups{{0, 1, 2}}));
}

// Four streams up and four down are C(7, 3) - 1 = 34 classes when all four GPUs are alike.
TEST(Calibration, WritesOneRowForEachClassOfCombinations) {
  if (test::kSanitized) GTEST_SKIP() << kAccuracyAlone;
  const Topology& machine = found(std::string(kFourth) + kBothWays).machine;
  EXPECT_EQ(machine.table()->entries().size(), 34U);
  EXPECT_TRUE(machine.table()->complete());
}

// Three GPUs. The graph gives a copy 50 GB/s alone, 45 beside one other and 49 beside more; measured are all copies
// alone and all pairs, at 50 each. So the graph is 50 / 45 - 1 = 11 % low for pairs, and the corrections for larger
// combinations, which are near to these, come to more than 50 / 49 - 1 = 2 %: above a copy alone, but for the cap.
TEST(TableMaker, GivesNoInterpolatedRateAboveThatOfTheCopyAlone) {
  constexpr std::size_t kGpus = 3;
  const auto graph = [](const PortSet& streams) {
    const double rate = streams.size() == 1 ? 50 : streams.size() == 2 ? 45 : 49;
    return std::vector<double>(streams.size(), rate);
  };
  std::vector<Combination> combinations;
  for (std::uint64_t bits = 1; bits < port_sets(kGpus); ++bits)
    if (const PortSet streams = PortSet::of_bits(bits); streams.size() <= 2)
      combinations.push_back(
          {streams, std::vector<double>(streams.size(), 50), std::vector<double>(streams.size(), 50), 1});
  const RateCorrections corrections(kGpus, graph, combinations, {});
  const PortSet three = PortSet::of_bits(0b10101);  // up to each GPU
  EXPECT_GT(corrections.rates(three).front(), 50.5) << "the planted surface overshoots";
  const MeasuredTable table = make_table(kGpus, combinations, corrections).table;
  std::size_t interpolated = 0, capped = 0;
  for (const PortRates& row : table.entries()) {
    interpolated += row.source == RateSource::Interpolated ? 1 : 0;
    for (const double rate : row.rates) {
      EXPECT_LE(rate, 50) << ports_text(row.ports);
      capped += row.source == RateSource::Interpolated && rate == 50 ? 1 : 0;
    }
  }
  EXPECT_GT(interpolated, 0U);
  EXPECT_GT(capped, 0U);
}

// Five GPUs, two of them on slower links: more than are looked at one by one. 20 x 10 - 1 classes of combinations.
TEST(Calibration, ServesMoreGpusInGroups) {
  if (test::kSanitized) GTEST_SKIP() << kAccuracyAlone;
  const Topology truth = test::star(160, {50, 50, 50, 30, 30});
  const Topology machine = calibrate(measure(truth, 0.002), std::nullopt).value().machine;
  using Groups = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(Groups(machine.table()->symmetric().begin(), machine.table()->symmetric().end()),
            (Groups{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(machine.table()->entries().size(), 199U);
  EXPECT_TRUE(machine.table()->complete());
  SteadyRates steady;
  for (std::uint64_t bits = 1; bits < 1024; bits += test::kSanitized ? 31 : 1) {
    const PortSet streams = PortSet::of_bits(bits);
    const auto is = steady.find(truth, Basis::Nominal, streams).rates;
    const auto fitted = steady.find(machine, Basis::Nominal, streams).rates;
    for (std::size_t i = 0; i < is.size(); ++i) EXPECT_NEAR(fitted[i] / is[i], 1, 0.02) << ports_text(streams);
  }
}

TEST(Calibration, NamesWhatTheMeasurementsCannotTell) {
  // One GPU: the link from the memory and the one to the GPU hold it back together.
  Measurements measurements;
  measurements.rates = {
      {PortSet::of_bits(1), {50}, ""}, {PortSet::of_bits(2), {50}, ""}, {PortSet::of_bits(3), {50, 50}, ""}};
  const auto found = calibrate(measurements, std::nullopt).value();
  EXPECT_EQ(found.undetermined,
            (std::vector<std::string>{
                "the weight of d2h against h2d: no measured combination depends on it; 1 is what it was",
                "the measurements cannot tell apart: the link mem0 -> cpu0, the link cpu0 -> gpu0",
                "the measurements cannot tell apart: the link cpu0 -> mem0, the link gpu0 -> cpu0"}));
}

TEST(Calibration, RefusesWhatItCannotFit) {
  const auto refusal = [](std::vector<MeasuredRates> rates, const std::optional<Topology>& base = std::nullopt) {
    Measurements measurements;
    measurements.rates = std::move(rates);
    return calibrate(measurements, base).error().message;
  };
  EXPECT_EQ(refusal({}), "there is no combination of streams that can be used; measure some rates");
  EXPECT_EQ(refusal({{PortSet::of_bits(1), {50}, ""}}),
            "d2h 0 was never measured; measure every stream at least once, best alone");
  EXPECT_EQ(refusal({{PortSet::of_bits(1), {50}, ""},
                     {PortSet::of_bits(2), {50}, ""},
                     {PortSet::of_bits(4), {50}, ""},
                     {PortSet::of_bits(8), {50}, ""}},
                    test::star(100, {50})),
            "gpu 1 was measured, and the machine 'm' has 1 GPUs; name the machine that was measured");
}

// ---- four H200s

const Measurements& h200x4() {
  static const Measurements measurements =
      load_measurements(test::source_path("tests/golden/h200x4-measured.json")).value();
  return measurements;
}

Topology shipped_h200x4() { return load_machine(test::source_path("configs/machines/h200x4.yaml")).value(); }

const Calibration& h200x4_calibration() {
  static const Calibration calibration = calibrate(h200x4(), shipped_h200x4()).value();
  return calibration;
}

/// How accurate the fit of real measurements is, which takes minutes under sanitizers.
class H200x4 : public testing::Test {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << kAccuracyAlone;
  }
};

TEST_F(H200x4, IsTheShippedMachine) {
  const Topology shipped = shipped_h200x4();
  const Topology& again = h200x4_calibration().machine;
  EXPECT_EQ(again.spec().provenance, shipped.spec().provenance);
  ASSERT_EQ(again.links().size(), shipped.links().size());
  for (std::size_t i = 0; i < shipped.links().size(); ++i)
    EXPECT_NEAR(again.links()[i].bandwidth.nominal.value / shipped.links()[i].bandwidth.nominal.value, 1, 1e-3);
  EXPECT_LT(worst_rate(again, shipped), 1e-3);
  EXPECT_TRUE(shipped.notes().empty() && again.notes().empty());  // what is guaranteed is below every row
}

// A measured rate stays as measured where it is above that of the copy alone.
TEST_F(H200x4, HasNoInterpolatedRateAboveThatOfTheCopyAlone) {
  for (const Topology& machine : {shipped_h200x4(), h200x4_calibration().machine}) {
    SteadyRates steady;
    for (const PortRates& row : machine.table()->entries()) {
      if (row.source != RateSource::Interpolated) continue;
      std::size_t next = 0;
      for (const PortId port : row.ports) {
        const double alone = steady.find(machine, Basis::Nominal, PortSet(port)).rates.front();
        EXPECT_LE(row.rates[next++], alone) << ports_text(row.ports);
      }
    }
  }
}

/// Four GPUs, and ordinary memory: one copy of it has 40 GB/s, all together 60. The host's memory has 200, of which a
/// pageable byte takes three, so two copies of each memory have r + 3 r = 100: 25 GB/s.
constexpr const char* kWithHeap = R"(    - {from: cpu0, to: gpu3, bandwidth: 55 GB/s, back: 52 GB/s}
    - {from: heap0, to: cpu0, bandwidth: 60 GB/s, back: 55 GB/s}
  shared:
    - name: mem0-heap0
      capacity: 200 GB/s
      members:
        - {from: mem0, to: cpu0}
        - {from: cpu0, to: mem0}
        - {from: heap0, to: cpu0, cost: 3}
        - {from: cpu0, to: heap0, cost: 3}
)";

Topology with_heap(const std::string& rest) {
  std::string text = kFourGpus;
  text.insert(text.find("  links:"), "    heap0: {kind: memory, pageable: true}\n");
  return test::make_machine(text + rest);
}

// Also where a third of the repetitions of pageable copies are a fifth slower: threads of the host do these.
TEST(Calibration, FindsWhatOneCopyOfPageableMemoryHasAndWhatTheMemoryHas) {
  const Topology truth = with_heap(kWithHeap);
  SteadyRates steady;
  Measurements measured = measure(truth);
  const MeasurementPlan plan = plan_measurements(truth).value();
  for (const CopyRouteSet& routes : plan.copy_routes) {
    auto rates = steady.find(truth, Basis::Nominal, ports_of(truth, routes));
    for (std::size_t i = 0; i < routes.size(); ++i)
      if (routes[i].from == RouteEnd{false, 1} || routes[i].to == RouteEnd{false, 1})
        rates[i] = std::min(rates[i], 40.);
    for (const double factor : {1.0, 1.0, 0.8}) {
      measured.copy_routes.push_back({routes, rates, "plan"});
      for (std::size_t i = 0; i < routes.size(); ++i)
        if (rates[i] < 40) measured.copy_routes.back().rates[i] *= factor;
    }
  }
  std::string detected = kWithHeap;
  detected.erase(detected.find("  shared:"));
  const auto found = calibrate(measured, with_heap(detected)).value();
  EXPECT_EQ(fmt::format("{}", fmt::join(found.undetermined, "\n")), "");
  const Topology& machine = found.machine;
  const auto rate = [&](const char* from, const char* to) {
    return machine.link(*machine.find_link(*machine.find_vertex(from), *machine.find_vertex(to))).bandwidth.nominal;
  };
  EXPECT_NEAR(rate("heap0", "cpu0").value, 60, 0.6);
  EXPECT_NEAR(rate("cpu0", "heap0").value, 55, 0.55);
  for (const CopyKind kind : {CopyKind::PageableUp, CopyKind::PageableDown})
    EXPECT_EQ(machine.setup().transfer.of(kind).small.value_or(GBps{0}).nominal, GBps{40});
  const auto shared = std::ranges::find(machine.shared(), "mem0-heap0", &SharedCapacity::name);
  ASSERT_NE(shared, machine.shared().end());
  EXPECT_NEAR(shared->capacity.nominal.value, 200, 2);
}

// Measurements are without what the base says of its background, and the machine beside it again.
TEST(Calibration, KeepsBackgroundLoad) {
  const Measurements measured = measure(test::star(80, {50, 50}), 0.002);
  const Topology alone = calibrate(measured, std::nullopt).value().machine;
  MachineSpec spec = alone.spec();
  spec.background = {{"mem0", "gpu0", {GBps{1}, GBps{4}}}};
  const auto beside = calibrate(measured, compile(spec).value()).value();
  EXPECT_EQ(beside.machine.spec().background, spec.background);
  EXPECT_EQ(machine_yaml(without_background(beside.machine)), machine_yaml(calibrate(measured, alone).value().machine));
  const std::size_t from_memory =
      beside.machine.route(beside.machine.memories()[0], beside.machine.gpus()[0])[0].index();
  const Bandwidth& declared = beside.machine.links()[from_memory].bandwidth;
  EXPECT_DOUBLE_EQ(beside.machine.capacities(Basis::Nominal)[from_memory], declared.nominal.value - 1);
}

TEST_F(H200x4, CalibratedTwiceIsTheSameFile) {
  const Topology& once = h200x4_calibration().machine;
  EXPECT_EQ(machine_yaml(calibrate(h200x4(), once).value().machine), machine_yaml(once));
}

// Each combination three times: as it is, 3 % faster, 3 % slower.
TEST_F(H200x4, RepetitionsTellTheSpread) {
  Measurements thrice = h200x4();
  const std::vector<MeasuredRates> once = thrice.rates;
  for (const double factor : {1.03, 0.97}) {
    for (MeasuredRates rates : once) {
      for (double& rate : rates.rates) rate *= factor;
      thrice.rates.push_back(rates);
    }
  }
  EXPECT_EQ(h200x4_calibration().machine.spread(), 0);
  EXPECT_NEAR(calibrate(thrice, {}).value().machine.spread(), 0.03, 0.0011);
}

// What `guaranteed` means: each of the 64 measured combinations moves at least as fast.
TEST_F(H200x4, NoMeasuredRateFallsBelowTheGuaranteedOne) {
  SteadyRates steady;
  const CleanMeasurements measured = clean(h200x4());
  EXPECT_EQ(measured.combinations.size(), 64U);
  for (const Combination& combination : measured.combinations) {
    const auto rates = steady.find(h200x4_calibration().machine, Basis::Guaranteed, combination.streams).rates;
    for (std::size_t i = 0; i < rates.size(); ++i)
      EXPECT_LE(rates[i], combination.lowest[i]) << ports_text(combination.streams);
  }
}

// The 40 measured batches: no stream of them ends after its latest finish.
TEST_F(H200x4, NoMeasuredBatchEndsAfterItsLatestFinish) {
  const Topology& machine = h200x4_calibration().machine;
  const Planner& planner = *find_planner("all_at_once");
  for (const MeasuredBatch& measured : clean(h200x4()).batches) {
    const Batch batch = batch_of(machine, measured);
    const auto latest = latest_finish(plan(planner, batch, Basis::Guaranteed));
    for (std::size_t s = 0; s < measured.streams.size(); ++s)
      EXPECT_LE(measured.streams[s].finish_ns, as_ns(latest.streams[s])) << measured.place;
  }
}

// The README's figures: links and totals alone, the graph, the table, over what they were fitted to.
TEST_F(H200x4, IsExplainedFarBetterThanByLinksAndTotals) {
  const Calibration& found = h200x4_calibration();
  EXPECT_GT(quantile(found.by_plain.rate_errors(), 0.95), 0.5);
  EXPECT_LT(quantile(found.by_graph.rate_errors(), 0.5), 0.02);
  EXPECT_LT(quantile(found.by_graph.rate_errors(), 0.95), 0.1);
  EXPECT_LT(quantile(found.by_table.rate_errors(), 0.95), 0.005);
  EXPECT_GT(quantile(found.by_plain.length_errors(), 0.5), 0.05);
}

// Fitted with 30 of the 40 batches, the other 10 are predicted; each in its turn.
TEST_F(H200x4, BatchesThatItHasNotSeenAreAsLongAsItSays) {
  constexpr std::size_t kParts = 4;
  std::vector<double> errors;
  for (std::size_t part = 0; part < test::rounds(kParts); ++part) {
    Measurements seen = h200x4();
    CleanMeasurements unseen;
    seen.batches.clear();
    for (std::size_t b = 0; b < h200x4().batches.size(); ++b)
      (b % kParts == part ? unseen.batches : seen.batches).push_back(h200x4().batches[b]);
    const auto found = compare_with(calibrate(seen, std::nullopt).value().machine, unseen).length_errors();
    errors.insert(errors.end(), found.begin(), found.end());
  }
  RecordProperty("median", std::to_string(quantile(errors, 0.5)));
  RecordProperty("90th percentile", std::to_string(quantile(errors, 0.9)));
  RecordProperty("95th percentile", std::to_string(quantile(errors, 0.95)));
  RecordProperty("worst", std::to_string(quantile(errors, 1)));
  EXPECT_LT(quantile(errors, 0.5), 0.008);
  EXPECT_LT(quantile(errors, 0.9), 0.034);
  EXPECT_LT(quantile(errors, 0.95), 0.051);
}

// ---- another host, measured on 2026-11-20: fitted from the same 64 combinations of its own, judged on all 191 others
// and on 120 batches

Topology second_host(bool with_batches) {
  Measurements seen = load_measurements(test::source_path("tests/golden/h200x4-second-host.json")).value();
  if (!with_batches) seen.batches.clear();
  return calibrate(seen, std::nullopt).value().machine;
}

Comparison compare_unseen(const Topology& machine) {
  const auto unseen = load_measurements(test::source_path("tests/golden/h200x4-second-host-unseen.json")).value();
  return compare_with(machine, clean(unseen));
}

class SecondHost : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (test::kSanitized) GTEST_SKIP() << kAccuracyAlone;
  }
};

TEST_P(SecondHost, RatesAndBatchesThatItHasNotSeen) {
  const Topology machine = second_host(GetParam());
  const Comparison found = compare_unseen(machine);
  EXPECT_EQ(found.rate_errors().size(), 830U);
  EXPECT_EQ(found.length_errors().size(), 120U);
  EXPECT_LE(quantile(found.rate_errors(), 0.5), 0.019);
  EXPECT_LE(quantile(found.rate_errors(), 0.95), 0.08);
  EXPECT_LE(quantile(found.length_errors(), 0.5), 0.01);  // the rates of all 255 combinations themselves: 1.2 %
  EXPECT_LE(quantile(found.length_errors(), 0.9), 0.034);
  EXPECT_LE(quantile(found.length_errors(), 0.95), 0.051);
  EXPECT_LE(quantile(found.length_errors(), 1), 0.063);
  // What is guaranteed, against combinations that it was not made from.
  double undercut = 0;
  SteadyRates steady;
  for (const Residual& residual : found.rates) {
    const auto guaranteed = steady.find(machine, Basis::Guaranteed, residual.streams).rates;
    for (std::size_t i = 0; i < guaranteed.size(); ++i)
      undercut = std::max(undercut, 1 - residual.measured[i] / guaranteed[i]);
  }
  EXPECT_LE(undercut, GetParam() ? 0 : 0.05);
  // Links and one total for each direction: half of all rates are off by a quarter and more.
  const Comparison plain = compare_unseen(plain_model(machine));
  EXPECT_GT(quantile(plain.rate_errors(), 0.5), 0.25);
  EXPECT_GT(quantile(plain.length_errors(), 0.95), 0.25);
}

std::string batches_name(const testing::TestParamInfo<bool>& of) { return of.param ? "FortyBatchesToo" : "RatesAlone"; }
INSTANTIATE_TEST_SUITE_P(Model, SecondHost, testing::Bool(), batches_name);

// ---- drift

TEST(Drift, NothingMovesOnTheSameHost) {
  EXPECT_TRUE(find_drift(compare_with(shipped_h200x4(), clean(h200x4()))).empty());
}

// The calibration of the one host does not hold on the other: single streams do, what many of them share does not.
TEST(Drift, AnotherHostIsNoticed) {
  const auto other = load_measurements(test::source_path("tests/golden/h200x4-second-host.json")).value();
  const auto moved = find_drift(compare_with(shipped_h200x4(), clean(other)));
  ASSERT_FALSE(moved.empty());
  EXPECT_LT(moved.front().now, moved.front().before);
}

// gpu2 lost half of its lanes: its streams alone run at half their rate, and what moved most is named first.
TEST(Drift, ASlowerLinkIsNamed) {
  Measurements later = h200x4();
  for (MeasuredRates& measured : later.rates) {
    for (const PortId port : measured.streams)
      if (double& rate = measured.rates[measured.streams.rank(port)]; CopyPort::at(port).gpu == 2)
        rate = std::min(rate, 27.0);
  }
  const auto moved = find_drift(compare_with(shipped_h200x4(), clean(later)));
  ASSERT_FALSE(moved.empty());
  EXPECT_NE(std::find_if(moved.begin(), moved.end(), [](const Moved& m) { return m.what == "h2d 2 alone"; }),
            moved.end());
  EXPECT_EQ(std::find_if(moved.begin(), moved.end(), [](const Moved& m) { return m.what == "h2d 1 alone"; }),
            moved.end());
}

// A host whose memory carries a fifth less, as the second one that was measured.
TEST(Drift, ASlowerMemoryIsNoticed) {
  Measurements later = h200x4();
  for (MeasuredRates& measured : later.rates)
    if (measured.streams.size() > 4)
      for (double& rate : measured.rates) rate *= 0.8;
  const auto moved = find_drift(compare_with(shipped_h200x4(), clean(later)));
  ASSERT_FALSE(moved.empty());
  EXPECT_NE(moved.front().what.find("together"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
