// The tests of the CUDA backend on GPUs that are executed on the host (tests/support/host_cuda).
#include <gtest/gtest.h>

#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {

test::DeviceForms test::device_forms(const HostKernel& mark) { return {device_invert(), device_mark(mark)}; }

}  // namespace tutti::internal

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
