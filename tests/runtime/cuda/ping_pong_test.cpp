// A message that two ranks pass back and forth, in each mode. Part of the suite `gpu`; without a GPU the kernels are
// functions of the host.
#include "runtime/cuda/fused/ping_pong.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/cuda/discovery/discovery.hpp"
#include "tests/support/random.hpp"
#ifdef TUTTI_HOST_CUDA
#include "runtime/cuda/base/handles.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"
#endif

namespace tutti::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

PingPongSpec spec_on(int first, int second) {
  PingPongSpec spec;
  spec.gpus = {first, second};
  spec.limit = std::chrono::minutes(4);  // for what hangs
  return spec;
}

/// Two GPUs where there are two.
PingPongSpec some_ping_pong() {
  const auto host = discover_host();
  return spec_on(0, host && host->devices.size() > 1 ? 1 : 0);
}

PingPongRun run_of(PingPongMode mode, std::int64_t bytes, std::uint64_t rounds, Duration kernel = {}) {
  return {mode, Bytes{bytes}, kernel, rounds, true};
}

class PingPongIn : public testing::TestWithParam<PingPongMode> {};

INSTANTIATE_TEST_SUITE_P(PingPong, PingPongIn, testing::ValuesIn(kPingPongModes), [](const auto& mode) {
  std::string name(to_string(mode.param));
  std::erase(name, ' ');
  return name;
});

/// Random sizes, of which few are multiples of 4, with and without a kernel. The run itself checks every byte.
void expect_bytes_arrive(const PingPongSpec& spec, PingPongMode mode) {
  const auto ping_pong = make_ping_pong(spec);
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
  test::Random random(25);
  for (int i = 0; i < test::rounds(16); ++i) {
    const std::int64_t most = i % 4 == 0 ? 200'000 : 70;
    PingPongRun run = run_of(mode, random.between(1, static_cast<int>(most)), 1, microseconds(i % 2 == 0 ? 0 : 5));
    run.rounds = std::min<std::uint64_t>(static_cast<std::uint64_t>(random.between(1, 12)),
                                         (*ping_pong)->most_fresh_rounds(run.bytes));
    const auto took = (*ping_pong)->run(run);
    ASSERT_TRUE(took.has_value()) << took.error().message << "; " << run.bytes.count << " bytes";
    EXPECT_GT(*took, Duration{});
  }
}

TEST_P(PingPongIn, EveryByteArrives) { expect_bytes_arrive(some_ping_pong(), GetParam()); }

TEST_P(PingPongIn, BothRanksMayHaveOneGpu) { expect_bytes_arrive(spec_on(0, 0), GetParam()); }

TEST_P(PingPongIn, TheLargestMessageArrives) {
  const auto ping_pong = make_ping_pong(some_ping_pong());
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
  EXPECT_EQ((*ping_pong)->most_fresh_rounds(kMostPingPongBytes), 16U);
  const auto took = (*ping_pong)->run(run_of(GetParam(), kMostPingPongBytes.count, 3));
  EXPECT_TRUE(took.has_value()) << took.error().message;
}

// 400 rounds are more than a queue takes: 300 without a kernel, 225 with one.
TEST_P(PingPongIn, MoreRoundsThanAQueueTakesComeToAnEnd) {
  const auto ping_pong = make_ping_pong(some_ping_pong());
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
  for (const Duration kernel : {Duration{}, Duration{1000}}) {
    const auto took = (*ping_pong)->run(run_of(GetParam(), 7, 400, kernel));
    EXPECT_TRUE(took.has_value()) << took.error().message;
  }
}

// In place: the memory of a message holds the one before.
TEST(PingPong, ModesComeInAnyOrder) {
  const auto ping_pong = make_ping_pong(some_ping_pong());
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
  test::Random random(3);
  for (int i = 0; i < 24; ++i) {
    PingPongRun run = run_of(kPingPongModes[static_cast<std::size_t>(random.between(0, 3))], random.between(1, 40'000),
                             static_cast<std::uint64_t>(random.between(1, 9)));
    run.fresh = false;
    const auto took = (*ping_pong)->run(run);
    ASSERT_TRUE(took.has_value()) << took.error().message;
  }
}

TEST(PingPong, RefusesWhatIsNoRun) {
  const auto ping_pong = make_ping_pong(some_ping_pong());
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
  const auto refusal = [&](PingPongRun run) {
    const auto took = (*ping_pong)->run(run);
    EXPECT_TRUE(!took && took.error().code == ErrorCode::InvalidInput);
    return took ? "fine" : took.error().message;
  };
  const PingPongMode mode = PingPongMode::Kernel;
  EXPECT_EQ(refusal(run_of(mode, 0, 1)), "0 bytes of a message are not possible; give 1 to 1048576");
  EXPECT_EQ(refusal(run_of(mode, -4, 1)), "0 bytes of a message are not possible; give 1 to 1048576");
  EXPECT_EQ(refusal(run_of(mode, 2'000'000, 1)), "2000000 bytes of a message are not possible; give 1 to 1048576");
  EXPECT_EQ(refusal(run_of(mode, 4, 0)), "0 rounds are not possible; give 1 to 1000000");
  EXPECT_EQ(refusal(run_of(mode, 4, 1'000'001)), "1000001 rounds are not possible; give 1 to 1000000");
  EXPECT_EQ(refusal(run_of(mode, 1 << 20, 17)), "17 rounds in fresh memory are not possible; give 1 to 16");
  EXPECT_EQ(refusal(run_of(mode, 4, 1, milliseconds(2))),
            "a kernel of 2 ms is not possible; give one from 0 ns to 1 ms");
  EXPECT_TRUE((*ping_pong)->run(run_of(mode, 4, 1)).has_value()) << "a refusal changes nothing";
  const auto nowhere = make_ping_pong(spec_on(0, 99));
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(nowhere.error().message.substr(0, 20), "there is no GPU 99; ");
}

#ifdef TUTTI_HOST_CUDA

std::string refusal_of(const PingPongSpec& spec) {
  const auto ping_pong = make_ping_pong(spec);
  EXPECT_TRUE(!ping_pong && ping_pong.error().code == ErrorCode::InvalidInput);
  return ping_pong ? "fine" : ping_pong.error().message;
}

TEST(PingPong, RefusesGpusThatDoNotReachEachOther) {
  host_cuda::set_peer_access(false);
  EXPECT_EQ(refusal_of(spec_on(0, 1)),
            "GPU 0 does not reach the memory of GPU 1, where it puts messages; name GPUs with peer access");
  host_cuda::set_peer_access(true);
}

// One slot for two kernels of one GPU is none for each.
TEST(PingPong, RefusesAGpuWithoutRoomForBothKernels) {
  host_cuda::set_fused_slots(1);
  EXPECT_EQ(refusal_of(spec_on(0, 0)), "GPU 0 has no room for a kernel of each rank; name another one");
  host_cuda::set_fused_slots(4);
}

// Rank 1 could pass its message on at once, and rank 0 needs 10 us for a byte: a word that is set before the copy of
// its message lets garbage through.
TEST_P(PingPongIn, NoMessageOvertakesItsCopy) {
  host_cuda::device(0).copy_rate(1e-4);
  host_cuda::device(1).copy_rate(1e3);
  {
    const auto ping_pong = make_ping_pong(spec_on(0, 1));
    ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
    const auto took = (*ping_pong)->run(run_of(GetParam(), 100, 3));
    EXPECT_TRUE(took.has_value()) << took.error().message;
  }
  for (const int gpu : {0, 1}) host_cuda::device(gpu).copy_rate(host_cuda::kCopyRate);
}

// 5 rounds have 10 sends. The blocks of a message of 16 bytes are one a rank, each of 2 threads, and launched once.
TEST_P(PingPongIn, AKernelRunsInFrontOfEachSend) {
  const auto ping_pong = make_ping_pong(spec_on(0, 1));
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
  const bool in_kernel = GetParam() == PingPongMode::Kernel;
  for (const Duration kernel : {Duration{}, Duration{microseconds(5)}}) {
    const int rests = host_cuda::rests_of_blocks();
    host_cuda::count_calls("cudaLaunchKernel");
    ASSERT_TRUE((*ping_pong)->run(run_of(GetParam(), 16, 5, kernel)).has_value());
    const bool rested = kernel > Duration{};
    EXPECT_EQ(host_cuda::counted_calls("cudaLaunchKernel"), in_kernel ? 2 : rested ? 10 : 0);
    EXPECT_EQ(host_cuda::rests_of_blocks() - rests, in_kernel && rested ? 20 : 0);
  }
}

/// The n-th call of a function fails in a run.
void expect_failure(PingPongMode mode, const std::string& call, int before) {
  const auto ping_pong = make_ping_pong(spec_on(0, 1));
  ASSERT_TRUE(ping_pong.has_value());
  const bool of_driver = call.starts_with("cuStream");
  host_cuda::fail_next(call, of_driver ? 999 : static_cast<int>(cudaErrorLaunchOutOfResources), before);
  const auto took = (*ping_pong)->run(run_of(mode, 12, 5, microseconds(5)));
  ASSERT_FALSE(took.has_value()) << call;
  EXPECT_EQ(took.error().code, ErrorCode::Machine);
  EXPECT_NE(took.error().message.find(call), std::string::npos) << took.error().message;
  const auto again = (*ping_pong)->run(run_of(mode, 12, 5));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().message, "a run of the ping-pong failed before; make it anew");
}

// The other rank waits then for a message that never comes.
TEST(PingPong, AFailedCallIsAnErrorAndNoHang) {
  for (const PingPongMode mode : kPingPongModes) expect_failure(mode, "cudaLaunchKernel", 1);
  for (const PingPongMode mode : {PingPongMode::Stream, PingPongMode::ByHand})
    for (const int before : {0, 1, 4})
      for (const char* const call : {"cuStreamWaitValue32", "cuStreamWriteValue32"}) expect_failure(mode, call, before);
  // The first copy places the first message.
  for (const PingPongMode mode : {PingPongMode::Host, PingPongMode::Stream, PingPongMode::ByHand})
    expect_failure(mode, "cudaMemcpyAsync", 3);
}

// Nothing that it uses can be freed, and nothing waits for it.
TEST_P(PingPongIn, AKernelThatDoesNotEndIsLeftBehind) {
  PingPongSpec spec = spec_on(0, 1);
  spec.limit = spec.last_wait = milliseconds(50);
  {
    const auto ping_pong = make_ping_pong(spec);
    ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
    host_cuda::device(1).hang_next_kernel();
    const auto took = (*ping_pong)->run(run_of(GetParam(), 4, 3, microseconds(5)));
    ASSERT_FALSE(took.has_value());
    EXPECT_EQ(took.error().code, ErrorCode::Machine);
    EXPECT_EQ(took.error().message,
              "the work of GPU 1 is not over within 50 ms, and did not give up in the 50 ms that followed; end this "
              "program, and see whether the GPU still works");
  }
  host_cuda::device(1).release();
  for (const int gpu : {0, 1}) {  // other tests make this access themselves
    const cuda::DeviceGuard guard(gpu);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1 - gpu), cudaSuccess);
  }
}

/// Ends the process. The run takes 20 s, or its first kernel for ever, and a GPU goes meanwhile.
void lose_a_gpu(PingPongMode mode) {
  const auto ping_pong = make_ping_pong(spec_on(0, 1)).value();
  if (mode != PingPongMode::Kernel) host_cuda::device(1).hang_next_kernel();
  std::jthread losing([] {
    std::this_thread::sleep_for(milliseconds(100));
    host_cuda::device(1).lose();
  });
  const auto took = ping_pong->run(run_of(mode, 4, 10'000, milliseconds(1)));
  std::fprintf(stderr, "%s\n", took ? "fine" : took.error().message.c_str());
  std::fflush(stderr);
  losing.join();
  std::_Exit(0);
}

// What is lost stays lost, so each run is a process of its own.
TEST(PingPongDeathTest, ALostGpuIsAnErrorAndNoHang) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const PingPongMode mode : kPingPongModes)
    EXPECT_EXIT(lose_a_gpu(mode), testing::ExitedWithCode(0), "cudaErrorUnknown");
}

// 2000 rounds of 2 ms are more than 20 ms.
TEST_P(PingPongIn, ARunThatTakesTooLongGivesUp) {
  PingPongSpec spec = spec_on(0, 1);
  spec.limit = milliseconds(20);
  const auto ping_pong = make_ping_pong(spec);
  ASSERT_TRUE(ping_pong.has_value()) << ping_pong.error().message;
  const auto took = (*ping_pong)->run(run_of(GetParam(), 4, 2000, milliseconds(1)));
  ASSERT_FALSE(took.has_value());
  EXPECT_EQ(took.error().message, "2000 rounds of mode " + std::string(to_string(GetParam())) +
                                      " are not over within 20 ms; give fewer rounds or a longer limit");
}

#endif

}  // namespace
}  // namespace tutti::internal
