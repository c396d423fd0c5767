// The CUDA backend as programs have it that are not linked with it. Part of the suite `gpu`.
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "runtime/host/cuda_library.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal {
namespace {

using test::kernel_stream;
using test::pattern;
using test::Station;

std::unique_ptr<DeviceBackend> make_opened(const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
  const CudaFunctions* cuda = open_cuda_library({cuda_library_folders().front() / "../../runtime/cuda"}).value();
  return cuda->make_backend(machine, kernels, clock, test::host_gpus(machine)).value();
}

class OpenedBackend : public testing::Test {
 protected:
  Station station{std::make_unique<RealClock>(), make_opened};
};

// The opened library has its own copy of all code: it is not the backend that this program knows, and yet moves data.
TEST_F(OpenedBackend, MovesBytes) {
  EXPECT_EQ(station.backend->name(), "cuda");
  const Buffer buffer = station.allocate(station.at("gpu0"), 4096);
  station.write(buffer.view(), pattern(4096, 3));
  EXPECT_EQ(station.read(buffer.view()), pattern(4096, 3));
}

TEST_F(OpenedBackend, ReportsAKernelThatThrows) {
  ASSERT_TRUE(
      station.kernels.add("thrower", [](const KernelLaunch&) { throw std::runtime_error("no wafer"); }).has_value());
  auto batch = station.prepare({kernel_stream("s", station.at("cpu0"), "thrower")}, {{}});
  const auto result = station.executor.run(batch);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::Kernel);
  EXPECT_NE(result.error().message.find("no wafer"), std::string::npos) << result.error().message;
}

}  // namespace
}  // namespace tutti::internal
