// How long the analyses of sporadic tasks take.
//
// The sets: UUniFast shares, periods log-uniform over 50 to 200 ms in whole microseconds, deadlines equal to periods,
// no jitter, costs in whole ns (rounded down, at least 1), 300 seeds. A row's time is the mean over the 300 sets, each
// asked once in turn, with everything that the call returns (a refusal's witness, too).
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "tests/bench/rows.hpp"
#include "tests/support/random.hpp"

namespace tutti {
namespace {

using namespace bench;
using Tasks = std::vector<TaskTiming>;

constexpr int kSeeds = 300;

/// Shares that add up to `utilization`, all such vectors alike likely.
std::vector<double> uunifast(test::Random& random, std::size_t count, double utilization) {
  std::vector<double> shares(count);
  double left = utilization;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const double rest = left * std::pow(random.real(0, 1), 1.0 / static_cast<double>(count - 1 - i));
    shares[i] = left - rest;
    left = rest;
  }
  shares.back() = left;
  return shares;
}

Tasks make_set(std::uint64_t seed, std::size_t count, double utilization) {
  test::Random random(seed);
  Tasks tasks;
  for (const double share : uunifast(random, count, utilization)) {
    const auto period = static_cast<std::int64_t>(50'000 * std::pow(4.0, random.real(0, 1))) * 1000;
    const auto wcet = static_cast<std::int64_t>(share * static_cast<double>(period));
    tasks.push_back({Duration{std::max<std::int64_t>(wcet, 1)}, Duration{period}, Duration{period}, Duration{0}});
  }
  return tasks;
}

std::vector<Tasks> make_sets(std::size_t count, double utilization) {
  std::vector<Tasks> sets;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) sets.push_back(make_set(seed, count, utilization));
  return sets;
}

/// One analysis on sets of one size.
struct Row {
  std::string name;
  Verdict (*decide)(std::span<const TaskTiming>, Policy);
  Policy policy;
  std::vector<Tasks> sets;

  [[nodiscard]] double accepted() const {
    int count = 0;
    for (const Tasks& tasks : sets) count += decide(tasks, policy).answer == Answer::Schedulable ? 1 : 0;
    return 100.0 * count / kSeeds;
  }

  void measure() {
    add_row(name, [this](benchmark::State& state) {
      for (auto _ : state)
        for (const Tasks& tasks : sets) benchmark::DoNotOptimize(decide(tasks, policy).answer);
    });
  }
};

int run(int argc, char** argv) {
  initialize(argc, argv);
  std::vector<Row> rows;
  for (const std::size_t count : {20U, 100U, 1000U})
    rows.push_back(
        {fmt::format("np-EDF verdict, U 0.95, {} tasks", count), np_edf_demand, Policy::Edf, make_sets(count, 0.95)});
  rows.push_back({"np-FP responses, DM, U 0.70, 100 tasks", np_fp_response_time, Policy::Dm, make_sets(100, 0.70)});
  for (Row& row : rows) row.measure();
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  fmt::print("\nmean over {} sets, us; median of the repetitions\n\n| analysis | time | accepted |\n|---|---|---|\n",
             kSeeds);
  for (const Row& row : rows)
    fmt::print("| {} | {:.2f} | {:.1f} % |\n", row.name, medians.us(row.name) / kSeeds, row.accepted());
  return 0;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::run(argc, argv); }
