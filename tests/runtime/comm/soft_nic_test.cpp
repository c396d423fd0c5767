#include "runtime/comm/soft_nic.hpp"

#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "runtime/comm/ring_writer.hpp"

namespace tutti::internal::comm {
namespace {

constexpr Duration ns(std::int64_t count) { return Duration{count}; }

/// Gives memory to the NIC as a region of a rank.
void register_region(const Fabric& fabric, int rank, Word region, std::byte* memory, std::size_t bytes) {
  Region& entry = fabric.board(rank).regions[region];
  entry.address = reinterpret_cast<std::uintptr_t>(memory);
  entry.bytes = bytes;
  set_word(entry.registered, 1);
}

/// Two ranks with a buffer each, on virtual time.
class SoftNicTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kBytes = 4096;

  void start(const NetworkOptions& options) {
    nic = std::make_unique<SoftNic>(memory.fabric(), mover, options);
    world.add(*nic);
    for (int rank = 0; rank < 2; ++rank) {
      auto& buffer = buffers[static_cast<std::size_t>(rank)];
      buffer.assign(kBytes, std::byte{0});
      register_region(memory.fabric(), rank, 0, buffer.data(), kBytes);
    }
    std::iota(reinterpret_cast<std::uint8_t*>(buffers[0].data()),
              reinterpret_cast<std::uint8_t*>(buffers[0].data()) + kBytes, std::uint8_t{1});
  }
  std::uint64_t send(std::uint64_t bytes, std::uint64_t offset = 0, Word region = 0) {
    const auto number = sends.write({.kind = WorkKind::Send, .local = {region, 0, offset, bytes}});
    EXPECT_TRUE(number.has_value()) << number.error().message;
    sends.ring(*number);
    return *number;
  }
  void post(std::uint64_t bytes, std::uint64_t offset = 0) {
    const auto number = receives.write({.kind = WorkKind::Receive, .local = {0, 0, offset, bytes}});
    ASSERT_TRUE(number.has_value());
    receives.ring(*number);
  }
  /// Instant at which the next send has ended.
  Duration end_of_next(Outcome outcome) {
    std::optional<Ended> end;
    EXPECT_TRUE(world.until([&] { return (end = sends.clean()).has_value(); }, kNever));
    EXPECT_EQ(end ? end->outcome : Outcome::Aborted, outcome);
    return world.now();
  }

  FabricMemory memory{2, 1};
  HostMover mover;
  std::unique_ptr<SoftNic> nic;
  VirtualWorld world;
  std::array<std::vector<std::byte>, 2> buffers;
  RingWriter sends{memory.fabric().endpoint(0, 1, 0).send, "send ring of rank 0 to rank 1"};
  RingWriter receives{memory.fabric().endpoint(1, 0, 0).receive, "receive ring of rank 1 from rank 0"};
};

// 100 B at 10 byte/ns are on the line for 10 ns, and arrive 1000 ns behind that: at 1010. The second leaves when the
// line is free, at 10, and takes 200 / 10 = 20 ns: 10 + 20 + 1000 = 1030.
TEST_F(SoftNicTest, MovesBytesAtItsRateAndLatency) {
  start({.latency = ns(1000), .rate = 10});
  post(100);
  post(200, 100);
  send(100);
  send(200, 100);
  EXPECT_EQ(end_of_next(Outcome::Ok), ns(1010));
  EXPECT_EQ(end_of_next(Outcome::Ok), ns(1030));
  EXPECT_EQ(std::memcmp(buffers[0].data(), buffers[1].data(), 300), 0);
  EXPECT_EQ(buffers[1][300], std::byte{0});
  EXPECT_EQ(receives.clean()->bytes, 100U);
  EXPECT_EQ(receives.clean()->bytes, 200U);
  EXPECT_FALSE(receives.clean().has_value());
}

// Nothing is taken before the doorbell, however long one waits.
TEST_F(SoftNicTest, TakesNothingBeforeTheDoorbellRings) {
  start({});
  post(8);
  const auto number = sends.write({.kind = WorkKind::Send, .local = {0, 0, 0, 8}});
  world.run(ns(1'000'000));
  EXPECT_FALSE(sends.clean().has_value());
  sends.ring(*number);
  EXPECT_EQ(end_of_next(Outcome::Ok), ns(1'000'000));
}

// Sent at 0, arrived at 100; the receive is posted at 700.
TEST_F(SoftNicTest, AMessageWaitsForItsReceive) {
  start({.latency = ns(100), .receive_limit = ns(5000)});
  send(8);
  world.run(ns(700));
  EXPECT_FALSE(sends.clean().has_value());
  post(8);
  EXPECT_EQ(end_of_next(Outcome::Ok), ns(700));
}

// Arrived at 100, and given up 5000 ns later. The receive that comes then is for the next message.
TEST_F(SoftNicTest, ASendWithoutReceiveEndsAtTheLimit) {
  start({.latency = ns(100), .receive_limit = ns(5000)});
  send(8);
  EXPECT_EQ(end_of_next(Outcome::NoReceive), ns(5100));
  post(8);
  send(8);
  EXPECT_EQ(end_of_next(Outcome::Ok), ns(5200));
}

TEST_F(SoftNicTest, BothSidesAreToldOfAMessageThatIsTooLong) {
  start({});
  post(7);
  send(8);
  static_cast<void>(end_of_next(Outcome::TooLong));
  EXPECT_EQ(receives.clean()->outcome, Outcome::TooLong);
  EXPECT_EQ(buffers[1][0], std::byte{0});
}

TEST_F(SoftNicTest, PiecesOutsideOfBuffersAreRefused) {
  start({});
  for (int i = 0; i < 4; ++i) post(kBytes);
  send(8, kBytes - 7);
  send(8, ~std::uint64_t{0} - 3);
  send(8, 0, 1);             // a region that is none
  send(8, 0, kMostRegions);  // a number that no region has
  for (int i = 0; i < 4; ++i) static_cast<void>(end_of_next(Outcome::OutOfBounds));
}

// The word is set behind the bytes: at 0 neither is there, at 1000 both are.
TEST_F(SoftNicTest, PutsBytesAndThenAWord) {
  start({.latency = ns(1000)});
  const auto number = sends.write({.kind = WorkKind::Put,
                                   .word = kMostRanks,
                                   .value = 7,
                                   .local = {0, 0, 0, 64},
                                   .target_region = 0,
                                   .target_offset = 128});
  sends.ring(*number);
  const Word& word = memory.fabric().board(1).words[kMostRanks];
  ASSERT_TRUE(world.until([&] { return look_at(word) == 7; }, kNever));
  EXPECT_EQ(world.now(), ns(1000));
  EXPECT_EQ(std::memcmp(buffers[0].data(), buffers[1].data() + 128, 64), 0);
}

// Arrived at 1000; rank 1 registers its buffer 5 at 1700.
TEST_F(SoftNicTest, APutWaitsUntilItsBufferIsRegistered) {
  start({.latency = ns(1000), .receive_limit = ns(5000)});
  const WorkEntry put{
      .kind = WorkKind::Put, .word = kMostRanks, .value = 1, .local = {0, 0, 0, 64}, .target_region = 5};
  sends.ring(*sends.write(put));
  world.run(ns(1700));
  EXPECT_EQ(look_at(memory.fabric().board(1).words[kMostRanks]), 0U);
  register_region(memory.fabric(), 1, 5, buffers[1].data(), kBytes);
  EXPECT_EQ(end_of_next(Outcome::Ok), ns(1700));
  EXPECT_EQ(std::memcmp(buffers[0].data(), buffers[1].data(), 64), 0);
  // At 1700 + 1000 + 5000 a buffer that never comes is given up.
  sends.ring(*sends.write({.kind = WorkKind::Put, .local = {0, 0, 0, 64}, .target_region = 6}));
  EXPECT_EQ(end_of_next(Outcome::OutOfBounds), ns(7700));
}

// 2000 messages through 512 places: each place is used 3 or 4 times.
TEST_F(SoftNicTest, RingsWrapAround) {
  start({.latency = ns(10)});
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::uint64_t from = i % (kBytes / 8) * 8;
    post(8, (i * 24) % kBytes);
    EXPECT_EQ(send(8, from), i);
    static_cast<void>(end_of_next(Outcome::Ok));
    ASSERT_EQ(receives.clean()->number, i);
    ASSERT_EQ(std::memcmp(buffers[0].data() + from, buffers[1].data() + (i * 24) % kBytes, 8), 0) << i;
  }
}

// 512 entries fit; the next is refused until one is cleaned up, whether it has ended or not.
TEST_F(SoftNicTest, AFullRingRefusesWithASentence) {
  start({});
  for (std::uint64_t i = 0; i < kRingDepth; ++i) send(0);
  const auto refused = sends.write({});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(
      refused.error().message,
      "the send ring of rank 0 to rank 1 is full: 512 entries are not cleaned up; wait on the host for the oldest "
      "before the next one is enqueued");
  post(0);
  static_cast<void>(end_of_next(Outcome::Ok));
  EXPECT_TRUE(sends.write({}).has_value());
}

// A rank that gives up ends what is under way, also what waits for a receive that does not come.
TEST_F(SoftNicTest, ARankThatGivesUpEndsAllThatIsUnderWay) {
  start({.latency = ns(100)});
  send(8);
  send(8);
  world.run(ns(50));
  set_word(memory.fabric().board(1).aborted, 1);
  EXPECT_EQ(end_of_next(Outcome::Aborted), ns(50));
  EXPECT_EQ(end_of_next(Outcome::Aborted), ns(50));
}

// A word that arrives behind the end of its rank must not hold again what waits for a later value.
TEST(Fabric, AWordOfARankThatGaveUpHoldsNobody) {
  const FabricMemory memory(2, 1);
  const Fabric fabric = memory.fabric();
  fabric.set_board_word(1, 3, 7);
  EXPECT_EQ(fabric.board(1).words[3], 7U);
  fabric.give_up(1, "the line stands");
  fabric.set_board_word(1, 3, 8);
  EXPECT_TRUE(reached(fabric.board(1).words[3], 1000));
}

TEST(Fabric, OpensWhatWasBegunAndNothingElse) {
  const FabricMemory memory(3, 2);
  const auto opened = Fabric::open(memory.fabric().memory());
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->ranks(), 3);
  EXPECT_EQ(opened->lanes(), 2);
  EXPECT_EQ(&opened->endpoint(2, 1, 1), &memory.fabric().endpoint(2, 1, 1));
  EXPECT_FALSE(Fabric::open(memory.fabric().memory().first(1000)).has_value());
  alignas(64) std::array<std::byte, 256> zeros{};
  EXPECT_FALSE(Fabric::open(zeros).has_value());
}

// ---- Many messages, with faults

/// A rank's buffer for one connection: a slot for each place of a ring.
constexpr std::size_t kSlot = 64;
using Slots = std::vector<std::byte>;

/// Bytes of message `i` of a connection.
std::uint64_t length_of(std::uint64_t connection, std::uint64_t i) {
  return 1 + Random(connection * 1'000'003 + i).next() % kSlot;
}
void fill(std::byte* slot, std::uint64_t connection, std::uint64_t i, std::uint64_t bytes) {
  Random random(connection * 7'000'003 + i * 11);
  for (std::uint64_t done = 0; done < bytes; done += 8) {
    const std::uint64_t drawn = random.next();
    std::memcpy(slot + done, &drawn, std::min<std::uint64_t>(8, bytes - done));
  }
}

/// One direction between two ranks, of which the test is both hosts.
struct Flow {
  std::uint64_t id;
  RingWriter sends, receives;
  Slots from = Slots(kRingDepth * kSlot), to = Slots(kRingDepth * kSlot);
  std::vector<Outcome> sent = {}, received = {};
};

struct Tally {
  std::uint64_t ok = 0, failed = 0, overtaken = 0;
};

/// All connections of some ranks, each with as many messages as fit into its rings.
class ManyMessages {
 public:
  ManyMessages(const Fabric& fabric, std::uint64_t messages) : messages_(messages) {
    for (int from = 0; from < fabric.ranks(); ++from)
      for (int to = 0; to < fabric.ranks(); ++to)
        if (from != to) add(fabric, from, to);
    left_ = 2 * messages * flows_.size();
  }
  /// Enqueues and cleans up once. @return whether all messages have ended at both sides
  bool pump() {
    for (Flow& flow : flows_) {
      top_up(flow);
      clean(flow);
    }
    return left_ == 0;
  }
  [[nodiscard]] Tally tally() const {
    Tally all = tally_;
    for (const Flow& flow : flows_) {
      EXPECT_EQ(flow.sent.size(), messages_);
      EXPECT_EQ(flow.sent, flow.received) << "the two sides of flow " << flow.id << " differ";
      for (const Outcome outcome : flow.sent) ++(outcome == Outcome::Ok ? all.ok : all.failed);
    }
    return all;
  }
  [[nodiscard]] std::size_t flows() const { return flows_.size(); }

 private:
  void add(const Fabric& fabric, int from, int to) {
    flows_.push_back({flows_.size(), RingWriter(fabric.endpoint(from, to, 0).send, "s"),
                      RingWriter(fabric.endpoint(to, from, 0).receive, "r")});
    Flow& flow = flows_.back();
    register_region(fabric, from, static_cast<Word>(2 * to), flow.from.data(), flow.from.size());
    register_region(fabric, to, static_cast<Word>(2 * from + 1), flow.to.data(), flow.to.size());
    regions_.push_back({static_cast<Word>(2 * to), static_cast<Word>(2 * from + 1)});
  }
  void top_up(Flow& flow) {
    while (flow.receives.written() < messages_ && flow.receives.written() - flow.receives.cleaned() < kRingDepth) {
      const std::uint64_t i = flow.receives.written();
      std::memset(flow.to.data() + i % kRingDepth * kSlot, kPoison, kSlot);
      flow.receives.ring(*flow.receives.write(
          {.kind = WorkKind::Receive, .local = {regions_[flow.id][1], 0, i % kRingDepth * kSlot, kSlot}}));
    }
    while (flow.sends.written() < messages_ && flow.sends.written() - flow.sends.cleaned() < kRingDepth) {
      const std::uint64_t i = flow.sends.written(), bytes = length_of(flow.id, i);
      fill(flow.from.data() + i % kRingDepth * kSlot, flow.id, i, bytes);
      flow.sends.ring(*flow.sends.write(
          {.kind = WorkKind::Send, .local = {regions_[flow.id][0], 0, i % kRingDepth * kSlot, bytes}}));
    }
  }
  void clean(Flow& flow) {
    while (const auto end = flow.receives.clean()) {
      EXPECT_EQ(end->number, flow.received.size());
      flow.received.push_back(end->outcome);
      check(flow, *end);
      tally_.overtaken += flow.id > 0 && flow.received.size() > flows_[flow.id - 1].received.size();
      --left_;
    }
    while (const auto end = flow.sends.clean()) {
      EXPECT_EQ(end->number, flow.sent.size());
      flow.sent.push_back(end->outcome);
      --left_;
    }
  }
  /// A message that arrived has its bytes and no more; one that did not has left the slot as it was.
  void check(const Flow& flow, const Ended& end) {
    std::array<std::byte, kSlot> expected;
    expected.fill(std::byte{kPoison});
    const std::uint64_t bytes = end.outcome == Outcome::Ok ? length_of(flow.id, end.number) : 0;
    fill(expected.data(), flow.id, end.number, bytes);
    EXPECT_EQ(end.bytes, bytes);
    EXPECT_EQ(std::memcmp(expected.data(), flow.to.data() + end.number % kRingDepth * kSlot, kSlot), 0)
        << "message " << end.number << " of flow " << flow.id;
  }

  static constexpr int kPoison = 0xA5;
  std::uint64_t messages_, left_ = 0;
  std::deque<Flow> flows_;
  std::vector<std::array<Word, 2>> regions_;
  Tally tally_;
};

constexpr NetworkOptions kFaulty{.latency = Duration{2000},
                                 .rate = 10,
                                 .seed = 5,
                                 .fail_per_million = 10'000,
                                 .delay_per_million = 20'000,
                                 .most_delay = Duration{50'000}};

struct FaultyRun {
  Tally tally;
  NicCounts counts;
  Duration end{};
};

FaultyRun run_on_virtual_time(int ranks, std::uint64_t messages, const NetworkOptions& options) {
  const FabricMemory memory(ranks, 1);
  HostMover mover;
  SoftNic nic(memory.fabric(), mover, options);
  VirtualWorld world;
  world.add(nic);
  ManyMessages all(memory.fabric(), messages);
  EXPECT_TRUE(world.until([&] { return all.pump(); }, kNever));
  return {all.tally(), nic.counts(), world.now()};
}

// 12 connections of 4 ranks with 83,334 messages each are 1,000,008. 1 % of them are expected to fail, 10,000; six
// standard deviations of that count are 6 * sqrt(1e6 * 0.01 * 0.99) = 597. Each message is checked when it ends: its
// bytes are in the slot once, or the slot is untouched and both sides have the same error.
TEST(SoftNicFaults, AMillionMessagesArriveOnceOrAreReported) {
  const FaultyRun run = run_on_virtual_time(4, 83'334, kFaulty);
  EXPECT_EQ(run.tally.ok + run.tally.failed, 1'000'008U);
  EXPECT_NEAR(static_cast<double>(run.tally.failed), 10'000, 597);
  EXPECT_NEAR(static_cast<double>(run.counts.delayed), 20'000, 840);
  EXPECT_EQ(run.counts.taken, 1'000'008U);
  EXPECT_EQ(run.counts.delivered, run.tally.ok);
  EXPECT_EQ(run.counts.failed, run.tally.failed);
  EXPECT_GT(run.tally.overtaken, 10'000U) << "connections do not overtake each other";
  RecordProperty("failed", std::to_string(run.tally.failed));
}

TEST(SoftNicFaults, AreTheSameForTheSameSeed) {
  NetworkOptions other = kFaulty;
  other.seed = 6;
  const FaultyRun one = run_on_virtual_time(3, 2000, kFaulty), two = run_on_virtual_time(3, 2000, kFaulty),
                  third = run_on_virtual_time(3, 2000, other);
  EXPECT_EQ(one.counts, two.counts);
  EXPECT_EQ(one.end, two.end);
  EXPECT_NE(one.end, third.end);
}

// The same with the NIC in a thread: 2 connections with 25,000 messages each.
TEST(SoftNicFaults, MessagesThroughAThreadArriveOnceOrAreReported) {
  const FabricMemory memory(2, 1);
  HostMover mover;
  SoftNic nic(memory.fabric(), mover,
              {.latency = Duration{500},
               .rate = 10,
               .seed = 5,
               .fail_per_million = 10'000,
               .delay_per_million = 1000,
               .most_delay = Duration{20'000}});
  const RealClock clock(WaitKind::Block);
  ManyMessages all(memory.fabric(), 25'000);
  {
    const ActorThread thread(nic, clock);
    RealWait host(clock);
    EXPECT_TRUE(host.until([&] { return all.pump(); }, std::chrono::seconds{120}));
  }
  const Tally tally = all.tally();
  EXPECT_EQ(tally.ok + tally.failed, 50'000U);
  EXPECT_NEAR(static_cast<double>(tally.failed), 500, 134);  // 6 * sqrt(500 * 0.99)
}

}  // namespace
}  // namespace tutti::internal::comm
