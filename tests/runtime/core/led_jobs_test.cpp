// The decisions that a GPU can make, held to those of the dispatcher's scheduler: random sets in overload, budgets,
// skipped and suspended tasks, buffers that come back late.
#include "runtime/core/led_jobs.hpp"

#include <algorithm>
#include <deque>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/job_scheduler.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using Line = std::tuple<std::string, std::uint64_t, std::uint64_t, Ns>;  // what, task, index, when

std::int64_t uniform(test::Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low) + 1));
}

/// A random set, and what happens to its jobs.
struct Case {
  Policy policy = Policy::Edf;
  Arrivals arrivals = Arrivals::Sporadic;
  std::vector<ScheduledTask> tasks;
  std::uint64_t seed = 0;

  /// How long a job has the machine, and how long its buffers are away afterwards.
  [[nodiscard]] Ns takes(std::uint64_t task, std::uint64_t index) const {
    test::Random random(seed + 1000 * task + index);
    const Ns wcet = tasks[task].timing.wcet.count();
    return uniform(random, 0, 9) == 0 ? uniform(random, wcet, 4 * wcet) : uniform(random, 0, wcet);
  }
  [[nodiscard]] Ns away(std::uint64_t task, std::uint64_t index) const {
    test::Random random(seed + 77 + 1000 * task + index);
    const Ns period = tasks[task].timing.period.count();
    return uniform(random, 0, 3) > 0 ? 0 : uniform(random, 0, 2 * period);
  }
};

Case draw(std::uint64_t seed) {
  test::Random random(seed);
  Case drawn;
  drawn.seed = seed * 1'000'003;
  drawn.policy = std::array{Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given}[seed % 4];
  drawn.arrivals = uniform(random, 0, 1) == 0 ? Arrivals::Sporadic : Arrivals::Periodic;
  const auto tasks = uniform(random, 1, 5);
  for (std::int64_t i = 0; i < tasks; ++i) {
    ScheduledTask& task = drawn.tasks.emplace_back();
    task.timing.period = Duration{uniform(random, 2, 20)};
    task.timing.deadline = Duration{uniform(random, 1, 2 * task.timing.period.count())};
    task.timing.wcet = Duration{uniform(random, 1, std::max<std::int64_t>(1, 2 * task.timing.period.count() / tasks))};
    task.timing.best_case = Duration{uniform(random, 0, task.timing.wcet.count())};
    task.timing.priority = static_cast<int>(uniform(random, 0, 3));
    task.first_arrival = Duration{uniform(random, 0, 15)};
    task.first_job = static_cast<std::uint64_t>(uniform(random, 0, 2));
    task.jobs = static_cast<std::uint64_t>(uniform(random, 0, 30));
    task.buffer_sets = static_cast<std::size_t>(uniform(random, 1, 4));
    task.in_order = true;
    if (uniform(random, 0, 2) == 0) task.overrun.policy = OverrunPolicy::SkipNext;
    if (uniform(random, 0, 1) == 0) task.overrun.budget = Duration{uniform(random, 0, task.timing.wcet.count())};
    task.overrun.suspend_after = static_cast<int>(std::max<std::int64_t>(0, uniform(random, -3, 3)));
  }
  return drawn;
}

/// Buffers that are away, and when they come back: of a task in the order of its jobs.
class Away {
 public:
  void add(std::uint64_t task, std::uint64_t index, Ns until) {
    for (const auto& [of, job, at] : away_)
      if (of == task) until = std::max(until, at);
    away_.emplace_back(task, index, until);
  }
  template <class Back>
  void come_back(Ns now, const Back& back) {
    std::erase_if(away_, [&](const auto& one) {
      if (std::get<2>(one) > now) return false;
      back(std::get<0>(one), std::get<1>(one));
      return true;
    });
  }
  [[nodiscard]] Ns next() const {
    Ns next = kNoInstant;
    for (const auto& one : away_) next = std::min(next, std::get<2>(one));
    return next;
  }

 private:
  std::deque<std::tuple<std::uint64_t, std::uint64_t, Ns>> away_;
};

std::vector<Line> by_scheduler(const Case& drawn) {
  std::vector<Line> lines;
  JobScheduler scheduler(drawn.policy, drawn.arrivals, drawn.tasks, 1);
  scheduler.releases().begin(Duration{0});
  Duration now{};
  Away away;
  Event::Kind happened = Event::Kind::Time;
  for (;;) {
    away.come_back(now.count(), [&](std::uint64_t task, std::uint64_t index) {
      scheduler.releases().buffers_free({TaskId(task), index, {}, {}, {}, {}, 0});
    });
    const Action action = scheduler.step({happened, now});
    happened = Event::Kind::Time;
    const auto note = [&](const char* what) {
      lines.emplace_back(what, action.job.task.index(), action.job.index, now.count());
    };
    switch (action.kind) {
      case Action::Kind::Release: scheduler.input_ready(action.job); break;
      case Action::Kind::Drop: note(action.reason == DropReason::Skipped ? "skipped" : "no set"); break;
      case Action::Kind::Continue:
      case Action::Kind::Start:
        note("start");
        now += Duration{drawn.takes(action.job.task.index(), action.job.index)};
        happened = Event::Kind::JobEnded;
        break;
      case Action::Kind::Hold: now = action.until; break;
      case Action::Kind::Finish: {
        const RunningJob& job = scheduler.running();
        away.add(job.job.task.index(), job.job.index, now.count() + drawn.away(job.job.task.index(), job.job.index));
        happened = Event::Kind::JobClosed;
        break;
      }
      case Action::Kind::Free: break;
      case Action::Kind::Idle: {
        const Ns until = std::min(action.until.count(), away.next());
        if (until == kNoInstant) return lines;
        now = Duration{until};
        break;
      }
    }
  }
}

/// What a `LedJobs` is a view of.
struct Arrays {
  std::vector<LedTask> tasks;
  std::vector<LedTaskState> states;
  std::vector<LedJob> waiting;
  std::vector<Ns> set_due;
};

Arrays arrays_of(const Case& drawn) {
  Arrays arrays;
  for (const ScheduledTask& task : drawn.tasks) {
    LedTask& led = arrays.tasks.emplace_back();
    led.first_arrival = task.first_arrival.count();
    led.period = task.timing.period.count();
    led.deadline = task.timing.deadline.count();
    led.budget = task.budget().count();
    led.shortest = drawn.arrivals == Arrivals::Periodic ? task.timing.best_case.count() : 0;
    led.rank = drawn.policy == Policy::Rm   ? led.period
               : drawn.policy == Policy::Dm ? led.deadline
                                            : task.timing.priority;
    led.first_job = task.first_job;
    led.jobs = task.first_job + task.jobs;
    led.sets = static_cast<std::uint32_t>(task.buffer_sets);
    led.first_set = static_cast<std::uint32_t>(arrays.set_due.size());
    led.suspend_after = static_cast<std::uint32_t>(task.overrun.suspend_after);
    led.skips = task.overrun.policy == OverrunPolicy::SkipNext;
    arrays.set_due.resize(arrays.set_due.size() + task.buffer_sets);
  }
  arrays.states.resize(drawn.tasks.size());
  arrays.waiting.resize(arrays.set_due.size());
  return arrays;
}

std::vector<Line> by_led_jobs(const Case& drawn) {
  std::vector<Line> lines;
  Arrays arrays = arrays_of(drawn);
  LedJobs jobs{drawn.policy == Policy::Edf, static_cast<std::uint32_t>(arrays.tasks.size()),
               arrays.tasks.data(),         arrays.states.data(),
               arrays.waiting.data(),       arrays.set_due.data()};
  jobs.begin();
  Ns now = 0;
  Away away;
  for (;;) {
    away.come_back(
        now, [&](std::uint64_t task, std::uint64_t index) { jobs.give_back(static_cast<std::uint32_t>(task), index); });
    const LedDecision decision = jobs.next(now);
    const auto note = [&](const char* what) { lines.emplace_back(what, decision.task, decision.index, now); };
    switch (decision.kind) {
      case LedDecision::Kind::DropSkipped: note("skipped"); break;
      case LedDecision::Kind::DropNoSet: note("no set"); break;
      case LedDecision::Kind::Start: {
        note("start");
        EXPECT_EQ(decision.arrival, arrays.tasks[decision.task].first_arrival +
                                        static_cast<Ns>(decision.index - arrays.tasks[decision.task].first_job) *
                                            arrays.tasks[decision.task].period);
        const Ns took = drawn.takes(decision.task, decision.index);
        const Ns start = now;
        now = std::max(now + took, start + arrays.tasks[decision.task].shortest);
        jobs.ended(decision.task, took > arrays.tasks[decision.task].budget);
        away.add(decision.task, decision.index, now + drawn.away(decision.task, decision.index));
        break;
      }
      case LedDecision::Kind::Over:
      case LedDecision::Kind::Idle: {
        const Ns until = std::min(decision.until, away.next());
        if (until == kNoInstant) return lines;
        now = until;
        break;
      }
    }
  }
}

TEST(LedJobs, AreThoseOfTheScheduler) {
  std::size_t starts = 0, drops = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{20'000}); ++seed) {
    const Case drawn = draw(seed);
    const std::vector<Line> expected = by_scheduler(drawn);
    ASSERT_EQ(by_led_jobs(drawn), expected) << "seed " << seed;
    starts += static_cast<std::size_t>(
        std::ranges::count(expected, "start", [](const Line& line) { return std::get<0>(line); }));
    drops += expected.size();
  }
  drops -= starts;
  EXPECT_GT(starts, test::rounds(std::size_t{500'000}));  // neither is rare
  EXPECT_GT(drops, test::rounds(std::size_t{50'000}));
}

}  // namespace
}  // namespace tutti::internal
