#include "runtime/host/cuda_options.hpp"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

TEST(CudaOptions, TheGateIsTheUsersElseTheMachines) {
  MachineSpec machine{.name = "m"};
  EXPECT_EQ(cuda_options({}, machine).gate, GateKind::PollingKernel);
  for (const GateKind kind : kGateKinds) {
    machine.gate = to_string(kind);
    EXPECT_EQ(cuda_options({}, machine).gate, kind);
    EXPECT_EQ(cuda_options({.gate = GateKind::HostTimed}, machine).gate, GateKind::HostTimed);
  }
}

TEST(CudaOptions, KeepsTheOtherChoices) {
  const CudaOptions options = cuda_options({.waiting = WaitKind::Block,
                                            .bind = {{"gpu0", "0000:06:00.0"}},
                                            .watchdog = {3, Duration{5}},
                                            .serialize = true,
                                            .pinned_limit = Bytes{4096}},
                                           MachineSpec{.name = "m"});
  EXPECT_EQ(options.waiting, WaitKind::Block);
  EXPECT_TRUE(options.serialize);
  EXPECT_EQ(options.pinned_limit, Bytes{4096});
  EXPECT_EQ(options.watchdog, (Watchdog{3, Duration{5}}));
  EXPECT_EQ(options.bind, (std::vector<std::pair<std::string, std::string>>{{"gpu0", "0000:06:00.0"}}));
  EXPECT_FALSE(options.gpus.has_value());
}

}  // namespace
}  // namespace tutti::internal
