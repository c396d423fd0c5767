#include "apps/lab/measuring/memory_load.hpp"

#include <gtest/gtest.h>

#include "apps/lab/reports/memory_load_report.hpp"
#include "model/sharing/compile_machine.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

/// What threads of the host take from a simulated machine: nothing, but they do copy.
TEST(MemoryLoad, TakesNothingFromASimulatedMachine) {
  const Topology machine = load_machine(test::source_path("configs/machines/h200x4.yaml")).value();
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  VirtualClock clock;
  SimBackend backend(machine, kernels, clock);
  Executor executor(machine, backend, clock);
  const std::atomic<bool> interrupted{false};
  const auto effect = measure_memory_load(executor, {Bytes{1 << 20}, 1}, interrupted);
  ASSERT_TRUE(effect.has_value()) << effect.error().message;
  EXPECT_GT(effect->threads, 0U);
  EXPECT_GT(effect->copied, 0.0);
  ASSERT_EQ(effect->sets.size(), 2U);
  EXPECT_EQ(effect->sets[0].flows.size(), 1U);
  EXPECT_EQ(effect->sets[1].flows.size(), 4U);
  for (std::size_t set = 0; set < 2; ++set) EXPECT_EQ(effect->busy[set].gbps, effect->idle[set].gbps);
  const std::string text = memory_load_text(*effect, machine);
  EXPECT_NE(text.find("gpu0, up"), std::string::npos) << text;
  EXPECT_NE(text.find("4 GPUs, both"), std::string::npos) << text;
  EXPECT_NE(text.find("100 %"), std::string::npos) << text;
}

}  // namespace
}  // namespace tutti::internal
