// The CUDA backend as a library of its own, beside the same code linked into this program.
#include <gtest/gtest.h>

#include "runtime/cuda/discovery/discovery.hpp"
#include "runtime/host/cuda_library.hpp"

namespace tutti::internal {
namespace {

TEST(CudaFunctions, FindWhatTheLinkedBackendFinds) {
  const auto opened = open_cuda_library({cuda_library_folders().front() / "../../runtime/cuda"});
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const auto found = (*opened)->discover_host();
  const auto expected = discover_host();
  ASSERT_EQ(found.has_value(), expected.has_value());
  if (!found) {
    EXPECT_EQ(found.error(), expected.error());
  } else {
    EXPECT_EQ(found->devices.front().uuid, expected->devices.front().uuid);
  }
}

}  // namespace
}  // namespace tutti::internal
