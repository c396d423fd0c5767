// Who has which resource where jobs overlap: decisions alone, without a machine. Times in ns.
#include "runtime/dispatch/operation_scheduler.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/overlap/overlap_verdict.hpp"
#include "tests/support/overlap_sets.hpp"
#include "tests/support/random.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::Random;
using test::tasks_of;
using test::two_sides;
using Kind = OverlapAction::Kind;

/// A set as operations with local deadlines, and its scheduler.
struct Decisions {
  explicit Decisions(TaskSet the_set, std::uint64_t jobs = 1, std::size_t sets = 1, std::uint64_t seed = 1,
                     bool as_decided = false)
      : set(std::move(the_set)), verdict(decide_overlapping(set).value()) {
    EXPECT_EQ(verdict.answer, Answer::Schedulable);
    verdict.deadlines->held = verdict.deadlines->held || !as_decided;
    std::vector<ScheduledTask> tasks;
    for (const Task& task : set.tasks) {
      ScheduledTask& scheduled = tasks.emplace_back();
      scheduled.timing.period = task.period;
      scheduled.timing.deadline = task.deadline;
      scheduled.timing.jitter = task.jitter;
      scheduled.overrun = task.overrun;
      scheduled.buffer_sets = sets;
      scheduled.jobs = jobs;
      scheduled.first_arrival = task.offset;
    }
    scheduler.emplace(set.policy, verdict.operations, *verdict.deadlines, std::move(tasks), seed);
    scheduler->releases().begin({});
  }

  /// The next action; releases are done at once, and their inputs are there.
  OverlapAction step(std::int64_t now) {
    for (;;) {
      const OverlapAction action = scheduler->step(Duration{now});
      if (action.kind != Kind::Release) return action;
      scheduler->input_ready(action.due.job, Duration{now});
    }
  }
  /// Regions that begin now, as "operation.part.region".
  std::vector<std::string> begun(std::int64_t now) {
    std::vector<std::string> names;
    for (OverlapAction action = step(now); action.kind == Kind::Begin; action = step(now))
      names.push_back(fmt::format("{}.{}.{}", action.region.operation, action.region.part, action.region.region));
    return names;
  }
  void end(std::size_t operation, std::int64_t now) {
    scheduler->region_ended(verdict.operations.operations[operation].resource, Duration{now});
  }

  TaskSet set;
  OverlapVerdict verdict;
  std::optional<OperationScheduler> scheduler;
};

using Names = std::vector<std::string>;

// A copy of 6 us, a kernel of 2 us, D = 10 us: the kernel's guard is what the copy has, though that ends sooner.
TEST(OperationScheduler, HoldsAnOperationUntilItsGuard) {
  Decisions decisions(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 2 us}"}));
  const Duration guard = decisions.verdict.deadlines->guards[1];
  ASSERT_GE(guard, Duration{6000});
  EXPECT_EQ(decisions.begun(0), Names{"0.0.0"});
  decisions.end(0, 3000);
  EXPECT_EQ(decisions.step(3000).until, guard);
  EXPECT_EQ(decisions.begun(guard.count()), Names{"1.0.0"});
  decisions.end(1, guard.count() + 2000);
  const OverlapAction finish = decisions.step(guard.count() + 2000);
  ASSERT_EQ(finish.kind, Kind::Finish);
  EXPECT_EQ(decisions.scheduler->job(finish.job).finish, guard + Duration{2000});
  EXPECT_FALSE(decisions.scheduler->job(finish.job).over_budget);
}

// The same as it was decided: nothing else wants the GPU, so the kernel need not be held.
TEST(OperationScheduler, HoldsNothingWhereNoBoundRestsOnThat) {
  Decisions decisions(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 2 us}"}), 1, 1, 1, true);
  EXPECT_FALSE(decisions.verdict.deadlines->held);
  EXPECT_EQ(decisions.begun(0), Names{"0.0.0"});
  decisions.end(0, 3000);
  EXPECT_EQ(decisions.begun(3000), Names{"1.0.0"});
}

// Copies to two GPUs go at once, two to one GPU one after the other; of two with one local deadline, in the order of
// the file.
TEST(OperationScheduler, ServesEachResourceByItself) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu0, size: 1 kB",
                                       "from: mem0, to: gpu1, size: 2 kB"});
  Decisions decisions(set);
  EXPECT_EQ(decisions.begun(0), (Names{"0.0.0", "2.0.0"}));
  decisions.end(0, 1000);
  EXPECT_EQ(decisions.step(1000).kind, Kind::Finish);
  EXPECT_EQ(decisions.begun(1000), Names{"1.0.0"});
}

// A copy to gpu0 ends as two more wait for gpu0 and gpu1: gpu1's engine has been free longer, and its copy begins
// first.
TEST(OperationScheduler, BeginsAtTheResourceThatHasBeenFreeLongest) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu0, size: 1 kB",
                                       "from: mem0, to: gpu1, size: 2 kB"});
  set.tasks[2].offset = Duration{500};
  Decisions decisions(set);
  EXPECT_EQ(decisions.begun(0), Names{"0.0.0"});
  decisions.end(0, 1000);
  EXPECT_EQ(decisions.step(1000).kind, Kind::Finish);
  EXPECT_EQ(decisions.begun(1000), (Names{"2.0.0", "1.0.0"}));
}

// While the engine is busy two copies come: the one with the longer local deadline is due first, since it came first.
// EDF takes that, fixed priorities the shorter local deadline.
TEST(OperationScheduler, ServesByInstantsUnderEdfAndByLocalDeadlinesElse) {
  for (const Policy policy : {Policy::Edf, Policy::Dm}) {
    TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 3 kB", "from: mem0, to: gpu0, size: 1 kB",
                                         "from: mem0, to: gpu0, size: 1 kB"});
    set.policy = policy;
    for (Task& task : set.tasks) task.period = Duration{50'000};
    Decisions decisions(set);
    LocalDeadlines deadlines{std::vector<Duration>(3), {Duration{9000}, Duration{8000}, Duration{7000}}};
    std::vector<ScheduledTask> tasks(3);
    for (std::size_t i = 0; i < 3; ++i) {
      tasks[i].timing.period = tasks[i].timing.deadline = Duration{50'000};
      tasks[i].jobs = 1;
      tasks[i].first_arrival = Duration{i == 0 ? 0 : i == 1 ? 500 : 2000};  // due at 8500 and 9000
    }
    decisions.scheduler.emplace(policy, decisions.verdict.operations, deadlines, std::move(tasks), 1);
    decisions.scheduler->releases().begin({});
    EXPECT_EQ(decisions.begun(0), Names{"0.0.0"});
    EXPECT_EQ(decisions.begun(2500), Names{});
    decisions.end(0, 3000);
    EXPECT_EQ(decisions.step(3000).kind, Kind::Finish);
    EXPECT_EQ(decisions.begun(3000), Names{policy == Policy::Edf ? "1.0.0" : "2.0.0"});
  }
}

// What could begin sooner says since when, and whether its resource was idle before.
TEST(OperationScheduler, SaysSinceWhenARegionCouldBegin) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu0, size: 1 kB"});
  set.tasks[1].offset = Duration{500};
  Decisions decisions(set, 2);
  const OverlapAction first = decisions.step(100);
  EXPECT_EQ(first.region.could_begin, Duration{100});  // when its input was there
  EXPECT_TRUE(first.region.after_idle);
  EXPECT_EQ(decisions.begun(600), Names{});
  decisions.end(0, 2100);
  EXPECT_EQ(decisions.step(2150).kind, Kind::Finish);
  const OverlapAction second = decisions.step(2150);
  EXPECT_EQ(second.region.could_begin, Duration{2100});
  EXPECT_FALSE(second.region.after_idle);
  EXPECT_EQ(decisions.scheduler->job(second.region.job).dispatch_late, Duration{50});
  decisions.end(1, 3200);
  const OverlapAction finish = decisions.step(3200);
  for (const TaskId task : {TaskId{0}, TaskId{1}}) {
    const ReadyJob job{task, 0, {}, {}, {}, {}, 0};
    decisions.scheduler->closed(job, Duration{3200});
    decisions.scheduler->releases().buffers_free(job);
  }
  EXPECT_EQ(finish.kind, Kind::Finish);
  EXPECT_EQ(decisions.step(3300).kind, Kind::Idle);
  const OverlapAction third = decisions.step(10'000);
  ASSERT_EQ(third.kind, Kind::Begin);
  EXPECT_TRUE(third.region.after_idle);
}

// 6 kB in chunks of 2: a more urgent copy goes between two of them.
TEST(OperationScheduler, LetsAMoreUrgentOneGoBetweenTwoRegions) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB", "from: mem0, to: gpu0, size: 1 kB"});
  set.preemption = Preemption::BetweenBatches;
  set.cut = Bytes{2000};
  set.tasks[0].period = set.tasks[0].deadline = Duration{20'000};
  set.tasks[1].deadline = Duration{5000};
  set.tasks[1].offset = Duration{1000};
  Decisions decisions(set);
  EXPECT_EQ(decisions.begun(0), Names{"0.0.0"});
  EXPECT_EQ(decisions.begun(1000), Names{});
  decisions.end(0, 2000);
  EXPECT_EQ(decisions.begun(2000), Names{"1.0.0"});
  decisions.end(1, 3000);
  EXPECT_EQ(decisions.step(3000).kind, Kind::Finish);
  EXPECT_EQ(decisions.begun(3000), Names{"0.0.1"});
}

// The copy takes 9 us of 6: the job is over its budget, and ends there with `abort`; the next one of its task is
// dropped with `skip_next`.
TEST(OperationScheduler, LooksAtBudgetsBetweenTwoRegions) {
  for (const OverrunPolicy policy : {OverrunPolicy::Continue, OverrunPolicy::Abort, OverrunPolicy::SkipNext}) {
    TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 2 us}"});
    set.tasks[0].overrun.policy = policy;
    Decisions decisions(set, 2);
    EXPECT_EQ(decisions.begun(0), Names{"0.0.0"});
    decisions.end(0, 9000);
    OverlapAction action = decisions.step(9000);
    if (policy != OverrunPolicy::Abort) {
      ASSERT_EQ(action.kind, Kind::Begin);
      decisions.end(1, 9900);
      action = decisions.step(9900);
    }
    ASSERT_EQ(action.kind, Kind::Finish);
    const OverlappedJob& job = decisions.scheduler->job(action.job);
    EXPECT_TRUE(job.over_budget);
    EXPECT_EQ(job.aborted, policy == OverrunPolicy::Abort);
    decisions.scheduler->closed(action.job, Duration{9900});
    decisions.scheduler->releases().buffers_free(action.job);
    EXPECT_EQ(decisions.step(10'000).kind, policy == OverrunPolicy::SkipNext ? Kind::Drop : Kind::Begin);
  }
}

// A job whose copy fails ends with the copy to the other GPU that is under way, and its kernels never begin.
TEST(OperationScheduler, EndsAFailedJobWithWhatIsUnderWay) {
  TaskSet set = tasks_of(two_sides(), {"host"});
  set.tasks[0].steps = {test::make_batch(two_sides(),
                                         "  - {from: mem0, to: gpu0, size: 2 kB, kernel: {time: 1 us}}\n"
                                         "  - {from: mem0, to: gpu1, size: 3 kB, kernel: {time: 1 us}}\n")};
  Decisions decisions(set);
  ASSERT_EQ(decisions.begun(0).size(), 2U);
  decisions.scheduler->region_failed(decisions.verdict.operations.operations[0].resource, Duration{2000});
  EXPECT_EQ(decisions.step(2000).kind, Kind::Idle);
  decisions.end(2, 3000);
  const OverlapAction finish = decisions.step(3000);
  ASSERT_EQ(finish.kind, Kind::Finish);
  EXPECT_TRUE(decisions.scheduler->job(finish.job).failed);
  EXPECT_EQ(decisions.step(9000).until, kNever);
}

// Jobs that have begun go on to their end, the others never begin.
TEST(OperationScheduler, DrainsWhatHasBegun) {
  TaskSet set = tasks_of(
      two_sides(), {"from: mem0, to: gpu0, size: 2 kB, kernel: {time: 1 us}", "from: mem0, to: gpu0, size: 1 kB"});
  Decisions decisions(set, 5);
  ASSERT_EQ(decisions.begun(0).size(), 1U);
  const std::size_t first =
      decisions.verdict.operations.operations[0].task == TaskId{0} &&
              decisions.scheduler->running(decisions.verdict.operations.operations[0].resource)->job.task == TaskId{0}
          ? 0
          : 2;
  decisions.scheduler->drain();
  decisions.end(first, 2000);
  for (std::int64_t now = 2000;; now += 100) {
    const OverlapAction action = decisions.step(now);
    if (action.kind == Kind::Finish) break;
    if (action.kind == Kind::Begin) decisions.end(action.region.operation, now + 50);
    ASSERT_LT(now, 10'000);
  }
  EXPECT_EQ(decisions.step(50'000).until, kNever);
  const auto unstarted = decisions.scheduler->take_unstarted();
  ASSERT_TRUE(unstarted);
  EXPECT_EQ(unstarted->task, TaskId{first == 0 ? 1U : 0U});
  EXPECT_FALSE(decisions.scheduler->take_unstarted());
}

// A job past its deadline goes behind one that can still be met.
TEST(OperationScheduler, PutsLateJobsBehind) {
  TaskSet set = tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 1 kB", "from: mem0, to: gpu0, size: 1 kB"});
  set.tasks[1].offset = Duration{500};
  Decisions decisions(set, 2, 2);
  EXPECT_EQ(decisions.begun(0), Names{"0.0.0"});
  EXPECT_EQ(decisions.begun(10'500), Names{});  // the second job of both; the first of t1 is late by now
  decisions.end(0, 10'501);
  EXPECT_EQ(decisions.step(10'501).kind, Kind::Finish);
  const OverlapAction next = decisions.step(10'501);
  ASSERT_EQ(next.kind, Kind::Begin);
  EXPECT_EQ(next.region.job.index, 1U);
}

/// Plays random runs of a set, event by event: regions take any time up to their longest.
class RandomRegions {
 public:
  RandomRegions(Decisions& decisions, Random& random) : decisions_(decisions), random_(random) {
    ends_.resize(decisions.verdict.operations.resources.size(), kNever);
  }

  void run() {
    for (Duration now{}; now != kNever; now = next(now)) {
      for (std::size_t r = 0; r < ends_.size(); ++r)
        if (ends_[r] <= now) end(r, now);
      act(now);
    }
  }

 private:
  void act(Duration now) {
    auto& scheduler = *decisions_.scheduler;
    for (;;) {
      const OverlapAction action = scheduler.step(now);
      switch (action.kind) {
        case Kind::Release: scheduler.input_ready(action.due.job, now); break;
        case Kind::Drop: FAIL() << "no job is dropped";
        case Kind::Begin: begin(action.region, now); break;
        case Kind::Finish: finish(action.job, now); break;
        case Kind::Idle: until_ = action.until; return;
      }
    }
  }

  void begin(const RegionRun& run, Duration now) {
    const Operation& operation = decisions_.verdict.operations.operations[run.operation];
    EXPECT_EQ(ends_[run.resource], kNever) << "a resource serves one region at a time";
    EXPECT_EQ(operation.resource, run.resource);
    const LocalDeadlines& deadlines = *decisions_.verdict.deadlines;
    if (deadlines.held) {
      EXPECT_GE(now, run.job.arrival + deadlines.guards[run.operation]);
    }
    const Duration longest = operation.parts[run.part].regions[run.region];
    const Duration takes =
        random_.one_in(3) ? Duration{random_.between(0, static_cast<int>(longest.count()))} : longest;
    ends_[run.resource] = now + takes;
  }

  void end(std::size_t resource, Duration now) {
    const RegionRun run = *decisions_.scheduler->running(resource);
    ends_[resource] = kNever;
    decisions_.scheduler->region_ended(resource, now);
    const LocalDeadlines& local = *decisions_.verdict.deadlines;
    EXPECT_LE(now, run.job.arrival + local.guards[run.operation] + local.deadlines[run.operation])
        << "a local deadline is missed";
  }

  void finish(const ReadyJob& job, Duration now) {
    const OverlappedJob& ended = decisions_.scheduler->job(job);
    EXPECT_LE(*ended.finish - job.arrival, *decisions_.verdict.worst_responses[job.task.index()]);
    EXPECT_FALSE(ended.over_budget);
    decisions_.scheduler->closed(job, now);
    decisions_.scheduler->releases().buffers_free(job);
  }

  [[nodiscard]] Duration next(Duration now) const {
    const Duration next = std::min(until_, std::ranges::min(ends_));
    EXPECT_GE(next, now);
    return next;
  }

  Decisions& decisions_;
  Random& random_;
  std::vector<Duration> ends_;  // [resources]
  Duration until_{};
};

// Whatever regions take, up to their longest times: no operation is late, and no response over its bound.
TEST(OperationScheduler, KeepsAllLocalDeadlines) {
  Random random(11);
  const Topology machine = test::overlap_machine();
  int sets = 0, released = 0;
  for (int round = 0; round < test::rounds(400); ++round) {
    TaskSet set = test::random_overlap_set(random, machine);
    for (Task& task : set.tasks) task.offset = Duration{random.between(0, 20'000)};
    if (decide_overlapping(set).value().answer != Answer::Schedulable) continue;
    ++sets;
    Decisions decisions(set, 40, 2, random.next(), !random.one_in(3));
    released += decisions.verdict.deadlines->held ? 0 : 1;
    RandomRegions(decisions, random).run();
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
  EXPECT_GT(sets, test::rounds(400) / 8);
  EXPECT_GT(released, sets / 8);
  EXPECT_LT(released, sets);
}

}  // namespace
}  // namespace tutti::internal
