#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/batch/batch_yaml.hpp"
#include "model/sharing/compile_machine.hpp"
#include "sched/overlap/operations.hpp"
#include "sched/tasks/wcet.hpp"
#include "tests/support/every_field.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_simulation.hpp"
#include "tests/support/two_sides.hpp"

/// What overlapping jobs are promised, against the same copies and kernels as one batch, run by the slow simulation: it
/// shares no code with the bounds, and knows each cost by its rule in configs/KEYS.md.
namespace tutti::internal {
namespace {

using test::make_batch;
using test::make_machine;
using test::Random;
using test::tasks_of;

/// What the streams of a batch are promised as operations of one job, without what they wait for the dispatcher.
struct Promised {
  std::vector<double> copy, kernel;  // [streams] ns
  bool in_turn = false;              // engines whose copies land on one link serve one at a time, and not as in a batch
};

Promised promised(const Topology& machine, const Batch& batch) {
  TaskSet set = tasks_of(machine, {"host"});
  set.tasks[0].steps = {batch};
  const OperationSet operations = operations_of(set).value();
  const double around = as_ns(operations.dispatching + machine.setup().job.guaranteed);
  Promised promised{std::vector<double>(batch.streams().size()), std::vector<double>(batch.streams().size()),
                    operations.resources.size() < operations.units.size()};
  for (const Operation& operation : operations.operations)
    for (const OperationPart& part : operation.parts)
      for (const Duration region : part.regions)
        (part.kind == OperationPart::Kind::Kernel ? promised.kernel : promised.copy)[part.stream] +=
            as_ns(region) - around;
  return promised;
}

/// A random batch in which a copy through a memory is two, as where jobs overlap.
Batch random_batch(const Topology& machine, std::uint64_t seed) {
  const Batch drawn = test::random_batch(machine, seed);
  std::vector<CommandStream> streams;
  for (const CommandStream& stream : drawn.streams()) {
    if (stream.transfer && memory_on_way(machine, *stream.transfer)) {
      streams.push_back(leg_of(machine, stream, Leg::Into));
      streams.push_back(leg_of(machine, stream, Leg::OutOf));
      streams.back().name += " on";
    } else {
      streams.push_back(stream);
    }
  }
  return Batch::make(machine, std::move(streams), drawn.merging()).value();
}

/// The first command that takes longer in the slow simulation than it was promised; empty: none does.
/// @param trusted  the machine of the promise
/// @param shorter  what promises are multiplied by
std::string broken_promise(const Topology& machine, const Topology& trusted, const Batch& batch, double shorter = 1) {
  const Batch as_trusted =
      Batch::make(trusted, {batch.streams().begin(), batch.streams().end()}, batch.merging()).value();
  const Promised bound = promised(trusted, as_trusted);
  if (bound.in_turn) return "";
  const double setup = as_ns(machine.setup().batch.guaranteed);
  const auto run = test::slow_forward(machine, Basis::Guaranteed, batch, RateRule::MaxMin, {});
  for (std::size_t s = 0; s < run.times.size(); ++s) {
    const StreamTimes& times = run.times[s];
    const auto breaks = [&](double length, double most) { return length > most * shorter * (1 + 1e-9) + 1; };
    if (batch.streams()[s].transfer && breaks(setup + times.transfer_end - times.transfer_start, bound.copy[s]))
      return fmt::format("copy {}: {} > {}", s, setup + times.transfer_end - times.transfer_start, bound.copy[s]);
    if (batch.streams()[s].kernel && breaks(setup + times.kernel_end - times.kernel_start, bound.kernel[s]))
      return fmt::format("kernel {}: {} > {}", s, setup + times.kernel_end - times.kernel_start, bound.kernel[s]);
  }
  return "";
}

TEST(Corunners, NoCommandOfABatchTakesLongerThanAsAnOperation) {
  for (std::uint64_t n = 0; n < test::rounds(3000U); ++n) {
    const Topology machine = test::with_every_cost(test::random_machine(n), n);
    const Batch batch = random_batch(machine, n);
    ASSERT_EQ(broken_promise(machine, machine, batch), "") << n << "\n" << test::describe(machine, batch);
  }
}

/// Whether one of many random batches breaks the promises of a machine.
bool is_broken(const std::function<void(SetupTimes&)>& forget, double shorter) {
  for (std::uint64_t n = 0; n < 300; ++n) {
    const Topology machine = test::with_every_cost(test::random_machine(n), n);
    MachineSpec spec = machine.spec();
    forget(spec.setup);
    if (!broken_promise(machine, compile(spec).value(), random_batch(machine, n), shorter).empty()) return true;
  }
  return false;
}

// A bound that forgets a cost is found, whichever it is.
TEST(Corunners, EachCostThatABoundForgetsIsFound) {
  for (const auto& [what, forget] : test::forgotten_costs()) EXPECT_TRUE(is_broken(forget, 1)) << what;
  EXPECT_TRUE(is_broken([](SetupTimes&) {}, 0.99)) << "bounds that are 1 % shorter";
}

/// Two GPUs, each link 20 GB/s both ways, and what both ways of all copies share.
Topology machine_with(int both, const std::string& transfer) {
  return make_machine(fmt::format(R"(  vertices:
    mem0: {{kind: memory}}
    heap0: {{kind: memory, pageable: true, producers: 2}}
    cpu0: {{kind: cpu, cores: 8}}
    gpu0: {{kind: gpu}}
    gpu1: {{kind: gpu}}
  links:
    - {{from: mem0, to: cpu0, bandwidth: 100 GB/s, back: 100 GB/s}}
    - {{from: heap0, to: cpu0, bandwidth: 20 GB/s, back: 20 GB/s}}
    - {{from: cpu0, to: gpu0, bandwidth: 20 GB/s, back: 20 GB/s}}
    - {{from: cpu0, to: gpu1, bandwidth: 20 GB/s, back: 20 GB/s}}
  shared: [{{name: both, capacity: {} GB/s, members: [{{from: mem0, to: cpu0}}, {{from: cpu0, to: mem0}}]}}]
  setup: {{transfer: {}}}
)",
                                  both, transfer));
}

std::vector<double> promised_ms(const Topology& machine, const std::string& streams) {
  std::vector<double> ms = promised(machine, make_batch(machine, streams)).copy;
  for (double& time : ms) time /= 1e6;
  return ms;
}

// 40 GB/s for both ways: a byte of the kernel's copy takes two, beside one of the engine's; each has a third.
TEST(Corunners, CountsTheLoadOfAMethod) {
  const auto ms = promised_ms(machine_with(40, "{up: 0 us, sm_up: {nominal: 1 ns, guaranteed: 1 ns, load: 2}}"),
                              "  - {from: gpu0, to: mem0, size: 20 MB}\n"
                              "  - {from: mem0, to: gpu0, size: 20 MB, method: sm}\n");
  EXPECT_NEAR(ms[0], 1.5, 1e-3);
  EXPECT_NEAR(ms[1], 1.5, 1e-3);
}

// Rows of 100 bytes with gaps of 100 that take two bytes each: half as fast, of half the weight, three bytes for one.
TEST(Corunners, CountsTheLoadOfTheGapsOfRows) {
  const auto ms =
      promised_ms(machine_with(30, "{up: 0 us, rows_up: {nominal: 1 ns, guaranteed: 1 ns, gap: 100 B, load: 2}}"),
                  "  - {from: mem0, to: gpu0, size: 20 MB, rows: 200000, pitch: 200 B}\n"
                  "  - {from: gpu1, to: mem0, size: 20 MB}\n");
  EXPECT_NEAR(ms[0], 20 / 6.0, 1e-3);  // a level of 30 / (1 + 1.5), of which the rows have a half
  EXPECT_NEAR(ms[1], 20 / 12.0, 1e-3);
}

// 20 MB at 20 GB/s and 1 ms of filling, each at half the speed beside the other.
TEST(Corunners, FillsBuffersAsSlowlyAsItCopies) {
  const auto ms = promised_ms(
      machine_with(100,
                   "{up: 0 us, pageable_up: {nominal: 0 us, guaranteed: 0 us, sizes: [{size: 20 MB, more: 1 ms}]}}"),
      "  - {from: heap0, to: gpu0, size: 20 MB}\n"
      "  - {from: heap0, to: gpu1, size: 20 MB}\n");
  EXPECT_NEAR(ms[0], 4, 1e-3);
  EXPECT_NEAR(ms[1], 4, 1e-3);
}

}  // namespace
}  // namespace tutti::internal
