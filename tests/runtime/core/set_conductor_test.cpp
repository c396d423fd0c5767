// The state machine that leads a set, worked by hand: what it opens, when it sees ends, what it hands to the host.
#include "runtime/core/set_conductor.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/core/led_arrays.hpp"

namespace tutti::internal {
namespace {

using Lines = std::vector<std::string>;

std::string text_of(const LedRecord& record) {
  constexpr std::string_view kKinds[] = {"ended",    "skipped",  "no set",    "not armed",
                                         "no input", "given up", "unfinished"};
  return fmt::format("{}.{} {}{}: arrived {}, ready {}, {} to {}", record.task, record.index,
                     kKinds[static_cast<std::size_t>(record.kind)], record.reused ? " again" : "", record.arrival,
                     record.ready, record.start, record.finish);
}

/// What a conductor sees of the world: batches take as long as a test says, and it looks once a nanosecond.
class World {
 public:
  /// @param length  length(batch, run); the first batch of a task follows the last one of the task before
  World(std::vector<LedTask> tasks, std::function<Ns(std::uint32_t, std::uint64_t)> length)
      : armed(tasks.size(), 1000),
        given_back(tasks.size()),
        inputs(tasks.size()),
        length_(std::move(length)),
        runs_(tasks.size()) {
    std::uint32_t sets = 0, all = 0;
    for (LedTask& task : tasks) {
      task.batches = std::max(task.batches, 1U);
      task.first_set = std::exchange(sets, sets + task.sets);
      task.first_batch = std::exchange(all, all + task.batches);
    }
    indices_.resize(sets);
    batches.resize(all);
    arrays_.emplace(std::move(tasks));
    conductor_.emplace(arrays_->jobs(true), batches.data(), runs_.data(), indices_.data(), Board{this});
    conductor_->begin();
  }
  World(const World&) = delete;  // its conductor has views of its arrays
  World& operator=(const World&) = delete;

  /// Lets everything happen up to an instant, it included.
  void play(Ns until) {
    constexpr int kMostAtOnce = 20;
    for (; now_ <= until; ++now_)
      for (int i = 0; i < kMostAtOnce; ++i) goes_on = conductor_->step(now_);
  }
  /// The host has done something.
  void look() { conductor_->look(); }
  [[nodiscard]] Lines lines() const {
    Lines lines;
    for (const LedRecord& record : records) lines.push_back(text_of(record));
    return lines;
  }

  std::vector<std::uint64_t> armed, given_back, inputs;  // [tasks]
  std::map<std::uint32_t, std::uint64_t> taken;          // by tasks that overwrite or reuse: runs that jobs have had
  std::function<void()> when_settled;                    // what the host does just then
  std::vector<LedBatch> batches;
  std::size_t room = 1000;  // for records
  std::vector<LedRecord> records;
  bool stopped = false, goes_on = true;
  std::vector<Ns> touches;  // when it has touched the ways to all GPUs

 private:
  struct Board {
    World* world;

    [[nodiscard]] bool is_armed(std::uint32_t task, std::uint64_t run) const { return run < world->armed[task]; }
    [[nodiscard]] std::uint64_t given_back(std::uint32_t task) const { return world->given_back[task]; }
    void note_taken(std::uint32_t task, std::uint64_t runs) const { world->taken[task] = runs; }
    void open(std::uint32_t batch, std::uint64_t run) const {
      const bool overwrites = world->arrays_->tasks().front().overwrites;
      EXPECT_TRUE(!overwrites || world->taken.empty() || run < world->taken.begin()->second) << "the host knows before";
      world->ends_ = world->now_ + world->length_(batch, run);
    }
    [[nodiscard]] LedInput input(std::uint32_t task, std::uint64_t run) const {
      return input_of(world->inputs[task], run);
    }
    void settle() const {
      if (world->when_settled) world->when_settled();
    }
    [[nodiscard]] bool has_ended(std::uint32_t, std::uint64_t) const { return world->now_ >= world->ends_; }
    [[nodiscard]] bool write(const LedRecord& record) const {
      if (world->records.size() == world->room) return false;
      world->records.push_back(record);
      return true;
    }
    [[nodiscard]] bool is_stopped() const { return world->stopped; }
    [[nodiscard]] bool is_given_up() const { return false; }
    void keep_awake() const { world->touches.push_back(world->now_); }
  };

  std::function<Ns(std::uint32_t, std::uint64_t)> length_;
  std::optional<LedArrays> arrays_;
  std::vector<LedRuns> runs_;
  std::vector<std::uint64_t> indices_;
  Ns now_ = 0, ends_ = 0;
  std::optional<SetConductor<Board>> conductor_;
};

/// A task whose jobs are due as the next one arrives.
LedTask periodic(Ns period, std::uint64_t jobs, Ns first_arrival = 0) {
  LedTask task;
  task.first_arrival = first_arrival;
  task.period = task.deadline = period;
  task.jobs = jobs;
  return task;
}

/// All runs of all batches take this long.
auto takes(Ns length) {
  return [length](std::uint32_t, std::uint64_t) { return length; };
}

// Task 0 has jobs at 1 and 11 that take 3, task 1 one at 0 that takes 5 and is due last. Once it has the machine it
// keeps it: the first job of task 0 is ready when the machine is free, at 5, and ends at 8. The next one finds it free.
TEST(SetConductor, LetsAMoreUrgentJobWaitForTheEndOfTheJobThatHasTheMachine) {
  World world({periodic(10, 2, 1), periodic(100, 1)},
              [](std::uint32_t batch, std::uint64_t) { return batch == 0 ? 3 : 5; });
  world.play(50);
  EXPECT_EQ(world.lines(), (Lines{"1.0 ended: arrived 0, ready 0, 0 to 5", "0.0 ended: arrived 1, ready 5, 5 to 8",
                                  "0.1 ended: arrived 11, ready 11, 11 to 14"}));
  EXPECT_FALSE(world.goes_on);
}

// It looks 20 times an instant, and every 1024th look is a touch: nothing touches for longer than 52 instants, between
// jobs or within one, but for the 20,000 before an instant of its plan, in which it is calm.
TEST(SetConductor, KeepsTheWaysAwakeBetweenJobsAndWithinThem) {
  World world({periodic(60'000, 3)}, takes(30'000));
  world.play(180'000);
  ASSERT_FALSE(world.touches.empty());
  Ns last = 0, longest = 0;
  for (const Ns touch : world.touches) {
    if (last / 60'000 == touch / 60'000) longest = std::max(longest, touch - last);
    last = touch;
  }
  EXPECT_LE(longest, 52);
  EXPECT_GT(world.touches.size(), 2U * 40'000 / 52);
}

// A job of two batches, 4 and 7, has them in its time without a gap. Two buffer sets: its runs are 0, 1, 2.
TEST(SetConductor, OpensABatchAsTheOneBeforeItEnds) {
  LedTask task = periodic(20, 3);
  task.batches = 2;
  task.sets = 2;
  World world({task}, [](std::uint32_t batch, std::uint64_t) { return batch == 0 ? 4 : 7; });
  world.play(70);
  ASSERT_EQ(world.records.size(), 3U);
  for (std::uint64_t job = 0; job < 3; ++job) {
    EXPECT_EQ(world.records[job].run, job);
    EXPECT_EQ(world.records[job].in_batches, 11);
    EXPECT_EQ(world.records[job].finish - world.records[job].start, 11);
  }
}

// The first job takes 4, 1 over its budget, so that of 10 is dropped as it arrives, and the one of 20 has run 1. A job
// that takes its budget is no overrun.
TEST(SetConductor, SkipsTheJobAfterAnOverrun) {
  LedTask task = periodic(10, 4);
  task.budget = 3;
  task.skips = true;
  World world({task}, [](std::uint32_t, std::uint64_t run) { return run == 0 ? 4 : 3; });
  world.play(50);
  EXPECT_EQ(world.lines(),
            (Lines{"0.0 ended: arrived 0, ready 0, 0 to 4", "0.1 skipped: arrived 10, ready 10, 10 to 10",
                   "0.2 ended: arrived 20, ready 20, 20 to 23", "0.3 ended: arrived 30, ready 30, 30 to 33"}));
  EXPECT_EQ(world.records[2].run, 1U);
}

// Of the jobs at 0, 10, 20 and 30, the second and the last find no run armed. The third one has run 1.
TEST(SetConductor, DropsAJobThatFindsNoRunArmed) {
  World world({periodic(10, 4)}, takes(2));
  world.armed[0] = 1;
  world.play(15);
  world.armed[0] = 2;
  world.play(50);
  EXPECT_EQ(world.lines(),
            (Lines{"0.0 ended: arrived 0, ready 0, 0 to 2", "0.1 not armed: arrived 10, ready 10, 10 to 10",
                   "0.2 ended: arrived 20, ready 20, 20 to 22", "0.3 not armed: arrived 30, ready 30, 30 to 30"}));
  EXPECT_EQ(world.records[2].run, 1U);
}

// Jobs 0 and 2 are over their budget, and job 1 between them never ran: two overruns in a row, which suspend the task.
TEST(SetConductor, CountsOverrunsInARowPastADroppedJob) {
  LedTask task = periodic(10, 10);
  task.budget = 3;
  task.suspend_after = 2;
  World world({task}, takes(4));
  world.armed[0] = 1;
  world.play(15);
  world.armed[0] = 10;
  world.play(150);
  ASSERT_EQ(world.records.size(), 3U);
  EXPECT_EQ(world.records.back().index, 2U);
  EXPECT_FALSE(world.goes_on);
}

// Batches of 5 and 9 where 4 and 6 are the latest: 1 and 3 too much. In the next run they take 6 and 6: 2 and 0.
TEST(SetConductor, NamesTheBatchThatWasMostOverItsLatestFinish) {
  LedTask task = periodic(20, 2);
  task.batches = 2;
  World world({task}, [](std::uint32_t batch, std::uint64_t run) { return run == 1 ? 6 : batch == 0 ? 5 : 9; });
  world.batches[0].latest = 4;
  world.batches[1].latest = 6;
  world.play(50);
  ASSERT_EQ(world.records.size(), 2U);
  EXPECT_EQ(world.records[0].excess, 3);
  EXPECT_EQ(world.records[0].of_batch, 1U);
  EXPECT_EQ(world.records[0].in_batches, 14);
  EXPECT_EQ(world.records[1].excess, 2);
  EXPECT_EQ(world.records[1].of_batch, 0U);
}

// The second batch of the first job begins at 5 and would end at 55. It is given up at the first instant past its
// limit, 5 + 10 + 1, and nothing comes afterwards. A batch that takes its limit has ended.
TEST(SetConductor, GivesUpABatchThatDoesNotEnd) {
  LedTask task = periodic(20, 5);
  task.batches = 2;
  Ns second = 50;
  const auto length = [&](std::uint32_t batch, std::uint64_t) { return batch == 0 ? 5 : second; };
  World world({task}, length);
  world.batches[1].limit = 10;
  world.play(100);
  EXPECT_EQ(world.lines(), (Lines{"0.0 given up: arrived 0, ready 0, 0 to 16"}));
  EXPECT_EQ(world.records[0].of_batch, 1U);
  EXPECT_FALSE(world.goes_on);
  second = 10;
  World in_time({task}, length);
  in_time.batches[1].limit = 10;
  in_time.play(100);
  EXPECT_EQ(in_time.records.size(), 5U);
}

// Room for one record, which the host empties at 35: those of the jobs at 10, 20 and 30 find none, that of 40 says so.
TEST(SetConductor, CountsRecordsThatFindNoRoom) {
  World world({periodic(10, 6)}, takes(2));
  world.room = 1;
  world.play(35);
  world.room = 3;
  world.play(70);
  ASSERT_EQ(world.records.size(), 3U);
  EXPECT_EQ(world.records[0].missed, 0U);
  EXPECT_EQ(world.records[1].index, 4U);
  EXPECT_EQ(world.records[1].missed, 3U);
  EXPECT_EQ(world.records[2].missed, 0U);
}

// Jobs of 2 keep the machine for 5, so one that arrives at 1 starts at 5, not at 2.
TEST(SetConductor, HoldsTheMachineForTheShortestTimeOfAJob) {
  LedTask first = periodic(100, 1);
  first.shortest = 5;
  World world({first, periodic(50, 1, 1)}, takes(2));
  world.play(20);
  EXPECT_EQ(world.lines(), (Lines{"0.0 ended: arrived 0, ready 0, 0 to 2", "1.0 ended: arrived 1, ready 5, 5 to 7"}));
}

// One buffer set, which a consumer gives back behind 17: the job of 10 has it at 18. That of 20 waits until the job
// before it is late, at 10 + 30 + 1.
TEST(SetConductor, LetsAJobWaitForBuffersThatAConsumerHas) {
  LedTask task = periodic(10, 3);
  task.deadline = 30;
  task.is_read = true;
  World world({task}, takes(2));
  world.play(17);
  world.given_back[0] = 1;
  world.look();
  world.play(50);
  EXPECT_EQ(world.lines(), (Lines{"0.0 ended: arrived 0, ready 0, 0 to 2", "0.1 ended: arrived 10, ready 10, 18 to 20",
                                  "0.2 no set: arrived 20, ready 20, 41 to 41"}));
}

// Nobody gives the one set back, and each job has it as it arrives, but where the job before it has not ended: that of
// 20, which arrives while the machine does 15 ns of another task, has it at 27.
TEST(SetConductor, RunsIntoBuffersThatAConsumerHas) {
  LedTask task = periodic(10, 4);
  task.deadline = 30;
  task.is_read = task.overwrites = true;
  World world({task, periodic(100, 1, 11)}, [](std::uint32_t batch, std::uint64_t) { return batch == 0 ? 2 : 15; });
  world.play(50);
  EXPECT_EQ(world.lines(),
            (Lines{"0.0 ended: arrived 0, ready 0, 0 to 2", "0.1 ended: arrived 10, ready 10, 10 to 12",
                   "1.0 ended: arrived 11, ready 12, 12 to 27", "0.2 ended: arrived 20, ready 27, 27 to 29",
                   "0.3 ended: arrived 30, ready 30, 30 to 32"}));
  EXPECT_EQ(world.taken, (std::map<std::uint32_t, std::uint64_t>{{0, 4}})) << "of the task that overwrites";
}

// The host has put the input of run 0 there, and that of run 1 from 15 on: the jobs of 10 and 30 find none. That of 20
// has run 1.
TEST(SetConductor, DropsAJobThatFindsNoInput) {
  LedTask task = periodic(10, 4);
  task.is_filled = true;
  World world({task}, takes(2));
  world.inputs[0] = 2;
  world.play(15);
  world.inputs[0] = 4;
  world.play(50);
  EXPECT_EQ(world.lines(),
            (Lines{"0.0 ended: arrived 0, ready 0, 0 to 2", "0.1 no input: arrived 10, ready 10, 10 to 10",
                   "0.2 ended: arrived 20, ready 20, 20 to 22", "0.3 no input: arrived 30, ready 30, 30 to 30"}));
  EXPECT_EQ(world.records[2].run, 1U);
  EXPECT_TRUE(world.taken.empty()) << "nothing is reused";
}

// Two buffer sets. Of run 0, for the job of 0, there is nothing to use again; it has input at 10. Run 1 has none until
// 30, and run 2 is that of the job of 40: it has the input of run 0. Then the host puts that of run 3 there: the job of
// 50 is dropped, and that of 60 has it.
TEST(SetConductor, ReusesTheInputThatBuffersHold) {
  LedTask task = periodic(10, 7);
  task.sets = 2;
  task.is_filled = task.reuses = true;
  World world({task}, takes(2));
  const auto from = [&](Ns until, std::uint64_t word) {
    world.play(until - 1);
    world.inputs[0] = word;
  };
  from(10, 2);
  from(30, 4);
  from(50, 7);
  from(60, 8);
  world.play(100);
  EXPECT_EQ(world.lines(),
            (Lines{"0.0 no input: arrived 0, ready 0, 0 to 0", "0.1 ended: arrived 10, ready 10, 10 to 12",
                   "0.2 no input: arrived 20, ready 20, 20 to 20", "0.3 ended: arrived 30, ready 30, 30 to 32",
                   "0.4 ended again: arrived 40, ready 40, 40 to 42", "0.5 no input: arrived 50, ready 50, 50 to 50",
                   "0.6 ended: arrived 60, ready 60, 60 to 62"}));
  EXPECT_EQ(world.records[6].run, 3U);
}

// Between two looks at the host it has begun to put the input of run 1 there, or has ended to: the one job is dropped,
// and the run is nobody's again, the other one has that input.
TEST(SetConductor, LeavesBuffersAloneThatTheHostHasJustTaken) {
  for (const bool ends : {false, true}) {
    LedTask task = periodic(10, 2);
    task.is_filled = task.reuses = true;
    World world({task}, takes(2));
    world.inputs[0] = 2;
    world.when_settled = [&] {
      EXPECT_EQ(world.taken[0], 2U) << "the host knows before";
      world.inputs[0] = ends ? 4 : 3;
    };
    world.play(30);
    EXPECT_EQ(world.lines().back(),
              ends ? "0.1 ended: arrived 10, ready 10, 10 to 12" : "0.1 no input: arrived 10, ready 10, 10 to 10");
    EXPECT_EQ(world.taken[0], ends ? 2U : 1U);
  }
}

// Two buffer sets. That of job 0 is back at 13, that of job 1 at 15, while task 1 has the machine until 45: jobs 2 and
// 3 have arrived and get these sets. Job 4 would need that of job 2, which is late by then.
TEST(SetConductor, ReleasesAllJobsWhoseBuffersCameBackWhileAJobHadTheMachine) {
  LedTask task = periodic(10, 5);
  task.sets = 2;
  task.is_read = true;
  World world({task, periodic(100, 1, 13)}, [](std::uint32_t batch, std::uint64_t) { return batch == 0 ? 2 : 32; });
  world.play(12);
  world.given_back[0] = 1;
  world.look();
  world.play(14);
  world.given_back[0] = 2;
  world.play(60);
  EXPECT_EQ(world.lines(),
            (Lines{"0.0 ended: arrived 0, ready 0, 0 to 2", "0.1 ended: arrived 10, ready 10, 10 to 12",
                   "1.0 ended: arrived 13, ready 13, 13 to 45", "0.4 no set: arrived 40, ready 40, 45 to 45",
                   "0.2 ended: arrived 20, ready 45, 45 to 47", "0.3 ended: arrived 30, ready 47, 47 to 49"}));
}

// Jobs of 3 every 3 leave no time between them in which the conductor looks around. Stopped at 10, it sees that as the
// job of 12 starts, which is the last one.
TEST(SetConductor, StopsAlsoWhereJobsFollowEachOtherWithoutAGap) {
  World world({periodic(3, 100)}, takes(3));
  world.play(10);
  world.stopped = true;
  world.play(400);
  EXPECT_EQ(world.records.size(), 5U);
  EXPECT_EQ(world.records.back().finish, 15);
  EXPECT_FALSE(world.goes_on);
}

}  // namespace
}  // namespace tutti::internal
