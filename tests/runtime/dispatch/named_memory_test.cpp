#include <cstdint>

#include <gtest/gtest.h>

#include "tests/runtime/flow_runs.hpp"

namespace tutti::internal {
namespace {

using test::FlowTraits;
using test::FlowWay;
using test::Station;

class RandomFlow : public testing::TestWithParam<FlowWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, RandomFlow, testing::ValuesIn(test::kFlowWays));

// Also through mem0: gpu2 has no peers.
TEST_P(RandomFlow, GivesTheBytesOfAPlainProgram) {
  FlowTraits traits;
  traits.gpus = {"gpu0", "gpu1", "gpu2"};
  const bool takes_long = GetParam().cut && GetParam().overlap == Overlap::On;  // ten times as long as the others
  for (std::uint64_t seed = 1; seed <= test::rounds(takes_long ? 100U : 200U); ++seed) {
    Station station;
    ASSERT_TRUE(station.kernels.add("mix", test::mix).has_value());
    test::expect_flows(station, seed, GetParam(), traits, std::chrono::milliseconds{1});
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tutti::internal
