// The simulated machine with faults: bytes arrive and engines have one owner, whatever goes wrong.
#include "runtime/sim/fault_backend.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/sim/fault_clock.hpp"
#include "runtime/sim/fault_script.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/fault_function.hpp"

namespace tutti::internal {
namespace {

using test::bound;
using test::copy_stream;
using test::Random;
using test::Station;

/// The small machine with faults of a test.
struct FaultStation : Station {
  FaultStation() {
    backend.faults = test::FaultFunction([this](const BatchRun&) { return &fault; });
  }

  /// A batch of one copy of 1000 bytes to gpu0.
  PreparedBatch copy_1000() {
    const BufferView source = buffers.emplace_back(allocate(at("mem0"), 1000)).view();
    const BufferView destination = buffers.emplace_back(allocate(at("gpu0"), 1000)).view();
    auto prepared = executor_with_faults.prepare(planned({copy_stream("s", at("mem0"), at("gpu0"), 1000)}),
                                                 {bound(source, destination)}, "the batch");
    return std::move(prepared).value();
  }

  test::FaultyBackend backend{*Station::backend, *clock};
  Executor executor_with_faults{machine, backend, *clock};
  BatchFault fault;
  std::vector<Buffer> buffers;
};

TEST(FaultBackend, LetsTheMachineTakeTheTimesOfTheFaultAndThenThoseOfThePlan) {
  FaultStation station;
  PreparedBatch batch = station.copy_1000();
  station.fault.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{500}; };
  EXPECT_EQ(station.executor_with_faults.run(batch)->finish, Duration{1500});
  EXPECT_EQ(batch.measured().streams[0].transfer->segments.back().end, Duration{1500});
  station.fault = {};
  EXPECT_EQ(station.executor_with_faults.run(batch)->finish, Duration{2500});
  EXPECT_EQ(batch.measured(), batch.plan().timeline);
}

// Two batches issued at once: the second one begins when the first is over, 500 behind its plan.
TEST(FaultBackend, LetsTheNextBatchWaitForTheOneThatTakesLonger) {
  FaultStation station;
  PreparedBatch first = station.copy_1000(), second = station.copy_1000();
  station.fault.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{500}; };
  ASSERT_TRUE(station.executor_with_faults.issue(first).has_value());
  station.fault = {};
  ASSERT_TRUE(station.executor_with_faults.issue(second).has_value());
  EXPECT_EQ(station.executor_with_faults.synchronize(second)->start, Duration{1500});
  EXPECT_EQ(station.executor_with_faults.synchronize(first)->finish, Duration{1500});
}

// The copy starts 40 late and ends 80 late; the end is seen 9 later.
TEST(FaultBackend, PassesTheTimeThatAFaultTakes) {
  FaultStation station;
  PreparedBatch batch = station.copy_1000();
  station.fault.late_submit = Duration{20};
  station.fault.late_notice = Duration{9};
  station.fault.late_return = Duration{300};
  station.fault.times = [](Timeline& times) {
    times.streams[0].transfer->start += Duration{40};
    times.streams[0].transfer->end += Duration{80};
  };
  const auto result = station.executor_with_faults.run(batch);
  EXPECT_EQ(result->start, Duration{20});
  EXPECT_EQ(result->finish, Duration{20 + 1080 + 9});
  EXPECT_EQ(station.clock->now(), Duration{20 + 1080 + 9 + 300});
  const Timeline measured = batch.measured();
  EXPECT_EQ(find_violation(station.machine, batch.plan().batch, measured), std::nullopt);
  EXPECT_EQ(measured.streams[0].transfer->start, Duration{40});
}

// The machine below makes the copy 100 longer, the one above 20: what comes from above stays where the other is gone.
TEST(FaultBackend, IsStackedUponAnother) {
  FaultStation station;
  station.fault.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{100}; };
  test::FaultyBackend above(station.backend, *station.clock);
  BatchFault upper;
  upper.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{20}; };
  above.faults = test::FaultFunction([&](const BatchRun& run) { return run.run < 2 ? &upper : nullptr; });
  Executor executor(station.machine, above, *station.clock);
  const Buffer from = station.allocate(station.at("mem0"), 1000), to = station.allocate(station.at("gpu0"), 1000);
  auto batch = executor
                   .prepare(station.planned({copy_stream("s", station.at("mem0"), station.at("gpu0"), 1000)}),
                            {bound(from.view(), to.view())})
                   .value();
  const auto length = [&] {
    const BatchResult result = executor.run(batch).value();
    return result.finish - result.start;
  };
  EXPECT_EQ(length(), Duration{1120});
  station.fault = {};
  EXPECT_EQ(length(), Duration{1020});
  EXPECT_EQ(length(), Duration{1000});
}

TEST(FaultBackend, FailsARunAndLaterOnesGoOn) {
  FaultStation station;
  PreparedBatch batch = station.copy_1000();
  station.fault.error = Error{ErrorCode::Kernel, "as asked", {}};
  station.fault.no_sooner = Duration{5000};
  const auto failed = station.executor_with_faults.run(batch);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message, "as asked");
  EXPECT_EQ(station.clock->now(), Duration{5000});
  station.fault = {};
  EXPECT_TRUE(station.executor_with_faults.run(batch).has_value());
}

CommandStream drawn_stream(const Station& station, Random& random, std::string name) {
  const VertexId places[] = {station.at("mem0"), station.at("gpu0"), station.at("gpu1"), station.at("gpu2")};
  const std::size_t from = random.below(4);
  const std::size_t to = (from + 1 + random.below(3)) % 4;
  CommandStream stream =
      copy_stream(std::move(name), places[from], places[to], random.one_in(8) ? 0 : random.between(1, 5000));
  if (to != 0 && random.one_in(2)) {
    const Duration time{random.between(0, 3000)};
    stream.kernel = Kernel{places[to], time, time, "spin"};
  }
  return stream;
}

/// A set with a task of this name.
TaskSet set_of(std::string name) {
  TaskSet set;
  set.tasks.emplace_back().name = std::move(name);
  return set;
}

/// A list of faults of machine and streams.
/// @param slower  all of them make something longer
RunFaults random_faults(const Topology& machine, Random& random, bool slower) {
  RunFaults list;
  const auto factor = [&] { return slower ? random.real(1, 3) : random.real(0.3, 3); };
  for (int i = random.between(1, 5); i > 0; --i) {
    RunFault& fault = list.faults.emplace_back();
    fault.kind = std::array{FaultKind::SlowLink, FaultKind::SlowTransfers, FaultKind::SlowKernels,
                            FaultKind::SlowCommands, FaultKind::LateCompletion}[random.below(5)];
    fault.rate = 1 / factor();
    fault.times = factor();
    fault.by = Duration{random.between(0, 400)};
    for (int l = random.between(1, 3); l > 0; --l) fault.links.emplace_back(random.below(machine.links().size()));
    if (random.one_in(2)) fault.of = static_cast<CommandCost>(random.below(kCommandCosts.size()));
  }
  return list;
}

// Seeded batches of all planners on a machine with costs that is crowded half of the time. Rates, costs, transfers and
// kernels of other lengths: every byte arrives, none on a link or an engine that another one has.
TEST(FaultScript, ConservesBytesAndEngines) {
  std::uint64_t longer = 0;
  for (const Planner& planner : planners()) {
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(std::string(planner.name) + ", seed " + std::to_string(seed));
      Random random(seed);
      Station station(std::make_unique<VirtualClock>(), Station::make_sim,
                      test::changed(test::small_machine(seed % 2 == 0 ? "8 GB/s" : "1.3 GB/s"), [](MachineSpec& spec) {
                        spec.setup.transfer = Duration{13};
                        spec.setup.kernel = {Duration{5}, Duration{7}};
                        spec.setup.gate = {Duration{3}, Duration{11}};
                      }));
      std::vector<CommandStream> streams;
      std::vector<StreamBinding> bindings;
      std::vector<Buffer> sources, destinations;
      for (int s = random.between(1, 5); s > 0; --s) {
        streams.push_back(drawn_stream(station, random, "s" + std::to_string(s)));
        const Transfer& transfer = *streams.back().transfer;
        const auto size = static_cast<std::size_t>(transfer.size.count);
        sources.push_back(station.allocate(transfer.from, size));
        destinations.push_back(station.allocate(transfer.to, size));
        station.write(sources.back().view(), test::pattern(size, seed + static_cast<std::uint64_t>(s)));
        bindings.push_back(bound(sources.back().view(), destinations.back().view()));
      }
      const RunFaults faults = random_faults(station.machine, random, seed % 4 == 0);
      const TaskSet set = set_of("t");
      FaultScript script(faults, set, station.machine, {}, 1);
      test::FaultyBackend backend(*station.backend, *station.clock);
      backend.faults = test::FaultFunction([&](const BatchRun& run) { return script.of(run); });
      Executor executor(station.machine, backend, *station.clock);
      const ExecutionPlan planned = plan(planner, station.batch(streams), Basis::Guaranteed);
      auto batch = executor.prepare(planned, bindings).value();
      ASSERT_TRUE(executor.issue(batch, {"t", 0}).has_value());
      ASSERT_TRUE(executor.synchronize(batch).has_value());
      const Timeline measured = batch.measured();
      ASSERT_EQ(find_violation(station.machine, planned.batch, measured), std::nullopt);
      for (std::size_t s = 0; s < streams.size(); ++s)
        ASSERT_EQ(station.read(destinations[s].view()), station.read(sources[s].view())) << s;
      longer += measured.latency > planned.timeline.latency ? 1 : 0;
    }
  }
  EXPECT_GT(longer, 50U) << "hardly anything is slower";
}

// With faults that change nothing the truth is the plan.
TEST(FaultScript, IsThePlanWhereNothingIsLonger) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Station station(std::make_unique<VirtualClock>(), Station::make_sim, test::small_machine("1.3 GB/s"));
    std::vector<CommandStream> streams;
    for (int s = random.between(1, 5); s > 0; --s)
      streams.push_back(drawn_stream(station, random, "s" + std::to_string(s)));
    const ExecutionPlan planned = plan(planners()[seed % planners().size()], station.batch(streams), Basis::Guaranteed);
    RunFaults none;
    none.faults.push_back({.kind = FaultKind::SlowTransfers});
    none.faults.push_back({.kind = FaultKind::SlowKernels});
    none.faults.push_back({.kind = FaultKind::SlowCommands});
    const TaskSet set = set_of("t");
    FaultScript script(none, set, station.machine, {}, 1);
    const std::string name = "b";
    const BatchFault* fault = script.of({.plan = planned, .times = planned.timeline, .name = name, .job = {"t", 0}});
    ASSERT_NE(fault, nullptr);
    ASSERT_TRUE(fault->times != nullptr);
    Timeline times = planned.timeline;
    fault->times(times);
    times.latency = planned.timeline.latency;  // planners may round it up once more
    EXPECT_EQ(times, planned.timeline);
  }
}

// A third of 3000 jobs; another seed draws others, and the task says which.
TEST(FaultScript, DrawsFromSeedFaultTaskAndJobAlone) {
  const Station station;
  const ExecutionPlan planned = station.planned({copy_stream("s", station.at("mem0"), station.at("gpu0"), 10)});
  TaskSet set;
  for (const char* name : {"a", "b"}) set.tasks.emplace_back().name = name;
  RunFaults list;
  list.faults.push_back({.kind = FaultKind::LateCompletion, .chance = 1.0 / 3, .by = Duration{1}});
  const std::string name = "b";
  const auto draws = [&](std::uint64_t seed, std::string_view task, bool backwards) {
    FaultScript script(list, set, station.machine, {}, seed);
    std::vector<bool> met(3000);
    for (std::uint64_t i = 0; i < met.size(); ++i) {
      const std::uint64_t job = backwards ? met.size() - 1 - i : i;
      met[job] = script.of({.plan = planned, .times = planned.timeline, .name = name, .job = {task, job}}) != nullptr;
    }
    return met;
  };
  const auto one = draws(1, "a", false);
  EXPECT_GT(std::ranges::count(one, true), 900);
  EXPECT_LT(std::ranges::count(one, true), 1100);
  EXPECT_EQ(one, draws(1, "a", true));
  EXPECT_NE(one, draws(2, "a", false));
  EXPECT_NE(one, draws(1, "b", false));
}

// It stands from 100 to 150, and from 140 to 170; a sleep across both is not disturbed.
TEST(FaultClock, StandsForWhoeverLooksAtIt) {
  VirtualClock machine;
  FaultClock host(machine, {{Duration{140}, Duration{30}}, {Duration{100}, Duration{50}}});
  machine.wait_until(Duration{1100});
  EXPECT_EQ(host.now(), Duration{1100}) << "no run has started";
  host.begin(Duration{1100});
  host.wait_until(Duration{1199});
  EXPECT_EQ(host.now(), Duration{1199});
  host.wait_until(Duration{1200});
  EXPECT_EQ(host.now(), Duration{1270}) << "out of one into the other";
  EXPECT_EQ(host.counts(), (std::vector<std::uint64_t>{1, 1}));

  VirtualClock other;
  FaultClock asleep(other, {{Duration{100}, Duration{50}}});
  asleep.begin(Duration{0});
  asleep.wait_until(Duration{150});
  EXPECT_EQ(asleep.now(), Duration{150});
  EXPECT_EQ(asleep.counts(), std::vector<std::uint64_t>{0});
}

}  // namespace
}  // namespace tutti::internal
