// What every transport does, on every kind of stream.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/base/random.hpp"
#include "tests/runtime/comm/comm_worlds.hpp"

namespace tutti::internal::comm::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// The byte at a place of message `i` from one rank to another.
std::byte byte_of(int from, int to, std::uint64_t i, std::uint64_t place) {
  return static_cast<std::byte>(Random(i * 97 + static_cast<std::uint64_t>(from * 16 + to)).next() + place * 5);
}

void add_one(std::byte* to) {
  std::uint64_t number = 0;
  std::memcpy(&number, to, 8);
  ++number;
  std::memcpy(to, &number, 8);
}

/// One of each rank.
template <class T>
using PerRank = std::array<T, 4>;

class CommTest : public testing::TestWithParam<CommWorldRow> {
 protected:
  static constexpr std::size_t kLength = 1 << 16;

  void start(const WorldNeeds& needs = {}) {
    world = GetParam().make(needs);
    for (const int rank : world->here()) {
      memory[rank] = comm(rank).allocate(2 * kLength).value();
      out[rank] = comm(rank).register_buffer(memory[rank].first(kLength)).value();
      in[rank] = comm(rank).register_buffer(memory[rank].last(kLength)).value();
      const std::vector<std::byte> zeros(2 * kLength);
      world->copy(memory[rank].data(), zeros.data(), zeros.size());
    }
  }
  Communicator& comm(int rank) { return world->comm(rank); }
  Stream& stream(int rank, int which = 0) { return world->stream(rank, which); }
  std::byte* outgoing(int rank) { return memory.at(rank).data(); }
  std::byte* incoming(int rank) { return memory.at(rank).data() + kLength; }
  /// All ranks of this process do something: each in a thread where time passes by itself, else one after the other.
  void each(const std::function<void(int rank)>& work) {
    std::vector<std::thread> hosts;
    for (const int rank : world->here())
      if (GetParam().on_virtual_time)
        work(rank);
      else
        hosts.emplace_back(work, rank);
    for (std::thread& host : hosts) host.join();
  }
  [[nodiscard]] bool is_here(int rank) const { return std::ranges::count(world->here(), rank) > 0; }
  /// Bytes that are in a memory now.
  std::vector<std::byte> read(const std::byte* memory_of, std::uint64_t bytes) {
    std::vector<std::byte> found(bytes);
    world->copy(found.data(), memory_of, bytes);
    return found;
  }
  void write_message(int from, int to, std::uint64_t i, std::uint64_t offset, std::uint64_t bytes) {
    std::vector<std::byte> message(bytes);
    for (std::uint64_t place = 0; place < bytes; ++place) message[place] = byte_of(from, to, i, place);
    world->copy(outgoing(from) + offset, message.data(), bytes);
  }
  void expect_message(int from, int to, std::uint64_t i, std::uint64_t offset, std::uint64_t bytes) {
    const auto found = read(incoming(to) + offset, bytes);
    for (std::uint64_t place = 0; place < bytes; ++place)
      ASSERT_EQ(found[place], byte_of(from, to, i, place))
          << "byte " << place << " of message " << i << " from " << from << " to " << to;
  }
  Request send(int from, int to, std::uint64_t offset, std::uint64_t bytes, int which = 0) {
    const auto request = comm(from).send_on_stream(stream(from, which), to, {out.at(from), offset, bytes});
    EXPECT_TRUE(request.has_value()) << request.error().message;
    return request.value_or(Request{});
  }
  Request post(int to, int from, std::uint64_t offset, std::uint64_t bytes) {
    const auto request = comm(to).post_recv(from, {in.at(to), offset, bytes});
    EXPECT_TRUE(request.has_value()) << request.error().message;
    return request.value_or(Request{});
  }
  static void expect_ok(const Expected<void>& result) { EXPECT_TRUE(result.has_value()) << result.error().message; }

  std::unique_ptr<CommWorld> world;
  std::map<int, std::span<std::byte>> memory;
  std::map<int, BufferId> out, in;
};

/// What not every transport can do: of those that cannot, no test is skipped, since there is none.
class CommPuts : public CommTest {};
class CommFaults : public CommTest {};
class CommLongerReceives : public CommTest {};

// Lengths of no byte, of one, around a word, around a cache line, and of 64 KiB.
TEST_P(CommTest, BytesArrive) {
  start();
  PerRank<std::vector<Request>> requests;
  std::uint64_t i = 0;
  for (const std::uint64_t bytes : {0UL, 1UL, 4UL, 63UL, 1000UL, 65536UL}) {
    each([&](int rank) {
      if (rank == 1) requests[1] = {post(1, 0, 0, bytes)};
      if (rank == 0) write_message(0, 1, i, 0, bytes), requests[0] = {send(0, 1, 0, bytes)};
    });
    each([&](int rank) { expect_ok(comm(rank).wait(requests[rank])); });
    if (is_here(1)) expect_message(0, 1, i, 0, bytes);
    ++i;
  }
}

// A receive may be longer than its message: what is behind the message stays 0.
TEST_P(CommLongerReceives, AReceiveMayBeLonger) {
  start();
  PerRank<std::vector<Request>> requests;
  each([&](int rank) {
    if (rank == 1) requests[1] = {post(1, 0, 0, 200)};
    if (rank == 0) write_message(0, 1, 0, 0, 100), requests[0] = {send(0, 1, 0, 100)};
  });
  each([&](int rank) { expect_ok(comm(rank).wait(requests[rank])); });
  if (!is_here(1)) return;
  expect_message(0, 1, 0, 0, 100);
  EXPECT_EQ(read(incoming(1) + 100, 1).front(), std::byte{0});
}

// 200 messages with 40 B each; a message that overtook another would be in its place.
TEST_P(CommTest, AConnectionKeepsItsOrder) {
  start();
  PerRank<std::vector<Request>> requests;
  each([&](int rank) {
    for (std::uint64_t i = 0; i < 200 && rank < 2; ++i) {
      if (rank == 1) requests[1].push_back(post(1, 0, i * 40, 40));
      if (rank == 0) write_message(0, 1, i, i * 40, 40), requests[0].push_back(send(0, 1, i * 40, 40));
    }
  });
  each([&](int rank) { expect_ok(comm(rank).wait(requests[rank])); });
  for (std::uint64_t i = 0; i < 200 && is_here(1); ++i) expect_message(0, 1, i, i * 40, 40);
}

// All ranks send to all others at once, 20 rounds: 4 ranks have 12 connections, and 240 messages.
TEST_P(CommTest, AllConnectionsAtOnce) {
  start({.ranks = 4});
  const int size = world->size();
  for (std::uint64_t round = 0; round < 20; ++round) {
    PerRank<std::vector<Request>> requests;
    each([&](int rank) {
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) continue;
        requests[rank].push_back(post(rank, peer, static_cast<std::uint64_t>(peer) * 1000, 1000));
        write_message(rank, peer, round, static_cast<std::uint64_t>(peer) * 1000, 1000);
        requests[rank].push_back(send(rank, peer, static_cast<std::uint64_t>(peer) * 1000, 1000));
      }
      expect_ok(comm(rank).wait_all_on_stream(stream(rank), requests[rank]));
    });
    each([&](int rank) { expect_ok(comm(rank).finish(stream(rank))); });
    each([&](int rank) {
      for (int peer = 0; peer < size; ++peer)
        if (peer != rank) expect_message(peer, rank, round, static_cast<std::uint64_t>(peer) * 1000, 1000);
    });
  }
}

// A number goes round through all ranks, 30 times. Each rank adds one to it on its stream between wait and send, so
// behind `n` hops it is `n`; hosts only enqueue beforehand. It starts at rank 0 with 0 and has made 30 x size hops when
// it is back there.
TEST_P(CommTest, StreamsPassMessagesOnWithoutTheHost) {
  start({.ranks = 3});
  const int size = world->size();
  constexpr std::uint64_t kRounds = 30;
  each([&](int rank) {
    const int before = (rank + size - 1) % size, after = (rank + 1) % size;
    for (std::uint64_t round = 0; round < kRounds; ++round) {
      const Request received = post(rank, before, round * 8, 8);
      if (rank == 0) static_cast<void>(send(0, after, round * 8, 8));
      expect_ok(comm(rank).wait_on_stream(stream(rank), received));
      std::byte* const from = incoming(rank) + round * 8;
      std::byte* const to = outgoing(rank) + (rank == 0 ? (round + 1) * 8 : round * 8);
      std::byte* const number = world->staging(rank);
      expect_ok(stream(rank).copy(number, from, 8));
      expect_ok(stream(rank).call([=] { add_one(number); }, Duration{100}));
      expect_ok(stream(rank).copy(to, number, 8));
      if (rank != 0) static_cast<void>(send(rank, after, round * 8, 8));
    }
  });
  each([&](int rank) { expect_ok(comm(rank).finish(stream(rank))); });
  if (!is_here(0)) return;
  std::uint64_t number = 0;
  world->copy(reinterpret_cast<std::byte*>(&number), outgoing(0) + kRounds * 8, 8);
  EXPECT_EQ(number, kRounds * static_cast<std::uint64_t>(size));
}

// The stream is held at the send: `passed` is set behind it. The receive lets it go.
TEST_P(CommTest, ASendLeavesWhenItsReceiveIsPosted) {
  start();
  std::atomic<bool> passed = false;
  std::vector<Request> sent;
  each([&](int rank) {
    if (rank != 0) return;
    write_message(0, 1, 0, 0, 64);
    sent = {send(0, 1, 0, 64)};
    expect_ok(comm(0).wait_all_on_stream(stream(0), sent));
    expect_ok(stream(0).call([&] { passed = true; }, {}));
    EXPECT_FALSE(stream(0).is_idle().value());
    EXPECT_FALSE(passed.load());
  });
  each([&](int rank) {
    if (rank == 1) expect_ok(comm(1).wait(std::array{post(1, 0, 0, 64)}));
  });
  each([&](int rank) {
    if (rank != 0) return;
    expect_ok(comm(0).finish(stream(0)));
    EXPECT_TRUE(passed.load());
  });
  if (is_here(1)) expect_message(0, 1, 0, 0, 64);
}

// Messages of two streams to one peer go in the order of the calls, and none before its own stream has come to it: the
// second stream is ready at once; the first one works for 10 us, and then writes its message.
TEST_P(CommTest, StreamsShareAConnectionInTheOrderOfTheCalls) {
  start();
  PerRank<std::vector<Request>> requests;
  each([&](int rank) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      if (rank == 1) requests[1].push_back(post(1, 0, i * 8, 8));
      if (rank != 0) continue;
      const int which = static_cast<int>(i % 2);
      std::byte* const message = world->staging(0) + i * 8;
      for (std::uint64_t place = 0; place < 8; ++place) message[place] = byte_of(0, 1, i, place);
      if (which == 0)
        expect_ok(stream(0, 0).call([] { std::this_thread::sleep_for(milliseconds{1}); }, Duration{10'000}));
      expect_ok(stream(0, which).copy(outgoing(0) + i * 8, message, 8));
      requests[0].push_back(send(0, 1, i * 8, 8, which));
    }
  });
  each([&](int rank) { expect_ok(comm(rank).wait(requests[rank])); });
  for (std::uint64_t i = 0; i < 20 && is_here(1); ++i) expect_message(0, 1, i, i * 8, 8);
}

// Rank 0 puts 100 B at 500 of rank 1's second buffer, and sets signal 3; rank 1's stream waits for the signal and
// copies the bytes to its first buffer.
TEST_P(CommPuts, APutIsThereWhenItsSignalIs) {
  start();
  PerRank<std::vector<Request>> requests;
  for (Word round = 1; round <= 10; ++round) {
    each([&](int rank) {
      if (rank == 0) {
        write_message(0, 1, round, 0, 100);
        const auto put = comm(0).put_on_stream(stream(0), 1, {out.at(0), 0, 100}, in.at(0), 500, SignalId{3}, round);
        ASSERT_TRUE(put.has_value()) << put.error().message;
        requests[0] = {*put};
      }
      if (rank == 1) {
        expect_ok(comm(1).wait_word_on_stream(stream(1), SignalId{3}, round));
        expect_ok(stream(1).copy(outgoing(1), incoming(1) + 500, 100));
      }
    });
    // Rank 1 says when it has looked, by a signal without bytes: the next put goes to the same place.
    each([&](int rank) {
      if (rank != 1) return;
      expect_ok(comm(1).wait_word(SignalId{3}, round));
      expect_ok(comm(1).finish(stream(1)));
      expect_message(0, 1, round, 500, 100);
      EXPECT_EQ(read(outgoing(1), 100), read(incoming(1) + 500, 100));
      EXPECT_TRUE(comm(1).put_on_stream(stream(1), 0, {out.at(1), 0, 0}, in.at(1), 0, SignalId{4}, round).has_value());
    });
    each([&](int rank) {
      if (rank != 0) return;
      expect_ok(comm(0).wait(requests[0]));
      expect_ok(comm(0).wait_word(SignalId{4}, round));
    });
  }
}

// Rank 0 is early: it puts into the third buffer, which rank 1 registers a while later.
TEST_P(CommPuts, APutWaitsForItsBuffer) {
  start({.network = {.latency = Duration{1500}, .rate = 10}});
  PerRank<std::vector<Request>> requests;
  const BufferId third{2};
  each([&](int rank) {
    if (rank != 0) return;
    write_message(0, 1, 0, 0, 100);
    const auto put = comm(0).put_on_stream(stream(0), 1, {out.at(0), 0, 100}, third, 50, SignalId{1}, 1);
    ASSERT_TRUE(put.has_value()) << put.error().message;
    requests[0] = {*put};
  });
  if (!GetParam().on_virtual_time) std::this_thread::sleep_for(milliseconds{5});
  each([&](int rank) {
    if (rank != 1) return;
    EXPECT_EQ(comm(1).register_buffer(memory.at(1).last(kLength)), third);
    expect_ok(comm(1).wait_word(SignalId{1}, 1));
    expect_message(0, 1, 0, 50, 100);
  });
  each([&](int rank) { expect_ok(comm(rank).wait(requests[rank])); });
}

// More messages than a ring has places: 1500 in batches of 100, each cleaned up before the next.
TEST_P(CommTest, RingsAreUsedAgain) {
  start();
  for (std::uint64_t batch = 0; batch < 15; ++batch) {
    PerRank<std::vector<Request>> requests;
    each([&](int rank) {
      for (std::uint64_t i = batch * 100; i < batch * 100 + 100; ++i) {
        if (rank == 1) requests[1].push_back(post(1, 0, i * 16, 16));
        if (rank == 0) write_message(0, 1, i, i * 16, 16), requests[0].push_back(send(0, 1, i * 16, 16));
      }
    });
    each([&](int rank) { expect_ok(comm(rank).wait(requests[rank])); });
  }
  for (std::uint64_t i = 0; i < 1500 && is_here(1); ++i) expect_message(0, 1, i, i * 16, 16);
}

// ---- What goes wrong

constexpr WorldNeeds kImpatient{.patience = {.limit = seconds{1}}};

// Rank 1 has posted one receive of two. Rank 0 gives up with a sentence, and rank 1 then hears why.
TEST_P(CommTest, ASendWithoutReceiveEndsBothSidesWithASentence) {
  start(kImpatient);
  PerRank<std::vector<Request>> requests;
  each([&](int rank) {
    if (rank == 1) requests[1] = {post(1, 0, 0, 8)};
    if (rank == 0) requests[0] = {send(0, 1, 0, 8), send(0, 1, 8, 8)};
  });
  const std::string sentence =
      "rank 0 has waited 1 s for message 1 of rank 0 to rank 1: rank 1 has posted 1 receives for rank 0; it must "
      "post "
      "one for each message";
  each([&](int rank) {
    if (rank != 0) return;
    const auto result = comm(0).wait(requests[0]);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::Machine);
    EXPECT_EQ(result.error().message, sentence);
  });
  each([&](int rank) {
    if (rank != 1) return;
    expect_ok(comm(1).wait(requests[1]));
    const auto result = comm(1).wait_word(SignalId{0}, 1);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message, "rank 0 gave up: " + sentence);
  });
  each([&](int rank) {
    const auto refused = comm(rank).post_recv(1 - rank, {in.at(rank), 0, 8});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message, rank == 0 ? sentence : "rank 0 gave up: " + sentence);
  });
}

TEST_P(CommPuts, AWordThatIsNeverSetEndsWithASentence) {
  start(kImpatient);
  each([&](int rank) {
    if (rank != 0) return;
    expect_ok(comm(0).wait_word_on_stream(stream(0), SignalId{7}, 2));
    const auto result = comm(0).finish(stream(0));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message,
              "rank 0 has waited 1 s for its stream, which waits for its signal 7 to reach 2: it is 0; a peer sets it "
              "with a put");
  });
}

// 100 B from 10 B before the end on: whichever side sees it, both end with its sentence.
TEST_P(CommPuts, APutOutsideOfItsBufferEndsBothSides) {
  start();
  Request put;
  each([&](int rank) {
    if (rank != 0) return;
    const auto enqueued =
        comm(0).put_on_stream(stream(0), 1, {out.at(0), 0, 100}, in.at(0), kLength - 10, SignalId{2}, 1);
    ASSERT_TRUE(enqueued.has_value()) << enqueued.error().message;
    put = *enqueued;
  });
  each([&](int rank) {
    auto result = rank == 0 ? comm(0).wait(std::array{put}) : Expected<void>{};
    if (result) result = comm(rank).wait_word(SignalId{2}, 1);
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message.find("failed: its buffer is not registered, or shorter"), std::string::npos)
        << result.error().message;
  });
}

// A rank that gives up lets all streams go: those that wait for receives, messages and words.
TEST_P(CommTest, GivingUpLetsAllStreamsGo) {
  start();
  const bool has_puts = GetParam().has_puts;
  std::atomic<bool> has_enqueued = false;
  each([&](int rank) {
    static_cast<void>(send(rank, 1 - rank, 0, 8, 0));
    const Request received = post(rank, 1 - rank, 0, 8);
    expect_ok(comm(rank).wait_on_stream(stream(rank, 0), received));
    const Request never_sent = post(rank, 1 - rank, 8, 8);
    expect_ok(comm(rank).wait_on_stream(stream(rank, 0), never_sent));
    if (!has_puts) return;
    // Rank 1 has enqueued all when its put arrives.
    if (rank == 1) {
      expect_ok(stream(1, 1).call([&] { has_enqueued.wait(false); }, {}));
      EXPECT_TRUE(comm(1).put_on_stream(stream(1, 1), 0, {out.at(1), 0, 0}, in.at(1), 0, SignalId{5}, 1).has_value());
    }
    expect_ok(comm(rank).wait_word_on_stream(stream(rank, 1), SignalId{0}, 1));
    if (rank == 1) has_enqueued = true, has_enqueued.notify_all();
  });
  each([&](int rank) {
    if (rank != 0) return;
    if (has_puts) expect_ok(comm(0).wait_word(SignalId{5}, 1));
    comm(0).abort("the oven is too hot");
  });
  each([&](int rank) {
    const auto result = comm(rank).finish(stream(rank, has_puts ? 1 : 0));
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message, rank == 0 ? "the oven is too hot" : "rank 0 gave up: the oven is too hot");
  });
  for (const int rank : world->here())
    for (const int which : {0, 1}) {
      const auto is_idle = [&] { return stream(rank, which).is_idle().value(); };
      EXPECT_TRUE(world->host().until(is_idle, world->host().now() + seconds{30}))
          << "stream " << which << " of rank " << rank << " still waits";
    }
}

TEST_P(CommTest, BadInputIsRefusedAndHarmsNothing) {
  start();
  each([&](int rank) {
    if (rank != 0) return;
    const auto refusal = [&](const auto& result) {
      EXPECT_FALSE(result.has_value());
      EXPECT_EQ(result.error().code, ErrorCode::InvalidInput);
      return result.error().message;
    };
    const int size = world->size();
    EXPECT_EQ(refusal(comm(0).post_recv(0, {in.at(0), 0, 8})),
              fmt::format("rank 0 has no peer 0; its peers are the others of the ranks 0 to {}", size - 1));
    EXPECT_EQ(refusal(comm(0).send_on_stream(stream(0), size, {out.at(0), 0, 8})),
              fmt::format("rank 0 has no peer {}; its peers are the others of the ranks 0 to {}", size, size - 1));
    EXPECT_EQ(refusal(comm(0).send_on_stream(stream(0), 1, {{9}, 0, 8})),
              "the message is in buffer 9, and rank 0 has registered 2");
    EXPECT_EQ(refusal(comm(0).post_recv(1, {in.at(0), kLength - 7, 8})),
              "the receive is 8 bytes from 65529 on in buffer 1, which has 65536");
    EXPECT_EQ(refusal(comm(0).post_recv(1, {in.at(0), ~std::uint64_t{0}, 8})).substr(0, 34),
              "the receive is 8 bytes from 184467");
    EXPECT_EQ(refusal(comm(0).wait_word_on_stream(stream(0), SignalId{512}, 1)),
              "there is no signal 512; a rank has those from 0 to 511");
    const std::string never = "message 0 of rank 0 to rank 1 was never asked for; ";
    const std::array unknown{Request{RequestKind::Send, 1, 0, 0}};
    EXPECT_EQ(refusal(comm(0).wait(unknown)).find(never), 0U);
    EXPECT_EQ(refusal(comm(0).wait_on_stream(stream(0), unknown[0])).find(never), 0U);
    EXPECT_EQ(refusal(comm(0).wait(std::array{Request{}})).find("message 0 of rank 0 to rank 0 was never asked for"),
              0U);
    EXPECT_EQ(refusal(comm(0).register_buffer({})), "a buffer without bytes cannot be registered; leave it out");
  });
  PerRank<std::vector<Request>> requests;
  each([&](int rank) {
    if (rank == 1) requests[1] = {post(1, 0, 0, 8)};
    if (rank == 0) requests[0] = {send(0, 1, 0, 8)};
  });
  each([&](int rank) { expect_ok(comm(rank).wait(requests[rank])); });
}

// Every message fails: both sides are told, with the connection.
TEST_P(CommFaults, AFailedMessageIsReportedAtBothSides) {
  start({.network = {.latency = Duration{1000},
                     .rate = 10,
                     .delay_per_million = 1'000'000,
                     .most_delay = milliseconds{1},
                     .receive_limit = milliseconds{5}}});
  PerRank<std::vector<Request>> requests;
  each([&](int rank) {
    if (rank == 1) requests[1] = {post(1, 0, 0, 7)};
    if (rank == 0) requests[0] = {send(0, 1, 0, 8)};
  });
  each([&](int rank) {
    const auto result = comm(rank).wait(requests[rank]);
    ASSERT_FALSE(result.has_value());
    // Whichever of the two is first gives up for both.
    const std::string sentence =
        "message 0 of rank 0 to rank 1 failed: it is longer than the receive that was posted for it";
    const std::string& message = result.error().message;
    EXPECT_TRUE(message == sentence || message == fmt::format("rank {} gave up: {}", 1 - rank, sentence)) << message;
  });
}

// 30 % of all entries fail, so of 60 runs with one message some 18 lose the acknowledgement: 0.3 * 60. It is put again,
// since the message is lost and reported, or arrives, and no rank waits in vain.
TEST_P(CommFaults, LostAcknowledgementsAreRepeated) {
  int arrived = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    start({.network = {.latency = Duration{1000}, .rate = 10, .seed = seed, .fail_per_million = 300'000}});
    PerRank<std::vector<Request>> requests;
    each([&](int rank) {
      if (rank == 1) requests[1].push_back(post(1, 0, 0, 8));
      if (rank == 0) write_message(0, 1, seed, 0, 8), requests[0].push_back(send(0, 1, 0, 8));
    });
    std::atomic<int> well = 0;
    // Rank 1 first: where hosts take turns, it is the one that must act.
    for (const int turn : {1, 0})
      each([&](int rank) {
        if (GetParam().on_virtual_time && rank != turn) return;
        if (!GetParam().on_virtual_time && turn == 0) return;
        const auto result = comm(rank).wait(requests[rank]);
        well += result ? 1 : 0;
        if (!result) {
          EXPECT_NE(result.error().message.find("failed: the network lost it"), std::string::npos)
              << "seed " << seed << ": " << result.error().message;
        }
      });
    EXPECT_NE(well, 1) << "seed " << seed;
    arrived += well == 2 ? 1 : 0;
  }
  EXPECT_NEAR(arrived, 42, 22);  // 0.7 * 60; six standard deviations
}

// 2 % of all entries fail. Acknowledgements are repeated; a message that fails ends both sides with an error.
TEST_P(CommFaults, FaultsEndInAnErrorAtBothSidesOrNowhere) {
  int clean = 0, failed = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    start({.network = {.latency = Duration{1000}, .rate = 10, .seed = seed, .fail_per_million = 20'000}});
    PerRank<std::vector<Request>> requests;
    each([&](int rank) {
      for (std::uint64_t i = 0; i < 50; ++i) {
        if (rank == 1) requests[1].push_back(post(1, 0, i * 8, 8));
        if (rank == 0) write_message(0, 1, i, i * 8, 8), requests[0].push_back(send(0, 1, i * 8, 8));
      }
    });
    PerRank<bool> ended{};
    PerRank<std::string> messages;
    each([&](int rank) {
      const auto result = comm(rank).wait(requests[rank]);
      ended[rank] = result.has_value();
      if (!result) messages[rank] = result.error().message;
    });
    if (ended[0] && ended[1])
      for (std::uint64_t i = 0; i < 50; ++i) expect_message(0, 1, i, i * 8, 8);
    else if (!ended[0] && !ended[1])
      EXPECT_TRUE(messages[0].find("the network lost it") != std::string::npos &&
                  messages[1].find("the network lost it") != std::string::npos)
          << messages[0] << " / " << messages[1];
    else
      ADD_FAILURE() << "seed " << seed << ": one side alone has an error: " << messages[0] << messages[1];
    ++(ended[0] && ended[1] ? clean : failed);
  }
  // 50 messages of 2 % each: 0.98^50 = 36 % of 40 runs are clean, 14.6; six standard deviations are 18.
  EXPECT_NEAR(clean, 14.6, 18);
  EXPECT_GT(failed, 0);
  EXPECT_GT(clean, 0);
}

std::vector<CommWorldRow> worlds_that(bool CommWorldRow::*can) {
  std::vector<CommWorldRow> worlds = comm_worlds();
  std::erase_if(worlds, [&](const CommWorldRow& row) { return !(row.*can); });
  return worlds;
}
// A program without such a transport has none of these tests.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommPuts);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommFaults);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommLongerReceives);
constexpr auto kName = [](const auto& row) { return row.param.name; };
INSTANTIATE_TEST_SUITE_P(Worlds, CommTest, testing::ValuesIn(comm_worlds()), kName);
INSTANTIATE_TEST_SUITE_P(Worlds, CommPuts, testing::ValuesIn(worlds_that(&CommWorldRow::has_puts)), kName);
INSTANTIATE_TEST_SUITE_P(Worlds, CommFaults, testing::ValuesIn(worlds_that(&CommWorldRow::has_faults)), kName);
INSTANTIATE_TEST_SUITE_P(Worlds, CommLongerReceives, testing::ValuesIn(worlds_that(&CommWorldRow::has_longer_receives)),
                         kName);

}  // namespace
}  // namespace tutti::internal::comm::test
