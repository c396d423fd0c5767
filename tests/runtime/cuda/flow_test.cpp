#include <cstdint>
#include <memory>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/flow_runs.hpp"
#include "tests/runtime/shared_runs.hpp"

namespace tutti::internal {
namespace {

using test::FlowTraits;
using test::FlowWay;
using test::make_cuda;
using test::Station;

/// On GPUs; kernels on a cpu only where jobs do not overlap.
class CudaFlow : public testing::TestWithParam<std::tuple<Station::MakeBackend, FlowWay>> {};

INSTANTIATE_TEST_SUITE_P(Ways, CudaFlow,
                         testing::Combine(testing::Values(make_cuda<GateKind::PollingKernel>,
                                                          make_cuda<GateKind::DeviceTimer>),
                                          testing::ValuesIn(test::kFlowWays)));

TEST_P(CudaFlow, GivesTheBytesOfAPlainProgram) {
  const auto& [make_backend, way] = GetParam();
  FlowTraits traits;
  traits.gpus = {"gpu0", "gpu1", "gpu2"};
  traits.work_on_cpu = way.overlap == Overlap::Off;
  for (std::uint64_t seed = 1; seed <= (test::kDevicesAreInTime ? 20U : 3U); ++seed) {
    Station station(std::make_unique<test::DeviceClock>(), make_backend);
    ASSERT_TRUE(station.kernels.add("mix", test::mix, test::device_mix()).has_value());
    test::expect_flows(station, seed, way, traits, std::chrono::milliseconds{20}, false, 3);
    if (HasFailure()) return;
  }
}

/// Tasks that read what others have left on GPUs.
class CudaSharing : public testing::TestWithParam<std::tuple<Station::MakeBackend, test::SharingWay>> {};

INSTANTIATE_TEST_SUITE_P(Ways, CudaSharing,
                         testing::Combine(testing::Values(make_cuda<GateKind::PollingKernel>,
                                                          make_cuda<GateKind::DeviceTimer>),
                                          testing::ValuesIn(test::kSharingWays)));

TEST_P(CudaSharing, ReadsWhatTheNewestCompleteJobLeft) {
  const auto& [make_backend, way] = GetParam();
  test::SharingCounts counts;
  for (std::uint64_t seed = 1; seed <= (test::kDevicesAreInTime ? 20U : 3U); ++seed) {
    Station station(std::make_unique<test::DeviceClock>(), make_backend);
    test::expect_sharing(station, seed, way, {"gpu0", "gpu1", "gpu2"}, std::chrono::milliseconds{2}, 20, counts,
                         test::kDevicesAreInTime);
    if (HasFailure()) return;
  }
  EXPECT_GT(counts.looks, 0U);
}

}  // namespace
}  // namespace tutti::internal
