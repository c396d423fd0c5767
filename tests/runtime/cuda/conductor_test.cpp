// The thread that leads runs, alone; streams are those of GPUs that are executed on the host.
#include "runtime/cuda/gates/conductor.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include "runtime/core/clock.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/memory/memory_pool.hpp"
#include "tests/support/host_cuda/host_cuda.hpp"

namespace tutti::internal::cuda {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr ThreadRole kSleeps{0, false, {}};
/// Looks that nothing asks for: a call that comes before the sleep, or from a run before.
constexpr int kNeedless = 4;

/// A run that has something to do at some instants, and is over when it has done all and `ended` is set.
class TimedRun final : public GatedRun {
 public:
  explicit TimedRun(std::vector<Duration> since_begin, bool ends_by_itself = true)
      : ended(ends_by_itself), at_(std::move(since_begin)) {}

  [[nodiscard]] Duration may_begin() const override { return earliest_at; }
  void begin(Duration now) override {
    looks = 0;
    next_ = 0;
    begun = now;
    late.clear();
  }
  [[nodiscard]] bool advance(Duration now) override {
    ++looks;
    for (; next_ < at_.size() && begun + at_[next_] <= now; ++next_) late.push_back(now - begun - at_[next_]);
    return next_ == at_.size() && ended;
  }
  [[nodiscard]] Duration next_look() override { return begun + (next_ < at_.size() ? at_[next_] : hours(1)); }
  void finish() override {
    finished = true;
    finished.notify_all();
  }

  Duration earliest_at{}, begun{};
  std::atomic<int> looks{0};
  std::vector<Duration> late;
  std::atomic<bool> ended, finished{false};

 private:
  std::vector<Duration> at_;
  std::size_t next_ = 0;
};

void lead(Conductor& conductor, TimedRun& run) {
  conductor.submit(run);
  run.finished.wait(false);
}

void wait_for_looks(const TimedRun& run, int count) {
  while (run.looks < count) std::this_thread::sleep_for(milliseconds(1));
}

// Of four instants the first is at once: one look for each.
TEST(Conductor, ThatSleepsLooksOnceAtEachInstant) {
  RealClock clock;
  Conductor conductor(clock, kSleeps);
  TimedRun run({Duration{0}, milliseconds(10), milliseconds(20), milliseconds(40)});
  lead(conductor, run);
  EXPECT_GE(run.looks, 4);
  EXPECT_LE(run.looks, 4 + kNeedless);
  ASSERT_EQ(run.late.size(), 4U);
  EXPECT_FALSE(conductor.busy());
}

// Its next instant is an hour away, and nobody wakes it.
TEST(Conductor, ThatSpinsLooksWithoutAPause) {
  alarm(60);
  RealClock clock;
  Conductor conductor(clock, {0, true, {}});
  TimedRun run({}, false);
  conductor.submit(run);
  wait_for_looks(run, 1000);
  run.ended = true;
  run.finished.wait(false);
  alarm(0);
}

// Its next instant is an hour away.
TEST(Conductor, ThatSleepsIsWokenByACall) {
  alarm(60);
  RealClock clock;
  Conductor conductor(clock, kSleeps);
  TimedRun run({}, false);
  conductor.submit(run);
  wait_for_looks(run, 1);
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_FALSE(run.finished);
  run.ended = true;
  conductor.waker().wake();
  run.finished.wait(false);
  EXPECT_LE(run.looks, 2 + kNeedless);
  alarm(0);
}

/// A stream of the first GPU, in which a copy of 20 ms is under way.
struct BusyStream {
  BusyStream() {
    host_cuda::device(0).copy_rate(1e-4);
    EXPECT_EQ(cudaMemcpyAsync(there.data(), here.data(), kSize, cudaMemcpyDefault, stream.get()), cudaSuccess);
  }
  BusyStream(const BusyStream&) = delete;  // the rate is set back once
  BusyStream& operator=(const BusyStream&) = delete;
  ~BusyStream() {
    EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    host_cuda::device(0).copy_rate(host_cuda::kCopyRate);
  }

  static constexpr std::size_t kSize = 2000;
  DeviceGuard guard{0};
  Stream stream = make_stream(0).value();
  PooledMemory here = MemoryPool::instance().take_host(kSize).value();
  PooledMemory there = MemoryPool::instance().take_device(0, kSize, stream.get()).value();
};

// The call comes in the order of the stream, when the copy before it is over.
TEST(Conductor, ThatSleepsIsWokenByAStream) {
  alarm(60);
  RealClock clock;
  Conductor conductor(clock, kSleeps);
  TimedRun run({}, false);
  conductor.submit(run);
  wait_for_looks(run, 1);
  BusyStream busy;
  run.ended = true;
  ASSERT_EQ(conductor.waker().call_from(busy.stream.get()), cudaSuccess);
  run.finished.wait(false);
  EXPECT_LE(run.looks, 2 + kNeedless);
  alarm(0);
}

// Of the copy and three calls at most the last one may be about to end.
TEST(Conductor, GoesAfterTheCallsOfItsStreams) {
  alarm(60);
  RealClock clock;
  BusyStream busy;
  {
    Conductor conductor(clock, kSleeps);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(conductor.waker().call_from(busy.stream.get()), cudaSuccess);
    EXPECT_GT(host_cuda::device(0).unfinished(), 1U);
  }
  EXPECT_LE(host_cuda::device(0).unfinished(), 1U);
  alarm(0);
}

TEST(Conductor, CallsThatTheDriverRefusesAreNotWaitedFor) {
  RealClock clock;
  Stream stream = make_stream(0).value();
  Conductor conductor(clock, kSleeps);
  host_cuda::fail_next("cudaLaunchHostFunc", cudaErrorInvalidValue);
  EXPECT_EQ(conductor.waker().call_from(stream.get()), cudaErrorInvalidValue);
  static_cast<void>(cudaGetLastError());
  EXPECT_EQ(conductor.waker().call_from(stream.get()), cudaSuccess);
}

// Each run begins when the one before it is over, and none before its own instant; 200 of them, submitted at once.
TEST(Conductor, LeadsRunsInTheOrderOfSubmission) {
  RealClock clock;
  for (const bool spins : {false, true}) {
    Conductor conductor(clock, {0, spins, {}});
    std::deque<TimedRun> runs;
    for (int i = 0; i < 200; ++i) runs.emplace_back(std::vector<Duration>{std::chrono::microseconds(i % 3 * 50)});
    const Duration start = clock.now();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      runs[i].earliest_at = start + std::chrono::microseconds(200 * i);
      conductor.submit(runs[i]);
    }
    EXPECT_TRUE(conductor.busy());
    for (TimedRun& run : runs) run.finished.wait(false);
    EXPECT_FALSE(conductor.busy());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_GE(runs[i].begun, runs[i].earliest_at) << i;
      EXPECT_GE(runs[i].begun, runs[i - std::min<std::size_t>(i, 1)].begun) << i;
    }
  }
}

// Calls of all kinds race with each sleep: none may be lost.
TEST(Conductor, NoCallIsLost) {
  alarm(120);
  RealClock clock;
  Conductor conductor(clock, kSleeps);
  TimedRun run({}, false);
  for (int i = 0; i < 5000; ++i) {
    run.ended = run.finished = false;
    conductor.submit(run);
    if (i % 2 == 0) wait_for_looks(run, 1);
    run.ended = true;
    conductor.waker().wake();
    run.finished.wait(false);
    while (conductor.busy()) std::this_thread::yield();
  }
  alarm(0);
}

/// The cores that this thread may use.
std::vector<int> my_cores() {
  cpu_set_t allowed;
  EXPECT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  return cores;
}

// A thread that spins keeps its maker off its core, where it gets one. The priority that none asks for is one that the
// host knows, whether it is allowed or not.
TEST(Conductor, ThatSpinsKeepsItsMakerOffItsCore) {
  const std::vector<int> before = my_cores();
  if (before.size() < 2) GTEST_SKIP() << "a core for each of two threads";
  RealClock clock;
  {
    const Conductor conductor(clock, {0, true, {before.back()}});
    EXPECT_EQ(my_cores(), std::vector(before.begin(), before.end() - 1));
    for (const std::string& note : conductor.notes()) EXPECT_EQ(note.find("Invalid argument"), note.npos) << note;
  }
  EXPECT_EQ(my_cores(), before);
}

// A thread that sleeps may share any core.
TEST(Conductor, ThatSleepsTakesNoCore) {
  const std::vector<int> before = my_cores();
  RealClock clock;
  const Conductor conductor(clock, {50, false, {0}});
  EXPECT_EQ(my_cores(), before);
  for (const std::string& note : conductor.notes()) EXPECT_EQ(note.find("core of its own"), std::string::npos) << note;
}

TEST(Conductor, ReportsTheProcessorTimeOfItsThread) {
  RealClock clock;
  Conductor sleeps(clock, kSleeps), spins(clock, {0, true, {}});
  for (Conductor* conductor : {&sleeps, &spins}) {
    const Duration before = conductor->processor_time();
    TimedRun run({milliseconds(1)});
    lead(*conductor, run);
    EXPECT_GT(conductor->processor_time(), before);
  }
}

}  // namespace
}  // namespace tutti::internal::cuda
