// Jobs that may be held up one by one, and not all of them: the bounds against schedules that are played here.
#include "sched/analyses/hold_ups.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "sched/analyses/utilization.hpp"
#include "sched/tasks/priority.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::Random;

/// A task with D = T, of whose time `held_up` is one hold-up; 0: without.
TaskTiming task(std::int64_t wcet, std::int64_t period, std::int64_t held_up, std::int64_t together) {
  TaskTiming timing;
  timing.wcet = Duration{wcet};
  timing.period = timing.deadline = Duration{period};
  timing.held_up = Duration{held_up};
  timing.held_up_together = Duration{together};
  return timing;
}

/// The smallest bound of each response that a test gives; and whether one proves the set, or refuses it.
struct Answers {
  std::vector<std::optional<Duration>> responses;
  bool proved = false, refused = false;
};
Answers answers(std::span<const TaskTiming> tasks, Policy policy) {
  Answers all{std::vector<std::optional<Duration>>(tasks.size())};
  for (const Analysis& analysis : analyses()) {
    if (!analysis.applies(tasks, policy)) continue;
    const Verdict verdict = ask(analysis, tasks, policy);
    all.proved = all.proved || verdict.answer == Answer::Schedulable;
    all.refused = all.refused || verdict.answer == Answer::NotSchedulable;
    for (std::size_t i = 0; i < verdict.worst_response.size(); ++i)
      if (const auto& found = verdict.worst_response[i]; found && (!all.responses[i] || *found < *all.responses[i]))
        all.responses[i] = found;
  }
  return all;
}

// Three jobs of 10 that arrive together, each of which may be held up for 5, and all three for 8: 3 x 15 = 45 one by
// one, 3 x 10 + 8 = 38 together. One job alone is held up for 5 at most: 15, not 18.
TEST(HoldUps, TakeTheSmallerOfBothBounds) {
  const std::vector<TaskTiming> three(3, task(15, 100, 5, 8));
  EXPECT_EQ(answers(three, Policy::Edf).responses, std::vector(3, std::optional(Duration{38})));
  const std::vector<TaskTiming> one{task(15, 100, 5, 8)};
  EXPECT_EQ(answers(one, Policy::Edf).responses, std::vector(1, std::optional(Duration{15})));
  EXPECT_EQ(answers(one, Policy::Rm).responses, std::vector(1, std::optional(Duration{15})));
  // Without a limit each job counts its own.
  const std::vector<TaskTiming> unlimited(3, task(15, 100, 5, 0));
  EXPECT_EQ(answers(unlimited, Policy::Edf).responses, std::vector(3, std::optional(Duration{45})));
}

// Four jobs of 15 in 50: one by one 60 do not fit, 4 x 10 + 8 do; with 13 in all they do not, but with the 5 of one
// job they would, so nothing is refused; four jobs of 20 take 4 x 15 + 5, whatever is known of hold-ups.
TEST(HoldUps, AreRefusedOnlyWhereOneIsTooMany) {
  const auto answer = [](std::int64_t wcet, std::int64_t together) {
    const std::vector<TaskTiming> four(4, task(wcet, 50, 5, together));
    const Answers found = answers(four, Policy::Edf);
    EXPECT_EQ(answer_of(four, Policy::Edf), found.refused  ? Answer::NotSchedulable
                                            : found.proved ? Answer::Schedulable
                                                           : Answer::Unknown);
    return answer_of(four, Policy::Edf);
  };
  EXPECT_EQ(answer(15, 8), Answer::Schedulable);
  EXPECT_EQ(answer(15, 13), Answer::Unknown);
  EXPECT_EQ(answer(15, 0), Answer::NotSchedulable);
  EXPECT_EQ(answer(20, 13), Answer::NotSchedulable);
}

// Eight jobs of 20 in 150, of which 5 of each may be hold-ups: 8 x 15 / 150 in the long run.
TEST(HoldUps, AreNothingInTheLongRun) {
  const std::vector<TaskTiming> limited(8, task(20, 150, 5, 8)), unlimited(8, task(20, 150, 5, 0));
  EXPECT_DOUBLE_EQ(utilization(in_the_long_run(limited)), 0.8);
  EXPECT_DOUBLE_EQ(utilization(in_the_long_run(unlimited)), 160.0 / 150);
}

// The witness of a refusal: 4 x 15 of the tasks and 5 of a hold-up in 50.
TEST(HoldUps, AreNamedInAWitness) {
  const std::vector<TaskTiming> four(4, task(20, 50, 5, 13));
  for (const Analysis& analysis : analyses()) {
    if (!analysis.applies(four, Policy::Edf)) continue;
    const Verdict verdict = ask(analysis, four, Policy::Edf);
    if (!verdict.witness || verdict.test != "np_edf_demand") continue;
    EXPECT_EQ(verdict.witness->load, Duration{65});
    EXPECT_EQ(verdict.witness->held_up, Duration{5});
    EXPECT_EQ(verdict.witness->by_task.size(), 4U);
  }
}

/// A run without preemption, from one idle instant to the next and so on: arrivals as dense as the periods let them be,
/// mostly, and hold-ups within both limits.
class Play {
 public:
  Play(std::span<const TaskTiming> tasks, Policy policy, Random& random)
      : tasks_(tasks), policy_(policy), random_(random) {
    rank_.resize(tasks.size());
    if (policy != Policy::Edf) {
      const std::vector<std::size_t> order = priority_order(tasks, policy);
      for (std::size_t i = 0; i < order.size(); ++i) rank_[order[i]] = i;
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) next_.push_back(random.one_in(2) ? 1 : random.below(4));
  }

  /// [tasks] the longest responses.
  std::vector<std::int64_t> run(std::int64_t until) {
    std::vector<std::int64_t> worst(tasks_.size());
    std::int64_t now = 0, left = 0;
    while (now < until) {
      arrive(now);
      if (ready_.empty()) {
        now = *std::ranges::min_element(next_);
        left = tasks_.front().held_up_together.count();
        continue;
      }
      const auto job = std::ranges::min_element(ready_, {}, [&](const Job& one) { return urgency(one); });
      const TaskTiming& timing = tasks_[job->task];
      const std::int64_t most = std::min(left, timing.held_up.count());
      const std::int64_t held = random_.one_in(3) ? static_cast<std::int64_t>(random_.below(most + 1)) : most;
      left -= held;
      now += (timing.wcet - timing.held_up).count() + held;
      worst[job->task] = std::max(worst[job->task], now - job->arrival);
      ready_.erase(job);
    }
    return worst;
  }

 private:
  struct Job {
    std::size_t task;
    std::int64_t arrival;
  };

  [[nodiscard]] std::int64_t urgency(const Job& job) const {
    const auto tie = static_cast<std::int64_t>(tie_ ? job.task : tasks_.size() - job.task);
    if (policy_ != Policy::Edf) return static_cast<std::int64_t>(rank_[job.task]);
    return (job.arrival + tasks_[job.task].deadline.count()) * 16 + tie;
  }
  void arrive(std::int64_t now) {
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      for (; next_[i] <= now; next_[i] += tasks_[i].period.count() + (random_.one_in(5) ? random_.below(9) : 0))
        ready_.push_back({i, next_[i]});
  }

  std::span<const TaskTiming> tasks_;
  Policy policy_;
  Random& random_;
  bool tie_ = random_.one_in(2);
  std::vector<std::size_t> rank_;
  std::vector<std::int64_t> next_;
  std::vector<Job> ready_;
};

std::vector<TaskTiming> random_set(Random& random) {
  const auto held_up = static_cast<std::int64_t>(1 + random.below(6));
  const auto together = held_up + static_cast<std::int64_t>(random.below(8));
  std::vector<TaskTiming> tasks;
  for (std::size_t n = 2 + random.below(4); n > 0; --n) {
    const auto own = static_cast<std::int64_t>(1 + random.below(9));
    TaskTiming& timing =
        tasks.emplace_back(task(own + held_up, 12 + static_cast<std::int64_t>(random.below(80)), held_up, together));
    timing.deadline = Duration{own + held_up + static_cast<std::int64_t>(random.below(90))};
  }
  return tasks;
}

// No response that is played exceeds a bound, no proved set misses a deadline. Bounds are often reached, and without
// the one more job they would be exceeded: the play would find a bound that forgets hold-ups.
TEST(HoldUps, NoPlayedResponseExceedsABound) {
  Random random(2026);
  int proved = 0, reached = 0, bounds = 0, found_without = 0, gained = 0;
  for (int s = 0; s < 400; ++s) {
    const std::vector<TaskTiming> tasks = random_set(random);
    for (const Policy policy : {Policy::Edf, Policy::Dm}) {
      const Answers found = answers(tasks, policy);
      const Answers bare = answers(without_hold_ups(tasks), policy);
      std::vector<TaskTiming> unlimited = tasks;
      for (TaskTiming& timing : unlimited) timing.held_up_together = Duration{0};
      const Answers each = answers(unlimited, policy);
      EXPECT_FALSE(found.proved && found.refused);
      EXPECT_TRUE(!each.proved || found.proved);
      std::vector<std::int64_t> worst(tasks.size());
      for (int run = 0; run < 60; ++run) {
        const std::vector<std::int64_t> played = Play(tasks, policy, random).run(1500);
        for (std::size_t i = 0; i < tasks.size(); ++i) worst[i] = std::max(worst[i], played[i]);
      }
      proved += found.proved ? 1 : 0;
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (found.proved) {
          EXPECT_LE(worst[i], tasks[i].deadline.count()) << s;
        }
        if (!found.responses[i]) continue;
        ++bounds;
        EXPECT_LE(worst[i], found.responses[i]->count()) << s << ' ' << i;
        reached += worst[i] == found.responses[i]->count() ? 1 : 0;
        found_without += bare.responses[i] && worst[i] > bare.responses[i]->count() ? 1 : 0;
        gained += each.responses[i] && *found.responses[i] < *each.responses[i] ? 1 : 0;
      }
    }
  }
  EXPECT_GT(proved, 100);
  EXPECT_GT(reached, bounds / 5);
  EXPECT_GT(found_without, bounds / 2);
  EXPECT_GT(gained, bounds / 5);
}

}  // namespace
}  // namespace tutti::internal
