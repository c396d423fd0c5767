// Copies through windows onto the memory of GPUs, on GPUs and a GDRCopy that are executed on the host.
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/cuda/base/status.hpp"
#include "runtime/cuda/memory/bar_window.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"

extern "C" {
void set_gdr_failure(const char* function, int code);
void set_gdr_dma_buf(bool on);
int count_gdr_things();
}

namespace tutti::internal {
namespace {

using test::bound;
using test::copy_stream;
using test::part_of;
using test::pattern;
using test::Station;

std::unique_ptr<Clock> clock_for_mapped() { return std::make_unique<test::DeviceClock>(); }

constexpr auto kMakePolling = test::make_cuda<GateKind::PollingKernel>;

/// A window, its buffer's pin and the connection of its backend.
constexpr int kThingsOfAWindow = 2, kConnection = 1;

CommandStream mapped_stream(std::string name, VertexId from, VertexId to, std::int64_t size) {
  CommandStream stream = copy_stream(std::move(name), from, to, size);
  stream.transfer->method = CopyMethod::Mapped;
  return stream;
}

class MappedCopies : public testing::Test {
 protected:
  ~MappedCopies() override {
    set_gdr_failure("", 0);
    set_gdr_dma_buf(false);
    EXPECT_EQ(count_gdr_things(), 0) << "nothing stays mapped";
  }

  /// Why a copy of 100 bytes is not prepared.
  static Error refusal() {
    Station station(clock_for_mapped(), kMakePolling);
    const Buffer source = station.allocate(station.at("mem0"), 100),
                 destination = station.allocate(station.at("gpu0"), 100);
    CommandStream stream = mapped_stream("up", station.at("mem0"), station.at("gpu0"), 100);
    stream.place = {"tasks.yaml", 7, 3};
    const auto prepared =
        station.executor.prepare(station.planned({stream}), {bound(source.view(), destination.view())});
    return prepared ? Error{} : prepared.error();
  }
};

// Up and down, beside copies by engines, with a kernel behind what came up; cut into chunks of 1000 bytes, which are
// one window. A window begins 64 bytes behind the start of a buffer, and nothing beside the bytes changes.
TEST_F(MappedCopies, MoveEveryByteBesideOtherCommands) {
  constexpr std::int64_t kSize = 100'001, kRim = 64;
  Station station(clock_for_mapped(), kMakePolling);
  ASSERT_TRUE(station.kernels.add("invert", {}, test::device_invert()).has_value());
  const VertexId memory = station.at("mem0"), gpu = station.at("gpu0");
  const Buffer up = station.allocate(memory, kSize), down = station.allocate(memory, kSize + 2 * kRim);
  const Buffer by_engine = station.allocate(memory, 1000), back = station.allocate(memory, 1000);
  const Buffer there = station.allocate(gpu, kSize + 2 * kRim), inverted = station.allocate(gpu, kSize);
  const Buffer other = station.allocate(gpu, 1000);
  CommandStream first = mapped_stream("up", memory, gpu, kSize);
  first.kernel = Kernel{gpu, Duration{10}, Duration{10}, "invert"};
  StreamBinding computed = bound(up.view(), part_of(there.view(), kRim, kSize));
  computed.kernel_output = inverted.view();
  auto upwards = station.executor.prepare(
      test::paced(station.planned({first, copy_stream("engine", memory, gpu, 1000)}), Bytes{1000}),
      {computed, bound(by_engine.view(), other.view())});
  ASSERT_TRUE(upwards.has_value()) << upwards.error().text();
  EXPECT_EQ(count_gdr_things(), kConnection + kThingsOfAWindow);
  auto downwards =
      station.prepare({mapped_stream("down", gpu, memory, kSize), copy_stream("engine", gpu, memory, 1000)},
                      {bound(inverted.view(), part_of(down.view(), kRim, kSize)), bound(other.view(), back.view())});
  for (std::uint64_t round = 0; round < 3; ++round) {
    const auto sent = pattern(kSize, round), rim = pattern(kSize + 2 * kRim, round + 9);
    station.write(up.view(), sent);
    station.write(there.view(), rim);
    station.write(down.view(), rim);
    station.write(by_engine.view(), pattern(1000, round + 77));
    station.run(*upwards);
    station.run(downwards);
    auto in_gpu = rim, in_memory = rim;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      in_gpu[i + kRim] = sent[i];
      in_memory[i + kRim] = ~sent[i];
    }
    EXPECT_EQ(station.read(there.view()), in_gpu);
    EXPECT_EQ(station.read(down.view()), in_memory);
    EXPECT_EQ(station.read(back.view()), pattern(1000, round + 77));
  }
}

// Beside a copy of the same direction and GPU that takes some hours: it holds no engine.
TEST_F(MappedCopies, HoldNoEngineWhereJobsOverlap) {
  Station station(clock_for_mapped(), kMakePolling);
  const VertexId memory = station.at("mem0"), gpu = station.at("gpu0");
  const Buffer source = station.allocate(memory, 4096), slow = station.allocate(gpu, 4096);
  const Buffer mapped = station.allocate(gpu, 100);
  auto by_engine =
      station.prepare_overlapping(copy_stream("slow", memory, gpu, 4096), bound(source.view(), slow.view()));
  auto by_host = station.prepare_overlapping(mapped_stream("mapped", memory, gpu, 100),
                                             bound(part_of(source.view(), 0, 100), mapped.view()));
  ASSERT_TRUE(by_engine.has_value() && by_host.has_value());
  station.write(source.view(), pattern(4096, 4));
  host_cuda::device(0).copy_rate(1e-9);
  ASSERT_TRUE(station.executor.issue(*by_engine).has_value());
  ASSERT_TRUE(station.executor.issue(*by_host).has_value());
  EXPECT_TRUE(station.executor.synchronize(*by_host).has_value());
  EXPECT_FALSE(station.executor.query(*by_engine));
  host_cuda::device(0).copy_rate(host_cuda::kCopyRate);
  EXPECT_TRUE(station.executor.synchronize(*by_engine).has_value());
  const auto sent = pattern(4096, 4);
  EXPECT_EQ(station.read(mapped.view()), std::vector(sent.begin(), sent.begin() + 100));
}

TEST_F(MappedCopies, AreRefusedWithTheReasonWhenTheyArePrepared) {
  const auto expect = [](const std::string& message) {
    const Error error = refusal();
    EXPECT_EQ(error.code, ErrorCode::Machine);
    EXPECT_EQ(error.place, (Place{"tasks.yaml", 7, 3}));
    EXPECT_EQ(error.message,
              "stream 'up' cannot be copied by 'method: mapped': " + message + ", or leave the method out");
  };
  set_gdr_failure("gdr_open", 1);
  expect(
      "gdr_open of libgdrapi.so.2 reaches no driver that maps the memory of GPUs; load the kernel module gdrdrv, and "
      "let "
      "this user read and write /dev/gdrdrv");
  for (const char* const call : {"gdr_pin_buffer", "gdr_map", "gdr_get_info_v2"}) {
    set_gdr_failure(call, ENOMEM);
    expect(call +
           std::string(" of 64 KiB failed: Cannot allocate memory (12); see with 'nvidia-smi -q -d MEMORY' whether "
                       "the GPU's BAR1 has so much free"));
  }
}

// A DMA-BUF ends where its memory does, so the pages are the host's.
TEST_F(MappedCopies, ReachMemoryThatIsMappedByDmaBuf) {
  set_gdr_dma_buf(true);
  Station station(clock_for_mapped(), kMakePolling);
  const Buffer source = station.allocate(station.at("mem0"), 10'000),
               there = station.allocate(station.at("gpu0"), 10'000);
  station.write(source.view(), pattern(10'000, 3));
  auto batch = station.prepare({mapped_stream("up", station.at("mem0"), station.at("gpu0"), 5000)},
                               {bound(source.view(), part_of(there.view(), 4999, 5000))});
  station.run(batch);
  const auto sent = pattern(10'000, 3);
  EXPECT_EQ(station.read(part_of(there.view(), 4999, 5000)), std::vector(sent.begin(), sent.begin() + 5000));
}

TEST_F(MappedCopies, NeedALibraryThatHasAllFunctions) {
  constexpr std::array kMissing{"libgdrapi.so.missing", "libgdrapi.so.gone"}, kOther{"libnvidia-ml.so.1", "libc.so.6"};
  EXPECT_EQ(cuda::GdrCopy::open(kMissing).error().message,
            "this host has no library of GDRCopy, libgdrapi.so.missing, libgdrapi.so.gone; install GDRCopy");
  EXPECT_EQ(cuda::GdrCopy::open(kOther).error().message, "libnvidia-ml.so.1 has no gdr_open; install GDRCopy 2");
}

TEST_F(MappedCopies, ACopyThatFailsFailsItsRunAlone) {
  Station station(clock_for_mapped(), kMakePolling);
  const Buffer source = station.allocate(station.at("mem0"), 100), there = station.allocate(station.at("gpu0"), 100);
  auto batch = station.prepare({mapped_stream("up", station.at("mem0"), station.at("gpu0"), 100)},
                               {bound(source.view(), there.view())});
  set_gdr_failure("gdr_copy_to_mapping", EINVAL);
  const auto failed = station.executor.run(batch);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().message, "the mapped copy of stream 'up' failed: GDRCopy refused it");
  set_gdr_failure("", 0);
  station.run(batch);
}

// The stream never asks for the copy of the first run. A batch that goes then leaves none behind that is expected.
TEST_F(MappedCopies, WhatCouldNotBeEnqueuedIsForgotten) {
  Station station(clock_for_mapped(), kMakePolling);
  const VertexId memory = station.at("mem0"), gpu = station.at("gpu0");
  const Buffer source = station.allocate(memory, 100), there = station.allocate(gpu, 100);
  station.write(source.view(), pattern(100, 2));
  for (const bool runs_again : {false, true}) {
    auto batch = station.prepare({mapped_stream("up", memory, gpu, 100)}, {bound(source.view(), there.view())});
    host_cuda::fail_next("cuStreamWriteValue32", cudaErrorInvalidValue);
    EXPECT_FALSE(station.executor.run(batch).has_value());
    if (runs_again) station.run(batch);
  }
  EXPECT_EQ(station.read(there.view()), pattern(100, 2));
}

/// Its GPU goes while a mapped copy waits behind one that takes some hours.
void lose_before_a_mapped_copy() {
  alarm(60);
  {
    Station station(clock_for_mapped(), kMakePolling);
    const VertexId memory = station.at("mem0"), gpu = station.at("gpu0");
    const Buffer source = station.allocate(memory, 4096), there = station.allocate(gpu, 4096),
                 mapped = station.allocate(gpu, 100);
    CommandStream then = mapped_stream("mapped", memory, gpu, 100);
    auto batch =
        station.prepare({copy_stream("slow", memory, gpu, 4096), then},
                        {bound(source.view(), there.view()), bound(part_of(source.view(), 0, 100), mapped.view())});
    host_cuda::device(0).copy_rate(1e-9);
    static_cast<void>(station.executor.issue(batch));
    host_cuda::device(0).lose();
    const auto lost = station.executor.synchronize(batch);
    std::fprintf(stderr, "%s\n", lost ? "fine" : lost.error().message.c_str());
  }
  std::exit(0);
}

TEST(MappedCopiesDeathTest, AGpuThatIsLostIsReportedAndNothingWaitsForIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(lose_before_a_mapped_copy(), testing::ExitedWithCode(0), "has broken the GPU: cudaErrorUnknown");
}

}  // namespace
}  // namespace tutti::internal
