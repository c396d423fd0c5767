#include "runtime/core/command_marks.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"

namespace tutti::internal {
namespace {

using Lines = std::vector<std::string>;

CommandList commands_of(const Batch& batch, std::string_view planner, Marks marks, Bytes pace = {}) {
  return make_commands(test::paced(plan(*find_planner(planner), batch), pace), marks);
}

/// What a batch on the small machine becomes: n bytes take n ns.
struct Marked {
  explicit Marked(std::string_view streams, Marks marks = Marks::Needed,
                  const Topology& machine = test::small_machine())
      : batch(test::make_batch(machine, streams)), list(commands_of(batch, "all_at_once", marks)) {}

  /// Of each run the streams of its commands, and the mark at its end.
  [[nodiscard]] Lines runs() const {
    Lines lines;
    for (const auto& [begin, end] : list.runs) {
      std::string& line = lines.emplace_back(list.commands[begin].is_kernel() ? "kernel" : "copy");
      for (std::uint32_t i = begin; i < end; ++i) line += " " + batch.streams()[list.commands[i].stream].name;
      constexpr std::string_view kMarks[] = {"", ", time", ", word"};
      line += kMarks[static_cast<std::size_t>(list.commands[end - 1].mark)];
    }
    return lines;
  }

  Batch batch;
  CommandList list;
};

/// So many copies of one kB up to gpu0.
std::string ups(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("- {{name: s{}, from: mem0, to: gpu0, size: 1 kB}}\n", i);
  return text;
}

// ---- by hand

// Copies, then kernels: one instant between them, and the end, for which the host waits.
TEST(CommandMarks, StandBetweenCopiesAndKernelsAndAtTheEnd) {
  const Marked it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 50 ns, worst: 60 ns}}
- {name: b, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 20 ns}}
- {name: c, from: mem0, to: gpu0, size: 2 kB}
)");
  EXPECT_EQ(it.runs(), (Lines{"copy a b c, time", "kernel a", "kernel b, word"}));
  EXPECT_EQ(it.list.kernels, (std::vector<KernelRun>{{3, 4, 2, Duration{80}}}));
}

// 500 kB take 500 us: where they begin is known too.
TEST(CommandMarks, StandAtBothEndsOfLongCommands) {
  const Marked it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB}
- {name: b, from: mem0, to: gpu0, size: 1 kB}
- {name: long, from: mem0, to: gpu0, size: 500 kB, kernel: {time: 1 us}}
- {name: d, from: mem0, to: gpu0, size: 499 kB, kernel: {time: 1 ms}}
- {name: e, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 1 us}}
)");
  EXPECT_EQ(it.runs(), (Lines{"copy a b, time", "copy long, time", "copy d e, time", "kernel long, time",
                              "kernel d, time", "kernel e, word"}));
  EXPECT_EQ(it.list.kernels.size(), 3U);
}

// a's kernel, on gpu1, waits for the copies: its lane begins there, and theirs ends.
TEST(CommandMarks, AreSignalsWhereAnotherLaneWaits) {
  const Marked it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB, kernel: {on: gpu1, time: 50 ns}}
- {name: b, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 20 ns}}
)");
  EXPECT_EQ(it.runs(), (Lines{"copy a b, word", "kernel a, word", "kernel b, word"}));
}

// The first leg of the staged copy ends its lane, and the second one too.
TEST(CommandMarks, EndBothLanesOfAStagedCopy) {
  const Marked it("- {name: s, from: gpu0, to: gpu2, size: 2 kB}\n");
  EXPECT_EQ(it.list.commands[0].mark, Mark::Signal);
  EXPECT_EQ(it.list.commands[0].leg_mark, Mark::Signal);
}

TEST(CommandMarks, StandAtEveryCommandToMeasureIt) {
  const Marked it(ups(3), Marks::Each);
  EXPECT_EQ(it.runs(), (Lines{"copy s0, time", "copy s1, time", "copy s2, word"}));
}

// One lane, the engine out of gpu0: down, then across. Nobody asks when the one sort ends.
TEST(Runs, EndWhereTheEndsOfCopiesChange) {
  const Marked it(R"(- {name: a, from: gpu0, to: mem0, size: 1 kB}
- {name: b, from: gpu0, to: mem0, size: 1 kB}
- {name: c, from: gpu0, to: gpu1, size: 1 kB}
)");
  ASSERT_EQ(it.list.lanes.size(), 1U);
  EXPECT_EQ(it.runs(), (Lines{"copy a b", "copy c, word"}));
}

// z, of 0 bytes, is in the call, where it does nothing.
TEST(Runs, GoOnOverNothing) {
  const Marked it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB}
- {name: z, from: mem0, to: gpu0, size: 0}
- {name: b, from: mem0, to: gpu0, size: 1 kB}
)");
  EXPECT_EQ(it.runs(), (Lines{"copy a z b, word"}));
}

// a and b are in one lane, c in another and planned between them: the run stands where its first copy does.
TEST(Runs, ComeTogetherWhereOtherLanesArePlannedBetween) {
  const Marked it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB}
- {name: b, from: mem0, to: gpu0, size: 3 kB}
- {name: c, from: mem0, to: gpu1, size: 2 kB}
- {name: d, from: mem0, to: gpu1, size: 1 kB}
)");
  EXPECT_EQ(it.runs(), (Lines{"copy a b, word", "copy c d, word"}));
  EXPECT_EQ(it.list.runs, (std::vector<tutti::internal::Run>{{0, 2}, {2, 4}}));
}

/// Runs that fit where each kernel is so many operations.
std::size_t fitting(const CommandList& list, std::size_t room, Bytes chunk, std::size_t of_kernel = 1) {
  return runs_that_fit(list, room, chunk, std::vector<std::size_t>(list.commands.size(), of_kernel));
}

// 1000 copies: 440 + 440 + 120. Gate, start and two calls are 882 operations; the third brings a mark of two.
TEST(Runs, AreNoLongerThanAQueueTakes) {
  const Marked it(ups(1000));
  EXPECT_EQ(it.list.runs, (std::vector<tutti::internal::Run>{{0, 440}, {440, 880}, {880, 1000}}));
  EXPECT_EQ(fitting(it.list, 1004, {}), 3U);
  EXPECT_EQ(fitting(it.list, 1003, {}), 2U);
  EXPECT_EQ(fitting(it.list, 882, {}), 2U);
  EXPECT_EQ(fitting(it.list, 881, {}), 1U);
  EXPECT_EQ(fitting(it.list, 441, {}), 0U);
}

// In chunks of 1000 bytes: three operations for each of two, gate, start, and a mark of two for either leg.
TEST(Runs, OfStagedCopiesNeedRoomForEveryChunk) {
  const Marked it("- {name: s, from: gpu0, to: gpu2, size: 2 kB}\n");
  EXPECT_EQ(fitting(it.list, 12, Bytes{1000}), 1U);
  EXPECT_EQ(fitting(it.list, 11, Bytes{1000}), 0U);
  EXPECT_EQ(fitting(it.list, 9, {}), 1U);
}

// Gate, start, 100 operations, and a mark of two.
TEST(Runs, OfKernelsNeedRoomForAllOfTheirOperations) {
  const Marked it("- {name: k, kernel: {on: gpu0, time: 1 ms}}\n");
  EXPECT_EQ(fitting(it.list, 104, {}, 100), 1U);
  EXPECT_EQ(fitting(it.list, 103, {}, 100), 0U);
}

// 1 + 2 + 1 parts of 8000 ns from 100 on; then two kernels of no planned time, which share 1000 ns.
TEST(ShareOut, DividesWhatLiesBetweenMarksByPlannedLengths) {
  const Marked it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 0}}
- {name: b, from: mem0, to: gpu0, size: 2 kB, kernel: {time: 0}}
- {name: c, from: mem0, to: gpu0, size: 1 kB}
)");
  ASSERT_EQ(it.runs(), (Lines{"copy a b c, time", "kernel a", "kernel b, word"}));
  std::vector<CommandTimes> times(5);
  times[0].start = 100;
  times[2].end = 8100;
  times[4].end = 9100;
  share_out(it.list, times);
  const std::vector<double> expected{100, 2100, 6100, 8100, 8600, 9100};
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_DOUBLE_EQ(times[i].start, expected[i]) << i;
    EXPECT_DOUBLE_EQ(times[i].end, expected[i + 1]) << i;
  }
}

// ---- whatever the batch

/// [lanes] positions of the commands in it.
std::vector<std::vector<std::uint32_t>> lanes_of(const CommandList& list) {
  std::vector<std::vector<std::uint32_t>> lanes(list.lanes.size());
  for (std::uint32_t i = 0; i < list.commands.size(); ++i)
    for (const std::uint32_t lane : std::set{list.commands[i].lane, list.commands[i].last_lane})
      lanes[lane].push_back(i);
  return lanes;
}

void marks_stand_where_somebody_waits(const CommandList& list) {
  for (const Command& command : list.commands)
    for (const std::uint32_t before : command.waits) EXPECT_EQ(list.commands[before].mark, Mark::Signal);
  for (std::uint32_t lane = 0; const auto& positions : lanes_of(list)) {
    const Command& last = list.commands[positions.back()];
    EXPECT_EQ(last.last_lane == lane ? last.mark : last.leg_mark, Mark::Signal);
    ++lane;
  }
}

void runs_are_of_like_copies(const Batch& batch, const CommandList& list) {
  std::uint32_t next = 0;
  for (const auto& [begin, end] : list.runs) {
    EXPECT_EQ(begin, next);
    EXPECT_LT(begin, end);
    EXPECT_LE(end - begin, kMostCopies);
    next = end;
    const Command& first = list.commands[begin];
    for (std::uint32_t i = begin + 1; i < end; ++i) {
      const Command& command = list.commands[i];
      EXPECT_EQ(command.lane, first.lane);
      EXPECT_FALSE(command.is_released());
      EXPECT_EQ(list.commands[i - 1].mark, Mark::None);
      EXPECT_LT(command.planned, kLongCommand);
      ASSERT_TRUE(batch.streams()[command.stream].transfer && !command.is_kernel());
      EXPECT_EQ(batch.streams()[command.stream].transfer->from, batch.streams()[first.stream].transfer->from);
      EXPECT_EQ(batch.streams()[command.stream].transfer->to, batch.streams()[first.stream].transfer->to);
    }
  }
  EXPECT_EQ(next, list.commands.size());
}

/// No two runs could be one: nothing is called twice that one call would do.
void runs_are_as_long_as_can_be(const Batch& batch, const CommandList& list) {
  std::vector<std::optional<Run>> last(list.lanes.size());
  for (const Run& run : list.runs) {
    const Command& first = list.commands[run.begin];
    if (const auto& before = last[first.lane]; before && !first.is_kernel()) {
      const Command& end = list.commands[before->end - 1];
      const bool like = end.kind == Command::Kind::Copy && first.kind == Command::Kind::Copy &&
                        batch.streams()[end.stream].transfer->to == batch.streams()[first.stream].transfer->to &&
                        batch.streams()[end.stream].transfer->from == batch.streams()[first.stream].transfer->from;
      EXPECT_FALSE(like && end.mark == Mark::None && !first.is_released() && before->end - before->begin < kMostCopies);
    }
    last[first.lane] = last[first.last_lane] = run;
  }
}

/// Every kernel is in one, what begins it is known, and what ends it.
void kernel_runs_have_known_ends(const CommandList& list) {
  std::uint32_t kernels = 0;
  for (const Command& command : list.commands) kernels += command.is_kernel() ? 1 : 0;
  const auto lanes = lanes_of(list);
  for (const KernelRun& run : list.kernels) {
    kernels -= run.count;
    EXPECT_NE(list.commands[run.last].mark, Mark::None);
    const Command& first = list.commands[run.first];
    const auto& lane = lanes[first.lane];
    const auto here = std::find(lane.begin(), lane.end(), run.first);
    if (first.is_released()) continue;
    ASSERT_NE(here, lane.begin());
    EXPECT_NE(list.commands[*(here - 1)].mark, Mark::None);
  }
  EXPECT_EQ(kernels, 0U);
}

/// Commands of a lane follow each other, between what is known, and what is known stays.
void shared_out_times_follow_each_other(const CommandList& list) {
  std::vector<CommandTimes> known(list.commands.size());
  std::vector<double> free(list.lanes.size(), 0);
  for (std::size_t i = 0; i < known.size(); ++i) {  // queues that take 10 ns for each command, and 3 to let one go
    const Command& command = list.commands[i];
    double start = std::max(free[command.lane], free[command.last_lane]);
    for (const std::uint32_t before : command.waits) start = std::max(start, known[before].end);
    known[i] = {start + (command.is_released() ? 3 : 0), start + 13};
    free[command.lane] = free[command.last_lane] = known[i].end;
  }
  std::vector<CommandTimes> times(known.size());
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (list.commands[i].notes_start()) times[i].start = known[i].start;
    if (list.commands[i].mark != Mark::None) times[i].end = known[i].end;
  }
  share_out(list, times);
  std::vector<double> until(list.lanes.size(), 0);
  for (std::size_t i = 0; i < known.size(); ++i) {
    const Command& command = list.commands[i];
    if (command.notes_start()) {
      EXPECT_NEAR(times[i].start, known[i].start, 1e-6);
    }
    if (command.mark != Mark::None) {
      EXPECT_NEAR(times[i].end, known[i].end, 1e-6);
    }
    EXPECT_GE(times[i].start, until[command.lane] - 1e-6);
    EXPECT_LE(times[i].start, times[i].end + 1e-6);
    until[command.last_lane] = times[i].end;
  }
}

void check(const Topology& machine, const Batch& batch, Bytes some_pace) {
  for (const Planner& planner : planners()) {
    for (const Marks marks : {Marks::Needed, Marks::Each}) {
      for (const Bytes pace : {Bytes{0}, some_pace}) {
        SCOPED_TRACE(fmt::format("{}, pace {}\n{}", planner.name, pace.count, test::describe(machine, batch)));
        const CommandList list = commands_of(batch, planner.name, marks, pace);
        marks_stand_where_somebody_waits(list);
        runs_are_of_like_copies(batch, list);
        if (marks == Marks::Needed) runs_are_as_long_as_can_be(batch, list);
        kernel_runs_have_known_ends(list);
        if (pace.count == 0) shared_out_times_follow_each_other(list);
      }
    }
  }
}

TEST(CommandMarksProperty, HoldOnRandomMachines) {
  for (std::uint64_t seed = 0; seed < test::rounds(100U) && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Topology machine = test::random_machine(seed);
    check(machine, test::random_batch(machine, seed + 5000), Bytes{1'000'000});
  }
}

// Short and long copies on few ways, so that there are runs.
TEST(CommandMarksProperty, HoldForLongQueues) {
  const Topology machine = test::small_machine();
  std::size_t longest = 0;
  for (std::uint64_t seed = 0; seed < test::rounds(200U) && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    test::Random random(seed);
    const auto at = [&](const char* place) { return machine.find_vertex(place).value(); };
    const VertexId places[] = {at("mem0"), at("gpu0"), at("gpu1"), at("gpu2")};
    const std::size_t used = random.one_in(2) ? 2 : 4;
    std::vector<CommandStream> streams;
    for (int s = random.between(2, 20); s > 0; --s) {
      const std::size_t from = random.below(used), to = (from + 1 + random.below(used - 1)) % used;
      const int size = random.one_in(8) ? 600'000 : random.one_in(8) ? 0 : random.between(1, 60'000);
      streams.push_back(test::copy_stream(fmt::format("s{}", s), places[from], places[to], size));
      if (!random.one_in(4)) continue;
      const Duration time{random.one_in(8) ? 700'000 : random.between(0, 50'000)};
      streams.back().kernel = Kernel{random.one_in(5) ? at("cpu0") : places[1 + random.below(3)], time, time, "spin"};
    }
    const Batch batch = Batch::make(machine, streams, random.one_in(4) ? Merging::Off : Merging::On).value();
    check(machine, batch, Bytes{20'000});
    for (const auto& [begin, end] : commands_of(batch, "all_at_once", Marks::Needed).runs)
      longest = std::max<std::size_t>(longest, end - begin);
  }
  EXPECT_GE(longest, 8U);
}

}  // namespace
}  // namespace tutti::internal
