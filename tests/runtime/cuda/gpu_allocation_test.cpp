// A program of its own: it replaces `operator new` to count what the real-time path takes from the heap on real GPUs.
#include <gtest/gtest.h>

#include "tests/runtime/small_machine.hpp"
#include "tests/support/allocations.hpp"

namespace tutti::internal {
namespace {

using test::bound;
using test::copy_stream;
using test::Station;

class GpuAllocation : public testing::TestWithParam<Station::MakeBackend> {};

INSTANTIATE_TEST_SUITE_P(Gates, GpuAllocation,
                         testing::Values(test::make_cuda<GateKind::MemoryWait>,
                                         test::make_cuda<GateKind::PollingKernel>,
                                         test::make_cuda<GateKind::DeviceTimer>,
                                         test::make_cuda<GateKind::PollingKernel, WaitKind::Block>));

/// Copies over every path, a kernel behind each.
TEST_P(GpuAllocation, HappensNowhereBetweenArmingAndCompletion) {
  Station station(std::make_unique<RealClock>(), GetParam());
  std::vector<CommandStream> streams;
  std::vector<Buffer> buffers;
  std::vector<StreamBinding> bindings;
  for (const auto& [from, to] : {std::pair("mem0", "gpu0"), {"gpu0", "mem0"}, {"gpu0", "gpu1"}, {"gpu1", "gpu2"}}) {
    streams.push_back(copy_stream(std::string(from) + to, station.at(from), station.at(to), 3007));
    if (station.at(to) != station.at("mem0"))
      streams.back().kernel = Kernel{station.at(to), Duration{50}, std::chrono::milliseconds{1}, "spin"};
    buffers.push_back(station.allocate(station.at(from), 3007));
    buffers.push_back(station.allocate(station.at(to), 3007));
    bindings.push_back(bound(buffers[buffers.size() - 2].view(), buffers.back().view()));
  }
  auto first = station.prepare(streams, bindings);
  auto second = station.prepare(streams, bindings);
  const std::uint64_t before = test::allocations();
  bool fine = true;
  for (int run = 0; run < 50; ++run) {
    station.executor.arm(first);
    station.executor.arm(second);
    fine &= station.executor.issue(first).has_value();
    fine &= station.executor.issue(second).has_value();
    while (!station.executor.query(second)) {
    }
    fine &= station.executor.synchronize(first).has_value();
    fine &= station.executor.synchronize(second).has_value();
  }
  EXPECT_EQ(test::allocations() - before, 0U);
  EXPECT_TRUE(fine);
}

}  // namespace
}  // namespace tutti::internal
