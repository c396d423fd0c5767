// What was admitted holds: seeded task sets, run on the virtual clock, against their bounds.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sched/tasks/critical_window.hpp"
#include "tests/runtime/random_jobs.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::planned_length;
using test::Random;
using test::random_batch_set;
using test::VirtualRun;
using test::with_patterns;

constexpr oracle::TimingRanges kSets{.tasks_min = 1,
                                     .tasks_max = 5,
                                     .wcet_max = 6,
                                     .period_min = 4,
                                     .period_max = 40,
                                     .deadline_min = 4,
                                     .deadline_max = 70,
                                     .jitter_max = 8};

TaskSet random_set(oracle::Dice& dice, Policy policy) {
  TaskSet set{{}, policy, {}};
  for (const TaskTiming& timing : oracle::random_timings(dice, kSets)) {
    Task task = test::task("t" + std::to_string(set.tasks.size()), timing.wcet.count(), timing.period.count());
    task.deadline = timing.deadline;
    task.jitter = timing.jitter;
    task.priority = timing.priority;
    task.offset = Duration{dice.roll(0, 50)};
    set.tasks.push_back(std::move(task));
  }
  return set;
}

bool is_admitted(const TaskSet& set) {
  return AdmissionController(planners().front()).decide(set).admitted.has_value();
}

/// No job misses, none responds later than its task's bound, where there is one.
void expect_promise_kept(const AdmittedTaskSet& admitted, const RunRecord& record) {
  for (const JobRecord& job : record.jobs) {
    ASSERT_FALSE(job.error.has_value()) << job.error->message;
    ASSERT_FALSE(job.missed()) << "job " << job.index << " of task " << job.task.index();
    ASSERT_FALSE(job.broken.has_value()) << "job " << job.index << " of task " << job.task.index();
    ASSERT_GE(job.start, job.arrival);
    const auto& bound = admitted.worst_responses()[job.task.index()];
    if (!bound) continue;
    ASSERT_LE(*job.finish - job.arrival, *bound) << "job " << job.index << " of task " << job.task.index();
  }
}

/// Jobs that may take less than their Wcet, and that never share a buffer set with a live one.
void watch(VirtualRun& run, std::vector<std::set<std::size_t>>& live, Random& random, bool early) {
  live.resize(run.programs.size());
  for (std::size_t i = 0; i < run.programs.size(); ++i) {
    run.programs[i].when_ready = [&live, i](const Job& job) {
      EXPECT_TRUE(live[i].insert(job.buffer_set).second) << "job " << job.index << " shares its buffers";
    };
    run.programs[i].after = [&live, i](const Job& job) { live[i].erase(job.buffer_set); };
    if (!early) continue;
    run.programs[i].instead = [&random](Job& job) -> Expected<void> {
      const auto most = static_cast<std::uint64_t>(job.task().declared_wcet->count());
      job.executor().clock().wait_until(job.executor().clock().now() +
                                        Duration{static_cast<std::int64_t>(random.below(most + 1))});
      return {};
    };
  }
}

class EveryPolicy : public testing::TestWithParam<Policy> {};

INSTANTIATE_TEST_SUITE_P(Table, EveryPolicy, testing::Values(Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given),
                         [](const auto& policy) { return std::string(to_string(policy.param)); });

TEST_P(EveryPolicy, AdmittedSetsKeepTheirPromise) {
  oracle::Dice dice(17);
  Random random(23);
  int admitted = 0;
  for (int round = 0; round < test::rounds(1500); ++round) {
    const TaskSet set = random_set(dice, GetParam());
    if (!is_admitted(set)) continue;
    ++admitted;
    SCOPED_TRACE("round " + std::to_string(round));
    VirtualRun run(set);
    std::vector<std::set<std::size_t>> live;
    watch(run, live, random, round % 3 == 0);
    expect_promise_kept(run.admitted, run.run(first_jobs(300, static_cast<std::uint64_t>(round))));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(admitted, test::rounds(200)) << "the ranges make too few sets that can be run";
}

/// Strictly periodic, and often too much for EDF.
TaskSet random_table_set(oracle::Dice& dice) {
  constexpr std::int64_t kPeriods[] = {10, 20, 40, 80};
  TaskSet set{{}, Policy::CwEdf, {}, Arrivals::Periodic};
  for (std::int64_t count = dice.roll(2, 5); count > 0; --count) {
    const std::int64_t period = kPeriods[dice.roll(0, 3)];
    const std::int64_t wcet = dice.roll(1, std::min<std::int64_t>(9, period / 3));
    Task task = test::task("t" + std::to_string(count), wcet, period);
    task.offset = Duration{dice.roll(0, 1) == 0 ? 0 : dice.roll(0, 30)};
    task.jitter = Duration{dice.roll(0, 2) == 0 ? dice.roll(1, 4) : 0};
    set.tasks.push_back(std::move(task));
  }
  return set;
}

// Jobs start at the instants of the table to the nanosecond, also where jobs end early and become ready early, and are
// in time; a third of the sets or so would miss under EDF.
TEST(CriticalWindowRun, FollowsTheTableThatWasAnalysed) {
  oracle::Dice dice(29);
  Random random(31);
  int admitted = 0;
  int refused_by_edf = 0;
  for (int round = 0; round < test::rounds(1500); ++round) {
    TaskSet set = random_table_set(dice);
    if (!is_admitted(set)) continue;
    ++admitted;
    SCOPED_TRACE("round " + std::to_string(round));
    VirtualRun run(set);
    std::vector<std::set<std::size_t>> live;
    watch(run, live, random, round % 2 == 0);
    const RunRecord record = run.run(first_jobs(120, static_cast<std::uint64_t>(round)));
    ASSERT_EQ(record.jobs.size(), 120U);
    expect_promise_kept(run.admitted, record);
    if (HasFatalFailure()) return;
    std::set<std::pair<TaskId, std::uint64_t>> ran;
    for (const JobRecord& job : record.jobs) ran.insert({job.task, job.index});
    CriticalWindowTable table(run.admitted.timings());
    for (const JobRecord& job : record.jobs) {
      TableEntry entry = table.next();
      while (!ran.contains({entry.task, entry.index})) entry = table.next();  // the run ends with the first 120
      ASSERT_EQ((TableEntry{job.task, job.index, job.start}), entry);
    }
    set.policy = Policy::Edf;
    refused_by_edf += is_admitted(set) ? 0 : 1;
  }
  EXPECT_GT(admitted, test::rounds(300));
  EXPECT_GT(refused_by_edf, test::rounds(30));
}

RunRecord run_patterns(test::Station& station, const AdmittedTaskSet& promise, std::uint64_t seed) {
  return with_patterns(station, promise.tasks(), seed, [&](std::span<TaskProgram* const> table) {
    return run_tasks(station.executor, promise, table, first_jobs(40, seed));
  });
}

// Each job takes what was planned to the nanosecond, since it runs by the plan that it was admitted with: at most its
// Wcet.
TEST_P(EveryPolicy, BatchesKeepTheirPromise) {
  int admitted = 0;
  for (std::uint64_t seed = 0; seed < test::rounds(150U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Station station;
    Random random(seed);
    const TaskSet set = random_batch_set(station, random, GetParam());
    if (!is_admitted(set)) continue;
    ++admitted;
    const AdmittedTaskSet promise = test::admit(set);
    const RunRecord record = run_patterns(station, promise, seed);
    expect_promise_kept(promise, record);
    for (const JobRecord& job : record.jobs) {
      ASSERT_EQ(*job.finish - job.start, planned_length(promise, job.task)) << "job " << job.index;
      ASSERT_LE(*job.finish - job.start, promise.timings()[job.task.index()].wcet) << "job " << job.index;
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(admitted, test::rounds(50));
}

// Jobs give up the machine between batches, and half of the sets have theirs cut. A job that was passed took longer
// than planned, and still is in time. More sets are admitted than without.
TEST_P(EveryPolicy, BatchesThatLetOthersPassKeepTheirPromise) {
  int admitted = 0, only_so = 0, passed = 0;
  for (std::uint64_t seed = 0; seed < test::rounds(150U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    test::Station station;
    Random random(seed);
    TaskSet set = random_batch_set(station, random, GetParam());
    const bool whole = is_admitted(set);
    set.preemption = Preemption::BetweenBatches;
    if (random.one_in(2)) set.cut = Bytes{random.between(100, 1000)};
    if (!is_admitted(set)) continue;
    ++admitted;
    only_so += whole ? 0 : 1;
    const AdmittedTaskSet promise = test::admit(set);
    const RunRecord record = run_patterns(station, promise, seed);
    expect_promise_kept(promise, record);
    for (const JobRecord& job : record.jobs) {
      const Duration planned = planned_length(promise, job.task);
      ASSERT_GE(*job.finish - job.start, planned) << "job " << job.index;
      passed += *job.finish - job.start > planned ? 1 : 0;
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(admitted, test::rounds(50));
  if (GetParam() != Policy::Given) {  // priorities at random seldom let a job in time
    EXPECT_GT(only_so, 0);
  }
  EXPECT_GT(passed, test::rounds(100));
}

/// Small, with a margin: batches take less than what they are bound for.
Topology machine_with_margin(double relative) {
  return test::changed(test::small_machine(), [&](MachineSpec& spec) { spec.margin = {relative, Duration{7}}; });
}

/// Shorter deadlines; half of the sets give up the machine between batches, half of those have theirs cut.
TaskSet random_tight_set(const test::Station& station, Random& random, Policy policy) {
  TaskSet set = random_batch_set(station, random, policy);
  for (Task& task : set.tasks) task.deadline = std::max(Duration{1}, task.deadline * random.between(2, 10) / 10);
  if (random.one_in(3)) return set;
  set.preemption = Preemption::BetweenBatches;
  if (random.one_in(2)) set.cut = Bytes{random.between(100, 1000)};
  return set;
}

// A refused set misses where its counter-example says so, to the nanosecond, although batches take less than bound for.
// All refusals are shown but those that ask for a blocker less than 1 ns before.
TEST_P(EveryPolicy, RefusedSetsMissInTheirScenario) {
  int refused = 0, shown = 0, in_regions = 0, late_in_regions = 0;
  for (std::uint64_t seed = 0; seed < test::rounds(300U); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    test::Station station(std::make_unique<VirtualClock>(), test::Station::make_sim,
                          machine_with_margin(random.between(0, 10) / 100.0));
    const TaskSet set = random_tight_set(station, random, GetParam());
    const AdmissionController controller(planners().front());
    const AdmissionVerdict verdict = controller.decide(set);
    if (verdict.answer != Answer::NotSchedulable) continue;
    ++refused;
    const CounterExample scenario = counter_example(verdict.timings, set.policy, verdict.tests);
    EXPECT_TRUE(scenario || !scenario.error().empty());
    if (!scenario) continue;
    const std::optional<Miss> miss = first_miss(verdict.timings, set.policy, *scenario);
    ASSERT_TRUE(miss.has_value());
    const PlannedTaskSet planned = controller.plan(set);
    const RunRecord record = with_patterns(station, set, seed, [&](std::span<TaskProgram* const> table) {
      return run_scenario(station.executor, planned, table, *scenario);
    });
    const auto late = std::ranges::find_if(record.jobs, [](const JobRecord& job) { return job.missed(); });
    ASSERT_NE(late, record.jobs.end());
    EXPECT_EQ((Miss{late->task, late->index, late->finish.value(), late->deadline}), *miss);
    ++shown;
    in_regions += set.preemption == Preemption::BetweenBatches ? 1 : 0;
    const auto& witness = std::ranges::find_if(verdict.tests, [](const Verdict& v) { return v.witness.has_value(); });
    const auto& blocker = witness == verdict.tests.end() ? std::nullopt : witness->witness->blocker;
    const auto& regions = blocker ? verdict.timings[blocker->index()].regions : std::nullopt;
    late_in_regions += regions && regions->each.front() < regions->longest ? 1 : 0;
  }
  EXPECT_EQ(shown, refused);
  EXPECT_GE(in_regions, test::rounds(50));
  EXPECT_GE(late_in_regions, test::rounds(6)) << "blockers whose longest region is not their first";
}

}  // namespace
}  // namespace tutti::internal
