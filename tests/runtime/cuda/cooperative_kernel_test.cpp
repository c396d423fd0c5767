// Cooperative kernels, whose blocks must be on the GPU together, beside kernels that hold gates. Needs a GPU.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cuda/lanes/lane_pool.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/cuda/one_kernel.hpp"

namespace tutti::internal {
namespace {

class CooperativeKernel : public test::OneKernel {
 protected:
  /// Blocks that came together, in the last run.
  std::size_t together() {
    int came = 0;
    std::memcpy(&came, station.read(output.view()).data() + sizeof came, sizeof came);
    return static_cast<std::size_t>(came);
  }

  /// What kernels that poll in all lanes leave.
  const std::size_t room = test::cooperating_places() - (cuda::LanePool::kMostLanes + 2);
};

INSTANTIATE_TEST_SUITE_P(Gates, CooperativeKernel,
                         testing::Values(test::make_cuda<GateKind::PollingKernel>,
                                         test::make_cuda<GateKind::DeviceTimer>));

// The gates of all other lanes are closed, and the last batch that is armed is the first one to run.
TEST_P(CooperativeKernel, RunsAtTheBrimWhileAllOtherGatesAreClosed) {
  add("together", test::device_cooperates(room));
  std::vector<PreparedBatch> batches;
  for (int i = 0; i < 30; ++i) {
    auto batch = prepare("together");
    ASSERT_TRUE(batch.has_value()) << batch.error().text();
    batches.push_back(*std::move(batch));
  }
  for (PreparedBatch& batch : batches) station.executor.arm(batch);
  for (std::size_t i = batches.size(); i-- > 0;) {
    station.run(batches[i]);
    EXPECT_EQ(together(), room);
  }
}

TEST_P(CooperativeKernel, IsRefusedWhereGatesLeaveTooLittleRoom) {
  add("too wide", test::device_cooperates(room + 1));
  const auto refused = prepare("too wide");
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("of " + std::to_string(room + 1) +
                                         " blocks, of which all must be on the GPU at once, where gates leave room "
                                         "for " +
                                         std::to_string(room)),
            std::string::npos)
      << refused.error().message;
}

}  // namespace
}  // namespace tutti::internal
