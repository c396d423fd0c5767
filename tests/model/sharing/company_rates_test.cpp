#include "model/sharing/company_rates.hpp"

#include <array>
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

CompanyFlow copy(std::uint32_t engine, double alone, double most, double weight = 1, double cost = 1) {
  return {engine, weight, alone, most, {{kMemory, cost}}};
}

// Two links give 63 at most, whatever is measured: 126 < 176, so the memory never holds one back, and each has the 48.6
// of its own link. Without that limit a fast neighbour could take up to its fair share alone: 176 / 2 = 88 > 48.6.
TEST(RatesInCompany, AreThoseAloneWhereSharingCannotFillUp) {
  const std::array capacities{176.0};
  EXPECT_EQ(rates_in_company(capacities, std::array{copy(0, 48.6, 63), copy(1, 48.6, 63)}),
            (std::vector<double>{48.6, 48.6}));
  EXPECT_EQ(rates_in_company(capacities, std::array{copy(0, 60, 63), copy(1, 60, 63), copy(2, 60, 63)}),
            (std::vector<double>{176.0 / 3, 176.0 / 3, 176.0 / 3}));
}

// Four links: 4 x 44 = 176, and none has reached its 63 by then.
TEST(RatesInCompany, AreFairSharesWhereItCan) {
  std::vector<CompanyFlow> flows;
  for (std::uint32_t engine = 0; engine < 4; ++engine) flows.push_back(copy(engine, 48.6, 63));
  EXPECT_EQ(rates_in_company(std::array{176.0}, flows), std::vector<double>(4, 44.0));
}

// One neighbour cannot take more than 10 of 100: 90 are left for the other two, which share them.
TEST(RatesInCompany, LeaveWhatASlowNeighbourCannotTake) {
  const std::array flows{copy(0, 80, 80), copy(1, 80, 80), copy(2, 10, 10)};
  EXPECT_EQ(rates_in_company(std::array{100.0}, flows), (std::vector<double>{45, 45, 10}));
}

// Up weighs 1 and costs 1, down weighs 1.5 and costs 1.2: four of each have loads of 4 + 7.2 = 11.2 at level 1, so the
// level is 112 / 11.2 = 10: up has 10, down 15.
TEST(RatesInCompany, CountWeightsAndCosts) {
  std::vector<CompanyFlow> flows;
  for (std::uint32_t engine = 0; engine < 4; ++engine) flows.push_back(copy(engine, 50, 63));
  for (std::uint32_t engine = 4; engine < 8; ++engine) flows.push_back(copy(engine, 50, 63, 1.5, 1.2));
  const std::vector<double> rates = rates_in_company(std::array{112.0}, flows);
  EXPECT_NEAR(rates.front(), 10, 1e-12);
  EXPECT_NEAR(rates.back(), 15, 1e-12);
}

// Copies of one engine are never active together: each shares with the other engine alone, and that with the dearer one
// of them: 3 level + level = 90.
TEST(RatesInCompany, HoldOneCopyOfAnEngine) {
  const std::array flows{copy(0, 90, 200), copy(0, 90, 200, 1, 3), copy(1, 90, 200)};
  EXPECT_EQ(rates_in_company(std::array{90.0}, flows), (std::vector<double>{45, 22.5, 22.5}));
}

/// Flows over capacities 0 to 3, each with a link of its own behind these: the link's bandwidth is `alone` at least and
/// `most` at most.
struct RandomCompany {
  std::vector<double> capacities;
  std::vector<CompanyFlow> flows;

  explicit RandomCompany(Random& random) {
    constexpr int kShared = 4;
    for (int c = 0; c < kShared; ++c) capacities.push_back(random.real(10, 100));
    const int count = random.between(1, 8);
    for (int f = 0; f < count; ++f) {
      CompanyFlow& flow = flows.emplace_back();
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
  /// The rate of a flow in some company of it, on a machine that is as fast as this one at least.
  double rate(Random& random, std::size_t of) const {
    std::vector<double> faster = capacities;
    for (double& capacity : faster) capacity *= random.one_in(2) ? 1 : random.real(1, 2);
    for (const CompanyFlow& flow : flows) {
      double& link = faster[flow.uses.back().capacity.index()];
      link = std::min(link, flow.most);
    }
    std::set<std::uint32_t> engines{flows[of].engine};
    std::vector<SlowFlow> active{slow(flows[of])};
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (random.one_in(2) && engines.insert(flows[f].engine).second) active.push_back(slow(flows[f]));
    return test::slow_max_min(faster, active).front();
  }
  [[nodiscard]] SlowFlow slow(const CompanyFlow& flow) const {
    SlowFlow slow{flow.weight, std::vector<double>(capacities.size())};
    for (const CapacityUse& use : flow.uses) slow.cost[use.capacity.index()] = use.cost;
    return slow;
  }
};

// No company on no machine is worse; and the worst that chance finds is often as bad.
TEST(RatesInCompany, HoldInEveryCompany) {
  Random random(1);
  int near = 0, all = 0;
  for (int round = 0; round < test::rounds(2000); ++round) {
    const RandomCompany company(random);
    const std::vector<double> bounds = rates_in_company(company.capacities, company.flows);
    for (std::size_t f = 0; f < bounds.size(); ++f) {
      double worst = company.flows[f].alone * 2;
      for (int draw = 0; draw < 20; ++draw) worst = std::min(worst, company.rate(random, f));
      ASSERT_GE(worst, bounds[f] * (1 - 1e-9)) << "round " << round << ", flow " << f;
      near += worst < bounds[f] * 1.02 ? 1 : 0;
      ++all;
    }
  }
  EXPECT_GT(2 * near, all);
}

}  // namespace
}  // namespace tutti::internal
