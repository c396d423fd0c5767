// The suite `gpu`: what needs a real GPU. Where there is none, one test says so and is skipped, and no other runs.
#include <gtest/gtest.h>

#include "runtime/cuda/discovery/discovery.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {

test::DeviceForms test::device_forms(const HostKernel& mark) { return {device_invert(), device_mark(mark)}; }

namespace {

TEST(Gpu, IsThere) {
  if (const auto host = discover_host(); !host) GTEST_SKIP() << "skipped: no device: " << host.error().message;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!tutti::internal::discover_host()) GTEST_FLAG_SET(filter, "Gpu.IsThere");
  return RUN_ALL_TESTS();
}
