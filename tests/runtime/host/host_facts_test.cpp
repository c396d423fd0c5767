#include "runtime/host/host_facts.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

// Published rates of 16 lanes in one direction: 4, 8, 15.75, 31.5, 63 and 121 GB/s.
TEST(PcieLink, CarriesWhatItsStandardPromises) {
  EXPECT_DOUBLE_EQ((PcieLink{1, 16}.theoretical().value), 4);
  EXPECT_DOUBLE_EQ((PcieLink{2, 16}.theoretical().value), 8);
  EXPECT_NEAR((PcieLink{3, 16}.theoretical().value), 15.754, 0.001);
  EXPECT_NEAR((PcieLink{4, 16}.theoretical().value), 31.508, 0.001);
  EXPECT_NEAR((PcieLink{5, 16}.theoretical().value), 63.015, 0.001);
  EXPECT_DOUBLE_EQ((PcieLink{6, 16}.theoretical().value), 121);
  EXPECT_DOUBLE_EQ((PcieLink{6, 4}.theoretical().value), 121 / 4.0);
}

TEST(PcieLink, TwoInARowLetThroughWhatBothDo) {
  const PcieLink fast{5, 8};
  const PcieLink wide{3, 16};
  EXPECT_EQ(narrower(fast, wide), (PcieLink{3, 8}));
  EXPECT_EQ(narrower(fast, std::nullopt), fast);
  EXPECT_EQ(narrower(std::nullopt, wide), wide);
  EXPECT_EQ(narrower(std::nullopt, std::nullopt), std::nullopt);
}

HostFacts host_with(std::initializer_list<std::pair<const char*, const char*>> ids) {
  HostFacts host;
  for (const auto& [bus_id, uuid] : ids) {
    DeviceFacts& device = host.devices.emplace_back();
    device.bus_id = bus_id;
    device.uuid = uuid;
  }
  return host;
}

TEST(FindDevice, KnowsEveryWayToWriteAnId) {
  const HostFacts host =
      host_with({{"0000:06:00.0", "GPU-0a0b0c0d-0000-0000-0000-000000000001"}, {"0001:c6:00.0", "GPU-2"}});
  for (const char* const id : {"0000:06:00.0", "06:00.0", "00000000:06:00.0", "0:6:0.0",
                               "GPU-0a0b0c0d-0000-0000-0000-000000000001", "gpu-0A0B0C0D-0000-0000-0000-000000000001"})
    EXPECT_EQ(find_device(host, id), &host.devices[0]) << id;
  for (const char* const id : {"0001:C6:00.0", "c6:00.0", "00000001:C6:00.0"})
    EXPECT_EQ(find_device(host, id), &host.devices[1]) << id;
  for (const char* const id : {"", "0", "gpu0", "0000:c6:00.0", "07:00.0", "06:00.1", "06:00", "x:06:00.0", ":06:00.0",
                               "06:00.", "GPU-", "06:00.0 "})
    EXPECT_EQ(find_device(host, id), nullptr) << id;
}

TEST(FindDevice, AsksForTheDomainWhereTwoFit) {
  const HostFacts host = host_with({{"0001:00:00.0", "GPU-1"}, {"0002:00:00.0", "GPU-2"}});
  EXPECT_EQ(find_device(host, "00:00.0"), nullptr);
  EXPECT_EQ(find_device(host, "2:00:00.0"), &host.devices[1]);
}

}  // namespace
}  // namespace tutti::internal
