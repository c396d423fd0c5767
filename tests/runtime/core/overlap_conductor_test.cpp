// The state machine that leads jobs that overlap, worked by hand: what it opens, when it sees ends, its records.
#include "runtime/core/overlap_conductor.hpp"

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

/// Tasks whose jobs use resource 0 and then resource 1, a region each: batches 0 and 1 of task 0, 2 and 3 of task 1.
/// A thread looks once a nanosecond.
class Pipeline {
 public:
  /// @param length  length(batch, run)
  Pipeline(std::vector<LedTask> tasks, std::function<Ns(std::uint32_t, std::uint64_t)> length)
      : armed(tasks.size(), 1000),
        given_back(tasks.size()),
        inputs(tasks.size()),
        batches(2 * tasks.size()),
        length_(std::move(length)),
        runs_(tasks.size()) {
    LedWays ways;
    ways.held = false;
    ways.resources = 2;
    const auto count = static_cast<std::uint32_t>(tasks.size());
    for (std::uint32_t resource = 0; resource < 2; ++resource)
      for (std::uint32_t task = 0; task < count; ++task) {
        LedOperation& operation = ways.operations.emplace_back();
        operation.task = task;
        operation.resource = resource;
        operation.first_batch = 2 * task + resource;
        operation.key = tasks[task].deadline;
        if (resource == 0) operation.follower = count + task;
      }
    std::uint32_t sets = 0;
    for (std::uint32_t task = 0; task < count; ++task) {
      tasks[task].first_set = std::exchange(sets, sets + tasks[task].sets);
      tasks[task].first_batch = 2 * task;
      tasks[task].batches = 2;
      tasks[task].first_step = task;
      tasks[task].steps = 1;
      ways.steps.push_back({task, 1});
      ways.streams.push_back(task);
    }
    indices_.resize(sets);
    flights_.resize(sets);
    arrays_.emplace(std::move(tasks), std::move(ways));
    conductor_.emplace(arrays_->operations(true), batches.data(), runs_.data(), indices_.data(), flights_.data(),
                       Board{this});
    conductor_->begin();
  }
  Pipeline(const Pipeline&) = delete;  // its conductor has views of its arrays
  Pipeline& operator=(const Pipeline&) = delete;

  /// Lets everything happen up to an instant, it included.
  void play(Ns until) {
    constexpr int kMostAtOnce = 20;
    for (; now_ <= until; ++now_)
      for (int i = 0; i < kMostAtOnce; ++i) goes_on = conductor_->step(now_);
  }
  void look() { conductor_->look(); }
  [[nodiscard]] Ns next_instant() const { return conductor_->next_instant(); }

  std::vector<std::uint64_t> armed, given_back, inputs;  // [tasks]
  std::map<std::uint32_t, std::uint64_t> taken;          // by tasks that overwrite: runs that jobs have had
  std::vector<LedBatch> batches;
  Lines opened, records;  // in order
  bool stopped = false, goes_on = true;

 private:
  struct Board {
    Pipeline* world;

    [[nodiscard]] bool is_armed(std::uint32_t task, std::uint64_t run) const { return run < world->armed[task]; }
    [[nodiscard]] std::uint64_t given_back(std::uint32_t task) const { return world->given_back[task]; }
    void note_taken(std::uint32_t task, std::uint64_t runs) const { world->taken[task] = runs; }
    void open(std::uint32_t batch, std::uint64_t run) const {
      const bool overwrites = world->arrays_->tasks().front().overwrites;
      EXPECT_TRUE(!overwrites || world->taken.empty() || run < world->taken.begin()->second) << "the host knows before";
      world->opened.push_back(fmt::format("{}.{} at {}", batch, run, world->now_));
      world->ends_[{batch, run}] = world->now_ + world->length_(batch, run);
    }
    [[nodiscard]] LedInput input(std::uint32_t task, std::uint64_t run) const {
      return input_of(world->inputs[task], run);
    }
    void settle() const {}
    [[nodiscard]] bool has_ended(std::uint32_t batch, std::uint64_t run) const {
      return world->now_ >= world->ends_.at({batch, run});
    }
    [[nodiscard]] bool write(const LedRecord& record) const {
      constexpr std::string_view kNames[] = {"ended",    "skipped",  "no set",    "not armed",
                                             "no input", "given up", "unfinished"};
      world->records.push_back(fmt::format("{}.{} {}{}: run {}, ready {}, {} to {}, {} in batches, late {}",
                                           record.task, record.index, kNames[static_cast<std::size_t>(record.kind)],
                                           record.reused ? " again" : "", record.run, record.ready, record.start,
                                           record.finish, record.in_batches, record.late));
      return true;
    }
    [[nodiscard]] bool is_stopped() const { return world->stopped; }
    [[nodiscard]] bool is_given_up() const { return false; }
    void keep_awake() const {}
  };

  std::function<Ns(std::uint32_t, std::uint64_t)> length_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, Ns> ends_;  // of batches and their runs
  std::optional<LedArrays> arrays_;
  std::vector<LedRuns> runs_;
  std::vector<std::uint64_t> indices_;
  std::vector<LedFlight> flights_;
  Ns now_ = 0;
  std::optional<OverlapConductor<Board>> conductor_;
};

LedTask every(Ns period, Ns deadline, std::uint64_t jobs, std::uint32_t sets = 2) {
  LedTask task;
  task.period = period;
  task.deadline = deadline;
  task.jobs = jobs;
  task.sets = sets;
  return task;
}

/// Regions on resource 0 and on resource 1.
auto lasting(Ns first, Ns second) {
  return [=](std::uint32_t batch, std::uint64_t) { return batch % 2 == 0 ? first : second; };
}

// A job of 6 and 5 every 8: the first region of job 1 runs beside the second one of job 0.
TEST(OverlapConductor, LeadsJobsOfOneTaskInAPipeline) {
  Pipeline world({every(8, 12, 2)}, lasting(6, 5));
  world.play(30);
  EXPECT_EQ(world.opened, (Lines{"0.0 at 0", "1.0 at 6", "0.1 at 8", "1.1 at 14"}));
  EXPECT_EQ(world.records, (Lines{"0.0 ended: run 0, ready 0, 0 to 11, 11 in batches, late 0",
                                  "0.1 ended: run 1, ready 8, 8 to 19, 11 in batches, late 0"}));
  EXPECT_FALSE(world.goes_on);
}

// Task 1 is due later, so it waits for resource 0 until 3 and for resource 1 from 6 to 8. It is late in neither, since
// a region that waits for its resource could not begin.
TEST(OverlapConductor, CountsTimeWithRegionsUnderWay) {
  Pipeline world({every(100, 20, 1), every(100, 50, 1)}, lasting(3, 5));
  world.play(30);
  EXPECT_EQ(world.opened, (Lines{"0.0 at 0", "1.0 at 3", "2.0 at 3", "3.0 at 8"}));
  EXPECT_EQ(world.records, (Lines{"0.0 ended: run 0, ready 0, 0 to 8, 8 in batches, late 0",
                                  "1.0 ended: run 0, ready 3, 3 to 13, 8 in batches, late 0"}));
}

// Job 1 finds no armed run at its release and is dropped at once, while job 0 is on its way; job 2 has run 1, and job 3
// the buffers that job 1 would have had.
TEST(OverlapConductor, DropsAJobThatFindsNoArmedRun) {
  Pipeline world({every(8, 12, 4)}, lasting(6, 5));
  world.armed[0] = 1;
  world.play(9);
  world.armed[0] = 3;
  world.play(50);
  EXPECT_EQ(world.records, (Lines{"0.1 not armed: run 1, ready 8, 8 to 8, 0 in batches, late 0",
                                  "0.0 ended: run 0, ready 0, 0 to 11, 11 in batches, late 0",
                                  "0.2 ended: run 1, ready 16, 16 to 27, 11 in batches, late 0",
                                  "0.3 ended: run 2, ready 24, 24 to 35, 11 in batches, late 0"}));
}

// One buffer set, which the host gives back at 20: job 1 waits for it.
TEST(OverlapConductor, WaitsForBuffersThatTheHostHas) {
  LedTask task = every(12, 30, 2, 1);
  task.is_read = true;
  Pipeline world({task}, lasting(3, 3));
  world.play(19);
  world.given_back[0] = 1;
  world.play(20);
  world.look();
  world.play(60);
  EXPECT_EQ(world.opened, (Lines{"0.0 at 0", "1.0 at 3", "0.1 at 21", "1.1 at 24"}));
}

// Nobody gives the one set back, and each job has it as it arrives, or as the job before it ends: that of 12 is one of
// 11 ns, and there are two every 8.
TEST(OverlapConductor, RunsIntoBuffersThatTheHostHas) {
  for (const Ns period : {12, 8}) {
    LedTask task = every(period, 30, 3, 1);
    task.is_read = task.overwrites = true;
    Pipeline world({task}, lasting(3, 8));
    world.play(60);
    EXPECT_EQ(world.opened, period == 12
                                ? (Lines{"0.0 at 0", "1.0 at 3", "0.1 at 12", "1.1 at 15", "0.2 at 24", "1.2 at 27"})
                                : (Lines{"0.0 at 0", "1.0 at 3", "0.1 at 11", "1.1 at 14", "0.2 at 22", "1.2 at 25"}));
    EXPECT_EQ(world.taken[0], 3U);
  }
}

// As jobs are released: run 0 has input, and run 1 has none until 30, so that of 12 is dropped while job 0 is on its
// way, or has the input of run 0 as soon as that one has ended, at 13. Then the host puts that of the next run there.
TEST(OverlapConductor, LooksForInputAsAJobIsReleased) {
  for (const bool reuses : {false, true}) {
    LedTask task = every(12, 30, 4, 1);
    task.is_filled = true;
    task.reuses = reuses;
    Pipeline world({task}, lasting(5, 8));
    world.inputs[0] = 2;
    world.play(30);
    world.inputs[0] = reuses ? 7 : 4;
    world.play(60);
    EXPECT_EQ(world.records, reuses ? (Lines{"0.0 ended: run 0, ready 0, 0 to 13, 13 in batches, late 0",
                                             "0.1 ended again: run 1, ready 13, 13 to 26, 13 in batches, late 0",
                                             "0.2 ended again: run 2, ready 26, 26 to 39, 13 in batches, late 0",
                                             "0.3 no input: run 3, ready 36, 39 to 39, 0 in batches, late 3"})
                                    : (Lines{"0.0 ended: run 0, ready 0, 0 to 13, 13 in batches, late 0",
                                             "0.1 no input: run 1, ready 12, 13 to 13, 0 in batches, late 1",
                                             "0.2 no input: run 1, ready 24, 24 to 24, 0 in batches, late 0",
                                             "0.3 ended: run 1, ready 36, 36 to 49, 13 in batches, late 0"}));
  }
}

// Given back at 10, before job 1 arrives, which is released without a look at the host in between.
TEST(OverlapConductor, ReadsWhatIsGivenBackAsAJobArrives) {
  LedTask task = every(12, 30, 2, 1);
  task.is_read = true;
  Pipeline world({task}, lasting(3, 3));
  world.play(10);
  world.given_back[0] = 1;
  world.play(60);
  EXPECT_EQ(world.opened, (Lines{"0.0 at 0", "1.0 at 3", "0.1 at 12", "1.1 at 15"}));
}

// The second region of job 1 hangs: it is given up 21 after its begin, and job 2, whose first region is under way, is
// cut off. Each has a record, and nothing comes after that. The host has the buffers of job 0, which ended before.
TEST(OverlapConductor, GivesUpWhatHangs) {
  LedTask task = every(20, 100, 9, 5);
  task.is_read = true;
  Pipeline world({task}, [](std::uint32_t batch, std::uint64_t run) { return batch == 0 ? 6 : run == 0 ? 5 : 1000; });
  world.batches[1].limit = 20;
  world.play(200);
  EXPECT_EQ(world.records, (Lines{"0.0 ended: run 0, ready 0, 0 to 11, 11 in batches, late 0",
                                  "0.1 given up: run 1, ready 20, 20 to 47, 6 in batches, late 0",
                                  "0.2 unfinished: run 2, ready 40, 40 to 47, 6 in batches, late 0"}));
  EXPECT_FALSE(world.goes_on);
}

// Nothing is released after a stop; what is released goes on to its end.
TEST(OverlapConductor, EndsAfterAStop) {
  Pipeline world({every(8, 12, 100)}, lasting(6, 5));
  world.play(9);
  world.stopped = true;
  world.look();
  world.play(60);
  EXPECT_EQ(world.records.size(), 2U);
  EXPECT_FALSE(world.goes_on);
}

// The region under way ends at 6, and nothing is due before: a look makes only the first sight of a stop due.
TEST(OverlapConductor, WaitsForWhatIsUnderWayAfterAStop) {
  Pipeline world({every(8, 12, 100)}, lasting(6, 5));
  world.play(1);
  world.stopped = true;
  world.look();
  world.play(2);
  world.look();
  EXPECT_EQ(world.next_instant(), kNoInstant);
  world.play(60);
  EXPECT_EQ(world.records.size(), 1U);
  EXPECT_FALSE(world.goes_on);
}

// Nobody asks it to look: every 1024 steps without a decision it reads one word, of the task, for a stop, or for what
// is not to be waited for. Of 1000 jobs every 8 ns, 20 steps a ns, it has seen that after 3 x 1024 steps, 160 ns, and
// some.
TEST(OverlapConductor, SeesAStopByItself) {
  Pipeline world({every(8, 12, 1000)}, lasting(6, 5));
  world.stopped = true;
  world.play(500);
  EXPECT_GT(world.records.size(), 2U);
  EXPECT_LT(world.records.size(), 60U);
  EXPECT_FALSE(world.goes_on);
}

}  // namespace
}  // namespace tutti::internal
