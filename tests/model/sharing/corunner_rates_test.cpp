#include "model/sharing/corunner_rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"
#include "tests/support/slow_max_min.hpp"

namespace tutti::internal {
namespace {

using test::Random;
using test::SlowFlow;

constexpr CapacityId kMemory{0};

CorunnerFlow copy(std::uint32_t engine, double alone, double most, double weight = 1, double cost = 1) {
  return {engine, weight, alone, most, {{kMemory, cost}}};
}

// Two links give 63 at most, whatever is measured: 126 < 176, so the memory never holds one back, and each has the 48.6
// of its own link. Without that limit a fast neighbour could take up to its fair share alone: 176 / 2 = 88 > 48.6.
TEST(RatesBesideCorunners, AreThoseAloneWhereSharingCannotFillUp) {
  const std::array capacities{176.0};
  EXPECT_EQ(rates_beside_corunners(capacities, std::array{copy(0, 48.6, 63), copy(1, 48.6, 63)}),
            (std::vector<double>{48.6, 48.6}));
  EXPECT_EQ(rates_beside_corunners(capacities, std::array{copy(0, 60, 63), copy(1, 60, 63), copy(2, 60, 63)}),
            (std::vector<double>{176.0 / 3, 176.0 / 3, 176.0 / 3}));
}

// Four links: 4 x 44 = 176, and none has reached its 63 by then.
TEST(RatesBesideCorunners, AreFairSharesWhereItCan) {
  std::vector<CorunnerFlow> flows;
  for (std::uint32_t engine = 0; engine < 4; ++engine) flows.push_back(copy(engine, 48.6, 63));
  EXPECT_EQ(rates_beside_corunners(std::array{176.0}, flows), std::vector<double>(4, 44.0));
}

// One neighbour cannot take more than 10 of 100: 90 are left for the other two, which share them.
TEST(RatesBesideCorunners, LeaveWhatASlowNeighbourCannotTake) {
  const std::array flows{copy(0, 80, 80), copy(1, 80, 80), copy(2, 10, 10)};
  EXPECT_EQ(rates_beside_corunners(std::array{100.0}, flows), (std::vector<double>{45, 45, 10}));
}

// Up weighs 1 and costs 1, down weighs 1.5 and costs 1.2: four of each have loads of 4 + 7.2 = 11.2 at level 1, so the
// level is 112 / 11.2 = 10: up has 10, down 15.
TEST(RatesBesideCorunners, CountWeightsAndCosts) {
  std::vector<CorunnerFlow> flows;
  for (std::uint32_t engine = 0; engine < 4; ++engine) flows.push_back(copy(engine, 50, 63));
  for (std::uint32_t engine = 4; engine < 8; ++engine) flows.push_back(copy(engine, 50, 63, 1.5, 1.2));
  const std::vector<double> rates = rates_beside_corunners(std::array{112.0}, flows);
  EXPECT_NEAR(rates.front(), 10, 1e-12);
  EXPECT_NEAR(rates.back(), 15, 1e-12);
}

// Copies of one engine are never active together: each shares with the other engine alone, and that with the dearer one
// of them: 3 level + level = 90.
TEST(RatesBesideCorunners, HoldOneCopyOfAnEngine) {
  const std::array flows{copy(0, 90, 200), copy(0, 90, 200, 1, 3), copy(1, 90, 200)};
  EXPECT_EQ(rates_beside_corunners(std::array{90.0}, flows), (std::vector<double>{45, 22.5, 22.5}));
}

/// Flows over capacities 0 to 3, each with a link of its own behind these: the link's bandwidth is `alone` at least and
/// `most` at most.
struct RandomCorunners {
  std::vector<double> capacities;
  std::vector<CorunnerFlow> flows;

  explicit RandomCorunners(Random& random) {
    constexpr int kShared = 4;
    for (int c = 0; c < kShared; ++c) capacities.push_back(random.real(10, 100));
    const int count = random.between(1, 8);
    for (int f = 0; f < count; ++f) {
      CorunnerFlow& flow = flows.emplace_back();
      flow.engine = static_cast<std::uint32_t>(random.below(6));
      flow.weight = random.real(0.5, 2);
      flow.alone = random.real(5, 60);
      flow.most = random.one_in(3) ? flow.most : flow.alone * random.real(1, 1.5);
      for (std::size_t c = 0; c < kShared; ++c)
        if (!random.one_in(3)) flow.uses.push_back({CapacityId{c}, random.real(0.5, 2)});
      for (const CapacityUse& use : flow.uses)
        flow.alone = std::min(flow.alone, capacities[use.capacity.index()] / use.cost);
      flow.uses.push_back({CapacityId{capacities.size()}, 1});
      capacities.push_back(flow.alone);
    }
  }
  /// The rate of a flow beside some co-runners of it, on a machine that is as fast as this one at least.
  double rate(Random& random, std::size_t of) const {
    std::vector<double> faster = capacities;
    for (double& capacity : faster) capacity *= random.one_in(2) ? 1 : random.real(1, 2);
    for (const CorunnerFlow& flow : flows) {
      double& link = faster[flow.uses.back().capacity.index()];
      link = std::min(link, flow.most);
    }
    std::set<std::uint32_t> engines{flows[of].engine};
    std::vector<SlowFlow> active{slow(flows[of])};
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (random.one_in(2) && engines.insert(flows[f].engine).second) active.push_back(slow(flows[f]));
    return test::slow_max_min(faster, active).front();
  }
  [[nodiscard]] SlowFlow slow(const CorunnerFlow& flow) const {
    SlowFlow slow{flow.weight, std::vector<double>(capacities.size())};
    for (const CapacityUse& use : flow.uses) slow.cost[use.capacity.index()] = use.cost;
    return slow;
  }
};

// No co-runners on no machine are worse; and the worst that chance finds is often as bad.
TEST(RatesBesideCorunners, HoldBesideAllCorunners) {
  Random random(1);
  int near = 0, all = 0;
  for (int round = 0; round < test::rounds(2000); ++round) {
    const RandomCorunners corunners(random);
    const std::vector<double> bounds = rates_beside_corunners(corunners.capacities, corunners.flows);
    for (std::size_t f = 0; f < bounds.size(); ++f) {
      double worst = corunners.flows[f].alone * 2;
      for (int draw = 0; draw < 20; ++draw) worst = std::min(worst, corunners.rate(random, f));
      ASSERT_GE(worst, bounds[f] * (1 - 1e-9)) << "round " << round << ", flow " << f;
      near += worst < bounds[f] * 1.02 ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(2 * near, all);
}

// Two engines share 100 byte/ns; each has 80 alone. 8000 B take 100 ns alone and 160 beside an engine that copies all
// the time. A rival that has 1000 B an hour adds them over the memory, 8000 / 80 + 1000 / 100 = 110; twice where a job
// may be alive until the next one comes. Of one with 500 B every 50 ns, alive for 40, floor((D + 40) / 50) + 1 come:
// three would be over by 115, when the fourth has come, so 120.
TEST(CorunnerTimes, CountWhatTheOthersMoveMeanwhile) {
  const std::array capacities{100.0};
  const std::array flows{copy(0, 80, 100), copy(1, 80, 100)};
  const auto longest = [&](double bytes, double period, double alive) {
    return CorunnerTimes(capacities, flows, {{0, 8000, 1e6, 1e6}, {1, bytes, period, alive}}).longest(0, 8000, 160);
  };
  EXPECT_NEAR(longest(1000, 3.6e12, 1e9), 110, 1e-3);
  EXPECT_NEAR(longest(1000, 3.6e12, 3.6e12), 120, 1e-3);
  EXPECT_NEAR(longest(500, 50, 40), 120, 1e-3);
  EXPECT_NEAR(longest(500, 50, 34), 115, 1e-3) << "the fourth comes at 116 and later";
  EXPECT_NEAR(longest(500, 10, 30), 160, 1e-3) << "the other bound";
  EXPECT_NEAR(CorunnerTimes(capacities, flows, {{1, 8000, 1e6, 1e6}}).longest(1, 8000, 160), 100, 1e-3) << "its own";
}

/// Jobs whose bytes are there from their arrival until they are late, one after the other on an engine: what of them a
/// copy can meet.
class RandomRivals {
 public:
  RandomRivals(Random& random, const RandomCorunners& corunners, double scale) : corunners_(corunners) {
    for (std::size_t f = 0; f < corunners.flows.size(); ++f)
      for (int tasks = random.between(1, 2); tasks > 0; --tasks) {
        const double period = scale * std::exp(random.real(-1.5, 3));
        volumes.push_back(
            {f, scale * corunners.flows[f].alone * random.real(0.02, 1), period, period * random.real(0.2, 2.5)});
      }
  }

  /// ns that some bytes of a flow take where all that can come comes as late as it can, or at random.
  double play(Random& random, std::size_t of, double bytes) const {
    std::vector<double> faster = corunners_.capacities;
    for (double& capacity : faster) capacity *= random.one_in(2) ? 1 : random.real(1, 1.5);
    std::vector<Job> jobs;
    for (const FlowVolume& volume : volumes)
      if (corunners_.flows[volume.flow].engine != corunners_.flows[of].engine) add_jobs(random, volume, jobs);
    double now = 0;
    for (double left = bytes; left > 0;) {
      const auto active = active_at(now, jobs);
      std::vector<SlowFlow> flows{corunners_.slow(corunners_.flows[of])};
      for (const auto& [engine, job] : active) flows.push_back(corunners_.slow(corunners_.flows[job->flow]));
      const std::vector<double> rates = test::slow_max_min(faster, flows);
      double step = left / rates.front();
      for (std::size_t i = 0; const auto& [engine, job] : active)
        step = std::min({step, job->left / rates[++i], job->end - now});
      for (const Job& job : jobs)
        if (job.arrival > now) step = std::min(step, job.arrival - now);
      left -= step * rates.front();
      for (std::size_t i = 0; const auto& [engine, job] : active) job->left -= step * rates[++i];
      now += step;
      if (left < 1e-9 * bytes) break;
    }
    return now;
  }

  std::vector<FlowVolume> volumes;

 private:
  struct Job {
    std::size_t flow;
    double arrival, end, left;
  };

  static void add_jobs(Random& random, const FlowVolume& volume, std::vector<Job>& jobs) {
    constexpr int kMost = 40;
    double arrival = -volume.alive * (1 - 1e-9) + (random.one_in(2) ? 0 : random.real(0, volume.period));
    for (int n = 0; n < kMost; ++n, arrival += volume.period * (random.one_in(3) ? random.real(1, 1.2) : 1))
      jobs.push_back({volume.flow, arrival, arrival + volume.alive, volume.bytes});
  }
  /// [engines] the job that it moves; the one that has the least time left, so that as many as can be come.
  [[nodiscard]] std::map<std::uint32_t, Job*> active_at(double now, std::vector<Job>& jobs) const {
    std::map<std::uint32_t, Job*> active;
    for (Job& job : jobs) {
      if (job.arrival > now || job.end <= now || job.left <= 1e-9) continue;
      Job*& chosen = active[corunners_.flows[job.flow].engine];
      if (chosen == nullptr || job.end < chosen->end) chosen = &job;
    }
    return active;
  }

  const RandomCorunners& corunners_;
};

// No jobs of the others make it longer, on no machine; and chance comes near where the bound is not that of any
// corunners.
TEST(CorunnerTimes, HoldWhateverTheOthersMove) {
  Random random(2);
  int near = 0, shorter = 0;
  for (int round = 0; round < test::rounds(1000); ++round) {
    const RandomCorunners corunners(random);
    const RandomRivals rivals(random, corunners, 1000);
    const std::vector<double> rates = rates_beside_corunners(corunners.capacities, corunners.flows);
    CorunnerTimes times(corunners.capacities, corunners.flows, rivals.volumes);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      const double bytes = corunners.flows[f].alone * random.real(200, 2000), most = bytes / rates[f];
      const double bound = times.longest(f, bytes, most);
      if (bound > most * 0.999) continue;
      ++shorter;
      double worst = 0;
      for (int draw = 0; draw < 5; ++draw) worst = std::max(worst, rivals.play(random, f, bytes));
      ASSERT_LE(worst, bound * (1 + 1e-6)) << "round " << round << ", flow " << f;
      near += worst > bound * 0.95 ? 1 : 0;
    }
  }
  EXPECT_GT(shorter, test::rounds(1000) / 10);
  EXPECT_GT(20 * near, shorter);
}

}  // namespace
}  // namespace tutti::internal
