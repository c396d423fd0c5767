// The pool's pinned memory: sizes, reuse, limit, counts. The GPUs are executed on the host.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cuda/memory/memory_pool.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::cuda {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kSmallPage = 4096;
constexpr std::size_t kMebibyte = std::size_t{1} << 20;
/// No host of a test has these nodes, so that nothing else takes memory there.
constexpr int kNode = 1007, kOtherNode = 1008;

TEST(PinnedBlockSize, HasFourStepsBetweenPowersOfTwo) {
  constexpr std::array kClasses{1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40};  // pages
  std::size_t block = 0;
  for (std::size_t pages = 1; pages <= 40; ++pages) {
    if (pages > block) block = static_cast<std::size_t>(*std::ranges::lower_bound(kClasses, static_cast<int>(pages)));
    EXPECT_EQ(pinned_block_size(pages * kSmallPage), block * kSmallPage);
    EXPECT_EQ(pinned_block_size((pages - 1) * kSmallPage + 1), block * kSmallPage);
  }
  EXPECT_EQ(pinned_block_size(0), kSmallPage);
}

// From 64 MiB on: pages of 2 MiB.
TEST(PinnedBlockSize, IsExactWhereBlocksAreLarge) {
  EXPECT_EQ(pinned_block_size(64 * kMebibyte - 1), 64 * kMebibyte);
  EXPECT_EQ(pinned_block_size(64 * kMebibyte), 64 * kMebibyte);
  EXPECT_EQ(pinned_block_size(64 * kMebibyte + 1), 66 * kMebibyte);
  EXPECT_EQ(pinned_block_size(513 * kMebibyte), 514 * kMebibyte);
}

TEST(PinnedBlockSize, WastesAQuarterAtMost) {
  test::Random random(5);
  for (int i = 0; i < test::rounds(20'000); ++i) {
    const std::size_t size = 1 + random.below(std::uint64_t{1} << random.between(1, 33));
    const std::size_t pages = (size + kSmallPage - 1) / kSmallPage, block = pinned_block_size(size);
    ASSERT_EQ(block % kSmallPage, 0U) << size;
    ASSERT_GE(block, size);
    ASSERT_LE(4 * block, 5 * pages * kSmallPage) << size;
    ASSERT_EQ(pinned_block_size(block), block) << "a block is of its own class: " << size;
    ASSERT_LE(block, pinned_block_size(size + 1)) << size;
  }
}

class PinnedPool : public testing::Test {
 protected:
  PinnedPool() { pool.trim(); }
  ~PinnedPool() override { pool.trim(); }

  [[nodiscard]] PooledMemory take(std::size_t size, int node = kNode, Contents contents = Contents::Zeros) const {
    auto memory = pool.take_host(size, node, contents);
    if (!memory) ADD_FAILURE() << memory.error().message;
    return memory ? *std::move(memory) : PooledMemory();
  }
  [[nodiscard]] PinnedUse use(int node = kNode) const {
    for (const PinnedUse& one : pool.pinned())
      if (one.numa_node == node) return one;
    return {node, {}, {}, {}, {}};
  }
  /// Of all nodes.
  [[nodiscard]] std::size_t in_use() const {
    std::int64_t bytes = 0;
    for (const PinnedUse& one : pool.pinned()) bytes += one.in_use.count;
    return static_cast<std::size_t>(bytes);
  }
  [[nodiscard]] static Bytes bytes(std::size_t size) { return Bytes{static_cast<std::int64_t>(size)}; }

  DeviceGuard guard{0};
  MemoryPool& pool = MemoryPool::instance();
};

TEST_F(PinnedPool, MemoryIsGivenOutAgainOnItsNodeAlone) {
  const std::byte* const first = take(100 * kSmallPage).data();
  PooledMemory elsewhere = take(100 * kSmallPage, kOtherNode);
  EXPECT_NE(elsewhere.data(), first);
  EXPECT_EQ(take(100 * kSmallPage).data(), first);
  EXPECT_EQ(take(97 * kSmallPage).data(), first) << "of the same class";
}

// 10 pages are 1.25 times 8, and more than 1.25 times 7.
TEST_F(PinnedPool, ABlockOfUpToAQuarterMoreIsGivenOutAgain) {
  for (const auto& [pages, again] : {std::pair(8, true), {7, false}}) {
    const std::byte* const returned = take(10 * kSmallPage).data();
    EXPECT_EQ(take(static_cast<std::size_t>(pages) * kSmallPage).data() == returned, again) << pages;
    pool.trim();
  }
}

TEST_F(PinnedPool, LargeBlocksStayPinned) {
  const std::byte* const returned = take(512 * kMebibyte).data();
  const PinnedUse before = use();
  EXPECT_EQ(take(512 * kMebibyte, kNode, Contents::Anything).data(), returned);
  EXPECT_EQ(use().allocations, before.allocations);
  EXPECT_EQ(use().reuses, before.reuses + 1);
}

TEST_F(PinnedPool, MemoryIsZerosUnlessAnythingWillDo) {
  const auto is_zero = [](const PooledMemory& memory) {
    return std::all_of(memory.data(), memory.data() + 3 * kSmallPage, [](std::byte at) { return at == std::byte{0}; });
  };
  const auto write = [](const PooledMemory& memory) { std::memset(memory.data(), 7, 3 * kSmallPage); };
  {
    const PooledMemory made = take(3 * kSmallPage);
    EXPECT_TRUE(is_zero(made));
    write(made);
  }
  {
    const PooledMemory again = take(3 * kSmallPage);
    EXPECT_TRUE(is_zero(again));
    write(again);
  }
  EXPECT_EQ(take(3 * kSmallPage, kNode, Contents::Anything).data()[5], std::byte{7});
}

// Two blocks of 10 pages at once, one of them again.
TEST_F(PinnedPool, CountsByNode) {
  const PinnedUse before = use(), elsewhere = use(kOtherNode);
  constexpr std::size_t kTen = 10 * kSmallPage;
  {
    const PooledMemory one = take(9 * kSmallPage), two = take(kTen);
    EXPECT_EQ(use().in_use, bytes(2 * kTen));
    EXPECT_EQ(use().kept, Bytes{});
  }
  const PooledMemory again = take(kTen);
  EXPECT_EQ(use(), (PinnedUse{kNode, bytes(kTen), bytes(kTen), std::max(before.largest, bytes(2 * kTen)),
                              before.taken + bytes(3 * kTen), before.allocations + 2, before.reuses + 1}));
  EXPECT_EQ(use(kOtherNode), elsewhere);
  pool.trim();
  EXPECT_EQ(use().kept, Bytes{});
}

TEST_F(PinnedPool, WhatTheDriverRefusesDoesNotCount) {
  const PinnedUse before = use();
  host_cuda::fail_next("cudaHostRegister", cudaErrorMemoryAllocation);
  EXPECT_FALSE(pool.take_host(kSmallPage, kNode).has_value());
  EXPECT_EQ(use().in_use, before.in_use);
  EXPECT_EQ(use().allocations, before.allocations);
}

// Kept: 4 pages. In use: 0, then 8, of a limit of 8.
TEST_F(PinnedPool, KeptMemoryIsFreedWhereTheLimitHasNoRoom) {
  const PinnedLimit limit(bytes(in_use() + 8 * kSmallPage));
  static_cast<void>(take(4 * kSmallPage, kOtherNode));
  const PooledMemory all = take(8 * kSmallPage);
  EXPECT_EQ(use(kOtherNode).kept, Bytes{});
  EXPECT_EQ(use().in_use, bytes(8 * kSmallPage));
}

// The oldest of two blocks of 4 pages goes, for 4 more.
TEST_F(PinnedPool, TheOldestIsFreedAndNoMoreThanNeeded) {
  const PinnedLimit limit(bytes(in_use() + 9 * kSmallPage));
  static_cast<void>(take(4 * kSmallPage, kOtherNode));
  static_cast<void>(take(5 * kSmallPage));
  const PooledMemory more = take(4 * kSmallPage, kNode + 2);
  EXPECT_EQ(use(kOtherNode).kept, Bytes{});
  EXPECT_EQ(use().kept, bytes(5 * kSmallPage));
}

TEST_F(PinnedPool, MoreThanTheLimitIsRefusedWithWhatIsInUse) {
  const std::size_t others = in_use();
  const PinnedLimit limit(bytes(others + 8 * kSmallPage));
  PooledMemory most = take(6 * kSmallPage);
  const auto refused = pool.take_host(3 * kSmallPage, kNode);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Machine);
  EXPECT_EQ(refused.error().message,
            "12 KiB more of pinned memory exceed the limit of " + to_string(bytes(others + 8 * kSmallPage)) + ": " +
                to_string(bytes(others + 6 * kSmallPage)) +
                " are in use; give up buffers first, or give a limit (--pinned-limit) of at least " +
                to_string(bytes(others + 9 * kSmallPage)));
  most = PooledMemory();
  EXPECT_EQ(take(3 * kSmallPage).data() != nullptr, true);
}

// Behind a closed gate kept memory cannot be freed. When the run is over, it is.
TEST_F(PinnedPool, KeptMemoryStaysWhileARunIsArmed) {
  const PinnedLimit limit(bytes(in_use() + 8 * kSmallPage));
  static_cast<void>(take(4 * kSmallPage, kOtherNode));
  {
    const PoolRun armed;
    const auto refused = pool.take_host(5 * kSmallPage, kNode);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find(", and 16 KiB were given back, which are free once no batch is armed;"),
              std::string::npos)
        << refused.error().message;
    EXPECT_NE(take(4 * kSmallPage, kOtherNode).data(), nullptr);
  }
  EXPECT_NE(take(5 * kSmallPage).data(), nullptr);
}

TEST_F(PinnedPool, TheLeastOfSeveralLimitsCounts) {
  const std::size_t others = in_use();
  const PinnedLimit wide(bytes(others + 100 * kSmallPage)), none(std::nullopt);
  {
    const PinnedLimit narrow(bytes(others + kSmallPage));
    EXPECT_FALSE(pool.take_host(2 * kSmallPage, kNode).has_value());
  }
  EXPECT_TRUE(pool.take_host(2 * kSmallPage, kNode).has_value());
  EXPECT_FALSE(pool.take_host(101 * kSmallPage, kNode).has_value());
}

// What is kept is freed as far as a new limit asks.
TEST_F(PinnedPool, ANewLimitFreesWhatIsKept) {
  static_cast<void>(take(10 * kSmallPage));
  static_cast<void>(take(5 * kSmallPage));
  const PinnedLimit limit(bytes(in_use() + 8 * kSmallPage));
  EXPECT_EQ(use().kept, bytes(5 * kSmallPage));
}

TEST_F(PinnedPool, TheLimitHoldsWhateverThreadsTakeAndGiveBack) {
  constexpr std::size_t kRoom = 64 * kSmallPage;
  constexpr std::size_t kThreads = 4;
  const std::size_t others = in_use();
  const PinnedUse before = use();
  const PinnedLimit limit(bytes(others + kRoom));
  std::array<std::uint64_t, kThreads> taken{};
  std::atomic<int> broken{0};
  const auto work = [&](std::size_t number) {
    const DeviceGuard device(0);
    test::Random random(number + 1);
    std::vector<std::pair<PooledMemory, std::size_t>> mine;
    const auto mark = static_cast<std::byte>(number + 1);
    for (int i = 0; i < test::rounds(4000); ++i) {
      if (mine.size() == 4 || (!mine.empty() && random.one_in(2))) {
        const auto& [memory, size] = mine.back();
        broken += memory.data()[0] != mark || memory.data()[size - 1] != mark ? 1 : 0;
        mine.pop_back();
      } else if (const std::size_t size = 1 + random.below(8 * kSmallPage); auto memory = pool.take_host(size, kNode)) {
        ++taken[number];
        broken += memory->data()[0] != std::byte{0} || memory->data()[size - 1] != std::byte{0} ? 1 : 0;
        memory->data()[0] = memory->data()[size - 1] = mark;
        mine.emplace_back(*std::move(memory), size);
      }
      const PinnedUse now = use();
      broken += now.in_use + now.kept > bytes(kRoom) ? 1 : 0;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(in_use(), others);
  EXPECT_EQ(use().allocations + use().reuses - before.allocations - before.reuses,
            taken[0] + taken[1] + taken[2] + taken[3]);
}

// ---- backends

/// Calls of the driver that pin memory, from now on.
class PinnedCalls {
 public:
  PinnedCalls() {
    for (const char* function : kPinning) host_cuda::count_calls(function);
  }
  [[nodiscard]] int so_far() const {
    int calls = 0;
    for (const char* function : kPinning) calls += host_cuda::counted_calls(function);
    return calls;
  }

 private:
  static constexpr std::array kPinning{"cudaHostRegister", "cudaHostAlloc"};
};

std::unique_ptr<Clock> clock_of_devices() { return std::make_unique<test::DeviceClock>(); }

// Buffers up and down, with their signals: as many bytes in the second round, and other sizes of the same class.
TEST_F(PinnedPool, TheSecondRunOfABatchPinsNothing) {
  test::Station station(clock_of_devices(), test::make_cuda<GateKind::PollingKernel>);
  const auto round = [&](std::size_t size) {
    const Buffer up = station.allocate(station.at("mem0"), size), down = station.allocate(station.at("mem0"), size);
    const Buffer device = station.allocate(station.at("gpu0"), size);
    auto to = station.copying(up.view(), device.view());
    auto from = station.copying(device.view(), down.view());
    station.run(to);
    station.run(from);
  };
  round(3'000'000);
  const PinnedCalls calls;
  round(3'000'000);
  round(2'900'000);
  EXPECT_EQ(calls.so_far(), 0);
}

TEST_F(PinnedPool, TheSecondRunOfATaskSetPinsNothing) {
  test::Station station(clock_of_devices(), test::make_cuda<GateKind::PollingKernel>);
  TaskSet set{station.machine, Policy::Edf, {}};
  for (const char* gpu : {"gpu0", "gpu1"}) {
    const VertexId mem = station.at("mem0"), device = station.at(gpu);
    Task& task = set.tasks.emplace_back();
    task.name = gpu;
    task.period = task.deadline = milliseconds{20};
    task.steps = {Batch::make(station.machine, {test::copy_stream("up", mem, device, 1'000'000)}).value(),
                  Batch::make(station.machine, {test::copy_stream("down", device, mem, 1'000'000)}).value()};
  }
  const AdmittedTaskSet admitted = test::admit(set);
  const auto run = [&] {
    PatternProgram patterns[] = {{station.machine, set.tasks[0], 1}, {station.machine, set.tasks[1], 1}};
    TaskProgram* const programs[] = {&patterns[0], &patterns[1]};
    RunOptions options;
    options.jobs = 6;
    const auto record = run_tasks(station.executor, admitted, programs, options);
    ASSERT_TRUE(record.has_value()) << record.error().text();
    EXPECT_EQ(record->jobs.size(), 6U);
  };
  run();
  const PinnedCalls calls;
  run();
  EXPECT_EQ(calls.so_far(), 0);
}

TEST_F(PinnedPool, ABufferIsZerosUnlessItMayBeUnwritten) {
  const test::Station station(clock_of_devices(), test::make_cuda<GateKind::PollingKernel>);
  const VertexId memory = station.at("mem0");
  const Bytes size = bytes(kMebibyte);
  std::memset(station.backend->allocate(memory, size).value().view().data, 7, kMebibyte);
  EXPECT_EQ(station.backend->allocate_unwritten(memory, size).value().view().data[9], std::byte{7});
  EXPECT_EQ(station.backend->allocate(memory, size).value().view().data[9], std::byte{0});
}

TEST_F(PinnedPool, ABackendRefusesMoreThanItsLimit) {
  const Topology machine = test::small_machine();
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  test::DeviceClock clock;
  CudaOptions options = test::host_gpus(machine);
  options.pinned_limit = bytes(in_use() + 32 * kMebibyte);
  const auto backend = make_cuda_backend(machine, kernels, clock, options);
  ASSERT_TRUE(backend.has_value()) << backend.error().message;
  const VertexId memory = *machine.find_vertex("mem0");
  EXPECT_TRUE((*backend)->allocate(memory, bytes(16 * kMebibyte)).has_value());
  const auto refused = (*backend)->allocate(memory, bytes(64 * kMebibyte));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Machine);
  EXPECT_EQ(refused.error().message.find("64 MiB more of pinned memory exceed the limit of "), 0U)
      << refused.error().message;
  EXPECT_FALSE((*backend)->pinned_memory().empty());
}

// A backend pins its own signals.
TEST_F(PinnedPool, ALimitThatABackendCannotLiveWithIsSaid) {
  const Topology machine = test::small_machine();
  const KernelRegistry kernels = KernelRegistry::with_builtins();
  test::DeviceClock clock;
  CudaOptions options = test::host_gpus(machine);
  options.pinned_limit = Bytes{1};
  const auto refused = make_cuda_backend(machine, kernels, clock, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::Machine);
  EXPECT_NE(refused.error().message.find("of pinned memory exceed the limit of 1 B"), std::string::npos)
      << refused.error().message;
  options.pinned_limit.reset();
  EXPECT_TRUE(make_cuda_backend(machine, kernels, clock, options).has_value());
}

}  // namespace
}  // namespace tutti::internal::cuda
