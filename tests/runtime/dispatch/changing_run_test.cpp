// Tasks that come and go while a run is under way; worked by hand on the virtual clock.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "model/base/random.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

using test::Row;
using test::task;

/// Runs a set that changes, each task with a program of its own.
struct ChangingRun {
  ChangingRun(TaskSet all, std::vector<TaskId> running, std::unique_ptr<Clock> clock = std::make_unique<VirtualClock>())
      : station(std::move(clock)),
        set(ChangingTaskSet::make(AdmissionController(planners().front()), all, running).value()),
        programs(all.tasks.size()) {
    for (test::WatchedProgram& program : programs) table.push_back(&program);
  }

  RunRecord run(const std::vector<TaskChange>& changes, Duration end) {
    for (const TaskChange& change : changes) requests.post(change);
    RunOptions options;
    options.arrivals_before = end;
    return run_changing_tasks(station.executor, set, table, requests, options).value();
  }

  test::Station station;
  ChangingTaskSet set;
  std::vector<test::WatchedProgram> programs;
  std::vector<TaskProgram*> table;
  ChangeRequests requests;
};

std::vector<Answer> answers(const RunRecord& record) {
  std::vector<Answer> answers;
  for (const ChangeRecord& change : record.changes) answers.push_back(change.answer.answer);
  return answers;
}

constexpr TaskId kX1{0U}, kX2{1U}, kA{2U}, kB{3U};

TaskSet four_tasks() {
  return {std::nullopt, Policy::Edf, {task("x1", 4, 20), task("x2", 4, 20), task("a", 12, 20), task("b", 3, 7)}};
}

// All start at 0; by the order of the file x1 runs 0 to 4, x2 4 to 8, a 8 to 20. The requests of 12 and 13 are answered
// behind a's job, at 20, when another one of a has arrived, which runs 28 to 40: a leaves, b would still be late. At 40
// the longest busy period of x1, x2 and a, 20, has passed since, so b comes then. It is due first: b 40 to 43, x1 to
// 47, b 47 to 50, x2 to 54, b to 57.
TEST(ChangingRun, TheNewTaskComesWhenTheOldOnesPromisesAreKept) {
  ChangingRun run(four_tasks(), {kX1, kX2, kA});
  const RunRecord record = run.run(
      {{Duration{12}, kA, kB}, {Duration{12}, kA, {}}, {Duration{13}, {}, kB}, {Duration{30}, {}, kB}}, Duration{60});
  EXPECT_EQ(answers(record),
            (std::vector{Answer::NotSchedulable, Answer::Schedulable, Answer::NotSchedulable, Answer::Schedulable}));
  EXPECT_EQ(record.changes[0].answered, Duration{20});
  EXPECT_EQ(record.changes[3].answered, Duration{40});
  EXPECT_EQ(test::rows_of(run.set.planned().tasks, record), (std::vector<Row>{{"x1", 0, 0, 0, 4, 20},
                                                                              {"x2", 0, 0, 4, 8, 20},
                                                                              {"a", 0, 0, 8, 20, 20},
                                                                              {"x1", 1, 20, 20, 24, 40},
                                                                              {"x2", 1, 20, 24, 28, 40},
                                                                              {"a", 1, 20, 28, 40, 40},
                                                                              {"b", 0, 40, 40, 43, 47},
                                                                              {"x1", 2, 40, 43, 47, 60},
                                                                              {"b", 1, 47, 47, 50, 54},
                                                                              {"x2", 2, 40, 50, 54, 60},
                                                                              {"b", 2, 54, 54, 57, 61}}));
}

// The job that arrived at 0 and is ready at most 5 later is still run, and is the last one.
TEST(ChangingRun, AJobThatHasArrivedIsRun) {
  ChangingRun run({std::nullopt, Policy::Edf, {test::with_jitter(task("t", 2, 20), 5), task("u", 1, 20)}},
                  {TaskId{0U}, TaskId{1U}});
  const RunRecord record = run.run({{Duration{0}, TaskId{0U}, {}}}, Duration{60});
  std::size_t of_t = 0;
  for (const JobRecord& job : record.jobs) of_t += job.task == TaskId{0U} ? 1 : 0;
  EXPECT_EQ(of_t, 1U);
  EXPECT_EQ(record.jobs.size(), 4U);  // u's arrive at 0, 20, 40
}

// Nothing runs until 30; the run lasts until its end however empty it is.
TEST(ChangingRun, ATaskComesToAnEmptyMachine) {
  ChangingRun run({std::nullopt, Policy::Edf, {task("t", 2, 20)}}, {});
  const RunRecord record = run.run({{Duration{30}, {}, TaskId{0U}}}, Duration{60});
  EXPECT_EQ(test::rows_of(run.set.planned().tasks, record),
            (std::vector<Row>{{"t", 0, 30, 30, 32, 50}, {"t", 1, 50, 50, 52, 70}}));
}

// t's offset lies behind all that can happen: it arrives when it comes, at 0, 10, ..., 90, and up to three of its jobs
// are alive while u runs, so that each needs a buffer set of its own.
TEST(ChangingRun, ATaskThatComesBeforeItsOffsetHasAllItsBuffers) {
  const Task t = test::with_offset(test::with_deadline(task("t", 1, 10), 30), 950);
  ChangingRun run({std::nullopt, Policy::Edf, {t, task("u", 25, 40)}}, {TaskId{1U}});
  const RunRecord record = run.run({{Duration{0}, {}, TaskId{0U}}}, Duration{100});
  EXPECT_EQ(answers(record), (std::vector{Answer::Schedulable}));
  EXPECT_EQ(record.jobs.size(), 13U);  // u's arrive at 0, 40, 80
  for (const JobRecord& job : record.jobs) EXPECT_FALSE(job.missed());
}

TEST(ChangingRun, WhatIsAskedTooLateIsRefused) {
  ChangingRun run({std::nullopt, Policy::Edf, {task("t", 2, 20)}}, {});
  const RunRecord record = run.run({{Duration{100}, {}, TaskId{0U}}, {Duration{2000}, {}, TaskId{0U}}}, Duration{100});
  ASSERT_EQ(record.changes.size(), 2U);
  for (const ChangeRecord& change : record.changes) EXPECT_EQ(change.answer.reason, "the run ended before");
  EXPECT_TRUE(record.jobs.empty());
}

// t's machine fails in its first job, which ends at 2. The request of 1 would have been answered behind it.
TEST(ChangingRun, WhatIsAskedBeforeTheMachineFailsIsRefused) {
  ChangingRun run({std::nullopt, Policy::Edf, {task("t", 2, 20), task("u", 2, 20)}}, {TaskId{0U}});
  run.programs[0].instead = [&](Job&) -> Expected<void> {
    run.station.clock->wait_until(Duration{2});
    return machine_error("smoke");
  };
  const RunRecord record = run.run({{Duration{1}, {}, TaskId{1U}}}, Duration{100});
  ASSERT_TRUE(record.fatal);
  ASSERT_EQ(record.changes.size(), 1U);
  EXPECT_EQ(record.changes[0].answer.reason, "the run ended before");
}

// The longest time there is, on a clock that has run for a while.
TEST(ChangingRun, EndsWhereTimeEnds) {
  ChangingRun run({std::nullopt, Policy::Edf, {task("t", 1, std::int64_t{1} << 61)}}, {TaskId{0U}});
  run.station.clock->wait_until(Duration{1000});
  const RunRecord record = run.run({{Duration::max(), TaskId{0U}, {}}}, Duration{3LL << 61});
  EXPECT_EQ(record.jobs.size(), 3U);
}

/// Random tasks and random requests.
struct RandomChanges {
  explicit RandomChanges(std::uint64_t seed) : all{std::nullopt, seed % 2 == 0 ? Policy::Edf : Policy::Dm, {}} {
    Random random(seed);
    for (int i = 0; i < 8; ++i) {
      const int period = random.between(5, 60);
      Task each = test::with_jitter(task("t" + std::to_string(i), random.between(1, 8), period), random.between(0, 3));
      each.deadline = Duration{random.between(period / 2, 2 * period)};
      all.tasks.push_back(each);
    }
    for (int at = 0; at < 1000; at += random.between(1, 20)) {
      const TaskId one{static_cast<std::size_t>(random.between(0, 7))},
          other{static_cast<std::size_t>(random.between(0, 7))};
      if (one != other && random.one_in(3)) changes.push_back({Duration{at}, one, other});
      changes.push_back(random.one_in(2) ? TaskChange{Duration{at}, one, {}} : TaskChange{Duration{at}, {}, other});
    }
  }

  /// @param start  of the run, on its clock
  RunRecord run(Duration start = {}) const {
    ChangingRun run(all, {});
    run.station.clock->wait_until(start);
    return run.run(changes, Duration{1200});
  }

  TaskSet all;
  std::vector<TaskChange> changes;
};

// Many requests are granted, some refused, and nobody is ever late.
TEST(ChangingRun, NobodyIsEverLate) {
  std::size_t granted = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const RunRecord record = RandomChanges(seed).run();
    for (const JobRecord& job : record.jobs) EXPECT_FALSE(job.missed()) << "seed " << seed;
    for (const ChangeRecord& change : record.changes) {
      if (!change.change.comes) continue;
      granted += change.answer.answer == Answer::Schedulable ? 1 : 0;
      refused += change.answer.answer == Answer::NotSchedulable ? 1 : 0;
    }
  }
  EXPECT_GE(granted, 2000U);
  EXPECT_GE(refused, 200U);
}

// Times of requests and answers count from the start of the run, whatever its clock says then.
TEST(ChangingRun, IsTheSameWheneverItStarts) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const RandomChanges random(seed);
    const RunRecord at_once = random.run(), later = random.run(std::chrono::seconds{1});
    EXPECT_EQ(answers(later), answers(at_once)) << "seed " << seed;
    EXPECT_EQ(test::rows_of(random.all, later), test::rows_of(random.all, at_once)) << "seed " << seed;
  }
}

// u1 runs 0 to 5, u2 to 8, t's job of 0 to 10. At 5 t leaves; at 8, before its job has run, it cannot come back, and at
// 10 it can: its next job arrives then.
TEST(ChangingRun, ATaskComesBackWhenItsLastJobHasEnded) {
  const TaskId t{0U};
  ChangingRun run({std::nullopt, Policy::Edf, {task("t", 2, 40), task("u1", 5, 20), task("u2", 3, 30)}},
                  {t, TaskId{1U}, TaskId{2U}});
  const RunRecord record = run.run({{Duration{1}, t, {}}, {Duration{6}, {}, t}, {Duration{9}, {}, t}}, Duration{20});
  ASSERT_EQ(record.changes.size(), 3U);
  EXPECT_EQ(answers(record), (std::vector{Answer::Schedulable, Answer::Unknown, Answer::Schedulable}));
  EXPECT_EQ(record.changes[1].answered, Duration{8});
  EXPECT_EQ(record.changes[1].answer.reason, "a job of 't' from before has not ended");
  EXPECT_EQ(test::rows_of(run.set.planned().tasks, record),
            (std::vector<Row>{
                {"u1", 0, 0, 0, 5, 20}, {"u2", 0, 0, 5, 8, 30}, {"t", 0, 0, 8, 10, 40}, {"t", 1, 10, 10, 12, 50}}));
}

// Requests of another thread, in real time; each is answered once.
TEST(ChangingRun, AnswersRequestsOfOtherThreads) {
  constexpr std::size_t kRequests = 40;
  ChangingRun run({std::nullopt, Policy::Edf, {task("t", 1000, 2'000'000), task("u", 1000, 2'000'000)}}, {TaskId{0U}},
                  std::make_unique<RealClock>());
  std::thread asks([&] {
    for (std::size_t i = 0; i < kRequests; ++i) {
      run.requests.post(i % 2 == 0 ? TaskChange{{}, {}, TaskId{1U}} : TaskChange{{}, TaskId{1U}, {}});
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  });
  const RunRecord record = run.run({}, std::chrono::seconds{1});
  asks.join();
  std::size_t still_open = 0;
  while (run.requests.take_due(Duration::max())) ++still_open;
  EXPECT_EQ(record.changes.size() + still_open, kRequests);
  EXPECT_GT(record.changes.size(), 0U);
}

}  // namespace
}  // namespace tutti::internal
