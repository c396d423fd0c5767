// The worker that calls the user's code beside jobs, and runs with it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/callback_worker.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/runtime/thread_limit.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::VirtualRun;

// Pieces of 30 that are posted at 0, 10 and 200: done at 30, 60 and 230. The clock of the caller stands still.
TEST(CallbackWorker, TakesItsOwnTimeOnAVirtualClock) {
  VirtualClock clock;
  Waker waker;
  std::vector<std::size_t> done;
  CallbackWorker worker(
      clock, 4,
      [&](std::size_t piece) {
        done.push_back(piece);
        clock.wait_until(clock.now() + Duration{30});
      },
      {}, waker);
  EXPECT_TRUE(worker.is_idle());
  EXPECT_EQ(worker.next_done(), kNever);
  worker.post(7);
  clock.wait_until(Duration{10});
  worker.post(8);
  EXPECT_EQ(clock.now(), Duration{10});
  EXPECT_EQ(worker.next_done(), Duration{30});
  EXPECT_FALSE(worker.take_done(Duration{29}));
  const auto first = worker.take_done(Duration{30});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->piece, 7U);
  EXPECT_EQ(first->ended, Duration{30});
  const auto second = worker.take_done(Duration{60});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->began, Duration{30});
  EXPECT_TRUE(worker.is_idle());
  clock.wait_until(Duration{200});
  worker.post(9);
  EXPECT_EQ(worker.next_done(), Duration{230});
  EXPECT_EQ(done, (std::vector<std::size_t>{7, 8, 9}));
}

TEST(CallbackWorker, IsAThreadOfItsOwnOnARealClock) {
  RealClock clock(WaitKind::Block);
  Waker waker;
  std::vector<std::size_t> done;
  std::thread::id by;
  CallbackWorker worker(
      clock, 4, [&](std::size_t piece) { done.push_back(piece), by = std::this_thread::get_id(); }, {}, waker);
  for (std::size_t piece = 0; piece < 100; ++piece) {
    worker.post(piece);
    for (bool taken = false; !taken;) {
      waker.look();
      const auto end = worker.take_done(clock.now());
      taken = end.has_value();
      if (taken)
        EXPECT_EQ(end->piece, piece);
      else
        clock.wait_until(clock.now() + std::chrono::hours{1}, waker);
    }
  }
  EXPECT_TRUE(worker.is_idle());
  EXPECT_EQ(done.size(), 100U);
  EXPECT_NE(by, std::this_thread::get_id());
}

// No host grants a priority of 1000.
TEST(CallbackWorker, ReportsWhatTheHostRefused) {
  RealClock clock(WaitKind::Block);
  Waker waker;
  CallbackWorker worker(
      clock, 1, [](std::size_t) {}, {.priority = 1000}, waker);
  EXPECT_TRUE(worker.notes().empty());
  worker.post(0);
  while (!worker.take_done(clock.now())) {
    clock.wait_until(clock.now() + std::chrono::hours{1}, waker);
    waker.look();
  }
  ASSERT_EQ(worker.notes().size(), 1U);
  EXPECT_TRUE(worker.notes()[0].starts_with("no real-time priority")) << worker.notes()[0];
}

/// A program that notes what it is told, and takes its time for it.
class NotingProgram final : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  void on_ready(const Job& job) override { note("ready", job, filling); }
  void on_finished(const Job& job) override { note("finished", job, reading); }
  void on_missed(const Job& job, const JobRecord& record) override {
    EXPECT_EQ(record.verdict, JobVerdict::Missed);
    note("missed", job, {});
  }
  void on_dropped(const Job& job, const JobRecord& record) override {
    EXPECT_FALSE(record.finish);
    note("dropped", job, {});
  }
  void on_failed(const Job& job, const JobRecord& record) override {
    EXPECT_TRUE(record.error);
    note("failed", job, {});
  }
  Expected<void> on_work(Job& job) override {
    auto done = TaskProgram::on_work(job);
    job.executor().clock().wait_until(job.executor().clock().now() + longer);
    if (fails) return kernel_error("it cannot");
    return done;
  }

  std::vector<std::string> notes;
  Duration filling{}, reading{}, longer{};
  bool fails = false;

 private:
  static tl::unexpected<Error> kernel_error(const char* text) {
    return tl::unexpected(Error{ErrorCode::Kernel, text, {}});
  }
  void note(const char* what, const Job& job, Duration takes) {
    notes.push_back(what + std::to_string(job.index));
    job.executor().clock().wait_until(job.executor().clock().now() + takes);
  }
};

using Notes = std::vector<std::string>;

/// Task a of 10 every 100, and b of 10 every 100, less urgent, on the virtual clock.
struct NotedRun {
  RunRecord run(const RunOptions& options) {
    TaskProgram* const table[] = {&a, &b};
    return run_tasks(run_.station.executor, run_.admitted, table, options).value();
  }
  VirtualRun run_{{std::nullopt, Policy::Edf, {test::task("a", 10, 100), test::task("b", 10, 101)}}};
  NotingProgram a, b;
};

// a's input takes 50, so its job runs from 50 to 60; b's has none to wait for: from the moment at which a's is there,
// since the worker does one thing at a time. Nobody waits for a's result, which is read until 90.
TEST(Callbacks, DoNotHoldUpJobsOfOthers) {
  NotedRun noted;
  noted.a.filling = Duration{50};
  noted.a.reading = Duration{30};
  TaskProgram* const table[] = {&noted.a, &noted.run_.programs[1]};
  const RunRecord record = run_tasks(noted.run_.station.executor, noted.run_.admitted, table, first_jobs(2)).value();
  const auto of = [&](std::size_t task) -> const JobRecord& {
    return *std::ranges::find(record.jobs, TaskId{task}, &JobRecord::task);
  };
  EXPECT_EQ(of(0).start, Duration{50});
  EXPECT_EQ(of(0).finish, Duration{60});
  EXPECT_EQ(of(0).programs, Duration{50});
  EXPECT_EQ(of(0).response(), Duration{10});
  EXPECT_EQ(of(0).end_to_end(), Duration{90});
  EXPECT_EQ(of(1).start, Duration{60});
}

/// As `PatternProgram`: it has no callbacks.
class SilentProgram final : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  [[nodiscard]] bool fills_input() const override { return false; }
  [[nodiscard]] bool hears_of_end() const override { return false; }
};

// a's input takes 50 of each 100. b has no callbacks: its jobs start at 0 and 101, as if a had none.
TEST(Callbacks, DoNotHoldUpJobsWithout) {
  NotedRun noted;
  SilentProgram silent;
  noted.a.filling = Duration{50};
  TaskProgram* const table[] = {&noted.a, &silent};
  const RunRecord record = run_tasks(noted.run_.station.executor, noted.run_.admitted, table, first_jobs(4)).value();
  std::vector<Duration> starts;
  for (const JobRecord& job : record.jobs)
    if (job.task == TaskId{1}) starts.push_back(job.start);
  EXPECT_EQ(starts, (std::vector{Duration{0}, Duration{101}}));
}

// A job that takes 150 in place of 10 is late, with a result; the job of its task behind it, at 100, starts at 150.
TEST(Callbacks, HearOfMissedJobs) {
  NotedRun noted;
  noted.a.longer = Duration{140};
  static_cast<void>(noted.run(first_jobs(2)));
  EXPECT_EQ(noted.a.notes, (Notes{"ready0", "finished0", "missed0"}));
  EXPECT_EQ(noted.b.notes, (Notes{"ready0", "finished0", "missed0"}));
}

TEST(Callbacks, HearOfFailedJobs) {
  NotedRun noted;
  noted.b.fails = true;
  static_cast<void>(noted.run(first_jobs(4)));
  EXPECT_EQ(noted.a.notes, (Notes{"ready0", "finished0", "ready1", "finished1"}));
  EXPECT_EQ(noted.b.notes, (Notes{"ready0", "failed0", "ready1", "failed1"}));
}

// A job that takes 1000 while its task has buffers for one: those that come meanwhile wait until they are late, and are
// dropped.
TEST(Callbacks, HearOfDroppedJobs) {
  NotedRun noted;
  noted.a.longer = Duration{990};
  const RunRecord record = noted.run(first_jobs(20));
  std::uint64_t dropped = 0;
  for (const std::string& note : noted.a.notes) dropped += note.starts_with("dropped") ? 1 : 0;
  EXPECT_GT(dropped, 0U);
  EXPECT_EQ(dropped, record.summaries[0].with(JobVerdict::Dropped));
  EXPECT_EQ(record.jobs.size(), 20U);
}

// a's result is read for 1000, so its buffers are not free for the jobs behind: they wait until they are late, and are
// dropped, by the host.
TEST(Callbacks, ThatKeepBuffersAreTheCauseOfDroppedJobs) {
  NotedRun noted;
  noted.a.reading = Duration{1000};
  const RunRecord record = noted.run(first_jobs(12));
  std::uint64_t dropped = 0;
  for (const JobRecord& job : record.jobs) {
    if (job.verdict != JobVerdict::Dropped) continue;
    ++dropped;
    ASSERT_TRUE(job.broken);
    EXPECT_EQ(job.broken->cause, BoundCause::Host) << job.index;
  }
  EXPECT_GT(dropped, 0U);
}

/// A program that stops the worker while jobs of its task are dropped.
TEST(Callbacks, OfDroppedJobsAreLeftOutRatherThanTheirRecords) {
  NotedRun noted;
  noted.a.longer = Duration{100'000};
  noted.b.filling = Duration{90'000};  // the worker has no time for more than 64 ends
  const RunRecord record = noted.run(first_jobs(1000));
  EXPECT_EQ(record.jobs.size(), 1000U);
  EXPECT_GT(record.summaries[0].with(JobVerdict::Dropped), 64U);
}

/// Hears of the ends of its jobs, and has no input to fill.
class EndsOnly final : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  [[nodiscard]] bool fills_input() const override { return false; }
  void on_finished(const Job&) override { ++ended; }
  int ended = 0;
};

// The worker fills b's input until 300'000. a's first job ends at 100'010, when some 1000 jobs of a have come and are
// dropped: however many of their callbacks wait, c's job, which ends behind them, has one.
TEST(Callbacks, OfDroppedJobsTakeNoPlaceOfOthers) {
  VirtualRun run(
      {std::nullopt, Policy::Edf, {test::task("a", 10, 100), test::task("b", 10, 101), test::task("c", 10, 102)}});
  NotingProgram a, b;
  EndsOnly c;
  a.longer = Duration{100'000};
  b.filling = Duration{300'000};
  TaskProgram* const table[] = {&a, &b, &c};
  const RunRecord record = run_tasks(run.station.executor, run.admitted, table, first_jobs(1000)).value();
  EXPECT_EQ(record.jobs.size(), 1000U);
  EXPECT_GT(c.ended, 0);
}

TEST(Callbacks, ThatThrowEndTheRun) {
  for (const char* which : {"on_ready", "on_finished", "on_job_end"}) {
    NotedRun noted;
    test::WatchedProgram thrower;
    struct Thrower final : TaskProgram {
      explicit Thrower(std::string the_place) : place(std::move(the_place)) {}
      Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
        return std::vector<StreamBinding>{};
      }
      void on_ready(const Job&) override { at("on_ready"); }
      void on_finished(const Job&) override { at("on_finished"); }
      void at(const std::string& here) const {
        if (here == place) throw std::runtime_error("no picture");
      }
      std::string place;
    } program{which};
    TaskProgram* const table[] = {&program, &noted.b};
    RunOptions options = first_jobs(10);
    if (std::string(which) == "on_job_end")
      options.on_job_end = [](const JobRecord&) { throw std::runtime_error("no picture"); };
    const RunRecord record = run_tasks(noted.run_.station.executor, noted.run_.admitted, table, options).value();
    ASSERT_TRUE(record.fatal) << which;
    EXPECT_NE(record.fatal->message.find(std::string(which) + " of task 'a' threw: no picture"), std::string::npos)
        << record.fatal->message;
    EXPECT_FALSE(record.jobs.empty()) << which;
  }
}

/// Counts the threads of this process, and has no callbacks.
class ThreadCounter final : public TaskProgram {
 public:
  static std::ptrdiff_t threads() { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); }
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  [[nodiscard]] bool fills_input() const override { return false; }
  [[nodiscard]] bool hears_of_end() const override { return false; }
  Expected<void> on_work(Job&) override {
    seen = threads();
    return {};
  }
  std::ptrdiff_t seen = 0;
};

// A thread that was joined may be listed for a moment, before the run.
TEST(Callbacks, HaveNoThreadWhereThereAreNone) {
  test::Station station{std::make_unique<RealClock>(WaitKind::Block)};
  const AdmittedTaskSet admitted = test::admit({std::nullopt, Policy::Edf, {test::task("a", 100'000, 1'000'000)}});
  ThreadCounter program;
  TaskProgram* const table[] = {&program};
  const std::ptrdiff_t before = ThreadCounter::threads();
  static_cast<void>(run_tasks(station.executor, admitted, table, first_jobs(1)).value());
  EXPECT_GE(program.seen, 1);
  EXPECT_LE(program.seen, before);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need memory for each thread themselves
TEST(CallbacksDeath, WithoutAThreadForThemNothingRuns) {
  const auto run_without_threads = [] {
    test::Station station{std::make_unique<RealClock>(WaitKind::Block)};
    const AdmittedTaskSet admitted = test::admit({std::nullopt, Policy::Edf, {test::task("a", 100'000, 1'000'000)}});
    RunOptions options = first_jobs(1);
    options.on_job_end = [](const JobRecord&) {};
    ThreadCounter program;
    TaskProgram* const table[] = {&program};
    test::leave_room_for_threads(0);
    const auto record = run_tasks(station.executor, admitted, table, options);
    const std::string why = record ? "it ran" : record.error().message;
    std::fprintf(stderr, "%s\n", why.c_str());
    std::_Exit(record ? 1 : 0);
  };
  EXPECT_EXIT(run_without_threads(), testing::ExitedWithCode(0), "the host has no thread for callbacks");
}
#endif

// On a real clock the worker is a thread: all ends are reported by it, and none by the thread of the run.
TEST(Callbacks, AreCalledByOneOtherThreadOnARealClock) {
  test::Station station{std::make_unique<RealClock>(WaitKind::Block)};
  const AdmittedTaskSet admitted =
      test::admit({std::nullopt, Policy::Edf, {test::task("a", 100'000, 1'000'000), test::task("b", 1, 700'000)}});
  struct Program final : TaskProgram {
    Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
      return std::vector<StreamBinding>{};
    }
    void on_ready(const Job&) override { by = std::this_thread::get_id(), ++ready; }
    Expected<void> on_work(Job&) override {
      EXPECT_EQ(std::this_thread::get_id(), dispatcher);
      return {};
    }
    void on_finished(const Job&) override {
      EXPECT_EQ(std::this_thread::get_id(), by);
      ++finished;
    }
    std::thread::id by, dispatcher = std::this_thread::get_id();
    int ready = 0, finished = 0;
  } a, b;
  TaskProgram* const table[] = {&a, &b};
  RunOptions options = first_jobs(40);
  std::uint64_t ended = 0;
  options.on_job_end = [&](const JobRecord&) { ++ended; };
  const RunRecord record = run_tasks(station.executor, admitted, table, options).value();
  EXPECT_EQ(record.jobs.size(), 40U);
  EXPECT_EQ(ended, 40U);
  const auto ran = std::ranges::count_if(record.jobs, [](const JobRecord& job) { return job.finish.has_value(); });
  EXPECT_EQ(a.ready + b.ready, ran);  // on a busy host some are dropped
  EXPECT_TRUE(a.by == b.by || a.ready == 0 || b.ready == 0);
  EXPECT_NE(a.by, std::this_thread::get_id());
  Duration last{};
  for (const JobRecord& job : record.jobs) {
    if (!job.finish) continue;
    EXPECT_LE(last, *job.finish) << "records are in the order of their ends";
    last = *job.finish;
  }
}

}  // namespace
}  // namespace tutti::internal
