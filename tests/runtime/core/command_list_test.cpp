#include "runtime/core/command_list.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "model/transfer/transfer_method.hpp"
#include "sched/tasks/led_set.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"

namespace tutti::internal {
namespace {

using test::Random;
using Lines = std::vector<std::string>;

/// Streams as a file has them, arranged by a planner, as hardware queues take them.
CommandList commands_of(const Batch& batch, std::string_view planner) {
  return make_commands(plan(*find_planner(planner), batch));
}

/// Of each command what it does, its lanes, when its gate opens and which commands, by position, it waits for.
Lines text_of(const Batch& batch, const CommandList& list) {
  constexpr std::string_view kKinds[] = {"copy",     "rows",   "sm copy", "inline",    "staged",
                                         "pageable", "mapped", "kernel",  "host work", "nothing"};
  Lines lines;
  for (const Command& command : list.commands) {
    std::string& line = lines.emplace_back(fmt::format("{} {} on {}", kKinds[static_cast<std::size_t>(command.kind)],
                                                       batch.streams()[command.stream].name, command.lane));
    if (command.last_lane != command.lane) line += fmt::format(" to {}", command.last_lane);
    if (command.gate) line += fmt::format(" at {}", list.gates[*command.gate].count());
    if (!command.waits.empty()) line += " after";
    for (const std::uint32_t before : command.waits) line += fmt::format(" {}", before);
  }
  return lines;
}

Lines names_of_lanes(const Topology& machine, const CommandList& list) {
  Lines names;
  for (const VertexId gpu : list.lanes) names.push_back(machine.vertex(gpu).name);
  return names;
}

/// What a batch on the small machine becomes.
struct Listed {
  explicit Listed(std::string_view streams, std::string_view planner = "all_at_once", Merging merging = Merging::On,
                  const Topology& machine = test::small_machine())
      : batch(test::make_batch(machine, streams, merging)),
        list(commands_of(batch, planner)),
        commands(text_of(batch, list)),
        lanes(names_of_lanes(machine, list)) {}

  Batch batch;
  CommandList list;
  Lines commands, lanes;
};

// ---- by hand. On the small machine n bytes take n ns.

// Up and down are two engines, so two queues: three lanes on two GPUs.
TEST(CommandList, HasALaneForEachQueueOnEachGpu) {
  const Listed it(R"(- {name: up, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 50 ns}}
- {name: down, from: gpu0, to: mem0, size: 2 kB}
- {name: other, from: mem0, to: gpu1, size: 3 kB}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu0", "gpu0", "gpu1"}));
  EXPECT_EQ(it.commands, (Lines{"copy up on 0 at 0", "copy down on 1 at 0", "copy other on 2 at 0", "kernel up on 0"}));
}

TEST(CommandList, PutsMergedStreamsInOneLaneTransfersFirst) {
  const Listed it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 50 ns}}
- {name: b, from: mem0, to: gpu0, size: 2 kB, kernel: {time: 20 ns}}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu0"}));
  EXPECT_EQ(it.commands, (Lines{"copy a on 0 at 0", "copy b on 0", "kernel a on 0", "kernel b on 0"}));
}

// Both are to end together, b after 3000 ns: a starts 2000 ns after b. Set-up of the batch is before both, 200 ns.
TEST(CommandList, OpensGatesByThePlanLessTheSetUpOfTheBatch) {
  const Topology machine =
      test::changed(test::small_machine(), [](MachineSpec& spec) { spec.setup.batch = Duration{200}; });
  const Listed it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB}
- {name: b, from: mem0, to: gpu1, size: 3 kB}
)",
                  "completion_aligned", Merging::On, machine);
  EXPECT_EQ(it.commands, (Lines{"copy b on 0 at 0", "copy a on 1 at 2000"}));
}

TEST(CommandList, LetsAKernelElsewhereWaitForItsData) {
  const Listed it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB, kernel: {on: gpu1, time: 50 ns}}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu0", "gpu1"}));
  EXPECT_EQ(it.commands, (Lines{"copy a on 0 at 0", "kernel a on 1 after 0"}));
}

// What follows on the GPU where it ends comes after it in the lane; elsewhere it waits.
TEST(CommandList, StagesOverTwoLanes) {
  const Listed it(R"(- {name: s, from: gpu0, to: gpu2, size: 2 kB, kernel: {time: 50 ns}}
- {name: down, from: gpu0, to: mem0, size: 1 kB}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu0", "gpu2"}));
  EXPECT_EQ(it.commands, (Lines{"staged s on 0 to 1 at 0", "copy down on 0 after 0", "kernel s on 1 after 1"}));
}

// An engine has one lane, whichever queue its copies are of.
TEST(CommandList, StagesBehindWhatFillsItsGpuBefore) {
  const Listed it(R"(- {name: up, from: mem0, to: gpu2, size: 1 kB}
- {name: s, from: gpu0, to: gpu2, size: 2 kB, kernel: {time: 50 ns}}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu2", "gpu0", "gpu2"}));
  EXPECT_EQ(it.commands, (Lines{"copy up on 0 at 0", "staged s on 1 to 0 at 0 after 0", "kernel s on 2 after 1"}));
}

// The engine of a peer copy is its source's; it runs there.
TEST(CommandList, CopiesBetweenPeersWhereTheyStart) {
  const Listed it(R"(- {name: p, from: gpu1, to: gpu0, size: 1 kB, kernel: {time: 50 ns}}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu1", "gpu0"}));
  EXPECT_EQ(it.commands, (Lines{"copy p on 0 at 0", "kernel p on 1 after 0"}));
}

// k has gpu0 from 0 to 5000, then a's kernel, whose data is there at 1000, then b's, there at 3000: in one lane.
TEST(CommandList, OrdersKernelsOfOneGpuAsPlanned) {
  const Listed it(R"(- {name: b, from: mem0, to: gpu1, size: 3 kB, kernel: {on: gpu0, time: 50 ns}}
- {name: a, from: mem0, to: gpu0, size: 1 kB, kernel: {time: 50 ns}}
- {name: k, kernel: {on: gpu0, time: 5 us}}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu0", "gpu1", "gpu0"}));
  EXPECT_EQ(it.commands, (Lines{"copy a on 0 at 0", "copy b on 1 at 0", "kernel k on 2 at 0", "kernel a on 2 after 0",
                                "kernel b on 2 after 1"}));
}

// Into gpu0 come a from 0 to 1000, b to 3000, then the peer copy.
TEST(CommandList, KeepsStreamsOfOneEngineApartWithoutMerging) {
  const Listed it(R"(- {name: a, from: mem0, to: gpu0, size: 1 kB}
- {name: b, from: mem0, to: gpu0, size: 2 kB}
- {name: c, from: mem0, to: gpu1, size: 1 kB}
- {name: peer, from: gpu1, to: gpu0, size: 1 kB}
)",
                  "all_at_once", Merging::Off);
  EXPECT_EQ(it.lanes, (Lines{"gpu1", "gpu0", "gpu1", "gpu0"}));
  EXPECT_EQ(it.commands,
            (Lines{"copy c on 0 at 0", "copy a on 1 at 0", "copy peer on 2 at 0", "copy b on 3 at 0 after 1"}));
}

TEST(CommandList, LeavesNothingToDoOfZeroBytes) {
  const Listed it(R"(- {name: z, from: mem0, to: gpu0, size: 0, kernel: {time: 50 ns}}
- {name: staged, from: gpu1, to: gpu2, size: 0}
)");
  EXPECT_EQ(it.commands, (Lines{"nothing z on 0 at 0", "nothing staged on 1 at 0", "kernel z on 0"}));
}

// The last kernel has no data, and goes to the first GPU; of what starts together, the shortest comes first.
TEST(CommandList, DoesHostWorkWhereItsDataComesFrom) {
  const Listed it(R"(- {name: down, from: gpu1, to: mem0, size: 1 kB, kernel: {on: cpu0, time: 50 ns}}
- {name: staged, from: gpu0, to: gpu2, size: 1 kB, kernel: {on: cpu0, time: 50 ns}}
- {name: up, from: mem0, to: gpu1, size: 4 kB, kernel: {on: cpu0, time: 50 ns}}
- {name: alone, kernel: {on: cpu0, time: 50 ns}}
)");
  EXPECT_EQ(it.lanes, (Lines{"gpu0", "gpu1", "gpu0", "gpu2", "gpu1"}));
  EXPECT_EQ(it.commands,
            (Lines{"host work alone on 0 at 0", "copy down on 1 at 0", "staged staged on 2 to 3 at 0",
                   "copy up on 4 at 0", "host work down on 1", "host work staged on 2 after 2", "host work up on 4"}));
}

// a takes 33.3 ns. Where it has arrived, z, of 0 bytes, begins and ends, in the plan at 34 (ends are rounded up), and
// z's kernel begins, in the plan at 33.
TEST(CommandList, KeepsTheOrderOfAQueueWherePlansAreRounded) {
  const Topology machine = test::star(6, {3});
  const Listed it(R"(- {name: a, from: mem0, to: gpu0, size: 100 B}
- {name: z, from: mem0, to: gpu0, size: 0, kernel: {time: 10 ns}}
)",
                  "all_at_once", Merging::On, machine);
  EXPECT_EQ(it.commands, (Lines{"copy a on 0 at 0", "nothing z on 0", "kernel z on 0"}));
}

// b's data is there at 33 ns, and its kernel, of no time, goes before a's of 1000 ns, whose data is there at 33.3.
TEST(CommandList, KeepsTheOrderOfKernelsWithinOneNanosecond) {
  const Topology machine = test::star(6, {3, 3});
  const Listed it(R"(- {name: a, from: mem0, to: gpu0, size: 100 B, kernel: {time: 1 us}}
- {name: b, from: mem0, to: gpu1, size: 99 B, kernel: {on: gpu0, time: 0}}
)",
                  "all_at_once", Merging::On, machine);
  EXPECT_EQ(it.commands,
            (Lines{"copy b on 0 at 0", "copy a on 1 at 0", "kernel b on 2 after 0", "kernel a on 2 after 1"}));
}

// ---- in chunks

struct Chunk {
  std::string stream;
  std::int64_t gate = 0;
  std::size_t offset = 0, bytes = 0;
  bool opens = false, closes = false;

  friend bool operator==(const Chunk&, const Chunk&) = default;
};

void PrintTo(const Chunk& chunk, std::ostream* out) {
  *out << fmt::format("{}: {} B from {} at {} ns{}{}", chunk.stream, chunk.bytes, chunk.offset, chunk.gate,
                      chunk.opens ? ", opens" : "", chunk.closes ? ", closes" : "");
}

std::vector<Chunk> chunks_of(const Batch& batch, const CommandList& list) {
  std::vector<Chunk> chunks;
  for (const Command& command : list.commands)
    chunks.push_back({batch.streams()[command.stream].name, list.gates[command.gate.value()].count(), command.offset,
                      command.bytes, command.opens, command.closes});
  return chunks;
}

// Each keeps half of the link, 0.5 byte/ns: a runs from 0 to 5000, b from 5000 to 7000.
TEST(PacedCommandList, CutsTransfersAtTheirPlannedInstants) {
  const Topology machine = test::small_machine();
  const Batch batch = test::make_batch(machine, R"(- {name: a, from: mem0, to: gpu0, size: 2500 B}
- {name: b, from: mem0, to: gpu0, size: 1 kB}
)");
  const CommandList list = commands_of(batch, "bandwidth_allocation");
  EXPECT_EQ(chunks_of(batch, list), (std::vector<Chunk>{{"a", 0, 0, 1000, true, false},
                                                        {"a", 2000, 1000, 1000, false, false},
                                                        {"a", 4000, 2000, 500, false, true},
                                                        {"b", 5000, 0, 1000, true, true}}));
  EXPECT_EQ(list.lanes.size(), 1U);
}

// The same behind 200 ns for the batch, which opening a gate takes, and 100 ns for each transfer, which starting a copy
// takes: a's data flows from 300 to 5300, b's from 5400 to 7400. Byte 1000 of a is due at 2300, so its chunk is let go
// 300 ns earlier.
TEST(PacedCommandList, LetsPiecesGoAheadOfTheirDataByBothSetUps) {
  const Topology machine = test::changed(test::small_machine(), [](MachineSpec& spec) {
    spec.setup = {Duration{200}, Duration{100}};
  });
  const Batch batch = test::make_batch(machine, R"(- {name: a, from: mem0, to: gpu0, size: 2500 B}
- {name: b, from: mem0, to: gpu0, size: 1 kB}
)");
  EXPECT_EQ(chunks_of(batch, commands_of(batch, "bandwidth_allocation")),
            (std::vector<Chunk>{{"a", 0, 0, 1000, true, false},
                                {"a", 2000, 1000, 1000, false, false},
                                {"a", 4000, 2000, 500, false, true},
                                {"b", 5100, 0, 1000, true, true}}));
}

// 500 bytes until 1000, 1500 bytes in the 1000 ns after it: byte 1000 is due a third of them later, byte 500 with the
// second segment.
TEST(PacedCommandList, FollowsThePlanThroughItsSegments) {
  const Topology machine = test::small_machine();
  const Batch batch = test::make_batch(machine, "- {name: a, from: mem0, to: gpu0, size: 2 kB}\n");
  ExecutionPlan planned = plan(*find_planner("bandwidth_allocation"), batch);
  Timeline& timeline = planned.timeline;
  timeline.latency = timeline.streams[0].transfer->end = Duration{2000};
  timeline.streams[0].transfer->segments = {{Duration{0}, Duration{1000}, Bytes{500}},
                                            {Duration{1000}, Duration{2000}, Bytes{1500}}};
  const auto gates = [&](std::int64_t pace) {
    std::vector<std::int64_t> found;
    for (const Chunk& chunk : chunks_of(batch, make_commands(test::paced(planned, Bytes{pace}))))
      found.push_back(chunk.gate);
    return found;
  };
  EXPECT_EQ(gates(1000), (std::vector<std::int64_t>{0, 1333}));
  EXPECT_EQ(gates(500), (std::vector<std::int64_t>{0, 1000, 1333, 1666}));
  EXPECT_EQ(gates(2000), (std::vector<std::int64_t>{0}));
}

// Without staging chunks, transfers with a fixed share are still paced, by 8 MiB: 20 MB are 8 MiB, 8 MiB and the rest.
TEST(PacedCommandList, IsPacedWhereStagedCopiesAreNotCut) {
  const Topology machine =
      test::changed(test::small_machine(), [](MachineSpec& spec) { spec.staging.chunk = Bytes{0}; });
  const Batch batch = test::make_batch(machine, "- {name: a, from: mem0, to: gpu0, size: 20 MB}\n");
  EXPECT_EQ(chunks_of(batch, commands_of(batch, "bandwidth_allocation")),
            (std::vector<Chunk>{{"a", 0, 0, 8388608, true, false},
                                {"a", 8388608, 8388608, 8388608, false, false},
                                {"a", 16777216, 16777216, 3222784, false, true}}));
}

TEST(PacedCommandList, LeavesStagedCopiesAndKernelsWhole) {
  const Topology machine = test::small_machine();
  const Batch batch = test::make_batch(machine, R"(- {name: s, from: gpu0, to: gpu2, size: 2 kB}
- {name: k, from: mem0, to: gpu1, size: 1500 B, kernel: {time: 1 us}}
)");
  EXPECT_EQ(text_of(batch, commands_of(batch, "bandwidth_allocation")),
            (Lines{"copy k on 0 at 0", "staged s on 1 to 2 at 0", "copy k on 0 at 1000", "kernel k on 0"}));
}

// Whoever opens gates by enqueueing goes through the list in its order.
TEST(PacedCommandList, HasPiecesOfAllLanesInTheOrderOfTime) {
  const Topology machine = test::small_machine();
  const Batch batch = test::make_batch(machine, R"(- {name: a, from: mem0, to: gpu0, size: 2 kB}
- {name: b, from: mem0, to: gpu1, size: 2500 B}
)");
  EXPECT_EQ(text_of(batch, commands_of(batch, "bandwidth_allocation")),
            (Lines{"copy a on 0 at 0", "copy b on 1 at 0", "copy a on 0 at 1000", "copy b on 1 at 1000",
                   "copy b on 1 at 2000"}));
}

// ---- whatever the batch

/// What is true of every list, checked on one batch and plan.
class Checker {
 public:
  Checker(const ExecutionPlan& plan, Bytes pace)
      : machine_(plan.machine()),
        batch_(plan.batch),
        plan_(plan.timeline),
        paced_(pace.count > 0),
        list_(make_commands(test::paced(plan, pace))),
        queue_of_(queues()) {}

  void waits_are_for_earlier_commands_in_other_lanes() const {
    for (std::uint32_t i = 0; i < list_.commands.size(); ++i) {
      for (const std::uint32_t before : list_.commands[i].waits) {
        EXPECT_LT(before, i);
        EXPECT_NE(list_.commands[before].last_lane, list_.commands[i].lane);
      }
    }
  }

  void every_byte_and_kernel_comes_once() const {
    std::vector<std::int64_t> placed(batch_.streams().size(), 0);
    std::vector<int> opened(batch_.streams().size(), 0), closed = opened, kernels = opened;
    for (const Command& command : list_.commands) {
      if (command.is_kernel()) {
        ++kernels[command.stream];
        EXPECT_EQ(closed[command.stream], batch_.streams()[command.stream].transfer ? 1 : 0);
        continue;
      }
      EXPECT_EQ(command.offset, static_cast<std::size_t>(placed[command.stream]));
      EXPECT_EQ(command.opens, command.offset == 0);
      placed[command.stream] += static_cast<std::int64_t>(command.bytes);
      opened[command.stream] += command.opens ? 1 : 0;
      closed[command.stream] += command.closes ? 1 : 0;
    }
    for (std::size_t s = 0; s < placed.size(); ++s) {
      const CommandStream& stream = batch_.streams()[s];
      EXPECT_EQ(kernels[s], stream.kernel ? 1 : 0) << stream.name;
      EXPECT_EQ(opened[s], stream.transfer ? 1 : 0) << stream.name;
      EXPECT_EQ(closed[s], stream.transfer ? 1 : 0) << stream.name;
      EXPECT_EQ(placed[s], stream.transfer ? stream.transfer->size.count : 0) << stream.name;
    }
  }

  void queues_keep_their_order() const {
    std::vector<std::uint32_t> place(batch_.streams().size());
    for (std::uint32_t i = 0; i < place.size(); ++i) place[batch_.order().empty() ? i : batch_.order()[i]] = i;
    std::map<std::uint32_t, std::pair<bool, std::uint32_t>> last;
    for (const Command& command : list_.commands) {
      const std::pair here(command.is_kernel(), place[command.stream]);
      const auto [before, first] = last.try_emplace(queue_of_[command.stream], here);
      EXPECT_EQ(command.gate.has_value(), first || (paced_ && may_be_cut(command)));
      EXPECT_LE(before->second, here);
      before->second = here;
    }
  }

  /// A kernel behind a paced copy by a kernel has an earlier gate than the copy's last chunks, and waits for its turn.
  void gates_of_a_lane_open_in_its_order() const {
    std::vector<Duration> opened(list_.lanes.size(), Duration{0});
    std::set<std::uint32_t> used;
    for (const Command& command : list_.commands) {
      if (!command.gate) continue;
      EXPECT_TRUE(used.insert(*command.gate).second) << "a gate holds one command";
      const Duration gate = list_.gates[*command.gate];
      EXPECT_GE(gate, opened[command.lane]);
      if (command.opens || command.kind != Command::Kind::SmCopy) opened[command.lane] = gate;
    }
    EXPECT_EQ(used.size(), list_.gates.size());
  }

  /// Lets queues that know nothing of the plan but the times that things take run the list: what must not overlap does
  /// not, and everything starts when it was planned. The plan's times are up to 1 ns too long, those of chunks 2 ns, so
  /// whatever comes behind others may be late by as much for each of them.
  void queues_run_it_as_planned() const {
    struct Instant {
      Duration at{}, late{};
    };
    const auto later = [](Instant a, Instant b) { return Instant{std::max(a.at, b.at), std::max(a.late, b.late)}; };
    std::vector<Instant> ends(list_.commands.size()), free(list_.lanes.size());
    std::map<std::string, Duration> held_until;
    for (std::uint32_t i = 0; i < list_.commands.size(); ++i) {
      const Command& command = list_.commands[i];
      Instant start = later(free[command.lane], free[command.last_lane]);
      if (command.gate) start.at = std::max(start.at, list_.gates[*command.gate] + plan_.setup);
      for (const std::uint32_t before : command.waits) start = later(start, ends[before]);
      const auto [planned, length] = planned_of(command);
      const Duration rounding{paced_ ? 2 : 1};
      EXPECT_LE(start.at, planned + start.late + (paced_ ? rounding : Duration{0})) << describe(command);
      EXPECT_GE(start.at, planned - rounding) << describe(command);
      const Instant end{start.at + length, start.late + rounding};
      ends[i] = free[command.lane] = free[command.last_lane] = end;
      for (const std::string& lock : locks_of(command)) {
        Duration& until = held_until[lock];
        EXPECT_LE(until, start.at) << describe(command) << " on " << lock;
        until = end.at;
      }
    }
  }

  /// When the gate of a chunk opens and both set-ups are over, all bytes before it are there, as planned, and no more.
  void chunks_follow_the_plan() const {
    for (const Command& command : list_.commands) {
      const CopyCost& copy = machine_.setup().transfer.of(batch_.work()[command.stream].route);
      const Duration gate =
          command.offset > 0 ? machine_.setup().gate.nominal : Duration{0};  // of a chunk that follows
      const Duration setup = plan_.setup + gate + copy.each.nominal;
      if (!may_be_cut(command) || (command.offset == 0 && opens_queue(command))) continue;
      const TransferInterval& planned = *plan_.streams[command.stream].transfer;
      const Duration at = list_.gates[command.gate.value()] + setup;
      // The gate is rounded by 1 ns, and the plan's set-up by another; where bytes are few, all are in one segment.
      EXPECT_LE(arrived(planned, at - Duration{2}), static_cast<double>(command.offset) + 1) << describe(command);
      EXPECT_GE(arrived(planned, at + Duration{2}), static_cast<double>(command.offset) - 1) << describe(command);
    }
  }

 private:
  struct Planned {
    Duration start, length;
  };

  /// Copies but staged ones and those of rows.
  static bool may_be_cut(const Command& command) {
    using Kind = Command::Kind;
    return command.kind == Kind::Copy || command.kind == Kind::SmCopy || command.kind == Kind::Inline ||
           command.kind == Kind::Mapped;
  }

  [[nodiscard]] std::string describe(const Command& command) const {
    return fmt::format("{} of {}", command.is_kernel() ? "kernel" : "transfer", batch_.streams()[command.stream].name);
  }

  [[nodiscard]] Planned planned_of(const Command& command) const {
    const StreamTimeline& line = plan_.streams[command.stream];
    if (command.is_kernel()) return {line.kernel->start, line.kernel->end - line.kernel->start};
    const Duration start = command.opens ? line.transfer->start : arrival(*line.transfer, command.offset);
    const Duration end = command.closes ? line.transfer->end : arrival(*line.transfer, command.offset + command.bytes);
    return {start, end - start};
  }

  [[nodiscard]] std::set<std::string> locks_of(const Command& command) const {
    const CommandStream& stream = batch_.streams()[command.stream];
    if (command.kind == Command::Kind::HostWork) return {};
    if (command.is_kernel()) return {machine_.vertex(stream.kernel->on).name};
    const auto [name, transfer, kernel, place, copied] = stream;
    if (command.kind == Command::Kind::SmCopy || command.kind == Command::Kind::Inline)
      return {machine_.vertex(goes_up(machine_, *transfer).value() ? transfer->to : transfer->from).name};
    const auto engines = find_route(machine_, *transfer).engines;
    const std::uint32_t last_hop = batch_.work()[command.stream].last_hop;
    std::set<std::string> locks{fmt::format("engine {}", engines[0].value), fmt::format("engine {}", engines[1].value)};
    if (last_hop != kNone) locks.insert(fmt::format("last hop {}", last_hop));
    return locks;
  }

  [[nodiscard]] bool opens_queue(const Command& command) const { return queue_of_[command.stream] == command.stream; }

  /// [streams] the first stream of its queue: of those that one engine issues; merged transitively of those that share
  /// an engine, over others too.
  [[nodiscard]] std::vector<std::uint32_t> queues() const {
    std::vector<std::uint32_t> queue(batch_.streams().size());
    std::iota(queue.begin(), queue.end(), 0U);
    if (batch_.merging() == Merging::Off) return queue;
    const auto engines_of = [&](std::size_t s) {
      std::set<EngineId> engines;
      if (batch_.streams()[s].transfer)
        for (const EngineId engine : batch_.work()[s].engines) engines.insert(engine);
      return engines;
    };
    if (batch_.merging() == Merging::On) {
      std::map<EngineId, std::uint32_t> first;
      for (std::uint32_t i = 0; i < queue.size(); ++i) {
        const std::uint32_t s = batch_.order().empty() ? i : batch_.order()[i];
        if (batch_.streams()[s].transfer) queue[s] = first.emplace(batch_.work()[s].engines[0], s).first->second;
      }
      return queue;
    }
    for (std::size_t round = 0; round < queue.size(); ++round) {
      for (std::size_t a = 0; a < queue.size(); ++a) {
        for (std::size_t b = 0; b < queue.size(); ++b) {
          const auto of_a = engines_of(a), of_b = engines_of(b);
          const bool shared = std::any_of(of_a.begin(), of_a.end(), [&](EngineId e) { return of_b.contains(e); });
          if (shared) queue[a] = queue[b] = std::min(queue[a], queue[b]);
        }
      }
    }
    return queue;
  }

  /// The first instant at which so many bytes have arrived, as planned.
  static Duration arrival(const TransferInterval& planned, std::size_t bytes) {
    Duration early = planned.start, late = planned.end;
    while (late - early > Duration{1}) {
      const Duration middle = early + (late - early) / 2;
      (arrived(planned, middle) < static_cast<double>(bytes) ? early : late) = middle;
    }
    return late;
  }

  /// Bytes that have arrived at an instant, as planned.
  static double arrived(const TransferInterval& planned, Duration at) {
    double bytes = 0;
    for (const Segment& segment : planned.segments) {
      const auto size = static_cast<double>(segment.bytes.count);
      if (at >= segment.end) {
        bytes += size;
      } else if (at > segment.start) {
        bytes += size * static_cast<double>((at - segment.start).count()) /
                 static_cast<double>((segment.end - segment.start).count());
      }
    }
    return bytes;
  }

  const Topology& machine_;
  const Batch& batch_;
  const Timeline& plan_;
  bool paced_;
  CommandList list_;
  std::vector<std::uint32_t> queue_of_;
};

void check(const Batch& batch, const Planner& planner, Bytes pace) {
  const ExecutionPlan planned = plan(planner, batch);
  for (const Bytes chunk : {Bytes{0}, pace}) {
    SCOPED_TRACE(
        fmt::format("{}, pieces of {}\n{}", planner.name, chunk.count, test::describe(batch.machine(), batch)));
    const Checker checker(planned, chunk);
    checker.waits_are_for_earlier_commands_in_other_lanes();
    checker.every_byte_and_kernel_comes_once();
    checker.queues_keep_their_order();
    checker.gates_of_a_lane_open_in_its_order();
    checker.queues_run_it_as_planned();
    if (chunk.count > 0) checker.chunks_follow_the_plan();
  }
}

TEST(CommandListProperty, QueuesDoWhatWasPlannedOnRandomMachines) {
  for (std::uint64_t seed = 0; seed < test::rounds(150U) && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Topology machine = test::random_machine(seed);
    const Batch batch = test::random_batch(machine, seed + 1000);
    for (const Planner& planner : planners()) check(batch, planner, Bytes{1'000'000});
  }
}

/// Of a few bytes and nanoseconds, so that much of it falls together.
CommandStream tiny_stream(const Topology& machine, Random& random, std::string name) {
  const auto at = [&](const char* place) { return machine.find_vertex(place).value(); };
  const VertexId places[] = {at("mem0"), at("gpu0"), at("gpu1"), at("gpu2")};
  const std::size_t from = random.below(4);
  const std::size_t to = (from + 1 + random.below(3)) % 4;
  CommandStream stream{std::move(name), {}, {}, {}};
  if (!random.one_in(6))
    stream.transfer = Transfer{places[from], places[to], Bytes{random.one_in(4) ? 0 : random.between(1, 60)}, {}, {}};
  if (!stream.transfer || random.one_in(2)) {
    const Duration time{random.one_in(3) ? 0 : random.between(1, 30)};
    stream.kernel = Kernel{random.one_in(6) ? at("cpu0") : places[1 + random.below(3)], time, time, "spin"};
  }
  return stream;
}

// Bounds of what a GPU leads count lanes before there is a plan; no batch has more. The host's work and staged copies,
// which no GPU leads, may have lanes elsewhere.
TEST(CommandListProperty, HasNoMoreLanesThanAreCounted) {
  int batches = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Topology machine = test::random_machine(seed);
    const Batch batch = test::random_batch(machine, seed + 5000);
    const CommandList list = commands_of(batch, "completion_aligned");
    const bool can_be_led = std::ranges::none_of(list.commands, [](const Command& command) {
      return command.kind == Command::Kind::Staged || command.kind == Command::Kind::HostWork;
    });
    if (!can_be_led) continue;
    ++batches;
    for (const VertexId gpu : machine.gpus())
      EXPECT_LE(static_cast<std::size_t>(std::ranges::count(list.lanes, gpu)), lanes_of(batch, gpu))
          << "seed " << seed << "\n"
          << test::describe(machine, batch);
  }
  EXPECT_GT(batches, 60);
}

TEST(CommandListProperty, QueuesDoWhatWasPlannedWithinNanoseconds) {
  for (std::uint64_t seed = 0; seed < test::rounds(600U) && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const auto cost = [&] { return Cost{Duration{random.between(0, 3)}}; };
    const SetupTimes setup{cost(), cost().nominal, cost(), cost(), cost()};
    const Topology machine =
        test::changed(test::small_machine(seed % 2 == 0 ? "8 GB/s" : "1.3 GB/s"), [&](MachineSpec& spec) {
          spec.setup = setup;
          spec.staging.chunk = Bytes{random.between(1, 30)};
        });
    std::vector<CommandStream> streams;
    for (int s = random.between(1, 6); s > 0; --s)
      streams.push_back(tiny_stream(machine, random, fmt::format("s{}", s)));
    const Batch batch = Batch::make(machine, streams, random.one_in(3) ? Merging::Off : Merging::On).value();
    for (const Planner& planner : planners()) check(batch, planner, Bytes{random.between(1, 20)});
  }
}

}  // namespace
}  // namespace tutti::internal
