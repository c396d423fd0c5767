#include "apps/wafer_inspection/camera.hpp"

#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace wafer {
namespace {

using namespace std::chrono_literals;

TEST(Camera, ThatIsNotThereIsTroubleOfTheHost) {
  const auto camera = open_camera("Nobody-Has-This-1");
  ASSERT_FALSE(camera.has_value());
  EXPECT_EQ(camera.error().code, tutti::ErrorCode::Machine);
  EXPECT_NE(camera.error().message.find("'Nobody-Has-This-1'"), std::string::npos);
}

// Aravis' own camera in this process: 512 x 512, a ramp of gray levels.
TEST(Camera, GivesAFrame) {
  const auto camera = open_camera("Fake_1");
  ASSERT_TRUE(camera.has_value()) << camera.error().message;
  EXPECT_EQ((*camera)->name(), "Fake_1");
  EXPECT_EQ((*camera)->width(), 512);
  EXPECT_EQ((*camera)->height(), 512);
  const auto frame = (*camera)->first_frame(50ms);
  ASSERT_TRUE(frame.has_value()) << frame.error().message;
  EXPECT_EQ(frame->bits(), 8);
  EXPECT_EQ(frame->bytes().size(), 512U * 512U);
  EXPECT_GT(std::set<int>(frame->bytes().begin(), frame->bytes().end()).size(), 100U);
}

// No run has begun, so no frame releases a job and none is lost. The camera can be asked for a frame again behind that.
TEST(Camera, DeliversToAQueueThatNoRunHas) {
  const auto camera = open_camera("Fake_1");
  ASSERT_TRUE(camera.has_value()) << camera.error().message;
  FrameQueue frames(tutti::Trigger(), 10ms, 0ms);
  std::atomic<bool> lost = false;
  ASSERT_TRUE((*camera)->deliver(frames, lost).has_value());
  std::this_thread::sleep_for(300ms);
  (*camera)->stop();
  EXPECT_EQ((*camera)->counts().released, 0U);
  EXPECT_EQ((*camera)->counts().lost(), 0U);
  EXPECT_FALSE(lost);
  EXPECT_FALSE((*camera)->is_lost());
  EXPECT_TRUE((*camera)->first_frame(50ms).has_value());
}

}  // namespace
}  // namespace wafer
