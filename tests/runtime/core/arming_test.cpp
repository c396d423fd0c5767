// What is got ready when: while a batch runs, and while the run waits, what comes next is armed.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/plain_backend.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::Station;
using Log = std::vector<std::string>;

/// A batch that writes down what is asked of it, and whose kernels take too long.
class WatchedBatch final : public PlainBatch {
 public:
  WatchedBatch(std::unique_ptr<BackendBatch> batch, std::string name, Log& log, std::vector<Duration>& starts,
               const std::function<void()>& on_wait)
      : batch_(std::move(batch)), name_(std::move(name)), log_(log), starts_(starts), on_wait_(on_wait) {}

  void arm() override {
    if (!std::exchange(armed_, true)) log_.push_back("arm " + name_);
    batch_->arm();
  }
  void disarm() override {
    if (std::exchange(armed_, false)) log_.push_back("disarm " + name_);
    batch_->disarm();
  }
  void submit(Duration earliest) override {
    armed_ = false;
    log_.push_back("submit " + name_);
    starts_.push_back(earliest);
    batch_->submit(earliest);
  }
  bool poll() override { return batch_->poll(); }
  void wait() override {
    log_.push_back("wait " + name_);
    if (on_wait_) on_wait_();
    batch_->wait();
  }
  [[nodiscard]] BatchResult result() const override {
    BatchResult result = batch_->result();
    result.overruns = 2;
    return result;
  }
  [[nodiscard]] Timeline measured() const override { return batch_->measured(); }

 private:
  std::unique_ptr<BackendBatch> batch_;
  std::string name_;
  Log& log_;
  std::vector<Duration>& starts_;
  const std::function<void()>& on_wait_;
  bool armed_ = false;
};

class WatchedBackend final : public PlainBackend {
 public:
  explicit WatchedBackend(DeviceBackend& backend) : backend_(backend) {}

  [[nodiscard]] std::string_view name() const override { return "watched"; }
  [[nodiscard]] bool starts_cold() const override { return cold; }
  [[nodiscard]] bool links_runs() const override { return linked; }
  [[nodiscard]] bool busy() const override { return backend_.busy(); }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return backend_.allocate(where, size);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override {
    return backend_.wrap(where, memory, std::move(owner));
  }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override {
    std::string name = bound.name;
    if (const int set = ++sets_[name]; set > 1) name += ", set " + std::to_string(set);
    return backend_.prepare(std::move(bound)).map([&](auto&& prepared) -> std::unique_ptr<BackendBatch> {
      return std::make_unique<WatchedBatch>(std::move(prepared), std::move(name), log, starts, on_wait);
    });
  }

  [[nodiscard]] Duration processor_time() const override { return processor += std::chrono::hours(1); }

  Log log;
  std::vector<Duration> starts;  ///< that the submissions ask for
  mutable Duration processor{};  ///< it takes an hour from one question to the next
  bool cold = false, linked = false;
  std::function<void()> on_wait;

 private:
  DeviceBackend& backend_;
  std::map<std::string, int> sets_;  // prepared under a name
};

/// Time that passes by itself, and at once for whoever waits.
class HastyClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return "hasty"; }
  [[nodiscard]] Duration now() const override { return now_; }
  void wait_until(Duration at) override { now_ = std::max(now_, at); }
  [[nodiscard]] bool runs_by_itself() const override { return true; }

 private:
  Duration now_{};
};

/// The small machine, watched.
struct Watched {
  Task task(std::string name, std::int64_t period, std::size_t batches, std::int64_t offset = 0) {
    Task task = test::with_offset(test::task(std::move(name), 0, period), offset);
    task.declared_wcet.reset();
    for (std::size_t i = 0; i < batches; ++i)
      task.steps.emplace_back(station.batch({test::kernel_stream("s", station.at("gpu0"), "spin", 10)}));
    return task;
  }

  RunRecord run(std::vector<Task> tasks, std::uint64_t jobs, const std::atomic<bool>* interrupted = nullptr,
                Preemption preemption = Preemption::None) {
    TaskSet set{station.machine, Policy::Edf, std::move(tasks)};
    set.preemption = preemption;
    const AdmittedTaskSet admitted = test::admit(set);
    std::vector<PatternProgram> programs;
    for (const Task& task : set.tasks) programs.emplace_back(station.machine, task, 1);
    std::vector<TaskProgram*> table;
    for (PatternProgram& program : programs) table.push_back(&program);
    Executor executor(station.machine, backend, *station.clock);
    RunOptions options = first_jobs(jobs);
    options.interrupted = interrupted;
    return run_tasks(executor, admitted, table, options).value();
  }

  explicit Watched(std::unique_ptr<Clock> clock = std::make_unique<HastyClock>()) : station(std::move(clock)) {}

  Station station;
  WatchedBackend backend{*station.backend};
};

// The job's second batch is armed while its first one runs, the next job's first one while the second one runs.
TEST(Arming, IsOneBatchAhead) {
  Watched watched;
  watched.run({watched.task("t", 1000, 2)}, 2);
  EXPECT_EQ(watched.backend.log,
            (Log{"submit batch 1 of task 't'", "arm batch 2 of task 't'", "wait batch 1 of task 't'",
                 "submit batch 2 of task 't'", "arm batch 1 of task 't'", "wait batch 2 of task 't'",
                 "submit batch 1 of task 't'", "arm batch 2 of task 't'", "wait batch 1 of task 't'",
                 "submit batch 2 of task 't'", "wait batch 2 of task 't'"}));
}

TEST(WatchedRun, CountsTheProcessorTimeOfItsBackend) {
  Watched watched;
  EXPECT_GE(watched.run({watched.task("t", 1000, 1)}, 1).processor, std::chrono::hours(1));
}

// a arrives at 0 and 1000, b at 600: b is armed while the first a runs, the second a behind it.
TEST(Arming, IsForTheJobThatIsReleasedNext) {
  Watched watched;
  watched.run({watched.task("a", 1000, 1), watched.task("b", 1000, 1, 600)}, 3);
  Log armed;
  for (const std::string& line : watched.backend.log)
    if (line.starts_with("arm")) armed.push_back(line);
  EXPECT_EQ(armed, (Log{"arm batch 1 of task 'b'", "arm batch 1 of task 'a'"}));
}

// D = 2 T, so two jobs can be alive, and two sets of buffers take turns: the one that is armed is the next one's.
TEST(Arming, IsOfTheBuffersOfTheNextJob) {
  Watched watched;
  watched.run({test::with_deadline(watched.task("t", 1000, 1), 2000)}, 4);
  const std::string first = "batch 1 of task 't'", second = first + ", set 2";
  EXPECT_EQ(watched.backend.log, (Log{"submit " + first, "arm " + second, "wait " + first, "submit " + second,
                                      "arm " + first, "wait " + second, "submit " + first, "arm " + second,
                                      "wait " + first, "submit " + second, "wait " + second}));
}

// Both arrive at 0; b is armed while a runs.
TEST(Arming, IsForTheMostUrgentReadyJob) {
  Watched watched;
  watched.run({watched.task("a", 1000, 1), watched.task("b", 2000, 1), watched.task("c", 3000, 1)}, 3);
  const Log& log = watched.backend.log;
  ASSERT_GE(log.size(), 3U);
  EXPECT_EQ(Log(log.begin(), log.begin() + 3),
            (Log{"submit batch 1 of task 'a'", "arm batch 1 of task 'b'", "wait batch 1 of task 'a'"}));
}

// Both batches have run once when the first job is released.
TEST(Arming, ComesBehindAWarmUpWhereTheBackendStartsCold) {
  Watched watched;
  watched.backend.cold = true;
  EXPECT_EQ(watched.run({watched.task("t", 1000, 2)}, 1).jobs.size(), 1U);
  const Log& log = watched.backend.log;
  ASSERT_GE(log.size(), 5U);
  EXPECT_EQ(Log(log.begin(), log.begin() + 5),
            (Log{"submit batch 1 of task 't'", "wait batch 1 of task 't'", "submit batch 2 of task 't'",
                 "wait batch 2 of task 't'", "submit batch 1 of task 't'"}));
}

// Three batches with a host step before the last one, where the machine passes from batch to batch by itself: the first
// two are submitted together.
TEST(LinkedRuns, BatchesWithoutAHostStepBetweenThemAreSubmittedTogether) {
  Watched watched;
  watched.backend.linked = true;
  Task task = watched.task("t", 1000, 3);
  task.steps.insert(task.steps.begin() + 2, HostStep{Duration{10}});
  const RunRecord record = watched.run({task}, 2);
  EXPECT_EQ(record.jobs.size(), 2U);
  const Log job{"submit batch 1 of task 't'", "submit batch 2 of task 't'", "arm batch 3 of task 't'",
                "wait batch 1 of task 't'",   "wait batch 2 of task 't'",   "submit batch 3 of task 't'"};
  Log both = job;
  both.insert(both.end(), {"arm batch 1 of task 't'", "arm batch 2 of task 't'", "wait batch 3 of task 't'"});
  both.insert(both.end(), job.begin(), job.end());
  both.emplace_back("wait batch 3 of task 't'");
  EXPECT_EQ(watched.backend.log, both);
}

// The dispatcher decides between the batches: whether another job goes first, whether the job is aborted.
TEST(LinkedRuns, BatchesAreNotWhereADecisionLiesBetweenThem) {
  const Log one_by_one{"submit batch 1 of task 't'", "wait batch 1 of task 't'", "submit batch 2 of task 't'",
                       "wait batch 2 of task 't'"};
  for (const bool aborts : {false, true}) {
    Watched watched;
    watched.backend.linked = true;
    Task task = watched.task("t", 1000, 2);
    if (aborts) task.overrun.policy = OverrunPolicy::Abort;
    watched.run({task}, 1, nullptr, aborts ? Preemption::None : Preemption::BetweenBatches);
    Log log = watched.backend.log;
    std::erase_if(log, [](const std::string& line) { return line.starts_with("arm"); });
    EXPECT_EQ(log, one_by_one);
  }
}

/// A clock on which a thread that waits wakes 100 us late.
class DrowsyClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return "drowsy"; }
  [[nodiscard]] Duration now() const override { return now_; }
  void wait_until(Duration at) override { now_ = std::max(now_, at + std::chrono::microseconds{100}); }
  [[nodiscard]] bool runs_by_itself() const override { return true; }

 private:
  Duration now_{};
};

// Periods of 4 ms: the dispatcher sleeps until 0.5 ms before an arrival, wakes 0.1 ms late, and gives the job to the
// backend with its start, which the job gets though the dispatcher sleeps through it. Where the backend does not chain
// the job starts when the dispatcher has woken up.
TEST(StartsAhead, AreTheArrivalsThoughTheDispatcherWakesLate) {
  using std::chrono::microseconds;
  for (const bool linked : {true, false}) {
    Watched watched(std::make_unique<DrowsyClock>());
    watched.backend.linked = linked;
    const RunRecord record = watched.run({watched.task("t", 4'000'000, 1)}, 4);
    ASSERT_EQ(record.jobs.size(), 4U);
    ASSERT_EQ(watched.backend.starts.size(), 4U);
    const Duration epoch = watched.backend.starts[0];
    for (int i = 1; i < 4; ++i)
      EXPECT_EQ(watched.backend.starts[i], epoch + i * microseconds{4000} + microseconds{linked ? 0 : 100});
  }
}

// Nothing is certain where two jobs are ready at once, where a host step goes first, or the program fills the input.
TEST(StartsAhead, AreLeftOutWhereAnotherJobMayGoFirst) {
  Watched watched(std::make_unique<DrowsyClock>());
  watched.backend.linked = true;
  Task steps = watched.task("steps", 8'000'000, 1, 2'000'000);
  steps.steps.insert(steps.steps.begin(), HostStep{Duration{10}});
  watched.run({watched.task("a", 8'000'000, 1), watched.task("b", 8'000'000, 1), steps}, 9);
  ASSERT_EQ(watched.backend.starts.size(), 9U);
  const Duration epoch = watched.backend.starts[0];
  const auto at_an_arrival = [&](Duration start) { return (start - epoch).count() % 2'000'000 == 0; };
  EXPECT_EQ(std::ranges::count_if(watched.backend.starts, at_an_arrival), 1) << "the first alone";
}

// a's first job is under way when the run is interrupted; b's, which is armed by then, never runs.
TEST(Arming, IsUndoneWhereARunIsInterrupted) {
  Watched watched;
  std::atomic<bool> interrupted = false;
  watched.backend.on_wait = [&] { interrupted = true; };
  EXPECT_TRUE(watched.run({watched.task("a", 1000, 1), watched.task("b", 2000, 1)}, 2, &interrupted).interrupted);
  EXPECT_EQ(watched.backend.log, (Log{"submit batch 1 of task 'a'", "arm batch 1 of task 'b'",
                                      "wait batch 1 of task 'a'", "disarm batch 1 of task 'b'"}));
}

// Two kernels in each batch took too long: four a job.
TEST(Overruns, OfAJobAreThoseOfItsBatches) {
  Watched watched;
  for (const JobRecord& job : watched.run({watched.task("t", 1000, 2)}, 3).jobs) EXPECT_EQ(job.overruns, 4);
}

}  // namespace
}  // namespace tutti::internal
