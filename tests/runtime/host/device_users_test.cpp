#include "runtime/host/device_users.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/apps/temporary_folder.hpp"

namespace tutti::internal {
namespace {

TEST(DeviceUser, SeesAnotherOfTheSameDevice) {
  const wafer::TemporaryFolder folder;
  const auto first = DeviceUser::enter(folder.path().string(), "0000:06:00.0");
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(first->is_not_alone());
  const auto other = DeviceUser::enter(folder.path().string(), "0000:07:00.0");
  EXPECT_FALSE(first->is_not_alone());
  const auto second = DeviceUser::enter(folder.path().string(), "0000:06:00.0");
  EXPECT_TRUE(first->is_not_alone());
  EXPECT_TRUE(second->is_not_alone());
  EXPECT_FALSE(other->is_not_alone());
}

TEST(DeviceUser, KnowsThatAnotherCameAndWent) {
  const wafer::TemporaryFolder folder;
  const auto first = DeviceUser::enter(folder.path().string(), "gpu");
  EXPECT_TRUE(DeviceUser::enter(folder.path().string(), "gpu")->is_not_alone());
  EXPECT_TRUE(first->is_not_alone());
}

TEST(DeviceUser, IsSeenWithoutASignOfOnesOwn) {
  const wafer::TemporaryFolder folder;
  EXPECT_FALSE(DeviceUser::is_used(folder.path().string(), "gpu"));
  {
    const auto first = DeviceUser::enter(folder.path().string(), "gpu");
    EXPECT_TRUE(DeviceUser::is_used(folder.path().string(), "gpu"));
    EXPECT_FALSE(DeviceUser::is_used(folder.path().string(), "other"));
    EXPECT_FALSE(first->is_not_alone());  // looking is not using
  }
  EXPECT_FALSE(DeviceUser::is_used(folder.path().string(), "gpu"));
}

TEST(DeviceUser, LeavesNothingBehind) {
  const wafer::TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(DeviceUser::enter(folder.path().string(), "gpu")->is_not_alone());
}

// A program that is killed takes its sign with it.
TEST(DeviceUser, IsGoneWhenItsProgramIsKilled) {
  const wafer::TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto user = DeviceUser::enter(folder.path().string(), "gpu");
    static_cast<void>(!::write(ready[1], "x", 1));
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(DeviceUser::enter(folder.path().string(), "gpu")->is_not_alone());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(DeviceUser::enter(folder.path().string(), "gpu")->is_not_alone());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(DeviceUser, IsNobodyWhereThereIsNoFolder) {
  EXPECT_FALSE(DeviceUser::enter("/no/such/folder", "gpu").has_value());
}

// Neither through a link nor where a folder has the name.
TEST(DeviceUser, TakesNothingButAFile) {
  const wafer::TemporaryFolder folder;
  std::ofstream(folder.file("elsewhere")) << "x";
  std::filesystem::create_symlink(folder.file("elsewhere"), folder.file("tutti-gpu.users"));
  EXPECT_FALSE(DeviceUser::enter(folder.path().string(), "gpu").has_value());
  std::filesystem::create_directory(folder.file("tutti-gpu1.users"));
  EXPECT_FALSE(DeviceUser::enter(folder.path().string(), "gpu1").has_value());
}

TEST(OtherProcesses, AreAllButThisOne) {
  using Processes = std::vector<std::uint32_t>;
  EXPECT_EQ(other_processes(Processes{}, 7), 0U);
  EXPECT_EQ(other_processes(Processes{7}, 7), 0U);
  EXPECT_EQ(other_processes(Processes{7, 9}, 7), 1U);
  EXPECT_EQ(other_processes(Processes{31}, 7), 0U) << "it is this one, by another number";
  EXPECT_EQ(other_processes(Processes{31, 32, 33}, 7), 2U);
}

}  // namespace
}  // namespace tutti::internal
