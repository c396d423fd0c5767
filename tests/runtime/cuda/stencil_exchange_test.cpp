// A stencil on several GPUs, in each way to run it. Part of the suite `gpu`; without a GPU the kernels are functions of
// the host.
#include "runtime/cuda/fused/stencil_exchange.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cuda/discovery/discovery.hpp"
#include "tests/support/random.hpp"
#ifdef TUTTI_HOST_CUDA
#include "runtime/cuda/base/handles.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"
#endif

namespace tutti::internal {
namespace {

std::vector<int> some_gpus(std::size_t ranks) {
  const auto host = discover_host();
  const std::size_t count = host ? host->devices.size() : 0;
  std::vector<int> gpus;
  for (std::size_t r = 0; r < ranks; ++r) gpus.push_back(count == 0 ? 0 : static_cast<int>(r % count));
  return gpus;
}

StencilSpec stencil_of(std::size_t ranks, int dimensions, std::uint32_t edge, std::uint32_t layers) {
  StencilSpec spec;
  spec.gpus = some_gpus(ranks);
  spec.dimensions = dimensions, spec.edge = edge, spec.layers = layers;
  spec.limit = std::chrono::minutes(4);  // for what hangs
  return spec;
}

/// The same field by coordinates, point after point.
std::vector<std::uint64_t> slow_stencil(const StencilSpec& spec, std::uint64_t seed, std::uint64_t iterations) {
  const std::int64_t width = spec.edge, rows = spec.dimensions == 3 ? spec.edge : 1;
  const auto layers = static_cast<std::int64_t>(spec.layers * spec.gpus.size());
  std::vector<std::uint64_t> field(static_cast<std::size_t>(layers * rows * width));
  for (std::size_t i = 0; i < field.size(); ++i) field[i] = stencil_start(seed, i);
  for (; iterations > 0; --iterations) {
    const std::vector<std::uint64_t> old = field;
    const auto at = [&](std::int64_t z, std::int64_t y, std::int64_t x) -> std::uint64_t {
      if (x < 0 || x >= width || y < 0 || y >= rows) return 0;
      return old[static_cast<std::size_t>(((z + layers) % layers * rows + y) * width + x)];
    };
    std::size_t place = 0;
    for (std::int64_t z = 0; z < layers; ++z)
      for (std::int64_t y = 0; y < rows; ++y)
        for (std::int64_t x = 0; x < width; ++x)
          field[place++] = 3 * at(z, y, x) + at(z - 1, y, x) + at(z + 1, y, x) + at(z, y - 1, x) + at(z, y + 1, x) +
                           at(z, y, x - 1) + at(z, y, x + 1);
  }
  return field;
}

std::vector<std::uint64_t> field_after(const StencilSpec& spec, std::uint64_t seed,
                                       const std::vector<std::pair<ControlMode, std::uint64_t>>& runs) {
  const auto stencil = make_stencil(spec);
  EXPECT_TRUE(stencil.has_value()) << stencil.error().message;
  if (!stencil) return {};
  EXPECT_TRUE((*stencil)->fill(seed).has_value());
  for (const auto& [mode, iterations] : runs) {
    const auto took = (*stencil)->run(mode, iterations);
    EXPECT_TRUE(took.has_value()) << took.error().message;
    if (!took) return {};
  }
  return (*stencil)->field().value();
}

std::string refusal(const StencilSpec& spec, std::uint64_t iterations = 1) {
  const auto stencil = make_stencil(spec);
  if (!stencil) {
    EXPECT_EQ(stencil.error().code, ErrorCode::InvalidInput);
    return stencil.error().message;
  }
  const auto took = (*stencil)->run(ControlMode::Stream, iterations);
  return took ? "fine" : took.error().message;
}

class StencilIn : public testing::TestWithParam<ControlMode> {};

INSTANTIATE_TEST_SUITE_P(Stencil, StencilIn, testing::ValuesIn(kControlModes),
                         [](const auto& mode) { return std::string(to_string(mode.param)); });

// Random small fields of both dimensions, on 1 to 4 ranks; where there are fewer GPUs, several have the same one.
TEST_P(StencilIn, EveryPointIsThatOfTheSlowOracle) {
  test::Random random(18);
  for (int round = 0; round < test::rounds(24); ++round) {
    const auto ranks = static_cast<std::size_t>(round % 4 + 1);
    const StencilSpec spec = stencil_of(ranks, random.between(2, 3), static_cast<std::uint32_t>(random.between(1, 9)),
                                        static_cast<std::uint32_t>(random.between(2, 7)));
    const auto iterations = static_cast<std::uint64_t>(random.between(1, 9));
    const std::uint64_t seed = random.next();
    EXPECT_EQ(field_after(spec, seed, {{GetParam(), iterations}}), slow_stencil(spec, seed, iterations))
        << ranks << " ranks, " << spec.dimensions << "D, edge " << spec.edge << ", layers " << spec.layers << ", "
        << iterations << " iterations";
  }
}

// 2 ranks of 16 layers are 1 of 32.
TEST_P(StencilIn, SeveralGpusGiveTheBitsOfOne) {
  const StencilSpec several = stencil_of(2, 3, 16, 16), one = stencil_of(1, 3, 16, 32);
  EXPECT_EQ(field_after(several, 7, {{GetParam(), 20}}), field_after(one, 7, {{GetParam(), 20}}));
}

// Rounds of the field and of the fused kernels' words are counted apart: odd runs of another mode come between.
TEST(Stencil, ModesGoOnWhereAnotherOneEnded) {
  const StencilSpec spec = stencil_of(2, 3, 5, 4);
  EXPECT_EQ(field_after(spec, 3,
                        {{ControlMode::Host, 3},
                         {ControlMode::Kernel, 5},
                         {ControlMode::Stream, 1},
                         {ControlMode::Kernel, 2},
                         {ControlMode::Host, 1},
                         {ControlMode::Kernel, 1}}),
            slow_stencil(spec, 3, 13));
}

TEST(Stencil, PartsAreTimedAndTheFieldCanBeFilledAgain) {
  const StencilSpec spec = stencil_of(2, 3, 6, 4);
  const auto stencil = make_stencil(spec);
  ASSERT_TRUE(stencil.has_value()) << stencil.error().message;
  const auto steps = (*stencil)->time_steps(3);
  ASSERT_TRUE(steps.has_value()) << steps.error().message;
  EXPECT_GT(steps->launch, Duration{});
  EXPECT_GE(steps->senders, 2U);
  EXPECT_GE(steps->unpackers, 2U);
  EXPECT_GE(steps->blocks, 2U);
  ASSERT_TRUE((*stencil)->fill(4).has_value());
  ASSERT_TRUE((*stencil)->run(ControlMode::Kernel, 3).has_value());
  EXPECT_EQ((*stencil)->field(), slow_stencil(spec, 4, 3));
}

TEST(Stencil, RefusesWhatIsNoStencil) {
  const auto with = [](auto change) {
    StencilSpec spec = stencil_of(1, 3, 4, 4);
    change(spec);
    return refusal(spec);
  };
  using Spec = StencilSpec&;
  EXPECT_EQ(with([](Spec spec) { spec.gpus = {}; }), "0 ranks are not possible; give 1 to 32");
  EXPECT_EQ(with([](Spec spec) { spec.dimensions = 4; }), "4 dimensions are not possible; give 2 to 3");
  EXPECT_EQ(with([](Spec spec) { spec.edge = 0; }), "0 points along an edge are not possible; give 1 to 4096");
  EXPECT_EQ(with([](Spec spec) { spec.layers = 1; }), "1 layers a GPU are not possible; give 2 to 65536");
  EXPECT_EQ(with([](Spec spec) { spec.edge = 4096, spec.layers = 65536; }).substr(0, 13), "1099545182208");
  EXPECT_EQ(with([](Spec spec) { spec.threads = 33; }), "33 threads a block are no multiple of 32; give one");
  EXPECT_EQ(with([](Spec spec) { spec.gpus = {0, 99}; }).substr(0, 20), "there is no GPU 99; ");
  EXPECT_EQ(refusal(stencil_of(1, 3, 4, 4), 0), "0 iterations are not possible; give 1 to 2147483648");
}

#ifdef TUTTI_HOST_CUDA

TEST(Stencil, RefusesGpusThatDoNotReachEachOther) {
  host_cuda::set_peer_access(false);
  EXPECT_EQ(refusal(stencil_of(2, 3, 4, 4)),
            "GPU 0 does not reach the memory of GPU 1, where it puts layers; name GPUs with peer access");
  host_cuda::set_peer_access(true);
}

TEST(Stencil, AFailedCallIsAnErrorAndNoHang) {
  for (const ControlMode mode : kControlModes) {
    const auto stencil = make_stencil(stencil_of(2, 3, 4, 4));
    ASSERT_TRUE(stencil.has_value());
    host_cuda::fail_next("cudaLaunchKernel", cudaErrorLaunchOutOfResources, 1);
    const auto took = (*stencil)->run(mode, 3);
    ASSERT_FALSE(took.has_value());
    EXPECT_EQ(took.error().code, ErrorCode::Machine);
    EXPECT_NE(took.error().message.find("cudaLaunchKernel"), std::string::npos) << took.error().message;
  }
}

// Nothing that it uses can be freed, and nothing waits for it.
TEST(Stencil, AFusedKernelThatDoesNotGiveUpIsLeftBehind) {
  StencilSpec spec = stencil_of(2, 3, 4, 4);
  spec.limit = spec.last_wait = std::chrono::milliseconds(50);
  {
    const auto stencil = make_stencil(spec);
    ASSERT_TRUE(stencil.has_value()) << stencil.error().message;
    host_cuda::device(1).hang_next_kernel();
    const auto took = (*stencil)->run(ControlMode::Kernel, 3);
    ASSERT_FALSE(took.has_value());
    EXPECT_EQ(took.error().code, ErrorCode::Machine);
    EXPECT_EQ(took.error().message,
              "the fused kernel of GPU 1 is not over within 50 ms, and did not give up in the 50 ms that followed; end "
              "this program, and see whether the GPU still works");
  }
  host_cuda::device(1).release();
  for (const int gpu : {0, 1}) {  // other tests make this access themselves
    const cuda::DeviceGuard guard(gpu);
    EXPECT_EQ(cudaDeviceDisablePeerAccess(1 - gpu), cudaSuccess);
  }
}

#endif

}  // namespace
}  // namespace tutti::internal
