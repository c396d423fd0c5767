// Batches that follow each other without the host, on GPUs.
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using test::bound;
using test::copy_stream;
using test::kernel_stream;
using test::pattern;
using test::Station;
using test::uncaptured;

class LinkedRuns : public testing::TestWithParam<WaitKind> {
 protected:
  static constexpr std::size_t kSize = 50'000;

  LinkedRuns() : station(std::make_unique<test::DeviceClock>(), make_backend(), test::two_sides()) {}

  static Station::MakeBackend make_backend() {
    return GetParam() == WaitKind::Block ? Station::MakeBackend(test::make_cuda<GateKind::DeviceTimer, WaitKind::Block>)
                                         : test::make_cuda<GateKind::DeviceTimer, test::kBusyWait>;
  }

  /// A copy from one place to another.
  PreparedBatch copy(const BufferView& from, const BufferView& to) { return station.copying(from, to); }

  /// Up to gpu0, down, up to gpu1 and down again: each copy reads what the one before has written.
  struct FourCopies {
    explicit FourCopies(LinkedRuns& test) {
      const auto buffer = [&](const char* where) { return test.station.allocate(test.station.at(where), kSize); };
      for (Buffer& one : memory) one = buffer("mem0");
      first = buffer("gpu0");
      second = buffer("gpu1");
      batches.push_back(test.copy(memory[0].view(), first.view()));
      batches.push_back(test.copy(first.view(), memory[1].view()));
      batches.push_back(test.copy(memory[1].view(), second.view()));
      batches.push_back(test.copy(second.view(), memory[2].view()));
    }

    std::array<Buffer, 3> memory;
    Buffer first, second;
    std::vector<PreparedBatch> batches;  // go first
  };

  Station station;
};

INSTANTIATE_TEST_SUITE_P(Waiting, LinkedRuns, testing::Values(test::kBusyWait, WaitKind::Block),
                         [](const auto& waiting) { return waiting.param == WaitKind::Block ? "Block" : "Busy"; });

// Some are armed ahead and so started by the host.
TEST_P(LinkedRuns, EachBatchReadsWhatTheOneBeforeHasWritten) {
  FourCopies four(*this);
  auto& batches = four.batches;
  test::Random random(3);
  for (std::uint64_t round = 0; round < test::rounds(200U); ++round) {
    const std::vector<std::byte> sent = pattern(kSize, round);
    station.write(four.memory[0].view(), sent);
    for (PreparedBatch& batch : batches)
      if (random.one_in(4)) station.executor.arm(batch);
    for (PreparedBatch& batch : batches) ASSERT_TRUE(station.executor.issue(batch).has_value());
    for (PreparedBatch& batch : batches) station.expect_fine(station.executor.synchronize(batch));
    ASSERT_EQ(station.read(four.memory[2].view()), sent) << round;
  }
}

// All are armed ahead of the first one's submission: they run when the host says so, and then by themselves.
TEST_P(LinkedRuns, BatchesArmedBehindEachOtherWaitForTheFirst) {
  FourCopies four(*this);
  auto& batches = four.batches;
  const auto arm = [&] {
    station.executor.arm(batches[0]);
    for (std::size_t i = 1; i < batches.size(); ++i) station.executor.arm_behind(batches[i - 1], batches[i]);
  };
  test::Random random(4);
  for (std::uint64_t round = 0; round < test::rounds(200U); ++round) {
    arm();
    if (random.one_in(8)) {
      station.executor.disarm(batches[random.below(4)]);
      arm();
    }
    const std::vector<std::byte> sent = pattern(kSize, round);
    station.write(four.memory[0].view(), sent);
    for (PreparedBatch& batch : batches) ASSERT_TRUE(station.executor.issue(batch).has_value());
    for (PreparedBatch& batch : batches) station.expect_fine(station.executor.synchronize(batch));
    ASSERT_EQ(station.read(four.memory[2].view()), sent) << round;
  }
  arm();  // and is destroyed so
}

// What was armed behind a batch is never issued, and the batch is gone first, or another one was issued behind it.
TEST_P(LinkedRuns, ABatchArmedBehindAnotherOneMayBeLeft) {
  const Buffer memory = station.allocate(station.at("mem0"), kSize), gpu = station.allocate(station.at("gpu0"), kSize);
  for (const bool another : {false, true}) {
    auto left = copy(gpu.view(), memory.view());
    {
      auto before = copy(memory.view(), gpu.view()), other = copy(memory.view(), gpu.view());
      station.executor.arm(before);
      station.executor.arm_behind(before, left);
      station.run(before);
      if (another) station.run(other);
    }
    auto next = copy(memory.view(), gpu.view());
    station.run(next);
  }
}

// The batch that is issued with a start ahead is held by the GPU until then: 1 ms ahead, or more than GPUs are asked
// to.
TEST_P(LinkedRuns, AStartAheadIsKept) {
  constexpr Duration kError = test::kDevicesAreInTime ? microseconds(2) : milliseconds(3);
  Duration started{};
  const HostKernel mark = [&](const KernelLaunch&) { started = station.clock->now(); };
  ASSERT_TRUE(station.kernels.add("started", mark, test::device_mark(mark)).has_value());
  auto batch = station.prepare({uncaptured(kernel_stream("s", station.at("gpu0"), "started", 1'000))}, {{}});
  for (int round = 0; round < test::rounds(60); ++round) {
    if (round % 3 != 0) station.executor.arm(batch);
    const Duration at = station.clock->now() + (round % 5 == 0 ? milliseconds(12) : milliseconds(1));
    ASSERT_TRUE(station.executor.issue(batch, {}, at).has_value());
    const auto result = station.executor.synchronize(batch);
    ASSERT_TRUE(result.has_value()) << result.error().text();
    EXPECT_GE(started, at - kError);
    EXPECT_GE(result->start, at);
    EXPECT_LE(result->start, result->finish);
    EXPECT_GE(batch.measured().streams[0].start(), -kError);
  }
}

// A kernel of 8 ms on gpu0, and behind it one on gpu1 and one on gpu0 that say when they started.
TEST_P(LinkedRuns, NothingStartsBeforeTheEndOfTheBatchBefore) {
  constexpr Duration kError = test::kDevicesAreInTime ? microseconds(10) : milliseconds(3);
  std::atomic<std::int64_t> started = 0;
  const HostKernel mark = [&](const KernelLaunch&) {
    std::int64_t earliest = started;
    const std::int64_t now = station.clock->now().count();
    while (now < earliest && !started.compare_exchange_weak(earliest, now)) continue;
  };
  ASSERT_TRUE(station.kernels.add("started", mark, test::device_mark(mark)).has_value());
  auto spins = station.prepare({kernel_stream("spins", station.at("gpu0"), "spin", 8'000'000)}, {{}});
  auto starts = station.prepare({uncaptured(kernel_stream("a", station.at("gpu0"), "started", 1'000)),
                                 uncaptured(kernel_stream("b", station.at("gpu1"), "started", 1'000))},
                                {{}, {}});
  for (int round = 0; round < test::rounds(30); ++round) {
    started = Duration::max().count();
    ASSERT_TRUE(station.executor.issue(spins).has_value());
    ASSERT_TRUE(station.executor.issue(starts).has_value());
    const auto before = station.executor.synchronize(spins);
    const auto behind = station.executor.synchronize(starts);
    ASSERT_TRUE(before.has_value()) << before.error().text();
    ASSERT_TRUE(behind.has_value()) << behind.error().text();
    EXPECT_GE(started.load(), (before->start + milliseconds(8) - kError).count());
    EXPECT_GE(behind->start, before->start + milliseconds(8) - kError);
    EXPECT_LE(behind->start, behind->finish);
    EXPECT_LE(behind->start.count(), started.load() + kError.count());
  }
}

// Later gates of a run keep their distance from its start: of 5 ms and of 1, so that both end together.
TEST_P(LinkedRuns, LaterGatesAreCountedFromTheEndOfTheBatchBefore) {
  constexpr Duration kError = test::kDevicesAreInTime ? Duration{0} : milliseconds(3);
  auto before = station.prepare({kernel_stream("s", station.at("gpu0"), "spin", 500'000)}, {{}});
  auto batch = station.prepare({kernel_stream("a", station.at("gpu0"), "spin", 5'000'000),
                                kernel_stream("b", station.at("gpu1"), "spin", 1'000'000)},
                               {{}, {}});
  const Duration planned = batch.plan().timeline.streams[1].gate - batch.plan().timeline.setup;
  ASSERT_GE(planned, milliseconds(4) - Duration{1});
  for (int round = 0; round < test::rounds(20); ++round) {
    ASSERT_TRUE(station.executor.issue(before).has_value());
    ASSERT_TRUE(station.executor.issue(batch).has_value());
    ASSERT_TRUE(station.executor.synchronize(before).has_value());
    ASSERT_TRUE(station.executor.synchronize(batch).has_value());
    EXPECT_GE(batch.measured().streams[1].start(), planned - microseconds(10) - kError);
  }
}

// A copy through a memory, from gpu0 to gpu1: no stream of gpu1 has a gate.
TEST_P(LinkedRuns, AGpuWithoutAGateSaysNothingOfTheStart) {
  constexpr Duration kError = test::kDevicesAreInTime ? microseconds(10) : milliseconds(3);
  const Buffer from = station.allocate(station.at("gpu0"), kSize), to = station.allocate(station.at("gpu1"), kSize);
  auto before = station.prepare({kernel_stream("s", station.at("gpu0"), "spin", 500'000)}, {{}});
  auto through = copy(from.view(), to.view());
  for (int round = 0; round < test::rounds(20); ++round) {
    ASSERT_TRUE(station.executor.issue(before).has_value());
    ASSERT_TRUE(station.executor.issue(through).has_value());
    const auto first = station.executor.synchronize(before);
    const auto second = station.executor.synchronize(through);
    ASSERT_TRUE(first.has_value()) << first.error().text();
    ASSERT_TRUE(second.has_value()) << second.error().text();
    EXPECT_GE(second->start, first->start + microseconds(500) - kError);
    EXPECT_LE(second->start, second->finish);
  }
}

/// A task of three batches: an image up, a sum of it, and the sum down; with a host step between the last two or not.
TaskSet three_batches(const Topology& machine, bool host_step) {
  TaskSet set{machine, Policy::Edf, {}};
  const VertexId mem = *machine.find_vertex("mem0"), gpu = *machine.find_vertex("gpu0");
  CommandStream up = copy_stream("up", mem, gpu, 10'000);
  Task& task = set.tasks.emplace_back();
  task.name = "sum";
  task.period = task.deadline = milliseconds{20};
  task.steps = {Batch::make(machine, {up}).value(),
                Batch::make(machine, {kernel_stream("sum", gpu, "spin", 100'000)}).value(),
                Batch::make(machine, {copy_stream("down", gpu, mem, 10'000)}).value()};
  if (host_step) task.steps.insert(task.steps.begin() + 2, HostStep{microseconds{10}});
  return set;
}

// All jobs run, and none of their time is lost or counted twice.
TEST_P(LinkedRuns, JobsSubmitTheirBatchesTogether) {
  for (const bool host_step : {false, true}) {
    const TaskSet set = three_batches(station.machine, host_step);
    PatternProgram program(station.machine, set.tasks[0], 1);
    TaskProgram* const table[] = {&program};
    const auto record = run_tasks(station.executor, test::admit(set), table, test::first_jobs(30));
    ASSERT_TRUE(record.has_value()) << record.error().text();
    ASSERT_EQ(record->jobs.size(), 30U);
    for (const JobRecord& job : record->jobs) {
      const bool dropped = job.error && job.error->message.find("no buffer set was free") == 0;  // the host was late
      EXPECT_TRUE(!job.error || dropped) << job.error->text();
    }
  }
}

}  // namespace
}  // namespace tutti::internal
