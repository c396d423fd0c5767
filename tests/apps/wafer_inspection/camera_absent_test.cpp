#include <gtest/gtest.h>

#include "apps/wafer_inspection/camera.hpp"

namespace wafer {
namespace {

// The program of a build without Aravis says what to install.
TEST(CameraAbsent, NamesThePackages) {
  const auto camera = open_camera("");
  ASSERT_FALSE(camera.has_value());
  EXPECT_EQ(camera.error().code, tutti::ErrorCode::InvalidInput);
  EXPECT_NE(camera.error().message.find("was built without Aravis; install libaravis-dev and libusb-1.0-0-dev"),
            std::string::npos);
}

}  // namespace
}  // namespace wafer
