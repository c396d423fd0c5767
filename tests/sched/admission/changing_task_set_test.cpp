#include "sched/admission/changing_task_set.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

Task task(std::string name, std::int64_t wcet, std::int64_t period) {
  Task task;
  task.name = std::move(name);
  task.period = task.deadline = Duration{period};
  task.declared_wcet = Duration{wcet};
  return task;
}

constexpr TaskId kX1{0}, kX2{1}, kA{2}, kB{3};

/// X1 = X2 = (4, 20), A = (12, 20), B = (3, 7); with X1 and X2 either of A and B is schedulable, both are not.
TaskSet four_tasks(Policy policy = Policy::Edf) {
  return {std::nullopt, policy, {task("x1", 4, 20), task("x2", 4, 20), task("a", 12, 20), task("b", 3, 7)}};
}

Expected<ChangingTaskSet> make(const TaskSet& all, std::initializer_list<TaskId> running) {
  return ChangingTaskSet::make(AdmissionController(planners().front()), all, std::vector(running));
}

TEST(ChangingTaskSet, RefusesAStartThatIsNotSchedulable) {
  const auto set = make(four_tasks(), {kX1, kA, kB});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message,
            "the tasks that run from the start are not schedulable (where tasks change, the machine is one partition): "
            "with 'b' a "
            "deadline of what counts now can be missed");
}

TEST(ChangingTaskSet, RefusesStrictlyPeriodicTasks) {
  TaskSet all = four_tasks();
  all.arrivals = Arrivals::Periodic;
  EXPECT_EQ(make(all, {kX1}).error().message,
            "a set of strictly periodic tasks does not change while it runs; write 'arrivals: sporadic'");
}

// A's last job arrived at 0, so A counts until 20 and until an idle moment. At 12 B would make X2 end at 23, due at 20.
TEST(ChangingTaskSet, KeepsTheOldTaskUntilItsPromisesAreKept) {
  auto set = make(four_tasks(), {kX1, kX2, kA}).value();
  EXPECT_EQ(set.ask({{}, kA, kB}, Duration{12}, Duration{0}).answer, Answer::NotSchedulable);
  EXPECT_TRUE(set.runs(kA));
  EXPECT_FALSE(set.runs(kB));
  EXPECT_EQ(set.ask({{}, kA, {}}, Duration{12}, Duration{0}).answer, Answer::Schedulable);
  EXPECT_FALSE(set.runs(kA));
  EXPECT_EQ(set.ask({{}, {}, kB}, Duration{12}, {}).answer, Answer::NotSchedulable);
  set.idle_at(Duration{28});
  EXPECT_EQ(set.ask({{}, {}, kB}, Duration{28}, {}).answer, Answer::Schedulable);
  EXPECT_TRUE(set.runs(kB));
}

TEST(ChangingTaskSet, TellsRequestsThatMakeNoSense) {
  auto set = make(four_tasks(), {kX1, kX2, kA}).value();
  EXPECT_EQ(set.ask({{}, kB, {}}, {}, {}).reason, "'b' does not run");
  EXPECT_EQ(set.ask({{}, {}, kA}, {}, {}).reason, "'a' runs already");
  EXPECT_EQ(set.ask({{}, kX1, kA}, {}, {}).answer, Answer::Unknown);
  EXPECT_TRUE(set.runs(kX1));
}

// Rate monotonic with equal periods: whoever stands first in the file is higher, whenever it comes. Above both others,
// low waits 4 for one that has begun and ends at 6, in time; below them at 4 + 4 + 2 = 10.
TEST(ChangingTaskSet, OfEqualPrioritiesTheFirstInTheFileIsHigher) {
  Task low = task("low", 2, 10);
  low.deadline = Duration{6};
  const auto answer = [](const std::vector<Task>& tasks, std::size_t last) {
    std::vector<TaskId> first;
    for (std::size_t i = 0; i < tasks.size(); ++i)
      if (i != last) first.emplace_back(i);
    auto set = ChangingTaskSet::make(AdmissionController(planners().front()), {std::nullopt, Policy::Rm, tasks}, first);
    return set.value().ask({{}, {}, TaskId{last}}, {}, {}).answer;
  };
  EXPECT_EQ(answer({low, task("h1", 4, 10), task("h2", 4, 10)}, 0), Answer::Schedulable);
  EXPECT_EQ(answer({low, task("h1", 4, 10), task("h2", 4, 10)}, 2), Answer::Schedulable);
  EXPECT_EQ(answer({task("h1", 4, 10), task("h2", 4, 10), low}, 2), Answer::NotSchedulable);
}

}  // namespace
}  // namespace tutti::internal
