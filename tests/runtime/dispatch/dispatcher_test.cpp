// Whole schedules of declared Wcets on the virtual clock, worked by hand. C, T, D, J and times in ns.
#include "runtime/dispatch/dispatcher.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/task_runs.hpp"
#include "tests/support/largest.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::Row;
using test::task;
using test::VirtualRun;
using test::with_deadline;
using test::with_jitter;
using test::with_offset;

using Rows = std::vector<Row>;

using test::kLargest;

// A hyperperiod of 18: x arrives at 0, 6, 12; y at 0, 9; z at 0. Shorter periods are due earlier, so EDF and RM agree.
//   0 x0 2 y0 5 z0 9; now x1 (since 6) and y1 (since 9) are ready: 9 x1 11 y1 14; x2 (since 12): 14 x2 16
TEST(Dispatcher, RunsOneHyperperiodByDefault) {
  const Rows expected{{"x", 0, 0, 0, 2, 6},   {"y", 0, 0, 2, 5, 9},    {"z", 0, 0, 5, 9, 18},
                      {"x", 1, 6, 9, 11, 12}, {"y", 1, 9, 11, 14, 18}, {"x", 2, 12, 14, 16, 18}};
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    VirtualRun run({{}, policy, {task("x", 2, 6), task("y", 3, 9), task("z", 4, 18)}});
    EXPECT_EQ(run.rows(), expected) << to_string(policy);
  }
}

/// The long job of b keeps the machine from 2 to 10; then l (arrived at 3, due 19) and s (arrived at 10, due 20) wait.
TaskSet contended(Policy policy) {
  return {{}, policy, {task("s", 2, 10), with_offset(task("l", 3, 16), 3), with_offset(task("b", 8, 40), 2)}};
}

// l is due earlier: 10 l 13 s 15. Nobody takes the machine from b, though l becomes ready at 3 and is due before it.
TEST(Dispatcher, ServesTheEarliestDeadlineUnderEdf) {
  EXPECT_EQ(VirtualRun(contended(Policy::Edf)).rows(first_jobs(4)),
            (Rows{{"s", 0, 0, 0, 2, 10}, {"b", 0, 2, 2, 10, 42}, {"l", 0, 3, 10, 13, 19}, {"s", 1, 10, 13, 15, 20}}));
}

// s has the shorter period: 10 s 12 l 15.
TEST(Dispatcher, ServesTheShortestPeriodUnderRm) {
  EXPECT_EQ(VirtualRun(contended(Policy::Rm)).rows(first_jobs(4)),
            (Rows{{"s", 0, 0, 0, 2, 10}, {"b", 0, 2, 2, 10, 42}, {"s", 1, 10, 10, 12, 20}, {"l", 0, 3, 12, 15, 19}}));
}

// With relative deadlines of 14 for s and 13 for l, l comes first under DM and, due at 16 against 24, under EDF.
TEST(Dispatcher, ServesTheShortestRelativeDeadlineUnderDm) {
  for (const Policy policy : {Policy::Dm, Policy::Edf}) {
    TaskSet set = contended(policy);
    set.tasks[0].deadline = Duration{14};
    set.tasks[1].deadline = Duration{13};
    EXPECT_EQ(VirtualRun(set).rows(first_jobs(4)),
              (Rows{{"s", 0, 0, 0, 2, 14}, {"b", 0, 2, 2, 10, 42}, {"l", 0, 3, 10, 13, 16}, {"s", 1, 10, 13, 15, 24}}));
  }
}

TEST(Dispatcher, BreaksTiesByTheOrderOfTheFile) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm}) {
    EXPECT_EQ(VirtualRun({{}, policy, {task("second", 2, 12), task("first", 3, 12), task("third", 1, 12)}}).rows(),
              (Rows{{"second", 0, 0, 0, 2, 12}, {"first", 0, 0, 2, 5, 12}, {"third", 0, 0, 5, 6, 12}}));
  }
}

// a (T 10, D 25, C 4) may have ceil(25 / 10) = 3 jobs alive; long runs from 4 to 24, a1 and a2 arrive meanwhile:
//   0 a0 4 long 24 a1 28 a2 32 a3 (since 30) 36, then a4 40 to 44, a5 50 to 54
// Buffer sets in turn: a0 and a3 have set 0, a1 and a4 set 1, a2 and a5 set 2.
TEST(Dispatcher, KeepsABufferSetForEveryJobThatCanBeAlive) {
  VirtualRun run({{}, Policy::Edf, {with_deadline(task("a", 4, 10), 25), task("long", 20, 60)}});
  std::vector<std::size_t> ready, done;
  run.programs[0].when_ready = [&](const Job& job) { ready.push_back(job.buffer_set); };
  run.programs[0].after = [&](const Job& job) { done.push_back(job.buffer_set); };
  EXPECT_EQ(run.rows(), (Rows{{"a", 0, 0, 0, 4, 25},
                              {"long", 0, 0, 4, 24, 60},
                              {"a", 1, 10, 24, 28, 35},
                              {"a", 2, 20, 28, 32, 45},
                              {"a", 3, 30, 32, 36, 55},
                              {"a", 4, 40, 40, 44, 65},
                              {"a", 5, 50, 50, 54, 75}}));
  EXPECT_EQ(ready, (std::vector<std::size_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(done, ready);
}

// The finish may coincide with the next arrival: C = D = T.
TEST(Dispatcher, ReusesABufferSetAtTheInstantItIsFree) {
  VirtualRun run({{}, Policy::Edf, {task("full", 10, 10)}});
  EXPECT_EQ(run.rows(first_jobs(3)),
            (Rows{{"full", 0, 0, 0, 10, 10}, {"full", 1, 10, 10, 20, 20}, {"full", 2, 20, 20, 30, 30}}));
}

// z takes no time and waits for b until it is due, 4: then its next job arrives, and has the buffers at that same
// instant.
TEST(Dispatcher, ReusesABufferSetOfAJobThatTakesNoTimeAtItsDeadline) {
  VirtualRun run({{}, Policy::Edf, {task("b", 4, 4), task("z", 0, 4)}});
  EXPECT_EQ(run.rows(first_jobs(4)),
            (Rows{{"b", 0, 0, 0, 4, 4}, {"z", 0, 0, 4, 4, 4}, {"b", 1, 4, 4, 8, 8}, {"z", 1, 4, 8, 8, 8}}));
}

// The offsets shift the arrivals: late at 7, 17, early at 2, 12. One hyperperiod (10) behind the last offset (7):
// before 17.
TEST(Dispatcher, ShiftsArrivalsByTheOffsets) {
  VirtualRun run({{}, Policy::Edf, {with_offset(task("late", 2, 10), 7), with_offset(task("early", 3, 10), 2)}});
  EXPECT_EQ(run.rows(), (Rows{{"early", 0, 2, 2, 5, 12}, {"late", 0, 7, 7, 9, 17}, {"early", 1, 12, 12, 15, 22}}));
}

// Deadlines count from the arrival, however late the job is ready.
TEST(Dispatcher, DelaysJobsByAJitterWithinItsBound) {
  VirtualRun run({{}, Policy::Edf, {with_jitter(task("j", 1, 20), 3)}});
  std::set<std::int64_t> seen;
  for (const Row& row : run.rows(first_jobs(200))) {
    EXPECT_EQ(row.arrival, static_cast<std::int64_t>(20 * row.index));
    EXPECT_EQ(row.deadline, row.arrival + 20);
    seen.insert(row.start - row.arrival);
  }
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2, 3}));
}

TEST(Dispatcher, DrawsTheJitterFromTheSeedAlone) {
  const TaskSet set{{}, Policy::Edf, {with_jitter(task("a", 1, 20), 9), with_jitter(task("b", 1, 20), 9)}};
  EXPECT_EQ(VirtualRun(set).rows(first_jobs(100, 5)), VirtualRun(set).rows(first_jobs(100, 5)));
  EXPECT_NE(VirtualRun(set).rows(first_jobs(100, 5)), VirtualRun(set).rows(first_jobs(100, 6)));
  // The two tasks draw for themselves; equal draws throughout would be one chance in 10^50.
  const auto together = VirtualRun(set).run(first_jobs(100, 5));
  EXPECT_TRUE(std::any_of(together.jobs.begin(), together.jobs.end(),
                          [](const JobRecord& job) { return job.start - job.arrival > Duration{1}; }));
}

// 0 a0 3, and so on; the run starts anew wherever the clock stands.
// Asked at 0, it starts at 1000: its jobs arrive at 0 and 10 from there.
TEST(Dispatcher, StartsAtTheMomentThatIsGiven) {
  VirtualRun run({std::nullopt, Policy::Edf, {task("a", 1, 10)}});
  const std::uint64_t jobs[] = {2};
  const auto prepared = prepare_run(run.station.executor, run.admitted, run.table, jobs, {}).value();
  const RunRecord record = prepared->run(Duration{1000});
  EXPECT_EQ(test::rows_of(run.set, record), (std::vector<Row>{{"a", 0, 0, 0, 1, 10}, {"a", 1, 10, 10, 11, 20}}));
  EXPECT_EQ(run.station.clock->now(), Duration{1011});
}

// The run starts at 1000 on its clock; its second job takes 5 in place of 1, and ends at 15.
TEST(Dispatcher, SaysWhenItSuspendedATask) {
  Task one = task("a", 1, 10);
  one.overrun.suspend_after = 1;
  VirtualRun run({std::nullopt, Policy::Edf, {one}});
  run.programs[0].after = [&](const Job& job) {
    if (job.index == 1) run.station.clock->wait_until(run.station.clock->now() + Duration{4});
  };
  run.station.clock->wait_until(Duration{1000});
  const RunRecord record = run.run(first_jobs(5));
  ASSERT_EQ(record.suspensions.size(), 1U);
  EXPECT_EQ(record.suspensions[0].at, Duration{15});
}

// Endless runs keep no job: what is left of them is the summary.
TEST(Dispatcher, KeepsNoJobsWhereNobodyWantsThem) {
  VirtualRun run({std::nullopt, Policy::Edf, {task("a", 1, 10)}});
  RunOptions options = first_jobs(5);
  options.keeps_jobs = false;
  const RunRecord record = run.run(options);
  EXPECT_TRUE(record.jobs.empty());
  EXPECT_EQ(record.summaries.at(0).jobs(), 5U);
}

TEST(Dispatcher, RunsTwiceOnOneClock) {
  VirtualRun run({{}, Policy::Edf, {with_offset(with_jitter(task("a", 3, 10), 2), 1), task("b", 2, 15)}});
  std::vector<Duration> arrivals;
  run.programs[1].when_ready = [&](const Job& job) { arrivals.push_back(job.arrival); };
  const Rows first = run.rows();
  const Duration between = run.station.clock->now();
  EXPECT_GT(between, Duration{0});
  EXPECT_EQ(run.rows(), first);
  ASSERT_EQ(arrivals.size() % 2, 0U);
  for (std::size_t i = 0; i < arrivals.size() / 2; ++i)
    EXPECT_EQ(arrivals[arrivals.size() / 2 + i] - arrivals[i], between);
}

TEST(Dispatcher, FinishesTheJobUnderWayWhenInterrupted) {
  VirtualRun run({{}, Policy::Edf, {task("a", 3, 10)}});
  std::atomic<bool> interrupted{false};
  run.programs[0].after = [&](const Job& job) { interrupted = job.index == 2; };
  RunOptions options = first_jobs(100);
  options.interrupted = &interrupted;
  const RunRecord record = run.run(options);
  EXPECT_TRUE(record.interrupted);
  EXPECT_FALSE(record.fatal.has_value());
  ASSERT_EQ(record.jobs.size(), 3U);
  EXPECT_EQ(record.jobs.back().finish, Duration{23});
  options.interrupted = nullptr;
  EXPECT_FALSE(run.run(options).interrupted);
}

// The second job arrives in an hour. Whoever interrupts does not want to wait for it.
TEST(Dispatcher, IsInterruptedWhileItWaits) {
  const TaskSet set{{}, Policy::Edf, {task("hourly", 1, 3'600'000'000'000)}};
  const AdmittedTaskSet admitted = test::admit(set);
  test::Station station(std::make_unique<RealClock>());
  test::WatchedProgram program;
  TaskProgram* const table[] = {&program};
  std::atomic<bool> interrupted{false};
  RunOptions options = first_jobs(2);
  options.interrupted = &interrupted;
  std::atomic<bool> ran{false};
  program.after = [&](const Job&) { ran = true; };
  std::thread user([&] {
    while (!ran) std::this_thread::yield();
    interrupted = true;
  });
  const auto record = run_tasks(station.executor, admitted, table, options);
  user.join();
  ASSERT_TRUE(record.has_value());
  EXPECT_TRUE(record->interrupted);
  EXPECT_EQ(record->jobs.size(), 1U);
}

// a takes 2 where 6 to 8 are declared. Its set was proven for periodic arrivals with jobs that keep the machine for 6
// at least, so b starts then; for sporadic ones jobs may be shorter, and b starts at 2.
TEST(Dispatcher, AJobKeepsTheMachineForItsBestCase) {
  for (const Arrivals arrivals : {Arrivals::Periodic, Arrivals::Sporadic}) {
    Task a = task("a", 8, 20);
    a.best_case = Duration{6};
    VirtualRun run({{}, Policy::Edf, {a, task("b", 1, 40)}, arrivals});
    run.programs[0].instead = [](Job& job) -> Expected<void> {
      job.executor().clock().wait_until(job.executor().clock().now() + Duration{2});
      return {};
    };
    const std::int64_t b = arrivals == Arrivals::Periodic ? 6 : 2;
    EXPECT_EQ(run.rows(first_jobs(2)), (std::vector<Row>{{"a", 0, 0, 0, 2, 20}, {"b", 0, 0, b, b + 1, 40}}));
  }
}

TEST(Dispatcher, GoesOnBehindAFailedJob) {
  VirtualRun run({{}, Policy::Edf, {task("a", 3, 10)}});
  run.programs[0].instead = [](Job& job) -> Expected<void> {
    job.executor().clock().wait_until(job.executor().clock().now() + Duration{1});
    if (job.index == 1) return tl::unexpected(Error{ErrorCode::Kernel, "no such wafer", {}});
    return {};
  };
  const RunRecord record = run.run(first_jobs(3));
  ASSERT_EQ(record.jobs.size(), 3U);
  EXPECT_FALSE(record.fatal.has_value());
  EXPECT_FALSE(record.jobs[0].error.has_value());
  EXPECT_EQ(record.jobs[1].error, (Error{ErrorCode::Kernel, "no such wafer", {}}));
  EXPECT_EQ(record.jobs[1].finish, Duration{11});
  EXPECT_FALSE(record.jobs[2].error.has_value());
}

TEST(Dispatcher, EndsEarlyWhenTheMachineFails) {
  VirtualRun run({{}, Policy::Edf, {task("a", 3, 10)}});
  run.programs[0].instead = [](Job& job) -> Expected<void> {
    if (job.index == 1) return machine_error("smoke");
    return {};
  };
  const RunRecord record = run.run(first_jobs(5));
  ASSERT_EQ(record.jobs.size(), 2U);
  ASSERT_TRUE(record.fatal.has_value());
  EXPECT_EQ(record.fatal->message, "smoke");
  EXPECT_TRUE(record.jobs.back().error.has_value());
}

// Jobs that take 35 in place of 3: job 0 runs from 0 to 35, and then jobs 1, 2 and 3 are due that arrived at 10, 20
// and 30. There is one buffer set: job 1 takes it at 35, jobs 2 and 3 find none. From 70 on it is the same with 4, and
// 5 to 7.
TEST(Dispatcher, RecordsJobsThatFindNoBuffersAsMissed) {
  VirtualRun run({{}, Policy::Edf, {task("a", 3, 10)}});
  run.programs[0].instead = [](Job& job) -> Expected<void> {
    job.executor().clock().wait_until(job.executor().clock().now() + Duration{35});
    return {};
  };
  const RunRecord record = run.run(first_jobs(8));
  ASSERT_EQ(record.jobs.size(), 8U);
  std::set<std::uint64_t> never_run;
  for (const JobRecord& job : record.jobs) {
    EXPECT_TRUE(job.missed());
    if (job.finish) continue;
    never_run.insert(job.index);
    ASSERT_TRUE(job.error.has_value());
    EXPECT_EQ(job.error->code, ErrorCode::Machine);
  }
  EXPECT_EQ(never_run, (std::set<std::uint64_t>{2, 3, 5, 6, 7}));
}

// Job 1 takes 5 in place of 3, so job 2 is skipped. It was ready when it would have been without that: its arrival at
// 20 and its jitter later.
TEST(Dispatcher, RecordsWhenASkippedJobWasReady) {
  Task a = with_jitter(task("a", 3, 10), 4);
  a.overrun.policy = OverrunPolicy::SkipNext;
  VirtualRun run({{}, Policy::Edf, {a}});
  const Duration ready = run.run(first_jobs(3)).jobs[2].ready;
  EXPECT_GT(ready, Duration{20});
  run.programs[0].after = [&](const Job& job) {
    if (job.index == 1) run.station.clock->wait_until(run.station.clock->now() + Duration{2});
  };
  const RunRecord record = run.run(first_jobs(3));
  EXPECT_EQ(record.jobs[2].verdict, JobVerdict::Skipped);
  EXPECT_EQ(record.jobs[2].ready, ready);
  EXPECT_FALSE(record.jobs[2].broken) << "its task asked for that";
}

// The third job of a throws, in its input, its work or behind it: the run ends with that sentence, and all records of
// the jobs before it are there, b's too.
TEST(Dispatcher, EndsWithAllRecordsWhereAProgramThrows) {
  for (const char* where : {"on_ready", "the job"}) {
    VirtualRun run({{}, Policy::Edf, {task("a", 3, 10), task("b", 2, 10)}});
    const auto at_third = [](const Job& job) {
      if (job.index == 2) throw std::runtime_error("the wafer fell off");
    };
    if (where == std::string("on_ready")) {
      run.programs[0].when_ready = at_third;
    } else {
      run.programs[0].after = at_third;
    }
    const RunRecord record = run.run(first_jobs(20));
    ASSERT_TRUE(record.fatal.has_value()) << where;
    EXPECT_EQ(record.fatal->message, std::string(where) + " of task 'a' threw: the wafer fell off; catch it there");
    const auto met = std::ranges::count(record.jobs, JobVerdict::Met, &JobRecord::verdict);
    EXPECT_EQ(met, 4) << where;
    EXPECT_EQ(record.jobs.size(), 5U + (where == std::string("on_ready") ? 0 : 1)) << where;
  }
}

TEST(Dispatcher, RefusesToStartWhileTheMachineIsBusy) {
  VirtualRun run({{}, Policy::Edf, {task("a", 3, 10)}});
  auto outside = run.station.prepare({test::kernel_stream("s", run.station.at("gpu0"), "spin", 100)}, {{}});
  ASSERT_TRUE(run.station.executor.issue(outside).has_value());
  const auto refused = run.try_run(first_jobs(1));
  ASSERT_FALSE(refused.has_value()) << "its first jobs would wait for a batch that nobody admitted";
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  ASSERT_TRUE(run.station.executor.synchronize(outside).has_value());
  EXPECT_TRUE(run.try_run(first_jobs(1)).has_value());
}

TEST(Dispatcher, RunsNothingForAnEmptySet) {
  VirtualRun run({{}, Policy::Edf, {}});
  EXPECT_TRUE(run.rows().empty());
  EXPECT_TRUE(run.rows(first_jobs(10)).empty());
}

// One job, from 0 to the end of all time; nothing arrives behind it.
TEST(Dispatcher, SurvivesTasksAsLongAsTimeItself) {
  for (const Policy policy : {Policy::Edf, Policy::Rm}) {
    VirtualRun run({{}, policy, {task("age", kLargest, kLargest)}});
    EXPECT_EQ(run.rows(), (Rows{{"age", 0, 0, 0, kLargest, kLargest}}));
  }
  // The second arrival at 2^63 - 11 would be due beyond all time.
  VirtualRun late({{}, Policy::Edf, {with_jitter(task("late", 100, kLargest - 10), 7)}});
  EXPECT_EQ(late.rows().size(), 1U);
  VirtualRun offset(
      {{},
       Policy::Edf,
       {with_offset(task("offset", 100, 1000), kLargest - 2000), with_deadline(task("other", 1, 1LL << 62), 200)}});
  const Rows rows = offset.rows();
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(), [](const Row& row) { return row.task == "offset"; }), 2);
}

}  // namespace
}  // namespace tutti::internal
