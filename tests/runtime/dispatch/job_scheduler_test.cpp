// The dispatcher's decisions alone: events in, actions out. What a run makes of them is in dispatcher_test.cpp.
#include "runtime/dispatch/job_scheduler.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

ScheduledTask task(std::int64_t wcet, std::int64_t period, std::uint64_t jobs) {
  ScheduledTask task;
  task.timing.wcet = Duration{wcet};
  task.timing.period = task.timing.deadline = Duration{period};
  task.jobs = jobs;
  return task;
}

/// Lets jobs of a task give up the machine between regions of these lengths.
ScheduledTask in_regions(ScheduledTask task, std::vector<Duration> regions) {
  task.timing.regions = JobRegions::of(std::move(regions));
  return task;
}

/// What became of a job.
struct Line {
  std::size_t task;
  std::uint64_t index;
  std::string end;  ///< "done", "aborted", "skipped", "no buffers"
  std::int64_t start = 0, finish = 0;

  friend bool operator==(const Line&, const Line&) = default;
};
void PrintTo(const Line& line, std::ostream* out) {
  *out << "task " << line.task << " job " << line.index << " " << line.end << " " << line.start << " to "
       << line.finish;
}

/// Plays a scheduler on time that passes only in regions and in idle times.
struct Play {
  /// (job, region from 0) -> its length; below 0: the job had no such region, and has ended.
  std::function<std::int64_t(const ReadyJob&, std::size_t)> region;
  std::vector<Line> lines = {};
  Duration now{};

  void run(JobScheduler& scheduler) {
    std::map<std::pair<TaskId, std::uint64_t>, std::size_t> done;
    scheduler.releases().begin(now);
    Event::Kind happened = Event::Kind::Time;
    for (int steps = 0;; ++steps) {
      ASSERT_LT(steps, 1'000'000) << "it does not come to an end";
      const Action action = scheduler.step({happened, now});
      happened = Event::Kind::Time;
      switch (action.kind) {
        case Action::Kind::Release: scheduler.input_ready(action.job); break;
        case Action::Kind::Drop:
          lines.push_back({action.job.task.index(), action.job.index,
                           action.reason == DropReason::Skipped ? "skipped" : "no buffers"});
          break;
        case Action::Kind::Start:
        case Action::Kind::Continue: {
          std::size_t& next = done[{action.job.task, action.job.index}];
          now += Duration{region(action.job, next)};
          happened = region(action.job, ++next) < 0 ? Event::Kind::JobEnded : Event::Kind::RegionEnded;
          break;
        }
        case Action::Kind::Hold: now = std::max(now, action.until); break;
        case Action::Kind::Finish: {
          const RunningJob& job = scheduler.running();
          lines.push_back({job.job.task.index(), job.job.index, job.aborted ? "aborted" : "done", job.start.count(),
                           job.finish->count()});
          scheduler.releases().buffers_free(job.job);
          happened = Event::Kind::JobClosed;
          break;
        }
        case Action::Kind::Free: break;
        case Action::Kind::Idle:
          if (action.until == kNever) return;
          now = std::max(now, action.until);
      }
    }
  }
};

/// Jobs with one region of this length each.
std::function<std::int64_t(const ReadyJob&, std::size_t)> each(std::function<std::int64_t(const ReadyJob&)> length) {
  return
      [length = std::move(length)](const ReadyJob& job, std::size_t region) { return region == 0 ? length(job) : -1; };
}

using Lines = std::vector<Line>;

Lines lines_of(std::vector<ScheduledTask> tasks, std::function<std::int64_t(const ReadyJob&, std::size_t)> region,
               Policy policy = Policy::Edf) {
  JobScheduler scheduler(policy, Arrivals::Sporadic, std::move(tasks), 1);
  Play play{std::move(region)};
  play.run(scheduler);
  EXPECT_TRUE(scheduler.is_free());
  return play.lines;
}

TEST(JobScheduler, ServesTheMostUrgentFirst) {
  const auto length = each([](const ReadyJob&) { return 2; });
  EXPECT_EQ(lines_of({task(2, 20, 1), task(2, 10, 2)}, length),
            (Lines{{1, 0, "done", 0, 2}, {0, 0, "done", 2, 4}, {1, 1, "done", 10, 12}}));
  EXPECT_EQ(lines_of({}, length), Lines{});
}

// Task 0 takes 25 of every 10 once. By then job 0 of task 1, due at 12, is late, and job 0 of task 2, due at 30, is
// not: it goes first, although task 1 is more urgent under either policy. Job 1 of task 1 is late by then as well.
TEST(JobScheduler, StartsLateJobsBehindThoseThatCanStillBeMet) {
  for (const Policy policy : {Policy::Edf, Policy::Rm}) {
    std::vector<ScheduledTask> tasks{task(5, 100, 1), task(2, 12, 2), task(3, 30, 1)};
    tasks[1].first_arrival = Duration{1};
    tasks[1].buffer_sets = 2;
    tasks[2].first_arrival = Duration{2};
    const auto lines =
        lines_of(tasks, each([](const ReadyJob& job) { return job.task.index() == 0 ? 26 : 2; }), policy);
    EXPECT_EQ(lines,
              (Lines{{0, 0, "done", 0, 26}, {2, 0, "done", 26, 28}, {1, 0, "done", 28, 30}, {1, 1, "done", 30, 32}}))
        << to_string(policy);
  }
}

// The table of (3, 10), (6, 20) and (9, 40), worked out in critical_window_test: the third waits from 9 to 13. In the
// second run b takes 3 more, so a follows at 12, c at 15, and the next a when the table has it.
TEST(JobScheduler, WaitsByTheTableWhereTheWindowIsCritical) {
  const std::vector<ScheduledTask> tasks{task(3, 10, 4), task(6, 20, 2), task(9, 40, 1)};
  const auto wcet = [](const ReadyJob& job) -> std::int64_t {
    return 3 * static_cast<std::int64_t>(job.task.index() + 1);
  };
  EXPECT_EQ(lines_of(tasks, each(wcet), Policy::CwEdf), (Lines{{0, 0, "done", 0, 3},
                                                               {1, 0, "done", 3, 9},
                                                               {0, 1, "done", 10, 13},
                                                               {2, 0, "done", 13, 22},
                                                               {0, 2, "done", 22, 25},
                                                               {1, 1, "done", 25, 31},
                                                               {0, 3, "done", 31, 34}}));
  const auto longer = [&](const ReadyJob& job) {
    const bool over = job.task.index() == 1 && job.index == 0;
    return wcet(job) + (over ? 3 : 0) - (job.task.index() == 2 ? 4 : 0);
  };
  EXPECT_EQ(lines_of(tasks, each(longer), Policy::CwEdf), (Lines{{0, 0, "done", 0, 3},
                                                                 {1, 0, "done", 3, 12},
                                                                 {0, 1, "done", 12, 15},
                                                                 {2, 0, "done", 15, 20},
                                                                 {0, 2, "done", 22, 25},
                                                                 {1, 1, "done", 25, 31},
                                                                 {0, 3, "done", 31, 34}}));
}

// Jobs that take far too long, are dropped, skipped or suspend their task: each has its line, and the run ends.
TEST(JobScheduler, ComesToItsEndByATableWhatever) {
  test::Random random(7);
  for (int round = 0; round < test::rounds(300); ++round) {
    std::vector<ScheduledTask> tasks;
    std::size_t jobs = 0;
    for (int i = random.between(1, 4); i > 0; --i) {
      ScheduledTask& one = tasks.emplace_back(task(random.between(1, 4), 10 * random.between(1, 4), 0));
      one.jobs = random.below(150);
      one.first_job = random.below(3);
      one.first_arrival = one.timing.offset = Duration{random.between(0, 9)};
      one.overrun.policy = random.one_in(2) ? OverrunPolicy::SkipNext : OverrunPolicy::Continue;
      one.overrun.suspend_after = random.one_in(4) ? 2 : 0;
      jobs += one.jobs;
    }
    const auto suspends = [](const ScheduledTask& one) { return one.overrun.suspend_after > 0; };
    const auto lines = lines_of(
        tasks, each([&](const ReadyJob&) { return random.one_in(5) ? random.between(1, 400) : random.between(0, 3); }),
        Policy::CwEdf);
    if (std::ranges::none_of(tasks, suspends)) {
      ASSERT_EQ(lines.size(), jobs) << "round " << round;
    }
    if (HasFatalFailure()) return;
  }
}

// The second job takes 4 where 2 are declared: the third one is dropped, or it ends after its second region, at a
// boundary, or nothing happens.
TEST(JobScheduler, HasAConsequenceForAJobOverItsBudget) {
  const auto length = [](const ReadyJob& job, std::size_t region) -> std::int64_t {
    return region == 3 ? -1 : job.index == 1 ? 2 : region == 2 ? 0 : 1;
  };
  const auto with = [&](OverrunPolicy policy) {
    ScheduledTask one = task(2, 10, 4);
    one.overrun.policy = policy;
    return lines_of({one}, length);
  };
  const Line first{0, 0, "done", 0, 2}, last{0, 3, "done", 30, 32};
  EXPECT_EQ(with(OverrunPolicy::Continue), (Lines{first, {0, 1, "done", 10, 16}, {0, 2, "done", 20, 22}, last}));
  EXPECT_EQ(with(OverrunPolicy::SkipNext), (Lines{first, {0, 1, "done", 10, 16}, {0, 2, "skipped"}, last}));
  EXPECT_EQ(with(OverrunPolicy::Abort), (Lines{first, {0, 1, "aborted", 10, 14}, {0, 2, "done", 20, 22}, last}));
}

// A budget of 6 is not passed by a job of 6, whatever its Wcet.
TEST(JobScheduler, ABudgetIsTheTasksOwnWhereItHasOne) {
  ScheduledTask one = task(2, 10, 2);
  one.overrun = {OverrunPolicy::SkipNext, Duration{6}, 0};
  EXPECT_EQ(lines_of({one}, each([](const ReadyJob&) { return 6; })),
            (Lines{{0, 0, "done", 0, 6}, {0, 1, "done", 10, 16}}));
  one.overrun.budget = Duration{5};
  EXPECT_EQ(lines_of({one}, each([](const ReadyJob&) { return 6; })), (Lines{{0, 0, "done", 0, 6}, {0, 1, "skipped"}}));
}

// Jobs 1, 3 and 4 are over: two in a row come first at job 4, and no job follows. The other task goes on.
TEST(JobScheduler, SuspendsATaskThatIsOverTooOften) {
  ScheduledTask one = task(2, 10, 10);
  one.overrun.suspend_after = 2;
  JobScheduler scheduler(Policy::Edf, Arrivals::Sporadic, {one, task(1, 20, 5)}, 1);
  Play play{each([](const ReadyJob& job) {
    const bool over = job.task.index() == 0 && (job.index == 1 || job.index == 3 || job.index == 4);
    return over ? 3 : 1;
  })};
  play.run(scheduler);
  ASSERT_EQ(scheduler.releases().suspensions().size(), 1U);
  EXPECT_EQ(scheduler.releases().suspensions()[0].task, TaskId{0U});
  EXPECT_EQ(scheduler.releases().suspensions()[0].at, Duration{43});
  EXPECT_EQ(std::ranges::count(play.lines, 0U, &Line::task), 5);
  EXPECT_EQ(std::ranges::count(play.lines, 1U, &Line::task), 5);
}

/// A job of the only task is released and starts at an instant, and ends 5 later.
void run_job_of_5(JobScheduler& scheduler, Duration at) {
  const Action released = scheduler.step({Event::Kind::Time, at});
  ASSERT_EQ(released.kind, Action::Kind::Release);
  scheduler.input_ready(released.job);
  ASSERT_EQ(scheduler.step({Event::Kind::Time, at}).kind, Action::Kind::Start);
  ASSERT_EQ(scheduler.step({Event::Kind::JobEnded, at + Duration{5}}).kind, Action::Kind::Finish);
  scheduler.releases().buffers_free(released.job);
  ASSERT_EQ(scheduler.step({Event::Kind::JobClosed, at + Duration{5}}).kind, Action::Kind::Free);
}

// Each of its jobs takes 5 where 2 are declared. Suspended at 5, taken out at 20; at 30 it comes back as one that has
// done nothing wrong, and is suspended at 35.
TEST(JobScheduler, ASuspendedTaskThatComesBackRuns) {
  ScheduledTask one = task(2, 10, 10);
  one.overrun.suspend_after = 1;
  JobScheduler scheduler(Policy::Edf, Arrivals::Sporadic, {one}, 1);
  scheduler.releases().begin({});
  run_job_of_5(scheduler, {});
  EXPECT_EQ(scheduler.step({Event::Kind::Time, Duration{5}}).until, kNever);
  scheduler.releases().leave(TaskId{0}, Duration{20});
  scheduler.releases().come(TaskId{0}, Duration{30});
  run_job_of_5(scheduler, Duration{30});
  EXPECT_EQ(scheduler.step({Event::Kind::Time, Duration{35}}).until, kNever);
  ASSERT_EQ(scheduler.releases().suspensions().size(), 2U);
  EXPECT_EQ(scheduler.releases().suspensions()[1].at, Duration{35});
}

// Two jobs in a row that take 5 in place of 2 suspend it. One was before it left at 6, so the one of 30 is the first,
// and the one of 40 the second.
TEST(JobScheduler, OverrunsFromBeforeATaskLeftDoNotCount) {
  ScheduledTask one = task(2, 10, 10);
  one.overrun.suspend_after = 2;
  JobScheduler scheduler(Policy::Edf, Arrivals::Sporadic, {one}, 1);
  scheduler.releases().begin({});
  run_job_of_5(scheduler, {});
  scheduler.releases().leave(TaskId{0}, Duration{6});
  scheduler.releases().come(TaskId{0}, Duration{30});
  run_job_of_5(scheduler, Duration{30});
  EXPECT_TRUE(scheduler.releases().suspensions().empty());
  run_job_of_5(scheduler, Duration{40});
  ASSERT_EQ(scheduler.releases().suspensions().size(), 1U);
  EXPECT_EQ(scheduler.releases().suspensions()[0].at, Duration{45});
}

// Job 0 takes 35 of every 10, with one buffer set. At 35 job 1 gets it, due at 20: jobs 2 and 3, which have arrived,
// find none, and it is late. Job 4 finds it free again.
TEST(JobScheduler, DropsJobsWithoutBuffersOnce) {
  const auto lines = lines_of({task(2, 10, 6)}, each([](const ReadyJob& job) { return job.index == 0 ? 35 : 2; }));
  EXPECT_EQ(lines, (Lines{{0, 0, "done", 0, 35},
                          {0, 2, "no buffers"},
                          {0, 3, "no buffers"},
                          {0, 1, "done", 35, 37},
                          {0, 4, "done", 40, 42},
                          {0, 5, "done", 50, 52}}));
}

// Regions of 4; the short one comes at 5 and goes at 8, between them, and lends nothing itself. The long one's own time
// is that without the short one's.
TEST(JobScheduler, LendsTheMachineBetweenRegions) {
  ScheduledTask large = in_regions(task(12, 100, 1), {Duration{4}, Duration{4}, Duration{4}});
  ScheduledTask small = task(2, 20, 1);
  small.first_arrival = Duration{5};
  const auto lines = lines_of({large, small}, [](const ReadyJob& job, std::size_t region) -> std::int64_t {
    if (job.task.index() == 0) return region == 3 ? -1 : 4;
    return region == 1 ? -1 : 2;
  });
  EXPECT_EQ(lines, (Lines{{1, 0, "done", 8, 10}, {0, 0, "done", 0, 14}}));
}

// Task 0 takes 25. Then jobs 0 and 1 of task 1, due at 10 and 20, are late, and job 2 is not. Where each needs what the
// one before has left, those two go first, in its place.
TEST(JobScheduler, JobsInOrderAreNotOvertakenByTheNextOneOfTheirTask) {
  ScheduledTask after = task(2, 10, 3);
  after.buffer_sets = 3;
  const auto lines = [&](bool in_order) {
    after.in_order = in_order;
    return lines_of({task(25, 1000, 1), after},
                    each([](const ReadyJob& job) { return job.task == TaskId{0} ? 25 : 2; }), Policy::Given);
  };
  EXPECT_EQ(lines(false),
            (Lines{{0, 0, "done", 0, 25}, {1, 2, "done", 25, 27}, {1, 0, "done", 27, 29}, {1, 1, "done", 29, 31}}));
  EXPECT_EQ(lines(true),
            (Lines{{0, 0, "done", 0, 25}, {1, 0, "done", 25, 27}, {1, 1, "done", 27, 29}, {1, 2, "done", 29, 31}}));
}

// Job 0 takes 14, and is late when job 1 is ready at 10: it gives up the machine to that one only where they need not
// be in order.
TEST(JobScheduler, ALateJobDoesNotLendTheMachineToTheNextOneInOrder) {
  ScheduledTask late = in_regions(task(4, 10, 2), {Duration{2}, Duration{2}});
  late.buffer_sets = 2;
  const auto lines = [&](bool in_order) {
    late.in_order = in_order;
    return lines_of({late}, [](const ReadyJob& job, std::size_t region) -> std::int64_t {
      if (region > 1) return -1;
      return job.index == 0 && region == 0 ? 12 : 2;
    });
  };
  EXPECT_EQ(lines(false), (Lines{{0, 1, "done", 12, 16}, {0, 0, "done", 0, 18}}));
  EXPECT_EQ(lines(true), (Lines{{0, 0, "done", 0, 14}, {0, 1, "done", 14, 18}}));
}

// A late job lends the machine to any that can still be met, also to one with a later deadline.
TEST(JobScheduler, ALateJobLendsTheMachineToOneInTime) {
  ScheduledTask late = in_regions(task(8, 10, 1), {Duration{4}, Duration{4}});
  ScheduledTask other = task(2, 50, 1);
  other.first_arrival = Duration{3};
  const auto lines = lines_of({late, other}, [](const ReadyJob& job, std::size_t region) -> std::int64_t {
    if (job.task.index() == 0) return region == 2 ? -1 : 12;
    return region == 1 ? -1 : 2;
  });
  EXPECT_EQ(lines, (Lines{{1, 0, "done", 12, 14}, {0, 0, "done", 0, 26}}));
}

TEST(JobScheduler, EndsEveryJobWhereTheMachineBreaks) {
  ScheduledTask large = in_regions(task(8, 100, 3), {Duration{4}, Duration{4}});
  ScheduledTask small = task(2, 20, 3);
  small.first_arrival = Duration{1};
  JobScheduler scheduler(Policy::Edf, Arrivals::Sporadic, {large, small}, 1);
  Play play{[&](const ReadyJob& job, std::size_t region) -> std::int64_t {
    if (job.task.index() == 1) scheduler.stop();
    return region == 2 ? -1 : 4;
  }};
  play.run(scheduler);
  EXPECT_EQ(play.lines.size(), 2U) << "the one that broke it, and the one that had lent the machine";
}

/// At 0 a job has just started that takes at least `best` of at most 8, of a strictly periodic task.
JobScheduler with_a_job_of_best_case(std::int64_t best) {
  ScheduledTask one = task(8, 20, 1);
  one.timing.best_case = Duration{best};
  JobScheduler scheduler(Policy::Edf, Arrivals::Periodic, {one}, 1);
  scheduler.releases().begin({});
  scheduler.input_ready(scheduler.step({Event::Kind::Time, {}}).job);
  EXPECT_EQ(scheduler.step({Event::Kind::Time, {}}).kind, Action::Kind::Start);
  return scheduler;
}

// A job of 2 that was to keep the machine for its best case of 6: on a machine that is broken it ends at 2.
TEST(JobScheduler, ABrokenMachineIsKeptForNoBestCase) {
  JobScheduler scheduler = with_a_job_of_best_case(6);
  scheduler.stop();
  EXPECT_EQ(scheduler.step({Event::Kind::JobEnded, Duration{2}}).kind, Action::Kind::Finish);
  EXPECT_TRUE(scheduler.running().failed);
}

// A kernel fails after 2: the job leaves the machine at its best case of 6 all the same.
TEST(JobScheduler, AFailedJobKeepsTheMachineForItsBestCase) {
  JobScheduler scheduler = with_a_job_of_best_case(6);
  const Action held = scheduler.step({Event::Kind::JobFailed, Duration{2}});
  EXPECT_EQ(held.kind, Action::Kind::Hold);
  EXPECT_EQ(held.until, Duration{6});
  EXPECT_EQ(scheduler.step({Event::Kind::Time, Duration{6}}).kind, Action::Kind::Finish);
}

/// One random run, with jobs that take anything up to three times their Wcet.
struct RandomPlay {
  explicit RandomPlay(std::uint64_t seed) : random(seed) {
    const std::size_t count = random.below(6) + 1;
    for (std::size_t i = 0; i < count; ++i) {
      ScheduledTask one = task(random.between(1, 20), random.between(10, 100), random.below(30));
      if (random.one_in(3)) one.timing.jitter = Duration{random.between(0, 30)};
      if (random.one_in(3)) one = in_regions(one, {Duration{1}, Duration{1}, one.timing.wcet});
      one.timing.deadline = Duration{random.between(5, 200)};
      one.buffer_sets = random.below(3) + 1;
      one.first_arrival = Duration{random.between(0, 50)};
      one.overrun.policy = static_cast<OverrunPolicy>(random.below(3));
      if (random.one_in(3)) one.overrun.suspend_after = random.between(1, 4);
      tasks.push_back(std::move(one));
    }
  }

  test::Random random;
  std::vector<ScheduledTask> tasks;
};

// Every job that is released ends once: done, aborted, skipped or without buffers; jobs of a task in their order, but
// for those that never ran; all of them, unless their task was suspended. One job has the machine at a time.
TEST(JobScheduler, AccountsForEveryReleaseOnce) {
  for (std::uint64_t seed = 1; seed <= test::rounds(3000U); ++seed) {
    SCOPED_TRACE(seed);
    RandomPlay random(seed);
    JobScheduler scheduler(static_cast<Policy>(seed % 3), seed % 2 == 0 ? Arrivals::Periodic : Arrivals::Sporadic,
                           random.tasks, seed);
    Play play{[&](const ReadyJob& job, std::size_t region) -> std::int64_t {
      const auto& timing = random.tasks[job.task.index()].timing;
      const std::size_t regions = timing.regions ? timing.regions->each.size() : 1;
      if (region == regions) return -1;
      return random.random.between(0, 3 * static_cast<int>(timing.wcet.count()) / static_cast<int>(regions));
    }};
    play.run(scheduler);
    if (HasFatalFailure()) return;
    std::map<std::size_t, std::vector<std::uint64_t>> seen;
    for (const Line& line : play.lines) seen[line.task].push_back(line.index);
    for (std::size_t i = 0; i < random.tasks.size(); ++i) {
      std::vector<std::uint64_t>& indices = seen[i];
      std::ranges::sort(indices);
      for (std::size_t n = 0; n < indices.size(); ++n) ASSERT_EQ(indices[n], n) << "task " << i;
      const auto& suspensions = scheduler.releases().suspensions();
      const bool suspended = std::ranges::find(suspensions, TaskId{i}, &Suspension::task) != suspensions.end();
      if (!suspended) {
        ASSERT_EQ(indices.size(), random.tasks[i].jobs) << "task " << i;
      }
    }
  }
}

// ---- triggers

ScheduledTask external(std::int64_t period, std::int64_t jitter = 0, EarlyTriggers early = EarlyTriggers::Defer) {
  ScheduledTask task = internal::task(1, period, UINT64_MAX);
  task.timing.jitter = Duration{jitter};
  task.buffer_sets = 200;
  task.release = {ReleaseSource::External, "", early, Duration{2 * period + jitter}};
  return task;
}

/// Jobs that triggers at these instants release, as arrivals and the instants at which they are ready.
struct Released {
  std::int64_t arrival, ready;
  friend bool operator==(const Released&, const Released&) = default;
};
void PrintTo(const Released& job, std::ostream* out) { *out << job.arrival << " ready " << job.ready; }

/// Plays a task with jobs that take no time, until an instant.
std::vector<Released> play_triggers(JobScheduler& scheduler, const std::vector<std::int64_t>& triggers,
                                    std::int64_t end) {
  std::vector<Released> jobs;
  scheduler.releases().end_arrivals(Duration{end});
  scheduler.releases().begin({});
  std::size_t next = 0;
  Duration now{};
  for (Event::Kind happened = Event::Kind::Time;;) {
    while (next < triggers.size() && triggers[next] <= now.count() && scheduler.releases().takes_trigger(TaskId{0}))
      scheduler.releases().trigger(TaskId{0}, Duration{triggers[next++]});
    const Action action = scheduler.step({happened, now});
    happened = Event::Kind::Time;
    switch (action.kind) {
      case Action::Kind::Release:
        jobs.push_back({action.job.arrival.count(), action.ready.count()});
        scheduler.input_ready(action.job);
        break;
      case Action::Kind::Start: happened = Event::Kind::JobEnded; break;
      case Action::Kind::Finish:
        scheduler.releases().buffers_free(action.job);
        happened = Event::Kind::JobClosed;
        break;
      case Action::Kind::Idle: {
        Duration until = std::min(action.until, Duration{end});
        if (next < triggers.size() && scheduler.releases().takes_trigger(TaskId{0}))
          until = std::min(until, std::max(now, Duration{triggers[next]}));
        if (now.count() >= end) return jobs;
        now = std::max(now, until);
        break;
      }
      default: break;
    }
  }
}

std::vector<Released> released_by(ScheduledTask task, const std::vector<std::int64_t>& triggers,
                                  TriggerCounts* counts = nullptr, std::int64_t end = 100'000) {
  JobScheduler scheduler(Policy::Edf, Arrivals::Sporadic, {std::move(task)}, 1);
  auto jobs = play_triggers(scheduler, triggers, end);
  if (counts != nullptr) *counts = scheduler.releases().triggers_of(TaskId{0});
  return jobs;
}

// Period 100. In time at 7, 107 and 300. At 370 one is 30 early: it is deferred to 400, or dropped; the next at 500 is
// in time either way.
TEST(Triggers, AreDeferredOrDroppedWhereTheyAreEarly) {
  TriggerCounts counts;
  const std::vector<std::int64_t> triggers{7, 107, 300, 370, 500};
  EXPECT_EQ(released_by(external(100), triggers, &counts, 600),
            (std::vector<Released>{{7, 7}, {107, 107}, {300, 300}, {400, 400}, {500, 500}}));
  EXPECT_EQ(counts, (TriggerCounts{.seen = 5, .deferred = 1, .most_early = Duration{30}}));
  EXPECT_EQ(released_by(external(100, 0, EarlyTriggers::Drop), triggers, &counts, 600),
            (std::vector<Released>{{7, 7}, {107, 107}, {300, 300}, {500, 500}}));
  EXPECT_EQ(counts, (TriggerCounts{.seen = 5, .dropped = 1, .most_early = Duration{30}}));
}

// The second trigger at 0 is early by a whole period: it is no frame of its own. If it were deferred to 100, the one at
// 100 would be early, and all behind it for ever.
TEST(Triggers, AreDroppedWhereTheyAreDoubles) {
  TriggerCounts counts;
  EXPECT_EQ(released_by(external(100), {0, 0, 100, 200, 200, 200}, &counts, 300),
            (std::vector<Released>{{0, 0}, {100, 100}, {200, 200}}));
  EXPECT_EQ(counts, (TriggerCounts{.seen = 6, .dropped = 3, .most_early = Duration{100}}));
}

// Period 100, jitter 20. Arrivals at 0, 100, 200 explain triggers at 20, 100, 220; one at 299 would have arrived at 300
// at the earliest, so it is 1 early. The first trigger arrives no sooner than the run starts.
TEST(Triggers, MayComeCloserThanThePeriodByTheJitter) {
  TriggerCounts counts;
  EXPECT_EQ(released_by(external(100, 20), {20, 100, 220, 299}, &counts, 400),
            (std::vector<Released>{{0, 20}, {100, 100}, {200, 220}, {300, 300}}));
  EXPECT_EQ(counts, (TriggerCounts{.seen = 4, .deferred = 1, .most_early = Duration{1}}));
  EXPECT_EQ(released_by(external(100, 20), {5, 250}, &counts, 400), (std::vector<Released>{{0, 5}, {230, 250}}));
}

// One is missing 200 behind the last, and 200 behind that again: at 200 and 400 before the first, then at 650 and 850.
// The run ends at 1000, before a further one.
TEST(Triggers, AreMissedWhereNoneComes) {
  TriggerCounts counts;
  released_by(external(100), {450}, &counts, 1000);
  EXPECT_EQ(counts, (TriggerCounts{.seen = 1, .missing = 4}));
  released_by(external(100), {450}, &counts, 1050);  // nothing is missing at the end itself
  EXPECT_EQ(counts, (TriggerCounts{.seen = 1, .missing = 4}));
  released_by(external(100), {450}, &counts, 1051);
  EXPECT_EQ(counts, (TriggerCounts{.seen = 1, .missing = 5}));
}

// The run starts at 1000 on its clock and ends 500 later: missing at 1200 and 1400.
TEST(Triggers, AreMissedFromTheStartOfTheRun) {
  JobScheduler scheduler(Policy::Edf, Arrivals::Sporadic, {external(100)}, 1);
  scheduler.releases().end_arrivals(Duration{500});
  scheduler.releases().begin(Duration{1000});
  EXPECT_EQ(scheduler.step({Event::Kind::Time, Duration{1000}}).until, Duration{1200});
  EXPECT_EQ(scheduler.step({Event::Kind::Time, Duration{1200}}).until, Duration{1400});
  EXPECT_EQ(scheduler.step({Event::Kind::Time, Duration{1400}}).until, kNever);
  EXPECT_EQ(scheduler.releases().triggers_of(TaskId{0}).missing, 2U);
  EXPECT_TRUE(scheduler.releases().awaits_triggers(Duration{1499}));
  EXPECT_FALSE(scheduler.releases().awaits_triggers(Duration{1500}));
}

// Its last job arrived at 90. The task leaves at 95 and comes back at 100: a trigger at 110 is none too early for it.
TEST(Triggers, OfATaskThatComesBackStartAnew) {
  JobScheduler scheduler(Policy::Edf, Arrivals::Sporadic, {external(100)}, 1);
  const auto trigger_at = [&](std::int64_t at) {
    scheduler.releases().trigger(TaskId{0}, Duration{at});
    return scheduler.step({Event::Kind::Time, Duration{at}});
  };
  scheduler.releases().begin({});
  EXPECT_EQ(trigger_at(90).job.arrival, Duration{90});
  EXPECT_EQ(scheduler.step({Event::Kind::Time, Duration{90}}).kind, Action::Kind::Idle);
  scheduler.releases().leave(TaskId{0}, Duration{95});
  EXPECT_FALSE(scheduler.releases().awaits_triggers(Duration{95}));
  scheduler.releases().come(TaskId{0}, Duration{100});
  const Action action = trigger_at(110);
  EXPECT_EQ(action.kind, Action::Kind::Release);
  EXPECT_EQ(action.job.arrival, Duration{110});
  EXPECT_EQ(scheduler.releases().triggers_of(TaskId{0}).deferred, 0U);
}

// Whatever the triggers, jobs keep the envelope that admission counted on: arrivals a period apart, ready at most the
// jitter behind. Each trigger is counted, and has its job or is dropped.
TEST(Triggers, KeepTheEnvelopeWhateverComes) {
  test::Random random(17);
  for (int round = 0; round < 400; ++round) {
    const int period = random.between(1, 50);
    const std::int64_t jitter = random.between(0, 60);
    const auto early = random.one_in(2) ? EarlyTriggers::Defer : EarlyTriggers::Drop;
    std::vector<std::int64_t> triggers;
    std::int64_t at = 0;
    for (int i = 0; i < 100; ++i) triggers.push_back(at += random.between(0, 2 * period));
    TriggerCounts counts;
    const auto jobs = released_by(external(period, jitter, early), triggers, &counts, at + 2 * period + 1);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      EXPECT_GE(jobs[i].ready, jobs[i].arrival);
      EXPECT_LE(jobs[i].ready - jobs[i].arrival, jitter);
      EXPECT_TRUE(i == 0 || jobs[i].arrival - jobs[i - 1].arrival >= period);
    }
    EXPECT_EQ(counts.seen, 100U);
    EXPECT_EQ(jobs.size() + counts.dropped, 100U);
    EXPECT_TRUE(early == EarlyTriggers::Defer || counts.deferred == 0);
  }
}

}  // namespace
}  // namespace tutti::internal
