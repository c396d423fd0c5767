#include "model/batch/safe_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/base/quantile.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/support/queue_network.hpp"
#include "tests/support/random.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

/// Three transfers: a shares 2 GB/s with b and 10 GB/s with c.
Topology triangle() {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, mem1: {kind: memory}, cpu0: {kind: cpu}, hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 2 GB/s}
    - {from: mem1, to: cpu0, bandwidth: 50 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 10 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 50 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 50 GB/s}
    - {from: cpu0, to: gpu2, bandwidth: 50 GB/s}
)");
}

Batch three(const Topology& machine, std::string_view size_of_b) {
  return test::make_batch(machine,
                          "  - {name: a, from: mem0, to: gpu0, size: 18 MB}\n"
                          "  - {name: b, from: mem0, to: gpu2, size: " +
                              std::string(size_of_b) + "}\n" + "  - {name: c, from: mem1, to: gpu1, size: 72 MB}\n");
}

// With b: a and b share 2, so a has 1 and leaves 9 to c: 72 / 9 = 8 ms.
// Without b: a has 2 and leaves 8 to c: 9 ms. A smaller transfer makes another stream finish later.
// The bound of c: it moves 72 over the link of 10 and a at most its 18 meanwhile: (72 + 18) / 10 = 9 ms.
// Of a: 18 over the link of 2, b as much at most: 18 ms. Of b: the same.
TEST(SafeBound, CoversWhatASmallerTransferCanDoToAnotherStream) {
  const Topology machine = triangle();
  const Planner& planner = *find_planner("all_at_once");
  const ExecutionPlan declared = plan(planner, three(machine, "18 MB"));
  EXPECT_EQ(declared.timeline.streams[2].end(), milliseconds(8));
  EXPECT_EQ(plan(planner, three(machine, "0")).timeline.streams[2].end(), milliseconds(9));
  const LatestFinish latest = latest_finish(declared);
  EXPECT_EQ(latest.streams[2], milliseconds(9));
  EXPECT_EQ(latest.streams[0], milliseconds(18));
  EXPECT_EQ(latest.streams[1], milliseconds(18));
  EXPECT_EQ(latest.batch, milliseconds(18));
}

// Two that go over one link of 6 and end together: nothing can make the batch longer, and a gate that is 1 ms late
// makes it 1 ms longer.
TEST(SafeBound, OfStreamsThatEndTogetherOnOneLinkIsTheirPlan) {
  const Topology machine =
      test::make_machine(R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}
  links:
    - {from: mem0, to: hub0, bandwidth: 6 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 50 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 50 GB/s}
)");
  const auto batch = test::make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 12 MB}
  - {from: mem0, to: gpu1, size: 12 MB}
)");
  const Planner& planner = *find_planner("all_at_once");
  const ExecutionPlan declared = plan(planner, batch);
  EXPECT_EQ(declared.timeline.latency, milliseconds(4));
  EXPECT_EQ(latest_finish(declared).batch, milliseconds(4));
  EXPECT_EQ(latest_finish(declared, Basis::Guaranteed, milliseconds(1)).batch, milliseconds(5));
}

// Two links of 20 in a row that all copies cross, the last ones of 3, 11 and 0.38: each rival's bytes count once. Of
// the first copy: (232 + 65 + 41 + 1) MB over 20 GB/s are 16.95 ms; of the second: 65 MB over its own link of 3 GB/s.
TEST(SafeBound, LinksInARowCountEachRivalOnce) {
  const Topology machine = test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}, gpu3: {kind: gpu}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 20 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 20 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 20 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 3 GB/s}
    - {from: hub0, to: gpu2, bandwidth: 11 GB/s}
    - {from: hub0, to: gpu3, bandwidth: 0.38 GB/s}
)");
  const auto batch = test::make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 232 MB}
  - {from: mem0, to: gpu1, size: 65 MB}
  - {from: mem0, to: gpu2, size: 41 MB}
  - {from: mem0, to: gpu3, size: 1 MB}
)");
  const LatestFinish latest = latest_finish(plan(*find_planner("all_at_once"), batch));
  EXPECT_EQ(latest.streams[0], Duration{16'950'000});
  EXPECT_EQ(latest.streams[1], Duration{21'666'667});
}

// A link of 10 bytes/ns, and one engine that copies 100 bytes at 0 and 100 at 15 or later, beside a rival of 100 that
// comes between 0 and 15. The first copy is over at 10, or with the rival at 20. With a rival that comes at 15, that is
// beside the second copy: both have 5 until 35. Had the second one counted on bytes that the rival used up beside the
// first: 30.
TEST(SafeBound, ACopyThatWaitsMeetsARivalThatTheOneBeforeItDidNotMeet) {
  const std::vector<CapacityUse> uses{{CapacityId{0U}, 1}};
  const auto copy = [&](std::uint32_t group, double release) {
    BoundedStep step;
    step.bytes = 100;
    step.alone = 10;
    step.uses = uses;
    step.group = group;
    step.release = release;
    return step;
  };
  std::vector<BoundedStep> steps{copy(0, 0), copy(0, 15), copy(1, 15)};
  steps[1].earliest = 15;
  steps[1].after[0] = 0;
  SafeBound bound;
  bound.find(std::vector<double>{10}, steps);
  EXPECT_NEAR(steps[0].finish, 20, 1e-9);
  EXPECT_NEAR(steps[1].finish, 35, 1e-9);
}

// GPU 0 copies to GPU 2 and then to GPU 1, staged: the first copy of the class costs 10 us more. GPU 1 receives 60 MB
// at 6 GB/s before, so that the second copy starts at 10 ms, whatever the first one took. Without bytes that one pays
// nothing, and the second one pays the 10 us, then.
TEST(SafeBound, WhatACopyWithoutBytesDoesNotPayIsPaidByALaterOne) {
  const Topology machine = test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu, copy_engines: 1}, gpu1: {kind: gpu, copy_engines: 1}, gpu2: {kind: gpu, copy_engines: 1}}
  links:
    - {from: mem0, to: hub0, bandwidth: 60 GB/s, back: 60 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 6 GB/s, back: 6 GB/s}
    - {from: hub0, to: gpu2, bandwidth: 6 GB/s, back: 6 GB/s}
  peer_access: none
  setup: {transfer: {staged: {nominal: 1 us, guaranteed: 1 us, first: 10 us}}}
)");
  const auto planned = [&](std::string_view size_of_first) {
    return plan(*find_planner("all_at_once"), test::make_batch(machine, fmt::format(R"(
  - {{from: mem0, to: gpu1, size: 60 MB}}
  - {{from: gpu0, to: gpu2, size: {}}}
  - {{from: gpu0, to: gpu1, size: 6 kB}}
)",
                                                                                    size_of_first)));
  };
  const ExecutionPlan declared = planned("6 kB"), dropped = planned("0");
  EXPECT_EQ(dropped.timeline.streams[2].end() - declared.timeline.streams[2].end(), std::chrono::microseconds(10));
  EXPECT_GE(latest_finish(declared).streams[2], dropped.timeline.streams[2].end());
}

// One engine, one link of 6 behind the hub: 4 transfers of 3 MB to each GPU are one flow of 12 MB as far as the other
// queue is concerned, and 2 + 2 MB/ms of each move at any time: over at 1, 2, 3 and 4 ms, at the latest too, since the
// other queue moves no more than the queue in question meanwhile.
TEST(SafeBound, SuccessiveTransfersOfAQueueAreOneFlow) {
  const Topology machine =
      test::make_machine(R"(  vertices: {mem0: {kind: memory}, hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}
  links:
    - {from: mem0, to: hub0, bandwidth: 6 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 50 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 50 GB/s}
)");
  std::string text;
  for (int i = 0; i < 4; ++i)
    text += "\n  - {from: mem0, to: gpu0, size: 3 MB}\n  - {from: mem0, to: gpu1, size: 3 MB}";
  const auto batch = test::make_batch(machine, text + "\n");
  const Planner& planner = *find_planner("all_at_once");
  const LatestFinish latest = latest_finish(plan(planner, batch));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(latest.streams[static_cast<std::size_t>(i)], milliseconds(1 + i / 2)) << i;
}

// A copy by a kernel at 10 GB/s whose bytes take two of what both directions share: 20 GB/s for three parts at first.
// What its link usually has beyond that is no part of the guarantee.
TEST(SafeBound, IsNoShorterWhereALinkIsUsuallyFaster) {
  const auto latest = [](int nominal) {
    const Topology machine = test::make_machine(fmt::format(R"(  vertices:
    mem0: {{kind: memory}}
    cpu0: {{kind: cpu}}
    gpu0: {{kind: gpu}}
    gpu1: {{kind: gpu}}
  links:
    - {{from: mem0, to: cpu0, bandwidth: 100 GB/s, back: 100 GB/s}}
    - {{from: cpu0, to: gpu0, bandwidth: {{nominal: {} GB/s, guaranteed: 10 GB/s}}, back: 20 GB/s}}
    - {{from: cpu0, to: gpu1, bandwidth: 20 GB/s, back: 20 GB/s}}
  shared: [{{name: both, capacity: 20 GB/s, members: [{{from: mem0, to: cpu0}}, {{from: cpu0, to: mem0}}]}}]
  setup: {{transfer: {{up: 0 us, sm_up: {{nominal: 0 us, guaranteed: 0 us, load: 2}}}}}}
)",
                                                            nominal));
    const auto batch = test::make_batch(machine, R"(
  - {from: mem0, to: gpu0, size: 20 MB, method: sm}
  - {from: gpu1, to: mem0, size: 20 MB}
)");
    return latest_finish(plan(*find_planner("all_at_once"), batch)).batch;
  };
  EXPECT_EQ(latest(10), milliseconds(3));
  EXPECT_EQ(latest(20), milliseconds(3));
}

/// Two GPUs behind one link of 6, and a third one behind a link of its own.
Topology two_and_one() {
  return test::make_machine(
      R"(  vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, hub0: {kind: hub}, gpu0: {kind: gpu}, gpu1: {kind: gpu}, gpu2: {kind: gpu}}
  links:
    - {from: mem0, to: cpu0, bandwidth: 50 GB/s}
    - {from: cpu0, to: hub0, bandwidth: 6 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 50 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 50 GB/s}
    - {from: cpu0, to: gpu2, bandwidth: 10 GB/s}
)");
}

// An engine queue of odd sizes walked back in time may be over a fraction of a nanosecond before the length that the
// walk found: the length is rounded up before, the streams after. A plan's own run is never late.
TEST(SafeBound, IsNeverBeforeThePlansOwnLength) {
  const Topology machine = load_machine(test::source_path("configs/machines/inspection-example.yaml")).value();
  const Planner& planner = *find_planner("completion_aligned");
  test::Random random(75);
  for (int b = 0; b < 200; ++b) {
    std::string streams;
    for (int s = 0; s < 18; ++s)
      streams +=
          fmt::format("  - {{name: s{}, from: gpu{}, to: mem0, size: {} B}}\n", s, s % 3, random.between(2049, 2122));
    const Batch batch = test::make_batch(machine, streams);
    const ExecutionPlan planned = plan(planner, batch, Basis::Guaranteed);
    EXPECT_GE(latest_finish(planned).batch, planned.timeline.latency) << b;
  }
}

// A kernel of 5 ms on gpu2 behind a copy of 12 MB to gpu0 (2 ms alone), and one of 5 ms on gpu2 behind 30 MB to gpu2 (3
// ms): the first is served first, 2 to 7, the second 7 to 12. The order is the plan's: however early the second comes
// (its copy may have no bytes), it waits for the first; so the first is over at 7 at the latest, not at 10.
TEST(SafeBound, LocksServeCommandsInTheOrderOfThePlan) {
  const Topology machine = two_and_one();
  const auto batch = [&](const char* size) {
    return test::make_batch(machine,
                            std::string("  - {from: mem0, to: gpu0, size: 12 MB, kernel: {on: gpu2, time: 5 ms}}\n"
                                        "  - {from: mem0, to: gpu2, size: ") +
                                size + ", kernel: {on: gpu2, time: 5 ms}}\n");
  };
  const Planner& planner = *find_planner("all_at_once");
  ExecutionPlan declared = plan(planner, batch("30 MB"));
  EXPECT_EQ(declared.timeline.streams[0].end(), milliseconds(7));
  EXPECT_EQ(declared.timeline.streams[1].end(), milliseconds(12));
  const LatestFinish latest = latest_finish(declared);
  EXPECT_EQ(latest.streams[0], milliseconds(7));
  EXPECT_EQ(latest.streams[1], milliseconds(12));
  declared.batch = batch("0");
  const Timeline other = replay(declared);
  EXPECT_EQ(other.streams[0].end(), milliseconds(7));
  EXPECT_EQ(other.streams[1].end(), milliseconds(12));
  EXPECT_EQ(plan(planner, batch("0")).timeline.streams[0].end(), milliseconds(10));  // first come, first served
}

// ---- abstract networks: links with rates in units a unit of time

// The filling that runs networks is the definition's: against the slow solver, through the first instant of a run.
TEST(QueueNetwork, FlowsAtWeightedMaxMinRates) {
  test::Random random(2);
  for (int n = 0; n < 300; ++n) {
    test::QueueNetwork network = test::random_network(random, {.most_transfers = 1, .plain = true});
    std::vector<test::SlowFlow> flows;
    for (auto& queue : network.queues) {
      queue.gate = 0;
      test::QueueNetwork::Kind& kind = network.kinds[queue.steps[0].kind];
      kind.alone = std::numeric_limits<double>::infinity();
      test::SlowFlow flow{kind.weight, std::vector<double>(network.capacities.size(), 0)};
      for (const CapacityUse& use : kind.uses) flow.cost[use.capacity.index()] = use.cost;
      flows.push_back(std::move(flow));
    }
    const auto rates = test::slow_max_min(network.capacities, flows);
    double first = std::numeric_limits<double>::infinity();
    for (std::size_t f = 0; f < flows.size(); ++f) first = std::min(first, network.queues[f].steps[0].bytes / rates[f]);
    const auto run = test::run(network);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const double alone = network.queues[f].steps[0].bytes / rates[f];
      if (alone <= first * (1 + 1e-12)) {
        EXPECT_NEAR(run.ends[f][0], first, 1e-9 * first) << "network " << n;
      }
      EXPECT_GE(run.ends[f][0], first * (1 - 1e-9));
    }
  }
}

/// Bounds over the ends of the run that is declared, of every step; the bound is never below.
std::vector<double> ratios_of(const test::StepTimes& latest, const test::StepTimes& ends) {
  std::vector<double> ratios;
  for (std::size_t c = 0; c < ends.size(); ++c)
    for (std::size_t s = 0; s < ends[c].size(); ++s) {
      EXPECT_GE(latest[c][s], ends[c][s] * (1 - 1e-9)) << "queue " << c << ", step " << s;
      if (ends[c][s] > 0) ratios.push_back(latest[c][s] / ends[c][s]);
    }
  return ratios;
}

/// Whether nothing ends after its bound.
void expect_in_time(const test::StepTimes& ends, const test::StepTimes& latest) {
  for (std::size_t c = 0; c < ends.size(); ++c)
    for (std::size_t s = 0; s < ends[c].size(); ++s)
      ASSERT_LE(ends[c][s], latest[c][s] * (1 + 1e-9)) << "queue " << c << ", step " << s;
}

bool any_later(const test::StepTimes& ends, const test::StepTimes& declared) {
  for (std::size_t c = 0; c < ends.size(); ++c)
    for (std::size_t s = 0; s < ends[c].size(); ++s)
      if (ends[c][s] > declared[c][s] * (1 + 1e-9)) return true;
  return false;
}

struct Tightness {
  std::vector<double> ratios;
  int later = 0;  ///< runs in which some step ends later than undisturbed
};

Tightness attack(const test::NetworkTraits& traits, int networks, int runs) {
  test::Random random(3);
  Tightness found;
  for (int n = 0; n < networks && !testing::Test::HasFatalFailure(); ++n) {
    SCOPED_TRACE("network " + std::to_string(n));
    const test::QueueNetwork network = test::random_network(random, traits);
    const auto latest = test::bound(network);
    const auto declared = test::run(network);
    const auto ratios = ratios_of(latest, declared.ends);
    found.ratios.insert(found.ratios.end(), ratios.begin(), ratios.end());
    for (int p = 0; p < runs; ++p) {
      const auto ends = test::run(test::perturbed(network, random)).ends;
      expect_in_time(ends, latest);
      found.later += any_later(ends, declared.ends) ? 1 : 0;
    }
  }
  return found;
}

// 10,000 perturbed runs of 1,000 networks each; the bound against the undisturbed run. `bench/bound_attack` does the
// same at length.
TEST(SafeBound, HoldsOnRandomNetworksAndIsTight) {
  const auto one = attack({.most_transfers = 1, .plain = true}, 1000, 10);
  EXPECT_LE(quantile(one.ratios, 0.5), 1.001);
  EXPECT_LE(quantile(one.ratios, 0.9), 1.12);
  const auto one_route = attack({.most_routes = 1, .plain = true}, 500, 10);
  EXPECT_LE(quantile(one_route.ratios, 0.5), 1.001);
  EXPECT_LE(quantile(one_route.ratios, 0.9), 1.12);
  const auto mixed = attack({.plain = true}, 500, 10);
  EXPECT_GT(mixed.later, 50);  // the anomaly is no rarity
  EXPECT_LE(quantile(mixed.ratios, 0.5), 1.02);
  EXPECT_LE(quantile(mixed.ratios, 0.9), 1.32);
}

// With costs of commands, kernels that wait for GPUs, copies that wait for a second engine, queues of one transfer that
// take turns on an engine, and late gates.
TEST(SafeBound, HoldsWhereCommandsWaitForEachOther) {
  const auto found = attack({}, 1000, 10);
  EXPECT_GT(found.later, 1000);
  EXPECT_LE(quantile(found.ratios, 0.5), 1.12);
}

/// The latest that a climb finds for one step: changes that make it later stay.
double search_worst(const test::QueueNetwork& declared, std::size_t queue, std::size_t step,
                    const test::StepTimes& latest, test::Random& random) {
  constexpr int kClimbs = 3, kSteps = 100;
  double worst = 0;
  for (int climb = 0; climb < kClimbs; ++climb) {
    test::QueueNetwork at = climb == 0 ? declared : test::perturbed(declared, random);
    double here = test::run(at).ends[queue][step];
    for (int i = 0; i < kSteps; ++i) {
      test::QueueNetwork next = test::changed(declared, at, random);
      const auto ends = test::run(next).ends;
      expect_in_time(ends, latest);
      if (ends[queue][step] < here) continue;
      here = ends[queue][step];
      at = std::move(next);
    }
    worst = std::max(worst, here);
  }
  return worst;
}

// What the bound gives away: against the worst that a search for bad cases finds, an engine queue of each of 100
// networks.
TEST(SafeBound, IsNotFarAboveTheWorstThatASearchFinds) {
  test::Random random(5);
  std::vector<double> ratios;
  for (int n = 0; n < test::rounds(100) && !HasFatalFailure(); ++n) {
    SCOPED_TRACE("network " + std::to_string(n));
    const auto network = test::random_network(random, {.plain = n % 2 == 0});
    const auto latest = test::bound(network);
    const std::size_t queue = random.below(network.queues.size());
    const std::size_t step = network.queues[queue].steps.size() - 1;
    ratios.push_back(latest[queue][step] / search_worst(network, queue, step, latest, random));
  }
  EXPECT_LE(quantile(ratios, 0.5), 1.02);
  EXPECT_LE(quantile(ratios, 0.9), 1.25);
}

}  // namespace
}  // namespace tutti::internal
