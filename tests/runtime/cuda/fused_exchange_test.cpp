// Messages between GPUs by fused kernels alone. Part of the suite `gpu`; without a GPU the blocks are threads of the
// host.
#include "runtime/cuda/fused/fused_exchange.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

#include <gtest/gtest.h>

#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/discovery/discovery.hpp"
#include "tests/support/random.hpp"
#ifdef TUTTI_HOST_CUDA
#include "tests/support/host_cuda/host_cuda.hpp"
#endif

namespace tutti::internal {
namespace {

#ifdef TUTTI_HOST_CUDA
constexpr std::uint64_t kUsualRounds = test::rounds(60U);
constexpr std::uint32_t kUsualWords = 16;
#else
constexpr std::uint64_t kUsualRounds = 2000;
constexpr std::uint32_t kUsualWords = 1024;
#endif

/// Rounds of one exchange: `TUTTI_FUSED_ROUNDS`, or a number for tests that run often.
std::uint64_t rounds() {
  const char* const asked = std::getenv("TUTTI_FUSED_ROUNDS");
  return asked == nullptr ? kUsualRounds : std::strtoull(asked, nullptr, 10);
}

int gpus_here() {
  const auto host = discover_host();
  return host ? static_cast<int>(host->devices.size()) : 0;
}

FusedExchangeSpec exchange_of(std::vector<int> gpus) {
  FusedExchangeSpec spec;
  spec.gpus = std::move(gpus);
  spec.rounds = rounds();
  spec.message_words = kUsualWords;
  spec.inner_words = 4 * kUsualWords;
  spec.limit = std::chrono::minutes(4) + spec.rounds * std::chrono::microseconds(200);  // for what hangs
  return spec;
}

/// Every word of every message was right, no word more or less was unpacked, and all inner work was done.
void expect_holds(const FusedExchangeSpec& spec) {
  const auto result = run_fused_exchange(spec);
  ASSERT_TRUE(result.has_value()) << result.error().message;
  const std::uint64_t ranks = spec.gpus.size();
  EXPECT_EQ(result->messages, spec.rounds * ranks * (ranks - 1));
  EXPECT_EQ(result->expected, result->messages * spec.message_words);
  EXPECT_EQ(result->right, result->expected);
  EXPECT_EQ(result->wrong, 0U);
  EXPECT_EQ(result->inner_wrong, 0U);
  testing::Test::RecordProperty("messages", std::to_string(result->messages));
  testing::Test::RecordProperty("ms", std::to_string(result->length / std::chrono::milliseconds(1)));
}

std::string refusal(const FusedExchangeSpec& spec, ErrorCode code = ErrorCode::InvalidInput) {
  const auto result = run_fused_exchange(spec);
  if (result) return "fine";
  EXPECT_EQ(result.error().code, code);
  return result.error().message;
}

class KernelInitiatedOn : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(KernelInitiated, KernelInitiatedOn, testing::Range(1, 5));

// A single GPU has two ranks, which share its slots; otherwise each has a GPU.
TEST_P(KernelInitiatedOn, EveryMessageComesOnceAndWhole) {
  if (gpus_here() < GetParam())
    GTEST_SKIP() << "skipped: " << GetParam() << " GPUs are needed, and there are " << gpus_here();
  std::vector<int> gpus(static_cast<std::size_t>(GetParam()));
  std::iota(gpus.begin(), gpus.end(), 0);
  if (GetParam() == 1) gpus.push_back(0);
  expect_holds(exchange_of(gpus));
}

TEST(KernelInitiated, TwoBlocksOfEachGpuAreEnough) {
  FusedExchangeSpec spec = exchange_of({0, 0});
  spec.senders = 5, spec.unpackers = 7, spec.most_blocks = 2;
  expect_holds(spec);
}

TEST(KernelInitiated, MoreBlocksOfARoundThanFitAtOnceTakeTurns) {
  FusedExchangeSpec spec = exchange_of({0, 0});
  spec.senders = spec.unpackers = 40, spec.most_blocks = 3;
  spec.message_words = 100;  // pieces of 2 or 3 words
  spec.rounds = std::min<std::uint64_t>(spec.rounds, 20);
  expect_holds(spec);
}

TEST(KernelInitiated, BuffersAreUsedInTurn) {
#ifdef TUTTI_HOST_CUDA
  host_cuda::set_fused_slots(6);
#endif
  for (const std::uint32_t buffers : {2U, 3U}) {
    FusedExchangeSpec spec = exchange_of({0, 0, 0});
    spec.most_blocks = 2, spec.buffers = buffers;
    expect_holds(spec);
  }
#ifdef TUTTI_HOST_CUDA
  host_cuda::set_fused_slots(4);
#endif
}

// 7 rounds in launches of 3: the last has one.
TEST(KernelInitiated, LaunchesGoOnWhereTheOneBeforeEnded) {
  FusedExchangeSpec spec = exchange_of({0, 0});
  spec.rounds = 7;
  for (const std::uint64_t each : {1U, 3U}) {
    spec.rounds_a_launch = each;
    expect_holds(spec);
  }
}

// One word has one piece with something in it; the others are empty, and count all the same.
TEST(KernelInitiated, MessagesMayBeSmallerThanTheirPieces) {
  FusedExchangeSpec spec = exchange_of({0, 0});
  spec.message_words = 1, spec.inner_words = 0, spec.senders = spec.unpackers = 3;
  expect_holds(spec);
}

// Receivers of the first two rounds wait; whichever sees first that it is to give up says so.
TEST(KernelInitiated, ASilentPeerEndsInAnErrorThatNamesIt) {
  FusedExchangeSpec spec = exchange_of({0, 0});
  spec.limit = std::chrono::milliseconds(50), spec.absent = 1;
  std::string said = refusal(spec, ErrorCode::Machine);
  if (const auto second = said.find("in round 1"); second != std::string::npos) said[second + 9] = '0';
  EXPECT_EQ(
      said,
      "the fused kernels are not over within 50 ms: in round 0 rank 0 (GPU 0) waits for the message of rank 1 (GPU 0); "
      "see whether that GPU runs its kernel, or give a longer limit");
}

TEST(KernelInitiated, RefusesWhatIsNoExchange) {
  const auto with = [](auto change) {
    FusedExchangeSpec spec = exchange_of({0, 0});
    change(spec);
    return refusal(spec);
  };
  using Spec = FusedExchangeSpec&;
  EXPECT_EQ(with([](Spec spec) { spec.gpus = {0}; }), "1 ranks are not possible; give 2 to 33");
  EXPECT_EQ(with([](Spec spec) { spec.rounds = 0; }), "0 rounds are not possible; give 1 to 4294967296");
  EXPECT_EQ(with([](Spec spec) { spec.message_words = 0; }), "0 words a message are not possible; give 1 to 1048576");
  EXPECT_EQ(with([](Spec spec) { spec.threads = 33; }), "33 threads a block are no multiple of 32; give one");
  EXPECT_EQ(with([](Spec spec) { spec.most_blocks = 1; }).substr(0, 26), "a limit of 1 block leaves ");
  EXPECT_EQ(with([](Spec spec) { spec.gpus = {0, 0, 0}, spec.senders = 1; }).substr(0, 23), "1 senders for 2 peers a");
  EXPECT_EQ(with([](Spec spec) { spec.gpus = {0, 99}; }).substr(0, 20), "there is no GPU 99; ");
}

#ifdef TUTTI_HOST_CUDA

// 4 slots for 3 kernels are 1 for each.
TEST(KernelInitiated, RefusesMoreKernelsThanTheGpuHasSlotsFor) {
  EXPECT_EQ(
      refusal(exchange_of({0, 0, 0})),
      "a fused kernel needs 2 blocks at once, one to receive and one to send, and has 1 (SMs: 1, blocks of 128 threads "
      "on each: 4, fused kernels on the GPU: 3); give blocks fewer threads, or the GPU fewer kernels");
}

TEST(KernelInitiated, RefusesGpusThatDoNotReachEachOther) {
  host_cuda::set_peer_access(false);
  EXPECT_EQ(refusal(exchange_of({0, 1})),
            "GPU 0 does not reach the memory of GPU 1, where fused kernels put messages; name GPUs with peer access");
  host_cuda::set_peer_access(true);
}

TEST(KernelInitiated, AFailedCallIsAnErrorAndNoHang) {
  for (const char* function :
       {"cudaMalloc", "cudaHostAlloc", "cudaMemsetAsync", "cudaStreamQuery", "cudaMemcpyAsync"}) {
    host_cuda::fail_next(function, cudaErrorMemoryAllocation);
    EXPECT_NE(refusal(exchange_of({0, 0}), ErrorCode::Machine).find(function), std::string::npos) << function;
  }
}

// Nothing that it uses can be freed, and nothing waits for it.
TEST(KernelInitiated, AKernelThatDoesNotGiveUpIsLeftBehind) {
  host_cuda::device(1).hang_next_kernel();
  FusedExchangeSpec spec = exchange_of({0, 1});
  spec.limit = spec.last_wait = std::chrono::milliseconds(50);
  EXPECT_EQ(
      refusal(spec, ErrorCode::Machine),
      "the fused kernel of GPU 1 is not over within 50 ms, and did not give up in the 50 ms that followed; end this "
      "program, and see whether the GPU still works");
  host_cuda::device(1).release();
  for (const int gpu : {0, 1}) {  // other tests make this access themselves
    const cuda::DeviceGuard guard(gpu);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1 - gpu), cudaSuccess);
  }
}

TEST(KernelInitiated, AFailedLaunchOfOneRankIsAnErrorAndNoHang) {
  host_cuda::fail_next("cudaLaunchKernel", cudaErrorLaunchOutOfResources, 1);
  EXPECT_NE(refusal(exchange_of({0, 0}), ErrorCode::Machine).find("cudaLaunchKernel"), std::string::npos);
}

#endif

}  // namespace
}  // namespace tutti::internal
