#include "sched/tasks/producer_cores.hpp"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sched/tasks/task_yaml.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// A set on a machine with pageable memory: four producers for each engine.
/// @param cores  of the cpu
/// @param steps  of the only task
Expected<TaskSet> set_with(int cores, const std::string& steps) {
  const Topology machine = test::make_machine(fmt::format(R"(  vertices:
    mem0: {{kind: memory}}
    cpu0: {{kind: cpu, cores: {}}}
    gpu0: {{kind: gpu}}
    gpu1: {{kind: gpu}}
    heap0: {{kind: memory, pageable: true, producers: 4}}
  links:
    - {{from: mem0, to: cpu0, bandwidth: 60 GB/s, back: 60 GB/s}}
    - {{from: heap0, to: cpu0, bandwidth: 16 GB/s, back: 16 GB/s}}
    - {{from: cpu0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}}
    - {{from: cpu0, to: gpu1, bandwidth: 12 GB/s, back: 12 GB/s}}
)",
                                                          cores));
  return parse_study("version: 1\ntasks:\n  - name: t\n    period: 100 ms\n    job:\n" + steps, machine)
      .map([](const TaskStudy& study) { return study.tasks; });
}

const std::string kUp = "      - batch: [{from: heap0, to: gpu0, size: 12 MB}, {from: heap0, to: gpu0, size: 1 MB}]\n";
const std::string kBothWays =
    kUp + "      - batch: [{from: gpu0, to: heap0, size: 12 MB}, {from: mem0, to: gpu1, size: 1 MB}]\n";
const std::string kHost = "      - host: 1 ms\n";

// One engine has four producers, whatever uses it; the one down has four more, and copies of pinned memory none.
TEST(ProducerCores, AreCountedByEngine) {
  const auto cpu = VertexId{1};
  EXPECT_EQ(producer_cores(set_with(16, kUp).value()), (std::map<VertexId, int>{{cpu, 4}}));
  EXPECT_EQ(producer_cores(set_with(16, kBothWays).value()), (std::map<VertexId, int>{{cpu, 8}}));
}

TEST(ProducerCores, HaveToBeThere) {
  EXPECT_TRUE(set_with(8, kBothWays).has_value());
  EXPECT_TRUE(set_with(9, kBothWays + kHost).has_value());
  const auto few = set_with(7, kBothWays);
  ASSERT_FALSE(few.has_value());
  EXPECT_NE(few.error().message.find("copies of pageable memory hold 8 cores of 'cpu0', which has 7; write the 'cores' "
                                     "that it has, or fewer 'producers' of its memory"),
            std::string::npos)
      << few.error().message;
  const auto none_left = set_with(8, kBothWays + kHost);
  ASSERT_FALSE(none_left.has_value());
  EXPECT_NE(none_left.error().message.find("hold 8 cores of 'cpu0', and host work needs one more, which has 8"),
            std::string::npos)
      << none_left.error().message;
}

}  // namespace
}  // namespace tutti::internal
