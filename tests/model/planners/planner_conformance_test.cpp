// What holds of every planner, on random machines and batches: a new row of `planners()` is picked up by itself.
#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/batch/safe_bound.hpp"
#include "model/batch/service_order.hpp"
#include "model/planners/planner.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/slow_simulation.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

constexpr std::uint64_t kSeeds = test::rounds(1500U);

/// The machine of a seed; every second one has background load.
Topology machine_of_seed(std::uint64_t seed, int scale = 1) {
  const Topology machine = test::random_machine(seed / 3, scale);
  return seed % 2 == 0 ? machine : test::with_random_background(machine, seed);
}

/// Calls `check` with many machines and batches; its failures come with the seed and the batch.
template <class Check>
void for_random_batches(const test::BatchTraits& traits, Check check, std::uint64_t seeds = kSeeds) {
  for (std::uint64_t seed = 0; seed < seeds && !testing::Test::HasFailure(); ++seed) {
    const Topology machine = machine_of_seed(seed);
    const Batch batch = test::random_batch(machine, seed, traits);
    SCOPED_TRACE(fmt::format("seed {}: {}", seed, test::describe(machine, batch)));
    check(machine, batch, seed);
  }
}

class EveryPlanner : public testing::TestWithParam<Planner> {
 protected:
  /// Fewer where each plan takes long.
  template <class Check>
  void for_random_batches(const test::BatchTraits& traits, Check check) const {
    tutti::internal::for_random_batches(traits, check, GetParam().searches ? kSeeds / 5 : kSeeds);
  }
};

INSTANTIATE_TEST_SUITE_P(Model, EveryPlanner, testing::ValuesIn(planners().begin(), planners().end()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(EveryPlanner, KeepsTheRulesOfATimeline) {
  for_random_batches({}, [&](const Topology& machine, const Batch& batch, std::uint64_t) {
    for (const Basis basis : {Basis::Nominal, Basis::Guaranteed}) {
      EXPECT_EQ(find_violation(machine, batch, plan(GetParam(), batch, basis).timeline).value_or("none"), "none");
    }
  });
}

/// The links of a stream's way, both legs.
std::vector<LinkId> links_of(const Topology& machine, const Transfer& transfer) {
  const RouteView route = find_route(machine, transfer);
  std::vector<LinkId> links(route.first.begin(), route.first.end());
  links.insert(links.end(), route.second.begin(), route.second.end());
  return links;
}

TEST_P(EveryPlanner, ExceedsNoCapacityAtAnyInstant) {
  for_random_batches({}, [&](const Topology& machine, const Batch& batch, std::uint64_t) {
    BatchSimulation simulation;
    predict(GetParam(), batch, Basis::Nominal, simulation);
    const auto capacities = test::slow_capacities(machine, Basis::Nominal);
    std::vector<std::vector<double>> costs;
    for (const CommandStream& stream : batch.streams()) {
      costs.push_back(stream.transfer ? test::slow_costs(machine, links_of(machine, *stream.transfer))
                                      : std::vector<double>{});
    }
    for (const RateSegment& at : simulation.pieces()) {
      const double instant = (at.start + at.end) / 2;
      std::vector<double> used(capacities.size(), 0);
      for (const RateSegment& piece : simulation.pieces()) {
        if (piece.start > instant || piece.end <= instant) continue;
        for (std::size_t c = 0; c < used.size(); ++c) used[c] += piece.rate * costs[piece.stream][c];
      }
      for (std::size_t c = 0; c < used.size(); ++c) EXPECT_LE(used[c], capacities[c] * (1 + 1e-9)) << "capacity " << c;
    }
  });
}

TEST_P(EveryPlanner, MovesEveryByte) {
  for_random_batches({}, [&](const Topology&, const Batch& batch, std::uint64_t) {
    BatchSimulation simulation;
    predict(GetParam(), batch, Basis::Nominal, simulation);
    std::vector<double> moved(batch.streams().size(), 0);
    for (const RateSegment& piece : simulation.pieces()) moved[piece.stream] += piece.rate * (piece.end - piece.start);
    for (std::size_t s = 0; s < moved.size(); ++s) {
      const auto& transfer = batch.streams()[s].transfer;
      const double size = transfer ? static_cast<double>(transfer->size.count) : 0;
      EXPECT_NEAR(moved[s], size, 1e-6 * size + 1e-3) << "stream " << s;
    }
  });
}

// To the nanosecond; where queues wait for each other's engines, up to the one by which a plan rounds who came first.
TEST_P(EveryPlanner, ReplayedForwardGivesTheSameEnds) {
  for_random_batches({}, [&](const Topology&, const Batch& batch, std::uint64_t) {
    const ExecutionPlan planned = plan(GetParam(), batch);
    const Timeline again = replay(planned);
    if (!batch.shares_engines()) {
      EXPECT_EQ(again.streams, planned.timeline.streams);
      return;
    }
    for (std::size_t s = 0; s < planned.timeline.streams.size(); ++s)
      EXPECT_NEAR(as_ns(again.streams[s].end()), as_ns(planned.timeline.streams[s].end()), 2) << "stream " << s;
  });
}

// The fast answer has no rounded gates; what follows from rounding them are some nanoseconds.
TEST_P(EveryPlanner, PlansWhatItPredicts) {
  for_random_batches({}, [&](const Topology&, const Batch& batch, std::uint64_t) {
    BatchSimulation simulation;
    const double latency = predict(GetParam(), batch, Basis::Nominal, simulation);
    const Timeline planned = plan(GetParam(), batch).timeline;
    EXPECT_GE(static_cast<double>(planned.latency.count()), latency - 1e-3);
    EXPECT_LE(static_cast<double>(planned.latency.count()), latency + 20);
    for (std::size_t s = 0; s < planned.streams.size(); ++s) {
      const StreamTimes& times = simulation.times()[s];
      const double end = planned.streams[s].kernel ? times.kernel_end : times.transfer_end;
      EXPECT_NEAR(static_cast<double>(planned.streams[s].end().count()), end, 20) << "stream " << s;
    }
  });
}

TEST_P(EveryPlanner, IsTheSameBitForBitInAUsedWorkspace) {
  BatchSimulation used;
  for_random_batches({}, [&](const Topology& machine, const Batch& batch, std::uint64_t) {
    BatchSimulation fresh;
    const double once = predict(GetParam(), batch, Basis::Nominal, fresh);
    const double again = predict(GetParam(), batch, Basis::Nominal, used);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(once), std::bit_cast<std::uint64_t>(again));
    EXPECT_EQ(make_timeline(machine, batch, fresh), make_timeline(machine, batch, used));
    EXPECT_EQ(plan(GetParam(), batch), plan(GetParam(), batch));
  });
}

// Sizes, times and the staging chunk doubled, rates not. Gates are whole nanoseconds, so a search may take other turns:
// then it is the same in the mean.
TEST_P(EveryPlanner, TwiceTheWorkTakesTwiceAsLong) {
  std::vector<double> ratios;
  for_random_batches({}, [&](const Topology&, const Batch& batch, std::uint64_t seed) {
    const Topology slow = machine_of_seed(seed, 2);
    BatchSimulation simulation;
    const double once = predict(GetParam(), batch, Basis::Nominal, simulation);
    if (batch.shares_engines()) return;  // whole nanoseconds may decide who came first
    const double twice = predict(GetParam(), test::random_batch(slow, seed, {}, 2), Basis::Nominal, simulation);
    ratios.push_back(once > 0 ? twice / (2 * once) : 1);
    EXPECT_NEAR(twice, 2 * once, GetParam().searches ? 0.5 * once : 20 + 1e-9 * once);
  });
  EXPECT_NEAR(std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size()), 1, 0.005);
}

const CopyCost& cost_of(const Topology& machine, const Transfer& transfer) {
  return machine.setup().transfer.of(find_route(machine, transfer).kind);
}

/// No planner is faster than the busiest capacity, than any stream alone, or than the kernels of one GPU.
double lower_bound_ns(const Topology& machine, const Batch& batch) {
  const auto capacities = test::slow_capacities(machine, Basis::Nominal);
  std::vector<double> busy(capacities.size(), 0);
  std::vector<double> kernels(machine.vertices().size(), 0);
  double bound = 0;
  for (const CommandStream& stream : batch.streams()) {
    double alone = 0;
    if (stream.transfer && stream.transfer->size.count > 0) {
      const auto costs = test::slow_costs(machine, links_of(machine, *stream.transfer));
      const double bytes = static_cast<double>(stream.transfer->size.count);
      double slowest = 0;
      for (std::size_t c = 0; c < costs.size(); ++c) {
        busy[c] += bytes * costs[c] / capacities[c];
        slowest = std::max(slowest, bytes * costs[c] / capacities[c]);
      }
      alone = as_ns(cost_of(machine, *stream.transfer).each.nominal) + slowest;
    }
    if (stream.kernel) {
      const double time = static_cast<double>(stream.kernel->time.count());
      alone += time;
      if (machine.vertex(stream.kernel->on).kind == VertexKind::Gpu) kernels[stream.kernel->on.index()] += time;
    }
    bound = std::max(bound, alone);
  }
  bound =
      std::max({bound, *std::max_element(busy.begin(), busy.end()), *std::max_element(kernels.begin(), kernels.end())});
  return bound + as_ns(machine.setup().batch.nominal);
}

TEST_P(EveryPlanner, IsNoFasterThanTheBusiestCapacity) {
  for_random_batches({}, [&](const Topology& machine, const Batch& batch, std::uint64_t) {
    BatchSimulation simulation;
    const double latency = predict(GetParam(), batch, Basis::Nominal, simulation);
    EXPECT_GE(latency, lower_bound_ns(machine, batch) * (1 - 1e-9));
  });
}

// On a machine that keeps less than promised nothing gets faster in all, where no one waits for another.
TEST_P(EveryPlanner, GuaranteesAreNoFasterThanNominalFigures) {
  test::BatchTraits traits;
  traits.kernels_share = traits.may_unmerge = false;
  for_random_batches(traits, [&](const Topology&, const Batch& batch, std::uint64_t) {
    if (batch.streams().size() != 1) return;
    EXPECT_GE(plan(GetParam(), batch, Basis::Guaranteed).timeline.latency, plan(GetParam(), batch).timeline.latency);
  });
}

// ---- the forward simulation against the slow one

std::vector<double> gates_of(const Timeline& timeline) {
  std::vector<double> gates;
  for (const StreamTimeline& line : timeline.streams) {
    gates.push_back(as_ns(line.gate - timeline.setup));
  }
  return gates;
}

void expect_like_the_slow_one(const BatchSimulation& fast, const test::SlowRun& slow) {
  EXPECT_NEAR(fast.latency_ns(), slow.latency, 1e-9 * slow.latency);
  for (std::size_t s = 0; s < slow.times.size(); ++s) {
    const double tolerance = 1e-9 * slow.latency;
    EXPECT_NEAR(fast.times()[s].transfer_start, slow.times[s].transfer_start, tolerance) << "stream " << s;
    EXPECT_NEAR(fast.times()[s].transfer_end, slow.times[s].transfer_end, tolerance) << "stream " << s;
    EXPECT_NEAR(fast.times()[s].kernel_start, slow.times[s].kernel_start, tolerance) << "stream " << s;
    EXPECT_NEAR(fast.times()[s].kernel_end, slow.times[s].kernel_end, tolerance) << "stream " << s;
  }
}

TEST(BatchSimulation, RunsForwardLikeTheSlowOne) {
  for (const RateRule rule : {RateRule::MaxMin, RateRule::Allocated}) {
    for_random_batches(
        {},
        [&](const Topology& machine, const Batch& batch, std::uint64_t) {
          for (const Basis basis : {Basis::Nominal, Basis::Guaranteed}) {
            BatchSimulation fast;
            fast.load(machine, basis, batch, rule);
            fast.run_forward({});
            expect_like_the_slow_one(fast, test::slow_forward(machine, basis, batch, rule, {}));
          }
        },
        test::rounds(600U));
  }
}

// The first copy of a class in an engine queue costs more, and a lone one that its command carries less, up to a third
// each.
TEST(BatchSimulation, CountsFirstCopiesLikeTheSlowOne) {
  int carried = 0;
  for (std::uint64_t seed = 0; seed < test::rounds(600U); ++seed) {
    test::Random random(seed);
    const Bytes most{random.between(0, 100'000'000)};
    const Topology machine = test::changed(test::random_machine(seed), [&](MachineSpec& spec) {
      for (CopyCost& cost : spec.setup.transfer.classes) {
        cost.first = {Duration{random.between(10'000, 1'000'000)}, std::chrono::milliseconds{1}};
        cost.carried = {most, cost.first.nominal / 3};
      }
    });
    const Topology without = test::changed(machine, [](MachineSpec& spec) {
      for (CopyCost& cost : spec.setup.transfer.classes) cost.carried = {};
    });
    for (const Basis basis : {Basis::Nominal, Basis::Guaranteed}) {
      std::array<double, 2> lengths{};
      for (std::size_t i = 0; const Topology* one : {&machine, &without}) {
        const Batch batch = test::random_batch(*one, seed, {});
        BatchSimulation fast;
        fast.load(*one, basis, batch, RateRule::MaxMin);
        fast.run_forward({});
        expect_like_the_slow_one(fast, test::slow_forward(*one, basis, batch, RateRule::MaxMin, {}));
        lengths[i++] = fast.latency_ns();
      }
      EXPECT_TRUE(basis == Basis::Nominal || lengths[0] == lengths[1]);
      carried += lengths[0] < lengths[1] ? 1 : 0;
    }
  }
  EXPECT_GT(carried, test::rounds(30));
}

// The gates are those of the aligned plan, whole nanoseconds.
TEST(BatchSimulation, RunsFromGatesLikeTheSlowOne) {
  for_random_batches(
      {},
      [&](const Topology& machine, const Batch& batch, std::uint64_t) {
        const Timeline planned = plan(planners()[0], batch).timeline;
        const auto gates = gates_of(planned);
        BatchSimulation fast;
        fast.load(machine, Basis::Nominal, batch, RateRule::MaxMin);
        std::vector<double> queue_gates;
        for (std::size_t c = 0; c < fast.queue_count(); ++c) queue_gates.push_back(gates[fast.first_stream(c)]);
        fast.run_forward(queue_gates);
        expect_like_the_slow_one(fast, test::slow_forward(machine, Basis::Nominal, batch, RateRule::MaxMin, gates));
      },
      test::rounds(600U));
}

// ---- the safe bound

/// The same streams with sizes and kernels of at most what is declared.
Batch smaller(const Topology& machine, const Batch& batch, test::Random& random) {
  std::vector<CommandStream> streams(batch.streams().begin(), batch.streams().end());
  for (CommandStream& stream : streams) {
    if (stream.transfer && !random.one_in(3))
      stream.transfer = resized(
          *stream.transfer,
          {static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(stream.transfer->size.count) + 1))});
    if (stream.kernel && !random.one_in(3)) {
      stream.kernel->worst = Duration{
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(stream.kernel->worst.count()) + 1))};
      stream.kernel->time = std::min(stream.kernel->time, stream.kernel->worst);
    }
  }
  return batch.with_sizes_of(machine, std::move(streams)).value();
}

// Smaller sizes, shorter kernels, nominal in place of guaranteed rates, and gates up to 1 ms late.
TEST_P(EveryPlanner, IsOverAtTheLatestFinishWhateverHappensInTheDeclaredRanges) {
  const Planner& planner = GetParam();
  constexpr Duration kLate = std::chrono::milliseconds(1);
  test::Random random(5);
  for_random_batches({}, [&](const Topology& machine, const Batch& batch, std::uint64_t) {
    const ExecutionPlan declared = plan(planner, batch, Basis::Guaranteed);
    const LatestFinish in_time = latest_finish(declared);
    const LatestFinish late = latest_finish(declared, Basis::Guaranteed, kLate);
    for (std::size_t s = 0; s < batch.streams().size(); ++s) {
      ASSERT_GE(in_time.streams[s] + Duration{1}, declared.timeline.streams[s].end());
      ASSERT_GE(late.streams[s] + Duration{1}, declared.timeline.streams[s].end());
      ASSERT_LE(in_time.streams[s], in_time.batch);
    }
    for (int p = 0; p < 4; ++p) {
      const Batch other = smaller(machine, batch, random);
      BatchSimulation simulation;
      simulation.load(machine, random.one_in(2) ? Basis::Nominal : Basis::Guaranteed, other, planner.rates);
      std::vector<double> gates = gates_of(simulation, declared.timeline);
      const bool jitter = random.one_in(2);
      for (double& gate : gates) gate += jitter ? random.real(0, as_ns(kLate)) : 0;
      std::vector<std::uint32_t> order;
      service_order(simulation.batch(), declared.timeline, order);
      simulation.run_in_order(gates, order);
      const LatestFinish& latest = jitter ? late : in_time;
      for (std::size_t s = 0; s < other.streams().size(); ++s) {
        const StreamTimes& times = simulation.times()[s];
        const double end = other.streams()[s].kernel ? times.kernel_end : times.transfer_end;
        ASSERT_LE(end, as_ns(latest.streams[s]) + 1e-3) << "stream " << s;
      }
    }
  });
}

// ---- single planners

// Up to the nanoseconds that follow from whole gates.
TEST(CompletionAligned, AllQueuesEndTogetherWhereNothingWaits) {
  std::size_t checked = 0;
  for_random_batches({}, [&](const Topology& machine, const Batch& batch, std::uint64_t) {
    BatchSimulation simulation;
    simulation.load(machine, Basis::Nominal, batch, RateRule::MaxMin);
    simulation.run_backward();
    if (simulation.waited()) return;
    ++checked;
    const Timeline timeline = plan(*find_planner("completion_aligned"), batch).timeline;
    std::vector<Duration> last(simulation.queue_count());
    for (std::size_t c = 0; c < simulation.queue_count(); ++c) {
      for (std::size_t s = 0; s < timeline.streams.size(); ++s) {
        if (timeline.streams[s].gate == timeline.streams[simulation.first_stream(c)].gate) {
          last[c] = std::max(last[c], timeline.streams[s].end());
        }
      }
      EXPECT_LE(timeline.latency - last[c], Duration{20}) << "queue " << c;
    }
  });
  EXPECT_GT(checked, kSeeds / 4);
}

// Two GPUs, a link of 1 GB/s to each, and rates that vary by a tenth.
Topology varying_machine(const char* host_bandwidth) {
  return test::make_machine(std::string("  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}, ") +
                            "gpu1: {kind: gpu}}\n  links:\n    - {from: mem0, to: cpu0, bandwidth: " + host_bandwidth +
                            "}\n    - {from: cpu0, to: gpu0, bandwidth: 1 GB/s}\n" +
                            "    - {from: cpu0, to: gpu1, bandwidth: 1 GB/s}\n  spread: 0.1\n");
}

CommandStream copy_to(const Topology& machine, const char* gpu, std::int64_t bytes) {
  return {gpu, Transfer{*machine.find_vertex("mem0"), *machine.find_vertex(gpu), Bytes{bytes}, {}, {}}, {}, {}};
}

Timeline aligned(const Topology& machine, std::vector<CommandStream> streams, Basis basis = Basis::Nominal) {
  return plan(*find_planner("completion_aligned"), Batch::make(machine, std::move(streams)).value(), basis).timeline;
}

// 10 MB and 4 MB at 1 GB/s each: 10 and 4 ms, so that the second may start at 6, and by two tenths of 10 earlier: at 4.
// What is guaranteed is exceeded as a rule, and says nothing of the spread.
TEST(CompletionAligned, GatesOpenEarlierByTwiceTheSpreadOfTheBatch) {
  const Topology machine = varying_machine("2 GB/s");
  const std::vector<CommandStream> streams{copy_to(machine, "gpu0", 10'000'000), copy_to(machine, "gpu1", 4'000'000)};
  const Timeline nominal = aligned(machine, streams);
  EXPECT_EQ(nominal.streams[1].gate, Duration{4'000'000});
  EXPECT_EQ(nominal.streams[1].end(), Duration{8'000'000});
  EXPECT_EQ(nominal.latency, Duration{10'000'000});
  EXPECT_EQ(aligned(machine, streams, Basis::Guaranteed).streams[1].gate, Duration{6'000'000});
}

// 9 MB and 8.5 MB: the second would start before the batch does.
TEST(CompletionAligned, NoGateOpensBeforeTheStart) {
  const Topology machine = varying_machine("2 GB/s");
  const Timeline nominal = aligned(machine, {copy_to(machine, "gpu0", 9'000'000), copy_to(machine, "gpu1", 8'500'000)});
  EXPECT_EQ(nominal.streams[1].gate, Duration{0});
}

// 4 MB each through the 1 GB/s of the host, and the first has a kernel of 4 ms behind it: aligned, the second starts at
// 4 and all is over at 8. From 2.4 on (8 * 0.2 earlier) the two would share the host: the first is copied at 5.6 and
// over at 9.6. So the second starts at 3.6 (4 * 0.1 earlier): the last 0.4 MB of the first take 0.8 ms, and it is over
// at 8.4.
TEST(CompletionAligned, GatesOpenLessEarlyWhereTheBatchWouldBeLonger) {
  const Topology machine = varying_machine("1 GB/s");
  CommandStream first = copy_to(machine, "gpu0", 4'000'000);
  first.kernel = Kernel{first.transfer->to, std::chrono::milliseconds(4), std::chrono::milliseconds(4), "spin"};
  const Timeline nominal = aligned(machine, {first, copy_to(machine, "gpu1", 4'000'000)});
  EXPECT_EQ(nominal.streams[1].gate, Duration{3'600'000});
  EXPECT_EQ(nominal.streams[1].end(), Duration{8'000'000});
  EXPECT_EQ(nominal.latency, Duration{8'400'000});
}

/// Random machines whose rates vary by 6 %, and batches for them.
template <class Check>
void for_random_batches_on_varying_machines(Check check) {
  for_random_batches({}, [&](const Topology& machine, const Batch& batch, std::uint64_t seed) {
    const Topology varying = test::changed(machine, [](MachineSpec& spec) { spec.spread = 0.06; });
    check(machine, batch, varying, test::random_batch(varying, seed));
  });
}

TEST(CompletionAligned, AllGatesOpenAtOnceWhereThatIsShorterThanAligned) {
  std::size_t shorter = 0;
  for_random_batches_on_varying_machines([&](const Topology&, const Batch& batch, const Topology&, const Batch& same) {
    BatchSimulation simulation;
    const double aligned = predict(*find_planner("completion_aligned"), batch, Basis::Nominal, simulation);
    const double at_once = predict(*find_planner("all_at_once"), batch, Basis::Nominal, simulation);
    if (at_once > 0.9999 * aligned) return;
    ++shorter;
    EXPECT_DOUBLE_EQ(predict(*find_planner("completion_aligned"), same, Basis::Nominal, simulation), at_once);
  });
  EXPECT_GT(shorter, test::rounds(10U));
}

// But for what whole nanoseconds make of it. No gate opens later than without a spread.
TEST(CompletionAligned, IsNeverLongerThanAllAtOnceWhereRatesVary) {
  for_random_batches_on_varying_machines(
      [&](const Topology&, const Batch& batch, const Topology& varying, const Batch& same) {
        const Planner& planner = *find_planner("completion_aligned");
        const ExecutionPlan early = plan(planner, same);
        EXPECT_EQ(find_violation(varying, same, early.timeline).value_or("none"), "none");
        EXPECT_EQ(replay(early), early.timeline);
        EXPECT_LE(early.timeline.latency, plan(*find_planner("all_at_once"), same).timeline.latency + Duration{40});
        const Timeline aligned = plan(planner, batch).timeline;
        for (std::size_t s = 0; s < early.timeline.streams.size(); ++s)
          EXPECT_LE(early.timeline.streams[s].gate, aligned.streams[s].gate) << "stream " << s;
      });
}

// Jackson's rule: no other serial order of at most five queues is shorter, where no two of them want one GPU.
TEST(TimeDivision, IsTheBestSerialOrderWhereNoKernelsShareAGpu) {
  test::BatchTraits traits;
  traits.most_streams = 5;
  traits.kernels_share = traits.may_unmerge = false;
  for_random_batches(
      traits,
      [&](const Topology&, const Batch& batch, std::uint64_t) {
        if (batch.shares_engines()) return;  // turns are of queues that do not wait for each other
        BatchSimulation simulation;
        const double latency = predict(*find_planner("time_division"), batch, Basis::Nominal, simulation);
        std::vector<std::size_t> order(simulation.queue_count());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        do {
          double transfers = 0, end = 0;
          for (const std::size_t queue : order) {
            const double own = simulation.transfers_alone_ns(queue);
            transfers += own;
            end = std::max(end, (own > 0 ? transfers : 0) + simulation.kernels_ns(queue));
          }
          EXPECT_GE(end + simulation.batch_setup_ns(), latency - 5);  // each turn begins at a whole nanosecond
        } while (std::next_permutation(order.begin(), order.end()));
      },
      test::rounds(600U));
}

}  // namespace
}  // namespace tutti::internal
