#include "runtime/pageable/copier.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <thread>

#include <gtest/gtest.h>

#include "tests/runtime/thread_limit.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

/// A device whose engine moves bytes when it is asked how far it is, some questions later.
class SlowDevice : public Dma {
 public:
  SlowDevice(CopyDirection way, std::size_t bytes, int questions = 2)
      : direction(way), memory(bytes), questions_(questions) {}

  bool start(std::uint32_t buffer, std::byte* data, std::size_t offset, std::size_t bytes) override {
    if (refuses_at == started) return false;
    ++started;
    EXPECT_EQ(moves_.count(buffer), 0U) << "buffer " << buffer << " holds two pieces";
    moves_[buffer] = {data, offset, bytes, questions_};
    most_in_flight = std::max(most_in_flight, moves_.size());
    return true;
  }
  State state(std::uint32_t buffer) override {
    if (holds) return State::UnderWay;
    Move& move = moves_.at(buffer);
    if (move.questions-- > 0) return State::UnderWay;
    const bool failed = fails_at == ended;
    ++ended;
    if (direction == CopyDirection::Up)
      std::memcpy(memory.data() + move.offset, move.data, move.bytes);
    else
      std::memcpy(move.data, memory.data() + move.offset, move.bytes);
    moves_.erase(buffer);
    return failed ? State::Failed : State::Ended;
  }

  CopyDirection direction;
  std::vector<std::byte> memory;
  std::size_t refuses_at = SIZE_MAX, fails_at = SIZE_MAX;  ///< moves before it refuses or fails
  std::size_t started = 0, ended = 0, most_in_flight = 0;
  bool holds = false;  ///< nothing ends

 private:
  struct Move {
    std::byte* data;
    std::size_t offset, bytes;
    int questions;
  };
  int questions_;
  std::map<std::uint32_t, Move> moves_;
};

struct CopyStation {
  explicit CopyStation(unsigned threads, std::size_t buffer = 4096, unsigned buffers = 0) {
    options.threads = threads;
    options.buffer = buffer;
    memory.resize((buffers == 0 ? 2 * threads : buffers) * buffer);
    restart();
  }
  /// A copier with the options as they are now.
  void restart() {
    std::vector<std::byte*> places;
    for (std::size_t at = 0; at < memory.size(); at += options.buffer) places.push_back(memory.data() + at);
    copier = Copier::make(options, places);
  }

  CopierOptions options;
  std::vector<std::byte> memory;
  std::unique_ptr<Copier> copier;
};

std::vector<std::byte> random_bytes(test::Random& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

// All sizes around those of pieces and buffers, by one to eight threads, both ways.
TEST(Copier, MovesEveryByte) {
  test::Random random(5);
  for (unsigned threads = 1; threads <= 8; ++threads) {
    CopyStation station(threads);
    for (int round = 0; round < test::rounds(64); ++round) {
      const auto bytes = static_cast<std::size_t>(1 + random.below(std::uint64_t{1} << random.between(1, 18)));
      std::vector<std::byte> host = random_bytes(random, bytes);
      SlowDevice up(CopyDirection::Up, bytes);
      ASSERT_EQ(station.copier->copy(CopyDirection::Up, host.data(), bytes, up), CopyEnd::Done);
      SlowDevice down(CopyDirection::Down, bytes);
      down.memory = random_bytes(random, bytes);
      std::vector<std::byte> read(bytes);
      station.copier->finish(up);
      ASSERT_EQ(up.memory, host);
      ASSERT_EQ(station.copier->copy(CopyDirection::Down, read.data(), bytes, down), CopyEnd::Done);
      ASSERT_EQ(read, down.memory);
    }
  }
}

TEST(Copier, DoesNothingForNoBytes) {
  CopyStation station(2);
  SlowDevice device(CopyDirection::Up, 1);
  EXPECT_EQ(station.copier->copy(CopyDirection::Up, nullptr, 0, device), CopyEnd::Done);
  EXPECT_EQ(device.started, 0U);
}

/// Copies, and stands once for 30 ms.
std::atomic<bool> to_stand = false;
void copy_and_stand(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to_stand.exchange(false)) std::this_thread::sleep_for(std::chrono::milliseconds{30});
  std::memcpy(to, from, bytes);
}

// A thread stands in the midst of a piece of four parts.
TEST(Copier, SaysHowLongItsThreadsStood) {
  for (const CopyDirection way : {CopyDirection::Up, CopyDirection::Down}) {
    CopyStation station(2, std::size_t{256} << 10);
    station.options.up = station.options.down = copy_and_stand;
    station.restart();
    std::vector<std::byte> host(std::size_t{2} << 20);
    SlowDevice device(way, host.size());
    to_stand = true;
    ASSERT_EQ(station.copier->copy(way, host.data(), host.size(), device), CopyEnd::Done);
    EXPECT_GE(station.copier->paused(), std::chrono::milliseconds{30});
  }
}

// From 0 to 5 one thread stands, from 3 to 8 another, from 4 to 6 a third; later one from 20 to 22: 8 + 2. In the next
// copy one from 30 to 35, and one that ends later and began before it, from 25 to 40: 15.
TEST(Pauses, CountOnceWhereTheyOverlap) {
  const Pauses::Instant zero = Pauses::Clock::now();
  const auto at = [&](int ms) { return zero + std::chrono::milliseconds{ms}; };
  Pauses pauses;
  pauses.add(at(0), at(5));
  pauses.add(at(4), at(6));
  pauses.add(at(3), at(8));
  pauses.add(at(20), at(22));
  EXPECT_EQ(pauses.total(), std::chrono::milliseconds{10});
  pauses.clear();
  EXPECT_EQ(pauses.total(), Duration{0});
  pauses.add(at(30), at(35));
  pauses.add(at(25), at(40));
  EXPECT_EQ(pauses.total(), std::chrono::milliseconds{15});
}

TEST(Copier, KeepsTheEngineBusyWithSeveralMoves) {
  CopyStation station(2);
  const std::size_t bytes = 64 * 4096;
  std::vector<std::byte> host(bytes);
  SlowDevice device(CopyDirection::Down, bytes, 50);
  ASSERT_EQ(station.copier->copy(CopyDirection::Down, host.data(), bytes, device), CopyEnd::Done);
  EXPECT_GE(device.most_in_flight, 2U);
}

// The engine refuses a piece, or ends one with an error: the copy fails as a whole, no piece is under way any more, and
// the next copy works.
TEST(Copier, FailsAsAWholeAndThenWorksAgain) {
  test::Random random(7);
  CopyStation station(3);
  const std::size_t bytes = 30 * 4096;
  for (const CopyDirection direction : {CopyDirection::Up, CopyDirection::Down}) {
    for (const std::size_t at : {0U, 1U, 7U, 29U}) {
      for (const bool refuses : {true, false}) {
        std::vector<std::byte> host = random_bytes(random, bytes);
        SlowDevice device(direction, bytes);
        (refuses ? device.refuses_at : device.fails_at) = at;
        if (!refuses && direction == CopyDirection::Up) {
          // Upwards the last buffers are with the engine when the copy is done, so that a failure may be seen later.
          if (station.copier->copy(direction, host.data(), bytes, device) == CopyEnd::Failed) {
            EXPECT_EQ(device.started, device.ended);
          }
        } else {
          EXPECT_EQ(station.copier->copy(direction, host.data(), bytes, device), CopyEnd::Failed);
          EXPECT_EQ(device.started, device.ended);
        }
        device.refuses_at = device.fails_at = SIZE_MAX;
        station.copier->finish(device);
        EXPECT_EQ(station.copier->copy(direction, host.data(), bytes, device), CopyEnd::Done);
        station.copier->finish(device);
        EXPECT_EQ(device.memory, host);
      }
    }
  }
}

// Four buffers, and three of them wait with the engine for ever: a copy would have to wait for what only its own thread
// may bring about. With two that are free it goes on.
TEST(Copier, IsBusyWhereTheEngineHoldsItsBuffers) {
  CopyStation station(2);
  std::vector<std::byte> host(3 * 4096);
  SlowDevice device(CopyDirection::Up, host.size());
  device.holds = true;
  ASSERT_EQ(station.copier->copy(CopyDirection::Up, host.data(), host.size(), device), CopyEnd::Done);
  EXPECT_EQ(station.copier->copy(CopyDirection::Up, host.data(), 1, device), CopyEnd::Busy);
  device.holds = false;
  station.copier->finish(device);
  EXPECT_EQ(station.copier->copy(CopyDirection::Up, host.data(), host.size(), device), CopyEnd::Done);
}

// The engine begins a copy, and another thread asks for one meanwhile.
TEST(Copier, IsBusyWhileAnotherThreadCopies) {
  class AsksAgain : public SlowDevice {
   public:
    AsksAgain(Copier& copier, std::size_t bytes) : SlowDevice(CopyDirection::Up, bytes), copier_(copier) {}
    bool start(std::uint32_t buffer, std::byte* data, std::size_t offset, std::size_t bytes) override {
      std::thread([&] {
        std::byte other{};
        SlowDevice device(CopyDirection::Up, 1);
        EXPECT_EQ(copier_.copy(CopyDirection::Up, &other, 1, device), CopyEnd::Busy);
      }).join();
      return SlowDevice::start(buffer, data, offset, bytes);
    }

   private:
    Copier& copier_;
  };
  CopyStation station(2);
  std::vector<std::byte> host(10000, std::byte{7});
  AsksAgain device(*station.copier, host.size());
  EXPECT_EQ(station.copier->copy(CopyDirection::Up, host.data(), host.size(), device), CopyEnd::Done);
}

}  // namespace
}  // namespace tutti::internal
