// Runs whose jobs overlap and which the simulated machine leads, beside their bounds: while the host is away, and while
// it is away for longer than it may.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/led_task_run.hpp"
#include "tests/runtime/led_runs.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

using test::DrowsyClock;
using test::Listening;
using test::Random;
using test::Station;

/// Each job of a run that was not interrupted is in one record. @return how many were dropped for want of a run
std::uint64_t expect_one_record_each(const TaskSet& set, const RunRecord& record, std::uint64_t jobs) {
  std::vector<std::map<std::uint64_t, const JobRecord*>> of(set.tasks.size());
  std::uint64_t away = 0;
  for (const JobRecord& job : record.jobs) {
    EXPECT_TRUE(of[job.task.index()].try_emplace(job.index, &job).second) << job.task.index() << " " << job.index;
    away += job.error && job.error->message.starts_with("the host had armed no run") ? 1 : 0;
  }
  EXPECT_EQ(record.jobs.size(), jobs);
  for (std::size_t i = 0; i < of.size(); ++i) {
    if (!of[i].empty()) {
      EXPECT_EQ(of[i].rbegin()->first + 1, of[i].size()) << "none is left out";
    }
    Duration before{-1}, started{-1};
    for (const auto& [index, job] : of[i]) {
      EXPECT_EQ(job->arrival, set.tasks[i].offset + set.tasks[i].period * static_cast<std::int64_t>(index));
      if (!job->finish) continue;
      EXPECT_GE(job->start, std::max(job->arrival, started)) << "jobs of a task begin in their order";
      EXPECT_GT(*job->finish, before) << "and end so";
      started = job->start;
      before = *job->finish;
    }
  }
  return away;
}

/// Pairs of jobs, one after the other by their starts, of which the second starts before the first ends.
std::uint64_t beside_each_other(const RunRecord& record) {
  std::vector<const JobRecord*> ended;
  for (const JobRecord& job : record.jobs)
    if (job.finish) ended.push_back(&job);
  std::ranges::sort(ended, {}, &JobRecord::start);
  std::uint64_t pairs = 0;
  for (std::size_t i = 1; i < ended.size(); ++i) pairs += ended[i]->start < *ended[i - 1]->finish ? 1 : 0;
  return pairs;
}

struct LedOverlap {
  TaskSet set;
  std::vector<std::optional<Duration>> bounds;
  RunRecord record;
};

/// Draws a set, and leads 150 jobs of it where it is admitted.
/// @param oversleeps  the host, by so many ns at most, now and then
/// @param hears  1 of so many programs hears of the ends of its jobs, and needs its buffers meanwhile; 0: none
/// @param until  the run is interrupted as so many jobs have ended; 0: it is not
std::optional<LedOverlap> run_drawn(std::uint64_t seed, Duration host_away, int oversleeps, int hears, int until = 0) {
  Random random(seed);
  Station station(std::make_unique<DrowsyClock>(random, oversleeps), Station::make_sim, test::led_machine());
  TaskSet set = test::drawn_led_set(random, station.machine);
  const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
  if (!verdict.admitted) return std::nullopt;
  std::vector<std::unique_ptr<Listening>> programs;
  std::vector<TaskProgram*> table;
  for (const Task& task : set.tasks) {
    Listening& program = *programs.emplace_back(std::make_unique<Listening>(station.machine, task));
    program.hears = hears > 0 && random.one_in(hears);
    table.push_back(&program);
  }
  RunOptions options;
  options.jobs = 150;
  options.conductor = ConductorKind::Gpu;
  options.host_away = host_away;
  std::atomic<bool> interrupted = false;
  options.interrupted = &interrupted;
  if (until > 0) options.on_job_end = [&, ended = 0](const JobRecord&) mutable { interrupted = ++ended >= until; };
  auto run = run_tasks(station.executor, *verdict.admitted, table, options);
  if (!run) return ADD_FAILURE() << run.error().text(), std::nullopt;
  EXPECT_FALSE(run->fatal) << run->fatal->text();
  const auto bounds = verdict.admitted->worst_responses();
  return LedOverlap{std::move(set), {bounds.begin(), bounds.end()}, *std::move(run)};
}

// The host comes back within half of the time for which it may be away, and 50 us.
TEST(LedOverlap, KeepsEachBoundWhileTheHostIsAway) {
  std::uint64_t sets = 0, pairs = 0;
  std::int64_t near = 0;  // responses of 60 % of their bounds and more
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{4000}); ++seed) {
    const auto ran = run_drawn(seed, Duration{150'000}, 50'000, 0);
    if (!ran) continue;
    ++sets;
    EXPECT_EQ(expect_one_record_each(ran->set, ran->record, 150), 0U);
    for (const JobRecord& job : ran->record.jobs) {
      EXPECT_EQ(job.verdict, JobVerdict::Met);
      EXPECT_FALSE(job.broken);
      ASSERT_TRUE(ran->bounds[job.task.index()].has_value());
      EXPECT_LE(job.response(), *ran->bounds[job.task.index()]);
      near += job.response() * 10 > *ran->bounds[job.task.index()] * 6 ? 1 : 0;
    }
    pairs += beside_each_other(ran->record);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(sets, test::rounds(1'000U));
  EXPECT_GT(pairs, test::rounds(50'000U)) << "jobs overlap";
  EXPECT_GT(near, 0);
}

TEST(LedOverlap, CountsEachJobForWhichTheHostWasAwayTooLong) {
  std::uint64_t away = 0, dropped = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{400}); ++seed) {
    const bool hears = seed % 2 == 0;
    const auto ran = run_drawn(seed, Duration{1}, 400'000, hears ? 2 : 0);
    if (!ran) continue;
    away += expect_one_record_each(ran->set, ran->record, 150);
    for (const JobRecord& job : ran->record.jobs) {
      if (!job.finish) {
        ++dropped;
        continue;
      }
      if (hears) continue;  // jobs wait for buffers that the host has
      EXPECT_FALSE(job.broken);
      EXPECT_LE(job.response(), *ran->bounds[job.task.index()]);
    }
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(away, test::rounds(1'000U));
  EXPECT_GE(dropped, away);
}

// Jobs that are on their way then go on to their ends. The host of odd seeds has buffers for so long that records of
// dropped jobs find no room at times: they are dropped as well.
TEST(LedOverlap, EndsWhereItIsInterrupted) {
  std::uint64_t sets = 0, away = 0, behind = 0;  // jobs that end after the interruption
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{800}); ++seed) {
    const auto until = static_cast<int>(seed % 40) + 1;
    const bool hears = seed % 2 == 1;
    const auto ran = run_drawn(seed, Duration{1}, hears ? 100'000 : 10'000, hears ? 1 : 0, until);
    if (!ran) continue;
    ++sets;
    away += expect_one_record_each(ran->set, ran->record, ran->record.jobs.size());
    if (ran->record.jobs.size() == 150) continue;  // all were on their way
    EXPECT_TRUE(ran->record.interrupted);
    EXPECT_GE(ran->record.jobs.size(), static_cast<std::size_t>(until));
    behind += ran->record.jobs.size() - static_cast<std::size_t>(until);
    if (testing::Test::HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(sets, test::rounds(100U));
  EXPECT_GT(away, test::rounds(100U));
  EXPECT_GT(behind, test::rounds(100U));
}

}  // namespace
}  // namespace tutti::internal
