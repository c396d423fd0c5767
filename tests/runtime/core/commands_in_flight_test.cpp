#include "runtime/core/commands_in_flight.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using Positions = std::vector<std::uint32_t>;

Command kernel_in(std::uint32_t lane, Mark mark = Mark::None, Positions waits = {}) {
  Command command;
  command.kind = Command::Kind::Kernel;
  command.lane = command.last_lane = lane;
  command.mark = mark;
  command.waits = std::move(waits);
  return command;
}

CommandList list_of(std::size_t lanes, std::vector<Command> commands) {
  CommandList list;
  for (std::size_t lane = 0; lane < lanes; ++lane) list.lanes.push_back(VertexId{0});
  list.commands = std::move(commands);
  return list;
}

// Lane 0: 0 and 1 have ended, 2 and 3 follow up to the next mark, and 4 is behind that. Lane 1 has ended.
TEST(CommandsInFlight, AreThoseBehindTheLastMarkUpToTheNextOne) {
  const auto list = list_of(2, {kernel_in(0), kernel_in(0, Mark::Signal), kernel_in(0), kernel_in(0, Mark::Signal),
                                kernel_in(0, Mark::Signal), kernel_in(1, Mark::Signal)});
  RunProgress progress(list);
  progress.ends[1] = progress.ends[5] = Reached::Yes;
  progress.ends[3] = progress.ends[4] = Reached::No;
  EXPECT_EQ(commands_in_flight(list, progress), (Positions{2, 3}));
}

// Command 1 waits for 0, which has not ended; 2 is behind 1.
TEST(CommandsInFlight, AreNotThoseThatWaitForThem) {
  const auto list = list_of(2, {kernel_in(0, Mark::Signal), kernel_in(1, Mark::None, {0}), kernel_in(1, Mark::Signal)});
  RunProgress progress(list);
  progress.ends[0] = progress.ends[2] = Reached::No;
  EXPECT_EQ(commands_in_flight(list, progress), (Positions{0}));
  progress.seen_early[0] = true;  // the other lane may know that 0 has ended
  EXPECT_EQ(commands_in_flight(list, progress), (Positions{0, 1, 2}));
}

TEST(CommandsInFlight, AreNotThoseBehindClosedGatesOrInNoQueue) {
  auto list = list_of(2, {kernel_in(0), kernel_in(1), kernel_in(0)});
  list.commands[1].gate = 0;
  list.gates = {Duration{5}};
  RunProgress progress(list);
  progress.opened[0] = false;
  EXPECT_EQ(commands_in_flight(list, progress), (Positions{0, 2}));
  progress.enqueued = 2;
  EXPECT_EQ(commands_in_flight(list, progress), (Positions{0}));
}

// The first leg of a staged copy is over, the second is not: it is in flight, what follows its first leg too, and what
// is behind its second leg is not.
TEST(CommandsInFlight, HaveTwoLanesWhereTheyAreStaged) {
  Command staged = kernel_in(0, Mark::Signal);
  staged.kind = Command::Kind::Staged;
  staged.last_lane = 1;
  staged.leg_mark = Mark::Signal;
  const auto list = list_of(2, {staged, kernel_in(0, Mark::Signal), kernel_in(1, Mark::Signal)});
  RunProgress progress(list);
  progress.leg_ends[0] = Reached::Yes;
  progress.ends = {Reached::No, Reached::No, Reached::No};
  EXPECT_EQ(commands_in_flight(list, progress), (Positions{0, 1}));
  progress.leg_ends[0] = Reached::No;
  EXPECT_EQ(commands_in_flight(list, progress), (Positions{0}));
}

// ---- every interleaving

/// Lanes that execute a list step by step, in any order. Setting a signal is two steps: lanes see it before the host.
class Lanes {
 public:
  explicit Lanes(const CommandList& list)
      : list_(list), at_(list.lanes.size()), told_(list.commands.size()), progress_(list) {
    for (std::uint32_t i = 0; i < list.commands.size(); ++i) {
      steps_[list.commands[i].lane].push_back({Step::Begin, i});
      steps_[list.commands[i].lane].push_back({Step::End, i});
      if (list.commands[i].mark == Mark::None) continue;
      progress_.ends[i] = Reached::No;
      progress_.seen_early[i] = true;
      steps_[list.commands[i].lane].push_back({Step::TellLanes, i});
      steps_[list.commands[i].lane].push_back({Step::TellHost, i});
    }
  }

  /// Lets a lane do its next step, if it can.
  void advance(std::uint32_t lane) {
    if (at_[lane] == steps_[lane].size()) return;
    const auto [kind, i] = steps_[lane][at_[lane]];
    const auto has_told = [&](std::uint32_t before) { return told_[before]; };
    if (kind == Step::Begin && !std::ranges::all_of(list_.commands[i].waits, has_told)) return;
    if (kind == Step::Begin) running_.insert(i);
    if (kind == Step::End) running_.erase(i);
    if (kind == Step::TellLanes) told_[i] = true;
    if (kind == Step::TellHost) progress_.ends[i] = Reached::Yes;
    ++at_[lane];
  }
  [[nodiscard]] const std::set<std::uint32_t>& running() const { return running_; }
  [[nodiscard]] const RunProgress& progress() const { return progress_; }

 private:
  enum class Step : std::uint8_t { Begin, End, TellLanes, TellHost };

  const CommandList& list_;
  std::map<std::uint32_t, std::deque<std::pair<Step, std::uint32_t>>> steps_;  // [lanes]
  std::vector<std::size_t> at_;                                                // [lanes]
  std::vector<bool> told_;                                                     // [commands]
  std::set<std::uint32_t> running_;
  RunProgress progress_;
};

CommandList random_list(test::Random& random, std::uint32_t lanes) {
  std::vector<Command> commands;
  for (std::uint32_t i = 0; i < 12; ++i) {
    Command command = kernel_in(static_cast<std::uint32_t>(random.below(lanes)));
    if (random.one_in(3)) command.mark = Mark::Signal;
    for (std::uint32_t before = 0; before < i; ++before)
      if (random.one_in(8) && commands[before].lane != command.lane) {
        command.waits.push_back(before);
        commands[before].mark = Mark::Signal;
      }
    commands.push_back(std::move(command));
  }
  return list_of(lanes, std::move(commands));
}

// Whatever runs when a run breaks off is among them, and nothing is that the host saw the end of.
TEST(CommandsInFlight, HaveWhateverWasUnderWayInEveryInterleaving) {
  test::Random random(27);
  std::size_t named = 0, all = 0;
  for (int list_number = 0; list_number < test::rounds(300); ++list_number) {
    const std::uint32_t count = 1 + static_cast<std::uint32_t>(random.below(4));
    const CommandList list = random_list(random, count);
    Lanes lanes(list);
    for (int step = 0; step < 200; ++step) {
      lanes.advance(static_cast<std::uint32_t>(random.below(count)));
      const Positions found = commands_in_flight(list, lanes.progress());
      for (const std::uint32_t running : lanes.running())
        ASSERT_TRUE(std::ranges::binary_search(found, running)) << "list " << list_number << ", step " << step;
      for (const std::uint32_t one : found) ASSERT_NE(lanes.progress().ends[one], Reached::Yes);
      named += found.size();
      all += list.commands.size();
    }
  }
  EXPECT_LT(named, all / 2);  // it does say something
}

}  // namespace
}  // namespace tutti::internal
