#include "sched/whatif/capacity.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "sched/admission/admission.hpp"
#include "sched/whatif/tunable_parameter.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_file.hpp"
#include "tests/support/task_timings.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::kLargest;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 53;

template <class Holds>
Capacity largest(std::int64_t start, Holds holds, std::int64_t least = 0, std::int64_t most = kMostBytes) {
  return find_capacity(holds, {Extreme::Largest, start, least, most});
}

template <class Holds>
Capacity smallest(std::int64_t start, Holds holds) {
  return find_capacity(holds, {Extreme::Smallest, start, 1, kLargest});
}

/// Whether the answer is this limit, to a 10,000th and on the right side of it.
void expect_near(const Capacity& found, std::int64_t limit, std::int64_t sign) {
  ASSERT_TRUE(found.value && found.beyond) << limit;
  EXPECT_LE(sign * *found.value, sign * limit);
  EXPECT_GT(sign * *found.beyond, sign * limit);
  EXPECT_LE(std::abs(*found.beyond - *found.value), std::max<std::int64_t>(1, *found.value / 10'000));
  EXPECT_TRUE(found.holes.empty());
}

TEST(FindCapacity, ComesNearWhereHoldingIsMonotone) {
  for (const std::int64_t limit :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{12'345}, std::int64_t{987'654'321}, kMostBytes - 1})
    for (const std::int64_t start : {std::int64_t{0}, std::int64_t{100}, std::int64_t{20'000}, kMostBytes})
      expect_near(largest(start, [&](std::int64_t value) { return value <= limit; }), limit, 1);
}

// 437,947,420: in steps of 10,000 from 437,940,000 to 437,950,000. Below 100,000 every number is tried.
TEST(FindCapacity, StopsAtRoundNumbers) {
  const Capacity found = largest(160'000'000, [](std::int64_t value) { return value <= 437'947'420; });
  EXPECT_EQ(found.value, 437'940'000);
  EXPECT_EQ(found.beyond, 437'950'000);
  EXPECT_EQ(largest(1000, [](std::int64_t value) { return value <= 77'777; }).beyond, 77'778);
  const Capacity least = smallest(25'000'000, [](std::int64_t value) { return value >= 9'144'687; });
  EXPECT_EQ(least.value, 9'144'700);
  EXPECT_EQ(least.beyond, 9'144'600);
}

TEST(FindCapacity, FindsTheSmallestToo) {
  for (const std::int64_t limit : {std::int64_t{2}, std::int64_t{77}, std::int64_t{987'654'321}, kLargest})
    for (const std::int64_t start : {std::int64_t{1}, std::int64_t{1000}, kLargest})
      expect_near(smallest(start, [&](std::int64_t value) { return value >= limit; }), limit, -1);
}

TEST(FindCapacity, KnowsEverythingAndNothing) {
  const auto always = [](std::int64_t) { return true; };
  const auto never = [](std::int64_t) { return false; };
  EXPECT_EQ(largest(5, always).value, kMostBytes);
  EXPECT_EQ(largest(5, always).beyond, std::nullopt);
  EXPECT_EQ(smallest(5, always).value, 1);
  EXPECT_EQ(smallest(5, always).beyond, std::nullopt);
  EXPECT_EQ(largest(5, never).value, std::nullopt);
  EXPECT_EQ(smallest(kLargest, never).value, std::nullopt);
  EXPECT_EQ(largest(7, always, 7, 7).value, 7);
}

// Holds up to 1000, but not from 500 to 600. Of the 64 steps from 0 to 1000, 15.625 apart, 32 (500) to 38 (593) fail.
TEST(FindCapacity, TellsHolesOnTheWay) {
  const Capacity found =
      largest(1000, [](std::int64_t value) { return value <= 1000 && (value < 500 || value > 600); });
  EXPECT_EQ(found.value, 1000);
  EXPECT_EQ(found.holes, (std::vector<Hole>{{500, 593}}));
}

// Holds up to 100 and again from 640 to 700: the eighths between 400 and 800 are 50 apart, so 650 and 700 are seen.
TEST(FindCapacity, SeesAnIslandBeyondTheFirstFailure) {
  const Capacity found =
      largest(100, [](std::int64_t value) { return value <= 100 || (value >= 640 && value <= 700); });
  EXPECT_EQ(found.value, 700);
  ASSERT_FALSE(found.holes.empty());
  EXPECT_GT(found.holes.front().from, 100);
  EXPECT_LT(found.holes.back().to, 640);
}

// Holds from 333 to 340 alone; from 0 to 800 in 64 steps of 12: 28 x 12 = 336.
TEST(FindCapacity, FindsANarrowWindow) {
  const auto holds = [](std::int64_t value) { return value >= 333 && value <= 340; };
  EXPECT_EQ(largest(400, holds).value, 340);
  EXPECT_EQ(smallest(400, holds).value, 333);
}

// What is printed holds, its neighbour does not, no value that was ever asked beyond it holds, and all that was asked
// on this side and fails lies in a hole.
TEST(FindCapacity, KeepsItsPromiseOnRandomSets) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    test::Random random(seed);
    std::set<std::int64_t> cuts;
    for (int i = random.between(1, 9); i > 0; --i) cuts.insert(random.between(1, 3000));
    const bool first = random.one_in(2);
    const auto holds = [&](std::int64_t value) {
      const auto before = std::distance(cuts.begin(), cuts.upper_bound(value));
      return (before % 2 == 0) == first;
    };
    std::set<std::int64_t> asked;
    const auto asking = [&](std::int64_t value) {
      EXPECT_TRUE(asked.insert(value).second) << "asked twice";
      return holds(value);
    };
    const bool up = random.one_in(2);
    const Capacity found =
        find_capacity(asking, {up ? Extreme::Largest : Extreme::Smallest, random.between(0, 2500), 1, 4000});
    EXPECT_EQ(found.tried, std::ssize(asked));
    if (!found.value) {
      EXPECT_TRUE(std::ranges::none_of(asked, holds)) << seed;
      continue;
    }
    EXPECT_TRUE(holds(*found.value)) << seed;
    if (found.beyond) {
      EXPECT_FALSE(holds(*found.beyond)) << seed;
      EXPECT_EQ(*found.beyond - *found.value, up ? 1 : -1);
      EXPECT_TRUE(asked.contains(*found.beyond));
    }
    for (const std::int64_t value : asked) {
      const bool behind = up ? value < *found.value : value > *found.value;
      const bool in_hole =
          std::ranges::any_of(found.holes, [&](const Hole& hole) { return hole.from <= value && value <= hole.to; });
      EXPECT_EQ(holds(value), value == *found.value || (behind && !in_hole)) << seed << ": " << value;
    }
  }
}

// a has the machine in the first half of every 10 ms, b arrives in the middle and must be over 5 ms later: its period
// is a multiple of 10 ms, and 10 ms the smallest. From 70 ms no halving and no eighth of one comes there.
TEST(FindCapacity, TriesSimpleRatiosOfStrictPeriods) {
  const TaskStudy study = test::make_study(
      "version: 1\narrivals: periodic\ntasks:\n- {name: a, period: 10 ms, deadline: 5 ms, wcet: 5 ms, best_case: 5 "
      "ms}\n"
      "- {name: b, period: 70 ms, deadline: 5 ms, offset: 5 ms, wcet: 5 ms, best_case: 5 ms}\n");
  const auto all = tunables(study);
  const auto period = std::ranges::find_if(
      all, [](const TunableParameter& each) { return each.kind == TunableKind::Period && each.task == "b"; });
  const auto holds = [&](std::int64_t value) {
    const auto set = with_value(study, *period, value);
    return set && AdmissionController(planners().front()).answer(*set) == Answer::Schedulable;
  };
  EXPECT_EQ(find_capacity(holds, question_for(study, *period, Extreme::Smallest)).value, 10'000'000);
}

std::optional<std::int64_t> scaling(const std::vector<TaskTiming>& timings, Policy policy) {
  const auto found = critical_scaling_factor(timings, policy);
  EXPECT_EQ(!found || *found >= kScalingOne, answer_of(timings, policy) == Answer::Schedulable);
  return found;
}

// One task of 2 ms every 10 ms can grow to 10 ms: five times. At 25 ms of 10 it would have to shrink to 0.4.
TEST(CriticalScaling, IsTheRoomOfOneTask) {
  EXPECT_EQ(scaling({oracle::implicit(2'000'000, 10'000'000)}, Policy::Edf), 50'000);
  EXPECT_EQ(scaling({oracle::implicit(25'000'000, 10'000'000)}, Policy::Rm), 4'000);
}

// EDF, C = 2, 3 and T = D = 6, 9 ms: the shortest interval is 6 with one job of the first behind one of the second:
// 5 s <= 6, so s = 1.2; utilisation alone would allow 1.5.
TEST(CriticalScaling, CountsBlocking) {
  EXPECT_EQ(scaling({oracle::implicit(2'000'000, 6'000'000), oracle::implicit(3'000'000, 9'000'000)}, Policy::Edf),
            12'000);
}

// The same with the second in regions of 1 ms and 2: 4 s <= 6 allows 1.5, and U = 1 at 1.5 allows no more.
TEST(CriticalScaling, GrowsPartsToo) {
  TaskTiming cut = oracle::implicit(3'000'000, 9'000'000);
  cut.regions = JobRegions{Duration{2'000'000}, Duration{1'000'000}};
  EXPECT_EQ(scaling({oracle::implicit(2'000'000, 6'000'000), cut}, Policy::Edf), 15'000);
}

TEST(CriticalScaling, HasNoLimitWithoutWork) {
  EXPECT_EQ(scaling({oracle::implicit(0, 10)}, Policy::Edf), std::nullopt);
  EXPECT_EQ(scaling({}, Policy::Edf), std::nullopt);
  EXPECT_EQ(scaling({oracle::implicit(kLargest, 1)}, Policy::Edf), 0);
}

// Exactly what holds grows by a factor of one or more.
TEST(CriticalScaling, IsAtLeastOneForWhatIsSchedulable) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    oracle::Dice dice(seed);
    const std::vector<TaskTiming> tasks =
        oracle::random_timings(dice, {.wcet_min = 1, .period_max = 15, .deadline_max = 20, .jitter_max = 2});
    for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) EXPECT_TRUE(scaling(tasks, policy)) << seed;
  }
}

// Two copies of 20 kB, a buffer each: 40 us of work. With a deadline of up to 2 periods of 1 ms two sets of buffers fit
// into 100 kB; beyond, three do not, which is a hole up to where the search looks, 4 times the 2.4 ms of the file.
TEST(FindCapacity, TellsTheHoleOfBuffersThatDoNotFit) {
  const TaskStudy study = test::make_study(
      "version: 1\nmachine: m.yaml\ntasks: [{name: a, period: 1 ms, deadline: 2.4 ms, job: [{batch: [{from: mem0, to: "
      "gpu0, size: 20 kB}]}, {batch: [{from: gpu0, to: mem0, size: 20 kB}]}]}]\n",
      test::machine_file(
          "  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu, memory: 100 kB}}\n  links: [{from: mem0, "
          "to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}]\n"));
  const TunableParameter deadline = tunables(study).back();
  ASSERT_EQ(deadline.kind, TunableKind::Deadline);
  const auto holds = [&](std::int64_t value) {
    return AdmissionController(planners().front()).decide(*with_value(study, deadline, value)).answer ==
           Answer::Schedulable;
  };
  const Capacity found = find_capacity(holds, {Extreme::Smallest, deadline.value, 1, kLargest});
  EXPECT_EQ(found.value, 40'000);
  EXPECT_EQ(found.beyond, 39'999);
  ASSERT_EQ(found.holes.size(), 1U);
  EXPECT_GT(found.holes[0].from, 2'000'000);
  EXPECT_LE(found.holes[0].from, 2'200'000);
  EXPECT_EQ(found.holes[0].to, 9'600'000);
}

}  // namespace
}  // namespace tutti::internal
