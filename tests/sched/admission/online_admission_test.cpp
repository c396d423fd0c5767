#include "sched/admission/online_admission.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sched/analyses/np_edf_demand.hpp"
#include "sched/analyses/np_fp_response_time.hpp"
#include "tests/support/largest.hpp"
#include "tests/support/random.hpp"
#include "tests/support/task_timings.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::implicit;
using oracle::timing;
using Tasks = std::vector<TaskTiming>;

using test::kLargest;

Answer full_test(const Tasks& tasks, Policy policy) {
  return (policy == Policy::Edf ? np_edf_demand : np_fp_response_time)(tasks, policy).answer;
}

struct OneJob {
  std::int64_t ready;
  std::int64_t cost;
  std::int64_t deadline;
};

/// When each job ends under non-preemptive EDF, the earlier in the list first where deadlines are equal.
std::vector<std::int64_t> ends(std::vector<OneJob> jobs) {
  std::vector<std::int64_t> end(jobs.size(), -1);
  std::int64_t now = 0;
  for (std::size_t done = 0; done < jobs.size();) {
    std::optional<std::size_t> next;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (end[i] >= 0 || jobs[i].ready > now) continue;
      if (!next || jobs[i].deadline < jobs[*next].deadline) next = i;
    }
    if (!next) {
      ++now;
      continue;
    }
    now += jobs[*next].cost;
    end[*next] = now;
    ++done;
  }
  return end;
}

// X1 = X2 = (4, 20), A = (12, 20), B = (3, 7); both sets are schedulable. All but B start at 0, A is served first and
// ends at 12, when B comes: 12 to 15, X1 15 to 19, B's next job comes at 19, but X2 is due before it: 19 to 23 > 20. A
// counts until 20 = 0 + max(T, D), which is also its set's longest busy period, 4 + 4 + 12.
TEST(OnlineAdmission, KeepsATaskThatLeavesUntilItsPromisesAreKept) {
  EXPECT_EQ(ends({{0, 12, 20}, {0, 4, 20}, {0, 4, 20}, {12, 3, 19}, {19, 3, 26}})[2], 23);
  EXPECT_EQ(full_test({implicit(4, 20), implicit(4, 20), implicit(3, 7)}, Policy::Edf), Answer::Schedulable);
  OnlineAdmission set(Policy::Edf);
  ASSERT_TRUE(set.add(implicit(4, 20), Duration{0}).task.has_value());
  ASSERT_TRUE(set.add(implicit(4, 20), Duration{0}).task.has_value());
  const auto a = set.add(implicit(12, 20), Duration{0}).task;
  ASSERT_TRUE(a.has_value());
  set.remove(*a, Duration{12}, Duration{0});
  EXPECT_EQ(set.add(implicit(3, 7), Duration{12}).answer, Answer::NotSchedulable);
  EXPECT_EQ(set.add(implicit(3, 7), Duration{19}).answer, Answer::NotSchedulable);
  EXPECT_EQ(set.counted(Duration{19}).size(), 3U);
  EXPECT_EQ(set.add(implicit(3, 7), Duration{20}).answer, Answer::Schedulable);
}

// The same as a change of A.
TEST(OnlineAdmission, CountsAChangedTaskTwiceUntilThen) {
  OnlineAdmission set(Policy::Edf);
  ASSERT_TRUE(set.add(implicit(4, 20), Duration{0}).task.has_value());
  ASSERT_TRUE(set.add(implicit(4, 20), Duration{0}).task.has_value());
  const auto a = set.add(implicit(12, 20), Duration{0}).task;
  ASSERT_TRUE(a.has_value());
  const Tasks before = set.counted(Duration{12});
  EXPECT_FALSE(set.change(*a, implicit(3, 7), Duration{12}, Duration{0}).task.has_value());
  EXPECT_EQ(set.counted(Duration{12}), before);
  EXPECT_TRUE(set.change(*a, implicit(3, 7), Duration{20}, Duration{0}).task.has_value());
  EXPECT_EQ(set.counted(Duration{20}), (Tasks{implicit(4, 20), implicit(4, 20), implicit(3, 7)}));
}

// (4, 20), (4, 22), (4, 100) are schedulable with A = (5, 10) and with B = (6, 12). The last starts just before 0; at 0
// the others: A 4 to 9, 9 to 13, and the one due at 22 is next: 13 to 17. B came at 10 = 0 + max(T, D), is due at 22,
// too, and ends at 23: max(T, D) is not enough. The longest busy period of all that counts is
//   17, 10 + 4 + 4 + 4 = 22, 15 + 8 + 4 + 4 = 31, 20 + 8 + 8 + 4 = 40, 40
// so A counts until 40, or until the machine was idle.
TEST(OnlineAdmission, WaitsUntilWorkPutOffByATaskIsDone) {
  EXPECT_EQ(ends({{0, 4, 10}, {0, 5, 10}, {0, 4, 20}, {0, 4, 22}, {10, 6, 22}})[4], 23);
  const Tasks others{implicit(4, 20), implicit(4, 22), implicit(4, 100)};
  Tasks with_b = others;
  with_b.push_back(implicit(6, 12));
  EXPECT_EQ(full_test(with_b, Policy::Edf), Answer::Schedulable);
  for (const bool idles : {false, true}) {
    OnlineAdmission set(Policy::Edf);
    for (const TaskTiming& task : others) ASSERT_TRUE(set.add(task, Duration{0}).task.has_value());
    const auto a = set.add(implicit(5, 10), Duration{0}).task;
    ASSERT_TRUE(a.has_value());
    set.idle_at(Duration{0});  // before A's job came: it says nothing
    set.remove(*a, Duration{10}, Duration{0});
    EXPECT_EQ(set.add(implicit(6, 12), Duration{10}).answer, Answer::NotSchedulable);
    EXPECT_EQ(set.add(implicit(6, 12), Duration{39}).answer, Answer::NotSchedulable);
    if (idles) set.idle_at(Duration{30});
    EXPECT_EQ(set.add(implicit(6, 12), Duration{idles ? 39 : 40}).answer, Answer::Schedulable);
  }
}

// A leaves as above, where its set's longest busy period is 40; it has been looked up when C = (1, 50) comes at 11.
// With C it is longer:
//   18, 10 + 4 + 4 + 4 + 1 = 23, 15 + 8 + 8 + 4 + 1 = 36, 20 + 8 + 8 + 4 + 1 = 41, 25 + 12 + 8 + 4 + 1 = 50,
//   25 + 12 + 12 + 4 + 1 = 54, 30 + 12 + 12 + 4 + 2 = 60, 60
// so A counts until 60, and B, which is schedulable without A, comes no sooner.
TEST(OnlineAdmission, WaitsLongerWhereATaskHasComeMeanwhile) {
  for (const Policy policy : {Policy::Edf, Policy::Dm}) {
    OnlineAdmission set(policy);
    for (const TaskTiming& task : {implicit(4, 20), implicit(4, 22), implicit(4, 100)})
      ASSERT_TRUE(set.add(task, Duration{0}).task.has_value());
    const auto a = set.add(implicit(5, 10), Duration{0}).task;
    ASSERT_TRUE(a.has_value());
    set.remove(*a, Duration{10}, Duration{0});
    EXPECT_EQ(set.counted(Duration{11}).size(), 4U);
    ASSERT_EQ(set.add(implicit(1, 50), Duration{11}).answer, Answer::Schedulable);
    EXPECT_EQ(set.counted(Duration{59}).size(), 5U);
    EXPECT_EQ(set.counted(Duration{60}).size(), 4U);
  }
}

// A = (5, T = 10, D = 12) with a jitter of 2: its last job arrives at 0 and is ready at 2 at the latest, so an idle
// moment at 2 can lie before it. The longest busy period with that jitter is
//   17, 10 + 4 + 4 + 4 = 22, 15 + 8 + 4 + 4 = 31, 20 + 8 + 8 + 4 = 40, 25 + 8 + 8 + 4 = 45, 25 + 12 + 12 + 4 = 53,
//   30 + 12 + 12 + 4 = 58, 58
// so A counts until 2 + 58; after an idle moment at 3, until 2 + max(T, D) = 14.
TEST(OnlineAdmission, CountsNoIdleMomentBeforeTheLastJobWasReady) {
  for (const std::int64_t idle : {1, 2, 3}) {
    OnlineAdmission set(Policy::Edf);
    for (const TaskTiming& task : {implicit(4, 20), implicit(4, 22), implicit(4, 100)})
      ASSERT_TRUE(set.add(task, Duration{0}).task.has_value());
    const auto a = set.add(timing(5, 10, 12, 2), Duration{0}).task;
    ASSERT_TRUE(a.has_value());
    set.remove(*a, Duration{1}, Duration{0});
    set.idle_at(Duration{idle});
    const std::int64_t until = idle > 2 ? 14 : 60;
    EXPECT_EQ(set.counted(Duration{until - 1}).size(), 4U) << "idle at " << idle;
    EXPECT_EQ(set.counted(Duration{until}).size(), 3U) << "idle at " << idle;
  }
}

// D = 30 > T = 10: it counts until 5 + 30 + 2 after its arrival at 5, however long the machine has been idle.
TEST(OnlineAdmission, CountsDeadlineAndJitterOfATaskThatLeaves) {
  OnlineAdmission set(Policy::Edf);
  const auto task = set.add(timing(1, 10, 30, 2), Duration{0}).task;
  ASSERT_TRUE(task.has_value());
  set.remove(*task, Duration{6}, Duration{5});
  set.idle_at(Duration{9});
  EXPECT_EQ(set.counted(Duration{36}).size(), 1U);
  EXPECT_EQ(set.counted(Duration{37}).size(), 0U);
}

TEST(OnlineAdmission, LetsATaskGoAtOnceThatNeverCame) {
  OnlineAdmission set(Policy::Edf);
  const auto task = set.add(implicit(9, 10), Duration{0}).task;
  ASSERT_TRUE(task.has_value());
  EXPECT_EQ(set.add(implicit(2, 10), Duration{0}).answer, Answer::NotSchedulable);
  set.remove(*task, Duration{0}, std::nullopt);
  EXPECT_EQ(set.add(implicit(2, 10), Duration{0}).answer, Answer::Schedulable);
}

// Times near 2^63: the sums of arrival, jitter and deadline do not wrap.
TEST(OnlineAdmission, SurvivesTheLargestNumbers) {
  for (const Policy policy : {Policy::Edf, Policy::Dm}) {
    OnlineAdmission set(policy);
    const auto task = set.add(timing(1, kLargest, kLargest, kLargest - 1), Duration{0}).task;
    ASSERT_TRUE(task.has_value());
    set.remove(*task, Duration{kLargest - 1}, Duration{kLargest - 1});
    EXPECT_EQ(set.counted(Duration{kLargest}).size(), 1U);
    EXPECT_EQ(set.add(implicit(kLargest, kLargest), Duration{kLargest}).answer, Answer::NotSchedulable);
  }
}

/// What requests are drawn from.
struct Requests {
  const char* name;
  Policy policy;
  std::int64_t period_min, period_max;
  std::int64_t unit;        ///< all but costs are multiples of it
  std::int64_t most_share;  ///< of U, in thousandths
  bool implicit_deadlines;
  bool late;  ///< with jitter
};

TaskTiming draw(Dice& dice, const Requests& from) {
  const std::int64_t period = dice.roll(from.period_min, from.period_max) * from.unit;
  const std::int64_t wcet = dice.roll(0, std::max<std::int64_t>(1, period * from.most_share / 1000));
  const std::int64_t jitter = from.late ? dice.roll(0, period / 4) : 0;
  const std::int64_t deadline = from.implicit_deadlines ? period : dice.roll(period / 3 + 1, 2 * period);
  TaskTiming task = timing(wcet, period, deadline, jitter);
  task.priority = static_cast<int>(dice.roll(0, 5));
  return task;
}

class RandomRequests : public ::testing::TestWithParam<Requests> {};

// Every request is answered as the full test answers for all that counts, and a refused one changes nothing. Costs of
// the small sets are whole, so that often one tick decides.
TEST_P(RandomRequests, AreAnsweredAsByTheFullTest) {
  const Requests& from = GetParam();
  std::array<int, 3> answers{};
  for (std::uint64_t seed = 1; seed <= (test::kSanitized ? 5 : 30); ++seed) {
    Dice dice(seed);
    OnlineAdmission set(from.policy);
    std::vector<TaskId> in;
    for (int request = 0; request < 120; ++request) {
      const Duration now{request};
      Tasks tasks = set.counted(now);
      const Tasks before = tasks;
      const bool goes = !in.empty() && dice.roll(0, 9) < 3;
      const bool changes = !in.empty() && dice.roll(0, 9) < 2;
      const auto at = in.empty() ? 0 : static_cast<std::size_t>(dice.roll(0, static_cast<std::int64_t>(in.size()) - 1));
      if (goes) {
        set.remove(in[at], now, std::nullopt);
        in.erase(in.begin() + static_cast<std::ptrdiff_t>(at));
        ASSERT_LT(set.counted(now).size(), before.size());
        continue;
      }
      const TaskTiming task = draw(dice, from);
      tasks.push_back(task);
      SCOPED_TRACE(std::to_string(seed) + "/" + std::to_string(request) + " " + ::testing::PrintToString(tasks));
      // A changed task whose last job has just come counts beside the new one.
      const auto outcome = changes ? set.change(in[at], task, now, now) : set.add(task, now);
      ASSERT_EQ(outcome.answer, full_test(tasks, from.policy));
      ASSERT_EQ(outcome.task.has_value(), outcome.answer == Answer::Schedulable);
      ++answers[static_cast<std::size_t>(outcome.answer)];
      if (!outcome.task) {
        ASSERT_EQ(set.counted(now), before);
      } else {
        ASSERT_EQ(set.counted(now), tasks);
        if (changes) in.erase(in.begin() + static_cast<std::ptrdiff_t>(at));
        in.push_back(*outcome.task);
      }
    }
  }
  EXPECT_GE(answers[static_cast<std::size_t>(Answer::Schedulable)], test::rounds(100));
  EXPECT_GE(answers[static_cast<std::size_t>(Answer::NotSchedulable)], test::rounds(100));
}

INSTANTIATE_TEST_SUITE_P(OnlineAdmission, RandomRequests,
                         ::testing::Values(Requests{"small_implicit", Policy::Edf, 4, 24, 1, 200, true, false},
                                           Requests{"small_any", Policy::Edf, 4, 24, 1, 200, false, false},
                                           Requests{"small_late", Policy::Edf, 8, 40, 1, 150, false, true},
                                           Requests{"equal_periods", Policy::Edf, 40, 41, 1, 250, true, false},
                                           Requests{"real_implicit", Policy::Edf, 50'000, 200'000, 1000, 90, true,
                                                    false},
                                           Requests{"real_late", Policy::Edf, 50'000, 200'000, 1000, 60, false, true},
                                           Requests{"far_apart", Policy::Edf, 1, 2'000'000, 1000, 300, false, true},
                                           Requests{"dm", Policy::Dm, 8, 60, 1, 120, false, true},
                                           Requests{"rm", Policy::Rm, 50'000, 200'000, 1000, 90, true, false},
                                           Requests{"given", Policy::Given, 8, 60, 1, 120, false, true}),
                         [](const auto& tested) { return std::string(tested.param.name); });

/// A machine under non-preemptive EDF whose tasks come, change and go while it runs; every job takes all of its C.
class ChangingMachine {
 public:
  ChangingMachine(std::uint64_t seed, std::int64_t jitter_max) : dice_(seed), jitter_max_(jitter_max) {}

  void step(std::int64_t now) {
    if (dice_.roll(0, 9) < 2) request(Duration{now});
    for (Live& live : live_) {
      if (now < live.next || dice_.roll(0, 9) < 2) continue;
      live.ready = std::max(live.ready, now + dice_.roll(0, live.timing.jitter.count()));
      jobs_.push_back({live.ready, live.timing.wcet.count(), now + live.timing.deadline.count()});
      live.last = Duration{now};
      live.next = now + live.timing.period.count();
    }
    if (now < busy_until_) return;
    auto next = jobs_.end();
    for (auto job = jobs_.begin(); job != jobs_.end(); ++job)
      if (job->ready <= now && (next == jobs_.end() || job->deadline < next->deadline)) next = job;
    if (next == jobs_.end()) return set_.idle_at(Duration{now});
    busy_until_ = now + next->cost;
    missed += busy_until_ > next->deadline ? 1 : 0;
    jobs_.erase(next);
  }

  int missed = 0;
  int changes = 0;  ///< requests that were granted

 private:
  struct Live {
    TaskId id;
    TaskTiming timing;
    std::optional<Duration> last;
    std::int64_t next = 0;   ///< earliest arrival
    std::int64_t ready = 0;  ///< of the job before; the next is not ready earlier
  };

  void request(Duration now) {
    const std::int64_t period = dice_.roll(5, 30);
    const std::int64_t jitter = dice_.roll(0, jitter_max_);
    const TaskTiming timing = oracle::timing(dice_.roll(1, 7), period, dice_.roll(5, 40) + jitter, jitter);
    const auto kind = live_.empty() ? 0 : dice_.roll(0, 3);
    const auto at =
        live_.empty() ? 0 : static_cast<std::size_t>(dice_.roll(0, static_cast<std::int64_t>(live_.size()) - 1));
    if (kind == 3) {
      set_.remove(live_[at].id, now, live_[at].last);
    } else {
      const auto outcome = kind == 2 ? set_.change(live_[at].id, timing, now, live_[at].last) : set_.add(timing, now);
      if (!outcome.task) return;
      live_.push_back({*outcome.task, timing, std::nullopt, now.count(), 0});
      ++changes;
    }
    if (kind >= 2) live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  OnlineAdmission set_{Policy::Edf};
  Dice dice_;
  std::int64_t jitter_max_;
  std::vector<Live> live_;
  std::vector<OneJob> jobs_;
  std::int64_t busy_until_ = 0;
};

// Whatever is granted while it runs, no job is late.
TEST(OnlineAdmission, BreaksNoPromiseWhileTheMachineRuns) {
  int changes = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    ChangingMachine machine(seed, seed % 2 == 0 ? 0 : 5);
    for (std::int64_t now = 0; now < 1000; ++now) machine.step(now);
    ASSERT_EQ(machine.missed, 0) << "seed " << seed;
    changes += machine.changes;
  }
  EXPECT_GE(changes, 2000);
}

}  // namespace
}  // namespace tutti::internal
