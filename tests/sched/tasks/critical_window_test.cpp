#include "sched/tasks/critical_window.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "sched/exploration/exploration.hpp"
#include "tests/support/job_timings.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using oracle::Dice;
using oracle::periodic;
using Tasks = std::vector<TaskTiming>;

std::vector<TableEntry> first_entries(const Tasks& tasks, std::size_t count) {
  CriticalWindowTable table(tasks);
  std::vector<TableEntry> entries;
  while (entries.size() < count) entries.push_back(table.next());
  return entries;
}

TableEntry entry(std::size_t task, std::uint64_t index, std::int64_t start) {
  return {TaskId{task}, index, Duration{start}};
}

// (3, 10), (6, 20) and (9, 40). EDF: a 0-3, b 3-9, c 9-18, and the second a, due at 20, ends at 21. At 9 the window is
// b, due at 40, which starts at 34 at the latest, and before it a, due at 20, at 17; c would end at 18, so the machine
// waits. At 13 the window is b at 34 and a, due at 30, at 27: c ends at 22. Then a 22-25, b 25-31, a 31-34.
TEST(CriticalWindow, WaitsForAJobThatWouldBeLate) {
  Tasks tasks{periodic(3, 10, 0, 3, 10), periodic(6, 20, 0, 6, 20), periodic(9, 40, 0, 9, 40)};
  EXPECT_EQ(first_entries(tasks, 8), (std::vector{entry(0, 0, 0), entry(1, 0, 3), entry(0, 1, 10), entry(2, 0, 13),
                                                  entry(0, 2, 22), entry(1, 1, 25), entry(0, 3, 31), entry(0, 4, 40)}));
  EXPECT_EQ(explore(tasks, Policy::Edf).answer, Answer::NotSchedulable);
  const Exploration found = explore(tasks, Policy::CwEdf);
  ASSERT_EQ(found.answer, Answer::Schedulable);
  EXPECT_EQ(found.responses[0].worst, Duration{5});   // 25 - 20
  EXPECT_EQ(found.responses[1].worst, Duration{11});  // 31 - 20
  EXPECT_EQ(found.responses[2].worst, Duration{22});
  // Jobs that may be shorter start when they would otherwise; EDF is late with them as well.
  for (TaskTiming& task : tasks) task.best_case = Duration{1};
  EXPECT_EQ(explore(tasks, Policy::CwEdf).responses[2], (ResponseRange{Duration{14}, Duration{22}}));
  // From the end of an a, at 3 of 10, to the latest start of the next one, at 17, there is no room for 15.
  tasks[2].wcet = Duration{15};
  const Exploration late = explore(tasks, Policy::CwEdf);
  ASSERT_EQ(late.answer, Answer::NotSchedulable);
  EXPECT_GT(late.late_run.back().finish, late.late_run.back().due);
}

// The table has a job ready when it surely is.
TEST(CriticalWindow, HasJobsReadyAsLateAsTheyMayBe) {
  const Tasks tasks{periodic(2, 10, 1, 2, 10, 3), periodic(4, 20, 0, 4, 20)};
  EXPECT_EQ(first_entries(tasks, 3), (std::vector{entry(1, 0, 0), entry(0, 0, 4), entry(0, 1, 14)}));
  EXPECT_EQ(explore(tasks, Policy::CwEdf).responses[0], (ResponseRange{Duration{5}, Duration{5}}));  // 4 + 2 - 1
}

/// One job of the naive table.
struct NaiveJob {
  std::size_t task;
  std::uint64_t index;
  std::int64_t ready, due, wcet;
  bool done = false;
};

/// The rule as it stands, at every ns, over a list of all jobs that are ready before `until`.
class NaiveTable {
 public:
  NaiveTable(const Tasks& tasks, std::int64_t until) : until_(until) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      std::int64_t arrival = tasks[i].offset.count();
      for (std::uint64_t index = 0; arrival < 4 * until; ++index, arrival += tasks[i].period.count())
        jobs_.push_back(
            {i, index, arrival + tasks[i].jitter.count(), arrival + tasks[i].deadline.count(), tasks[i].wcet.count()});
    }
  }

  std::vector<TableEntry> entries() {
    std::vector<TableEntry> found;
    for (std::int64_t now = 0; now < until_;) {
      NaiveJob* head = nullptr;
      for (NaiveJob& job : jobs_)
        if (!job.done && job.ready <= now && (head == nullptr || job.due < head->due)) head = &job;
      const bool starts = head != nullptr && (now + head->wcet > head->due || keeps_window(*head, now));
      if (!starts) {
        ++now;
        continue;
      }
      head->done = true;
      found.push_back(entry(head->task, head->index, now));
      is_late = is_late || now + head->wcet > head->due;
      now += head->wcet;
    }
    return found;
  }

  bool is_late = false;

 private:
  /// Runs the window behind the job as late as its deadlines allow, the last one first.
  bool keeps_window(const NaiveJob& head, std::int64_t now) {
    std::vector<NaiveJob> window;
    for (const NaiveJob& job : jobs_) {
      const bool is_first = std::ranges::none_of(jobs_, [&](const NaiveJob& other) {
        return other.task == job.task && other.ready > now && other.ready < job.ready;
      });
      if (job.task != head.task && job.ready > now && is_first) window.push_back(job);
    }
    std::ranges::sort(window, {}, &NaiveJob::due);
    std::optional<std::int64_t> start;
    for (std::size_t i = window.size(); i-- > 0;)
      start = std::min(start.value_or(window[i].due), window[i].due) - window[i].wcet;
    return !start || now + head.wcet <= *start;
  }

  std::int64_t until_;
  std::vector<NaiveJob> jobs_;
};

Tasks random_table(Dice& dice) {
  constexpr std::int64_t kPeriods[] = {4, 6, 8, 12, 24};
  Tasks tasks;
  const bool synchronous = dice.roll(0, 1) == 0;
  for (std::int64_t count = dice.roll(1, 4); count > 0; --count) {
    const std::int64_t period = kPeriods[dice.roll(0, 4)];
    const std::int64_t wcet = dice.roll(1, std::max<std::int64_t>(1, period / 3));
    const std::int64_t offset = synchronous ? 0 : dice.roll(0, 9);
    const std::int64_t deadline = dice.roll(0, 1) == 0 ? period : dice.roll(wcet, 2 * period);
    const std::int64_t jitter = dice.roll(0, 2) == 0 ? dice.roll(0, 2) : 0;
    tasks.push_back(periodic(wcet, period, offset, wcet, deadline, jitter));
  }
  return tasks;
}

// Three hyperperiods and the offsets, ns by ns. What the exploration says of all time shows in them, but for sets that
// are overloaded by little.
TEST(CriticalWindow, AgreesWithALookAtEveryInstant) {
  Dice dice(51);
  int in_time = 0;
  int late = 0;
  int edf_alone_late = 0;
  for (int round = 0; round < test::rounds(1'500); ++round) {
    const Tasks tasks = random_table(dice);
    SCOPED_TRACE(::testing::PrintToString(tasks));
    NaiveTable naive(tasks, 3 * 24 + 12);
    const std::vector<TableEntry> expected = naive.entries();
    if (!naive.is_late) {
      ASSERT_EQ(first_entries(tasks, expected.size()), expected);
    }
    const Exploration found = explore(tasks, Policy::CwEdf);
    ASSERT_NE(found.answer, Answer::Unknown);
    if (naive.is_late) {
      ASSERT_EQ(found.answer, Answer::NotSchedulable);
    }
    ++(found.answer == Answer::Schedulable ? in_time : late);
    if (found.answer != Answer::Schedulable) continue;
    ASSERT_FALSE(naive.is_late);
    std::vector<Duration> worst(tasks.size(), Duration{-1});
    for (const TableEntry& each : expected) {
      const TaskTiming& task = tasks[each.task.index()];
      const Duration arrival = task.offset + task.period * static_cast<std::int64_t>(each.index);
      worst[each.task.index()] = std::max(worst[each.task.index()], each.start + task.wcet - arrival);
    }
    for (std::size_t i = 0; i < tasks.size(); ++i) ASSERT_EQ(found.responses[i].worst, worst[i]);
    edf_alone_late += explore(tasks, Policy::Edf).answer == Answer::NotSchedulable ? 1 : 0;
  }
  EXPECT_GE(in_time, test::rounds(300));
  EXPECT_GE(late, test::rounds(100));
  EXPECT_GE(edf_alone_late, test::rounds(15));
}

}  // namespace
}  // namespace tutti::internal
