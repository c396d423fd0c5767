#include "runtime/host/cuda_library.hpp"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

/// A folder of its own for a file that is no CUDA backend, gone with the test.
class CudaLibrary : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string refusal() const {
    const auto opened = open_cuda_library({folder_ / "missing", folder_});
    if (opened) return "";
    EXPECT_EQ(opened.error().code, ErrorCode::Machine);
    return opened.error().message;
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("tutti-cuda-library-" + std::to_string(getpid()));
  const std::filesystem::path file_ = folder_ / "libtutti_cuda.so";
};

/// The C library's file, as this program has it open.
std::filesystem::path c_library() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("/libc.so") != std::string::npos) return line.substr(line.find('/'));
  return {};
}

TEST_F(CudaLibrary, SaysWhyItDoesNotLoad) {
  std::ofstream(file_) << "no library";
  EXPECT_NE(refusal().find("the CUDA backend does not load (" + file_.string()), std::string::npos) << refusal();
}

TEST_F(CudaLibrary, RefusesALibraryWithoutTheFunction) {
  std::filesystem::create_symlink(c_library(), file_);
  EXPECT_EQ(refusal().find(file_.string() + " has no function tutti_cuda_v3, so it belongs to another version"), 0U)
      << refusal();
}

// The library beside this program is found first, and is of version 0.0.1.
TEST_F(CudaLibrary, RefusesAnotherVersionThanTheProgramHas) {
  const auto opened = open_cuda_library();
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().message.find("belongs to tutti 0.0.1, and this program to tutti"), std::string::npos)
      << opened.error().message;
}

}  // namespace
}  // namespace tutti::internal
