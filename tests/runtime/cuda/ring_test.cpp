// Jobs on GPUs that take the newest frame of a camera.
#include <memory>

#include <gtest/gtest.h>

#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/ring_runs.hpp"

namespace tutti::internal {
namespace {

using test::make_cuda;
using test::RingWay;
using test::Station;

class CudaRing : public testing::TestWithParam<std::tuple<Station::MakeBackend, RingWay>> {};

INSTANTIATE_TEST_SUITE_P(Ways, CudaRing,
                         testing::Combine(testing::Values(make_cuda<GateKind::PollingKernel>,
                                                          make_cuda<GateKind::DeviceTimer>),
                                          testing::ValuesIn(test::kRingWays)));

TEST_P(CudaRing, JobsGetWholeFramesOfACameraAtAnotherRate) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "skipped: runs that count for nothing, the first ones and disarmed ones, read whatever is in a slot";
#endif
  const auto& [make_backend, way] = GetParam();
  Station station(std::make_unique<test::DeviceClock>(), make_backend);
  test::expect_whole_frames(station, way, std::chrono::milliseconds{test::kDevicesAreInTime ? 1 : 5},
                            test::kDevicesAreInTime ? 2'000 : 60);
}

}  // namespace
}  // namespace tutti::internal
