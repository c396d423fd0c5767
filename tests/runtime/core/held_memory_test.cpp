#include "runtime/core/held_memory.hpp"

#include <array>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/buffer.hpp"

namespace tutti::internal {
namespace {

/// Notes what comes back.
class NotingSource final : public BufferSource {
 public:
  explicit NotingSource(std::vector<const std::byte*>& back) : back_(&back) {}
  void give_back(const BufferView& memory) noexcept override { back_->push_back(memory.data); }

 private:
  std::vector<const std::byte*>* back_;
};

class Held : public testing::Test {
 protected:
  /// A buffer of 16 B.
  /// @param source  null: one of its own
  Buffer buffer(std::size_t place, std::shared_ptr<BufferSource> source = nullptr) {
    if (!source) source = make_source();
    return Buffer({VertexId{0}, at(place), Bytes{16}}, std::move(source));
  }
  std::shared_ptr<BufferSource> make_source() { return std::make_shared<NotingSource>(back_); }
  std::byte* at(std::size_t place, std::size_t byte = 0) { return memory_.data() + 16 * place + byte; }
  void TearDown() override { EXPECT_FALSE(HeldMemory::is_used()); }

  using Places = std::vector<const std::byte*>;
  Places back_;

 private:
  std::array<std::byte, 48> memory_{};
};

TEST_F(Held, ABufferWithoutAHoldIsGivenBackAtOnce) {
  { const Buffer plain = buffer(0); }
  EXPECT_EQ(back_, Places{at(0)});
  HeldMemory::hold(at(1));
  { const Buffer beside = buffer(2); }
  EXPECT_EQ(back_, (Places{at(0), at(2)}));
  HeldMemory::release(at(1));
}

TEST_F(Held, AHeldBufferIsGivenBackWhenItIsReleasedAndOnce) {
  HeldMemory::hold(at(0));
  { const Buffer held = buffer(0); }
  EXPECT_EQ(back_, Places{});
  HeldMemory::release(at(0));
  EXPECT_EQ(back_, Places{at(0)});
}

TEST_F(Held, ABufferThatIsReleasedBeforeItEndsIsAsOthers) {
  const auto buffer_of_test = std::make_unique<Buffer>(buffer(0));
  HeldMemory::hold(at(0));
  HeldMemory::release(at(0));
  EXPECT_FALSE(HeldMemory::is_used());
  EXPECT_EQ(back_, Places{});
}

// Both are of the first buffer, of bytes 0 to 15; byte 16 is of the next one.
TEST_F(Held, TheLastHoldCountsAndAnyByteOfTheBuffer) {
  HeldMemory::hold(at(0, 15));
  HeldMemory::hold(at(0, 7));
  HeldMemory::hold(at(0, 7));
  {
    const Buffer held = buffer(0);
    const Buffer next = buffer(1);
  }
  EXPECT_EQ(back_, Places{at(1)});
  HeldMemory::release(at(0, 7));
  HeldMemory::release(at(0, 15));
  EXPECT_EQ(back_, Places{at(1)});
  HeldMemory::release(at(0, 7));
  EXPECT_EQ(back_, (Places{at(1), at(0)}));
}

TEST_F(Held, WhatWasMovedHasItsMemoryHeldOnce) {
  HeldMemory::hold(at(0));
  {
    std::optional<Buffer> from = buffer(0);
    Buffer to = *std::move(from);
    from.reset();
    to = buffer(1);  // ends what it had
  }
  EXPECT_EQ(back_, Places{at(1)});
  HeldMemory::release(at(0));
  EXPECT_EQ(back_, (Places{at(1), at(0)}));
}

// A backend has its source and uses it without a lock.
TEST_F(Held, MemoryOfABackendGoesBackWhereItsBuffersEnd) {
  std::shared_ptr<BufferSource> of_backend = make_source();
  HeldMemory::hold(at(0));
  HeldMemory::hold(at(1));
  {
    const Buffer first = buffer(0, of_backend);
    const Buffer second = buffer(1, of_backend);
  }
  std::thread([&] { HeldMemory::release(at(0)); }).join();
  EXPECT_EQ(back_, Places{});
  { const Buffer other = buffer(2, of_backend); }
  EXPECT_EQ(back_, (Places{at(0), at(2)}));
  of_backend.reset();
  HeldMemory::release(at(1));
  EXPECT_EQ(back_, (Places{at(0), at(2), at(1)}));
}

// The backend ends between the two: nothing but held memory has its source then.
TEST_F(Held, MemoryOfABackendThatHasEndedDoesNotWaitForOtherHolds) {
  std::shared_ptr<BufferSource> of_backend = make_source();
  for (const std::size_t place : {0, 1}) HeldMemory::hold(at(place));
  {
    const Buffer first = buffer(0, of_backend);
    const Buffer second = buffer(1, of_backend);
  }
  of_backend.reset();
  HeldMemory::release(at(0));
  EXPECT_EQ(back_, Places{at(0)});
  HeldMemory::release(at(1));
  EXPECT_EQ(back_, (Places{at(0), at(1)}));
}

// An array of memory that the program gave is freed with it.
TEST_F(Held, AnOwnerThatEndsMayReleaseHolds) {
  struct Releases {
    explicit Releases(const std::byte* the_address) : address(the_address) { HeldMemory::hold(address); }
    Releases(const Releases&) = delete;
    Releases& operator=(const Releases&) = delete;
    ~Releases() { HeldMemory::release(address); }
    const std::byte* address;
  };
  HeldMemory::hold(at(0));
  {
    const Buffer outer = borrowed({VertexId{0}, at(0), Bytes{16}}, std::make_shared<Releases>(at(1)));
    const Buffer inner = buffer(1);
  }
  EXPECT_EQ(back_, Places{});
  HeldMemory::release(at(0));
  EXPECT_EQ(back_, Places{at(1)});
}

}  // namespace
}  // namespace tutti::internal
