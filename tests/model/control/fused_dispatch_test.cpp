// The dispatcher of the fused kernel's blocks: every interleaving of two GPUs at small sizes. What is explored is what
// the kernel executes (`FusedThread`).
#include "model/control/fused_dispatch.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "model/control/fused_limits.hpp"
#include "tests/support/fused_exploration.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::explore;
using test::FusedFinding;
using test::FusedRun;

constexpr FusedShape kSmallest{.peers = 1, .senders = 1, .unpackers = 1, .buffers = 1};

// 1 receiver, 3 senders and 2 unpackers have 6 tickets a round: ticket 6 x 4 + 5 is the last unpacker of round 4.
TEST(FusedDispatch, TicketsSayWhatABlockDoes) {
  const FusedShape shape{.peers = 2, .senders = 3, .unpackers = 2, .buffers = 1};
  std::vector<FusedTask> tasks;
  for (std::uint64_t ticket = 0; ticket < 6; ++ticket) tasks.push_back(task_of(kFusedRules, shape, ticket));
  const std::vector<FusedTask> expected{{FusedRole::Receiver, 0, 0}, {FusedRole::Sender, 0, 0},
                                        {FusedRole::Sender, 0, 1},   {FusedRole::Sender, 0, 2},
                                        {FusedRole::Unpacker, 0, 0}, {FusedRole::Unpacker, 0, 1}};
  EXPECT_EQ(tasks, expected);
  EXPECT_EQ(task_of(kFusedRules, shape, 29), (FusedTask{FusedRole::Unpacker, 4, 1}));
}

// Senders 0 and 2 pack for peer 0, sender 1 for peer 1.
TEST(FusedDispatch, PiecesAreSharedOutInTurn) {
  const FusedShape shape{.peers = 2, .senders = 3, .unpackers = 2, .buffers = 1};
  EXPECT_EQ(shape.pieces(FusedRole::Sender, 0), 2U);
  EXPECT_EQ(shape.pieces(FusedRole::Sender, 1), 1U);
  EXPECT_EQ(shape.pieces(FusedRole::Unpacker, 1), 1U);
}

TEST(FusedDispatch, NoTwoWordsHaveOnePlace) {
  const FusedShape shape{.peers = 3, .senders = 3, .unpackers = 3, .buffers = 2};
  std::vector<int> uses(shape.words(), 0);
  ++uses[shape.position(FusedWord::Tickets, 0, 0)];
  for (std::uint32_t round = 0; round < kRoundWords; ++round) ++uses[shape.position(FusedWord::Finished, 0, round)];
  for (const FusedWord word :
       {FusedWord::Packed, FusedWord::Unpacked, FusedWord::Announced, FusedWord::Arrived, FusedWord::Freed})
    for (std::uint32_t peer = 0; peer < shape.peers; ++peer)
      for (std::uint32_t buffer = 0; buffer < shape.buffers; ++buffer) ++uses[shape.position(word, peer, buffer)];
  EXPECT_EQ(uses, std::vector<int>(shape.words(), 1));
}

// ---- every interleaving

/// Explores every shape up to 3 senders and 3 unpackers.
template <class Check>
void for_shapes(std::uint32_t buffers, Check check) {
  for (std::uint32_t peers = 1; peers <= 2; ++peers)
    for (std::uint32_t senders = peers; senders <= 3; ++senders)
      for (std::uint32_t unpackers = peers; unpackers <= 3; ++unpackers) {
        const FusedShape shape{peers, senders, unpackers, buffers};
        SCOPED_TRACE(testing::Message() << peers << " peers, " << senders << " senders, " << unpackers << " unpackers, "
                                        << buffers << " buffers");
        check(shape);
      }
}

/// @return states
std::size_t expect_sound(const FusedRun& run) {
  const FusedFinding found = explore(run);
  EXPECT_EQ(found.fault, "") << run.slots[0] << " and " << run.slots[1] << " slots, " << run.rounds << " rounds";
  EXPECT_EQ(found.ends, 1U);  // all interleavings come to the same end
  return found.states;
}

// Two rounds are the fewest in which a message may be overwritten, three those that use a word of the rounds' ends
// again.
TEST(FusedDispatch, ComesToItsEndWithEveryMessageInEveryInterleaving) {
  std::size_t states = 0;
  for (const std::uint32_t buffers : {1U, 2U})
    for_shapes(buffers, [&](const FusedShape& shape) {
      for (std::uint32_t slots = 2; slots <= 4; ++slots) {
        const std::uint32_t size = shape.senders + shape.unpackers + slots;
        const bool large = size > 8;
        if ((large && buffers == 2) || (size > 6 && test::kSanitized)) continue;
        states += expect_sound({.shape = shape, .rounds = large ? 2U : 3U, .slots = {slots, slots}});
      }
    });
  RecordProperty("states", std::to_string(states));
}

// Threads of one warp may go through a branch together.
TEST(FusedDispatch, TheThreadsOfAReceiverMayWaitForEachOther) {
  for (std::uint32_t slots = 2; slots <= 4; ++slots)
    for (const std::uint32_t buffers : {1U, 2U})
      expect_sound({.shape = {2, 2, 2, buffers}, .rounds = 3, .slots = {slots, slots}, .receivers_together = true});
}

TEST(FusedDispatch, GpusMayHaveDifferentSlots) {
  for_shapes(1, [](const FusedShape& shape) {
    if (shape.senders + shape.unpackers > (test::kSanitized ? 3U : 4U)) return;
    for (std::uint32_t more = 3; more <= 4; ++more) expect_sound({.shape = shape, .rounds = 2, .slots = {2, more}});
  });
}

TEST(FusedDispatch, ManyRoundsFollowEachOther) {
  for (const std::uint32_t slots : {2U, 3U, 4U})
    for (const std::uint32_t buffers : {1U, 2U}) {
      FusedRun run{.shape = kSmallest, .rounds = 12, .slots = {slots, slots}};
      run.shape.buffers = buffers;
      expect_sound(run);
    }
}

// The exploration that leaves no interleaving out, at sizes that it can bear.
TEST(FusedDispatch, TheReductionAgreesWithEveryStep) {
  for (const std::uint32_t slots : {2U, 3U, 4U}) {
    FusedRun run{.shape = kSmallest, .rounds = 2, .slots = {slots, slots}, .every_step = true};
    expect_sound(run);
    if (slots == 4 || test::kSanitized) continue;
    run.shape.senders = 2;
    expect_sound(run);
    run.shape = {.peers = 1, .senders = 1, .unpackers = 2, .buffers = 1};
    expect_sound(run);
  }
}

// ---- too few slots

// With one slot each, both receivers wait for senders that have none.
TEST(FusedDispatch, OneSlotOfEachGpuIsADeadlock) {
  EXPECT_EQ(explore({.shape = kSmallest, .rounds = 1, .slots = {1, 1}}).fault,
            "no block can go on: GPU 0 receiver of round 0, GPU 1 receiver of round 0");
  for_shapes(1, [](const FusedShape& shape) {
    EXPECT_NE(explore({.shape = shape, .rounds = 1, .slots = {1, 1}}).fault, "");
  });
}

// ---- rules that are wrong

using Step = FusedStep;

/// The fault that an exploration finds with rules of which one is changed; empty: none.
template <class Change>
std::string fault_with(Change change, FusedShape shape, std::uint32_t slots = 4, std::uint32_t rounds = 3) {
  FusedRules rules = kFusedRules;
  change(rules);
  return explore({.rules = rules, .shape = shape, .rounds = rounds, .slots = {slots, slots}}).fault;
}

void expect_starts_with(const std::string& fault, std::string_view begin) {
  EXPECT_EQ(fault.substr(0, begin.size()), begin);
}

// 2 slots, 1 receiver: the unpacker has the other one, and waits for a sender that has none. With 3 slots and one
// unpacker a slot is left.
TEST(FusedDispatchMutant, UnpackersBeforeSendersIsADeadlock) {
  const auto swapped = [](FusedRules& rules) { std::swap(rules.order[1], rules.order[2]); };
  expect_starts_with(fault_with(swapped, kSmallest, 2),
                     "no block can go on: GPU 0 receiver of round 0, GPU 0 unpacker");
  EXPECT_EQ(fault_with(swapped, kSmallest, 3), "");
  expect_starts_with(fault_with(swapped, {1, 1, 3, 1}, 4), "no block can go on");
}

TEST(FusedDispatchMutant, ReceiverBehindUnpackersIsADeadlock) {
  const auto last = [](FusedRules& rules) { std::rotate(rules.order, rules.order + 1, rules.order + 3); };
  expect_starts_with(fault_with(last, {1, 1, 2, 1}, 2), "no block can go on: GPU 0 unpacker of round 0");
}

TEST(FusedDispatchMutant, RingingBeforeTheLastPieceIsFound) {
  const auto early = [](FusedRules& rules) {
    rules.sender[2] = Step::CountPacked, rules.sender[3] = Step::RingIfLast, rules.sender[4] = Step::Pack;
  };
  for (const std::uint32_t senders : {1U, 2U})
    expect_starts_with(fault_with(early, {1, senders, 1, 1}),
                       "a message of round 0 was unpacked while one of its pieces");
}

// Every second message goes to other memory, so with two buffers the wait for the round before is enough.
TEST(FusedDispatchMutant, NotWaitingForFreeMemoryIsFound) {
  const auto hasty = [](FusedRules& rules) { std::copy(rules.sender + 2, rules.sender + 8, rules.sender + 1); };
  expect_starts_with(fault_with(hasty, kSmallest), "the message of round 0 was overwritten before it was unpacked");
  expect_starts_with(fault_with(hasty, {2, 2, 2, 1}), "the message of round 0 was overwritten before it was unpacked");
  EXPECT_EQ(fault_with(hasty, {1, 1, 1, 2}), "");
}

TEST(FusedDispatchMutant, FreeingBeforeTheLastPieceIsUnpackedIsFound) {
  const auto early = [](FusedRules& rules) {
    rules.unpacker[1] = Step::CountUnpacked, rules.unpacker[2] = Step::FreeIfLast, rules.unpacker[3] = Step::Unpack;
  };
  expect_starts_with(fault_with(early, kSmallest), "the message of round 0 was overwritten before it was unpacked");
}

TEST(FusedDispatchMutant, NotWaitingForTheAnnouncementIsFound) {
  const auto hasty = [](FusedRules& rules) { std::copy(rules.unpacker + 1, rules.unpacker + 6, rules.unpacker); };
  expect_starts_with(fault_with(hasty, kSmallest), "a message of round 0 was unpacked while one of its pieces");
}

TEST(FusedDispatchMutant, AnnouncingBeforeTheMessageIsThereIsFound) {
  const auto early = [](FusedRules& rules) { std::swap(rules.receiver[0], rules.receiver[1]); };
  expect_starts_with(fault_with(early, kSmallest), "a message of round 0 was unpacked while one of its pieces");
}

// A message that is never announced, or never rung for, is waited for.
TEST(FusedDispatchMutant, LosingAMessageIsFound) {
  const auto silent = [](FusedRules& rules) { rules.receiver[1] = Step::End; };
  expect_starts_with(fault_with(silent, kSmallest), "no block can go on");
  const auto deaf = [](FusedRules& rules) { std::copy(rules.sender + 5, rules.sender + 8, rules.sender + 4); };
  expect_starts_with(fault_with(deaf, kSmallest), "no block can go on");
}

TEST(FusedDispatchMutant, UnpackingTwiceIsFound) {
  const auto doubled = [](FusedRules& rules) {
    rules.unpacker[2] = Step::Unpack, rules.unpacker[3] = Step::CountFinished, rules.unpacker[4] = Step::End;
  };
  expect_starts_with(fault_with(doubled, kSmallest), "a message of round 0 was unpacked twice");
}

TEST(FusedDispatchMutant, NotWaitingForTheRoundBeforeIsFound) {
  const auto hasty = [](FusedRules& rules) { std::copy(rules.sender + 1, rules.sender + 8, rules.sender); };
  expect_starts_with(fault_with(hasty, {1, 1, 1, 2}), "round 1 began before");
}

TEST(FusedDispatchMutant, CountingASenderBeforeItsInnerWorkIsFound) {
  const auto early = [](FusedRules& rules) { std::swap(rules.sender[5], rules.sender[6]); };
  expect_starts_with(fault_with(early, kSmallest), "round 1 began before the inner work");
}

// With 3 slots an unpacker of round 1 may end while the sender of round 0 does its inner work, and stands for it in the
// one count. With 2 slots that sender and the receiver leave it no slot.
TEST(FusedDispatchMutant, OneCountForTheEndsOfAllRoundsIsFound) {
  const auto one = [](FusedRules& rules) { rules.round_words = 1; };
  EXPECT_EQ(fault_with(one, kSmallest, 2), "");
  expect_starts_with(fault_with(one, kSmallest, 3), "round 2 began before the inner work");
}

// ---- blocks to launch

std::string refusal(const FusedShape& shape, const FusedSlots& slots, std::uint32_t most = 0) {
  const auto blocks = fused_blocks(shape, slots, most);
  return blocks ? "fine" : blocks.error().message;
}

// 132 SMs with 8 blocks each have 1056 slots. A round of 1 + 100 + 100 tickets needs no more than 201; with 8 kernels
// on the GPU each has 132.
TEST(FusedBlocks, AreNoMoreThanTicketsSlotsAndTheLimit) {
  const FusedShape shape{.peers = 3, .senders = 100, .unpackers = 100, .buffers = 1};
  EXPECT_EQ(fused_blocks(shape, {132, 8, 256, 1}), 201U);
  EXPECT_EQ(fused_blocks(shape, {132, 8, 256, 8}), 132U);
  EXPECT_EQ(fused_blocks(shape, {132, 8, 256, 1}, 2), 2U);
}

TEST(FusedBlocks, RefuseWhatCannotGoOn) {
  EXPECT_EQ(refusal(kSmallest, {1, 1, 1024, 1}),
            "a fused kernel needs 2 blocks at once, one to receive and one to send, and has 1 (SMs: 1, blocks of 1024 "
            "threads "
            "on each: 1, fused kernels on the GPU: 1); give blocks fewer threads, or the GPU fewer kernels");
  expect_starts_with(refusal(kSmallest, {132, 1, 1024, 67}),
                     "a fused kernel needs 2 blocks at once, one to receive and one to send, and has 1 (SMs: 132,");
  expect_starts_with(refusal(kSmallest, {132, 0, 1024, 1}),
                     "a fused kernel needs 2 blocks at once, one to receive and one to send, and has 0 (SMs: 132,");
  EXPECT_EQ(refusal(kSmallest, {132, 8, 256, 1}, 1).substr(0, 49), "a limit of 1 block leaves none beside the receive");
  EXPECT_EQ(refusal(kSmallest, {132, 1, 1024, 66}), "fine");
}

TEST(FusedBlocks, RefuseShapesThatAreNone) {
  const FusedSlots slots{132, 8, 256, 1};
  EXPECT_EQ(refusal({0, 1, 1, 1}, slots), "a fused kernel of 0 peers is not possible; give 1 to 32");
  EXPECT_EQ(refusal({1, 1, 1, 0}, slots), "0 buffers a peer are not possible; give 1 to 16");
  EXPECT_EQ(refusal({3, 2, 3, 1}, slots),
            "2 senders for 3 peers are not possible, since each peer has one at least; give 3 to 1048576");
  EXPECT_EQ(refusal({3, 3, 2, 1}, slots),
            "2 unpackers for 3 peers are not possible, since each peer has one at least; give 3 to 1048576");
}

}  // namespace
}  // namespace tutti::internal
