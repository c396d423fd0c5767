#include "runtime/cuda/discovery/sysfs.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

/// A device's folder as Linux has it, gone with the test.
class Sysfs : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& which, const std::string& speed, const std::string& width) {
    std::ofstream(folder_ / (which + "_link_speed")) << speed << '\n';
    std::ofstream(folder_ / (which + "_link_width")) << width << '\n';
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / (std::string("tutti-sysfs-") + std::to_string(getpid()));
};

TEST_F(Sysfs, TellsTheLinkNowAndAtBest) {
  write("current", "2.5 GT/s PCIe", "8");
  write("max", "32.0 GT/s PCIe", "16");
  EXPECT_EQ(cuda::sysfs_link(folder_, cuda::LinkState::Now), (PcieLink{1, 8}));
  EXPECT_EQ(cuda::sysfs_link(folder_, cuda::LinkState::AtBest), (PcieLink{5, 16}));
  write("current", "8 GT/s", "16");  // as older kernels write it
  EXPECT_EQ(cuda::sysfs_link(folder_, cuda::LinkState::Now), (PcieLink{3, 16}));
}

TEST_F(Sysfs, SaysNothingOfALinkThatIsNone) {
  EXPECT_EQ(cuda::sysfs_link(folder_, cuda::LinkState::Now), std::nullopt);
  for (const auto& [speed, width] : {std::pair("Unknown", "16"), std::pair("Unknown speed", "255"),
                                     std::pair("16.0 GT/s PCIe", "0"), std::pair("16.0 GT/s PCIe", "255")}) {
    write("current", speed, width);
    EXPECT_EQ(cuda::sysfs_link(folder_, cuda::LinkState::Now), std::nullopt) << speed << ' ' << width;
  }
}

}  // namespace
}  // namespace tutti::internal
