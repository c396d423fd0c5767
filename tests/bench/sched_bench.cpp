// How long the analyses of sporadic tasks take.
//
// The sets: UUniFast shares, periods log-uniform over 50 to 200 ms in whole microseconds, deadlines equal to periods,
// no jitter, costs in whole ns (rounded down, at least 1), 300 seeds. A row's time is the mean over the 300 sets, each
// asked once in turn, with everything that the call returns (a refusal's witness, too).
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sched/admission/online_admission.hpp"
#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_edf_response_time.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "sched/analyses/utilization.hpp"
#include "tests/bench/rows.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using namespace bench;
using Tasks = std::vector<TaskTiming>;

constexpr int kSeeds = 300;

/// Shares that add up to `utilization`, all such vectors alike likely.
std::vector<double> uunifast(test::Random& random, std::size_t count, double utilization) {
  std::vector<double> shares;
  double left = utilization;
  while (shares.size() < count) shares.push_back(random.share(left, count - shares.size()));
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

/// Requests to a set that is nearly full, and what the full test would have been asked.
struct Requests {
  struct Request {
    std::size_t leaves;  ///< position of the task that goes; `kNone` where one comes
    TaskTiming comes;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};
  static constexpr int kCount = 2000;

  std::string name;
  Policy policy;
  OnlineAdmission start{policy};
  std::vector<TaskId> in;
  std::vector<Request> requests;
  std::vector<Tasks> full;  ///< every fourth set that an addition made
  int additions = 0;
  int taken = 0;  ///< of those

  /// Starts from an accepted set; half of the requests bring a task, with up to twice a mean share, and more where U
  /// has fallen by 0.04.
  Requests(Policy under, std::size_t count, double utilization_at_start)
      : name(fmt::format("{}, {} tasks", to_string(under), count)), policy(under) {
    std::uint64_t seed = 1;
    Tasks tasks = make_set(seed, count, utilization_at_start);
    while (full_test(tasks) != Answer::Schedulable) tasks = make_set(++seed, count, utilization_at_start);
    for (const TaskTiming& task : tasks) in.push_back(start.add(task, Duration{0}).task.value());
    test::Random random(2);
    OnlineAdmission set = start;
    std::vector<TaskId> now_in = in;
    for (int i = 0; i < kCount; ++i) {
      Request request{kNone, make_set(random.next(), 1, random.real(0, 2.0 / static_cast<double>(count)))[0]};
      const bool leaves = random.one_in(2) && utilization(set.counted(Duration{0})) > utilization_at_start - 0.04;
      if (leaves) request.leaves = static_cast<std::size_t>(random.below(now_in.size()));
      requests.push_back(request);
      Tasks asked = set.counted(Duration{0});
      const bool was_taken = play(set, now_in, request);
      if (request.leaves != kNone) continue;
      ++additions;
      if (!was_taken) continue;
      asked.push_back(request.comes);
      if (taken++ % 4 == 0) full.push_back(std::move(asked));
    }
  }

  [[nodiscard]] Answer full_test(const Tasks& tasks) const {
    return (policy == Policy::Edf ? np_edf_demand : np_fp_response_time)(tasks, policy).answer;
  }

  /// @return  whether a task was taken in.
  static bool play(OnlineAdmission& set, std::vector<TaskId>& now_in, const Request& request) {
    if (request.leaves != kNone) {
      set.remove(now_in[request.leaves], Duration{0}, std::nullopt);
      now_in[request.leaves] = now_in.back();
      now_in.pop_back();
    } else if (const auto outcome = set.add(request.comes, Duration{0}); outcome.task) {
      now_in.push_back(*outcome.task);
      return true;
    }
    return false;
  }

  void measure() {
    add_row(name + "/request", [this](benchmark::State& state) {
      for (auto _ : state) {
        OnlineAdmission set = start;
        std::vector<TaskId> now_in = in;
        for (const Request& request : requests) play(set, now_in, request);
      }
    });
    add_row(name + "/full", [this](benchmark::State& state) {
      for (auto _ : state)
        for (const Tasks& tasks : full) benchmark::DoNotOptimize(full_test(tasks));
    });
  }
};

int run(int argc, char** argv) {
  initialize(argc, argv);
  std::vector<Row> rows;
  for (const std::size_t count : {20U, 100U, 1000U})
    rows.push_back(
        {fmt::format("np-EDF verdict, U 0.95, {} tasks", count), np_edf_demand, Policy::Edf, make_sets(count, 0.95)});
  for (const std::size_t count : {20U, 100U})
    rows.push_back({fmt::format("np-EDF responses, U 0.95, {} tasks", count), np_edf_response_time, Policy::Edf,
                    make_sets(count, 0.95)});
  rows.push_back({"np-FP responses, DM, U 0.70, 100 tasks", np_fp_response_time, Policy::Dm, make_sets(100, 0.70)});
  for (Row& row : rows) row.measure();
  std::vector<Requests> requests;
  for (const std::size_t count : {20U, 100U, 1000U}) requests.emplace_back(Policy::Edf, count, 0.99);
  for (const std::size_t count : {20U, 100U, 1000U}) requests.emplace_back(Policy::Dm, count, 0.70);
  for (Requests& row : requests) row.measure();
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  fmt::print("\nmean over {} sets, us; median of the repetitions\n\n| analysis | time | accepted |\n|---|---|---|\n",
             kSeeds);
  for (const Row& row : rows)
    fmt::print("| {} | {:.2f} | {:.1f} % |\n", row.name, medians.us(row.name) / kSeeds, row.accepted());
  fmt::print(
      "\n| admission on line | request, us | full test, us | ratio | additions accepted "
      "|\n|---|---|---|---|---|\n");
  for (const Requests& row : requests) {
    const double request = medians.us(row.name + "/request") / Requests::kCount;
    const double full = medians.us(row.name + "/full") / static_cast<double>(row.full.size());
    fmt::print("| {} | {:.3f} | {:.3f} | 1/{:.1f} | {:.1f} % |\n", row.name, request, full, full / request,
               100.0 * row.taken / row.additions);
  }
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
