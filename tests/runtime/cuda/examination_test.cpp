// Needs a GPU. What each row makes of these values is tested in doctor/gpu_checks_test.cpp.
#include "runtime/cuda/discovery/examination.hpp"

#include <gtest/gtest.h>

#include "runtime/cuda/discovery/discovery.hpp"
#include "runtime/host/device_users.hpp"

namespace tutti::internal {
namespace {

TEST(Examination, LooksAtEveryGpuUnderLoad) {
  const auto host = discover_host();
  ASSERT_TRUE(host.has_value()) << host.error().message;
  for (const DeviceFacts& device : host->devices) {
    const GpuCondition gpu = examine_gpu(device);
    EXPECT_EQ(gpu.bus_id, device.bus_id);
    EXPECT_EQ(gpu.no_load, "");
    EXPECT_FALSE(gpu.other_run);
    EXPECT_EQ(gpu.link_at_best, device.link_at_best);
    EXPECT_EQ(gpu.others, host->devices.size() - 1);
    EXPECT_LE(gpu.reached, *gpu.others);
    EXPECT_TRUE(gpu.limits_kernels.has_value());
    EXPECT_EQ(gpu.gate_sms, device.gate_sms);
    EXPECT_EQ(gpu.link_under_load.has_value(), device.link.has_value());
    // A driver that lists one of them has answered, and knows the modes of every GPU.
    EXPECT_EQ(gpu.stays_loaded.has_value(), gpu.compute_mode.has_value());
  }
}

TEST(Examination, CopiesNothingBesideAnotherRun) {
  const auto host = discover_host();
  ASSERT_TRUE(host.has_value()) << host.error().message;
  const DeviceFacts& device = host->devices.front();
  const auto run = DeviceUser::enter(DeviceUser::kFolder, device.bus_id);
  ASSERT_TRUE(run.has_value());
  const GpuCondition gpu = examine_gpu(device);
  EXPECT_TRUE(gpu.other_run);
  EXPECT_NE(gpu.no_load, "");
  EXPECT_EQ(gpu.link_under_load, std::nullopt);
  EXPECT_FALSE(run->is_not_alone());  // looking is not using
}

}  // namespace
}  // namespace tutti::internal
