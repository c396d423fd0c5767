// Where triggers come from, and runs whose jobs they release. What the scheduler makes of them: job_scheduler_test.cpp.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/dispatch/partitioned_run.hpp"
#include "runtime/triggers/trigger_sources.hpp"
#include "runtime/triggers/trigger_word.hpp"
#include "tests/runtime/task_runs.hpp"

namespace tutti::internal {
namespace {

Task external(std::string name, std::int64_t wcet, std::int64_t period) {
  Task task = test::task(std::move(name), wcet, period);
  task.release = {ReleaseSource::External, "", EarlyTriggers::Defer, Duration{2 * period}};
  return task;
}

/// A name in shared memory of this process alone.
struct WordName {
  std::string name = "test." + std::to_string(getpid());
  std::string path = "/dev/shm/tutti." + name;
  ~WordName() { std::filesystem::remove(path); }
};

/// A word as a program without the library has it.
class MappedWord {
 public:
  explicit MappedWord(const WordName& name) {
    const int file = open(name.path.c_str(), O_RDWR);
    word_ =
        static_cast<SharedTrigger*>(mmap(nullptr, sizeof(SharedTrigger), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    close(file);
  }
  ~MappedWord() { munmap(word_, sizeof(SharedTrigger)); }
  SharedTrigger* operator->() const { return word_; }

 private:
  SharedTrigger* word_;
};

std::vector<Duration> all_of(TriggerSource& source, Duration until) {
  std::vector<Duration> came;
  for (Duration at = source.next(); at <= until; at = source.next()) {
    EXPECT_FALSE(source.take(at - Duration{1}));
    if (const auto taken = source.take(at)) came.push_back(*taken);
  }
  return came;
}

using Instants = std::vector<Duration>;

TEST(SimulatedTriggers, ComeOnceAPeriod) {
  VirtualClock clock;
  Waker waker;
  SimulatedTriggers regular(Duration{100}, {}, 1);
  regular.begin(clock, Duration{50}, waker);
  EXPECT_EQ(all_of(regular, Duration{300}), (Instants{Duration{50}, Duration{150}, Duration{250}}));
  SimulatedTriggers jittered(Duration{100}, Duration{40}, 1);
  jittered.begin(clock, {}, waker);
  const Instants came = all_of(jittered, Duration{10'000});
  bool differ = false;
  for (std::size_t i = 0; i < came.size(); ++i) {
    const Duration delay = came[i] - Duration{100} * static_cast<std::int64_t>(i);
    EXPECT_GE(delay, Duration{0});
    EXPECT_LE(delay, Duration{40});
    differ = differ || delay != came[0];
  }
  EXPECT_GE(came.size(), 99U);
  EXPECT_TRUE(differ);
}

// Period 100: trigger 1 is 30 early, 2 does not come, 3 comes twice, 4 is 120 late and holds up 5 until it has come.
TEST(SimulatedTriggers, HaveFaults) {
  VirtualClock clock;
  Waker waker;
  SimulatedTriggers source(Duration{100}, {}, 1, [](std::uint64_t number, Duration) -> TriggerFault {
    switch (number) {
      case 1: return {.by = Duration{-30}};
      case 2: return {.missing = true};
      case 3: return {.doubled = true};
      case 4: return {.by = Duration{120}};
      default: return {};
    }
  });
  source.begin(clock, {}, waker);
  EXPECT_EQ(all_of(source, Duration{600}), (Instants{Duration{0}, Duration{70}, Duration{300}, Duration{300},
                                                     Duration{520}, Duration{520}, Duration{600}}));
}

// On the virtual clock, with a simulated device: 5 triggers in 500, one early by 30 and one missing. The early one is
// deferred, so its job starts at 100.
TEST(TriggeredRun, ReleasesJobsByTriggers) {
  test::VirtualRun run({std::nullopt, Policy::Edf, {external("a", 10, 100), test::task("b", 1, 1000)}});
  TriggerOrigins origins{.simulated = true, .faults = [](TaskId task, std::uint64_t number, Duration) -> TriggerFault {
                           EXPECT_EQ(task, TaskId{0});
                           if (number == 1) return {.by = Duration{-30}};
                           return {.missing = number == 3};
                         }};
  const auto sources = TriggerSources::make(run.set, origins).value();
  RunOptions options;
  options.arrivals_before = Duration{500};
  options.triggers = sources.table();
  const RunRecord record = run.run(options);
  std::vector<std::int64_t> arrivals;
  for (const JobRecord& job : record.jobs) {
    if (job.task == TaskId{0}) arrivals.push_back(job.arrival.count());
    EXPECT_EQ(job.verdict, JobVerdict::Met);
  }
  EXPECT_EQ(arrivals, (std::vector<std::int64_t>{0, 100, 200, 400}));
  EXPECT_EQ(record.triggers[0], (TriggerCounts{.seen = 4, .deferred = 1, .missing = 0, .most_early = Duration{30}}));
  EXPECT_EQ(record.triggers[1], TriggerCounts{});
}

// Triggers at 0, 70 and 90: the second is deferred to 100, and while it waits the third is not looked at. It is a
// double of the second by then, early by 110.
TEST(TriggeredRun, LooksAtTriggersBehindADeferredOne) {
  test::VirtualRun run({std::nullopt, Policy::Edf, {external("a", 10, 100)}});
  const TriggerOrigins origins{.simulated = true, .faults = [](TaskId, std::uint64_t number, Duration) -> TriggerFault {
                                 if (number == 1) return {.by = Duration{-30}};
                                 if (number == 2) return {.by = Duration{-110}};
                                 return {.missing = number > 2};
                               }};
  const auto sources = TriggerSources::make(run.set, origins).value();
  RunOptions options;
  options.arrivals_before = Duration{250};
  options.triggers = sources.table();
  const RunRecord record = run.run(options);
  EXPECT_EQ(record.jobs.size(), 2U);
  EXPECT_EQ(record.triggers[0], (TriggerCounts{.seen = 3, .deferred = 1, .dropped = 1, .most_early = Duration{110}}));
}

// Nothing fires: the run waits, counts what is missing (at 200 and 400), and ends at its time, whenever it starts, and
// not at 600, when a trigger should come.
TEST(TriggeredRun, EndsAtItsTimeWithoutTriggers) {
  for (const Duration start : {Duration{0}, Duration{1000}}) {
    test::VirtualRun run({std::nullopt, Policy::Edf, {external("a", 10, 100)}});
    run.station.clock->wait_until(start);
    const TriggerOrigins origins{.simulated = true, .faults = [](TaskId, std::uint64_t number, Duration) {
                                   return TriggerFault{.missing = number < 100'000'000};
                                 }};
    const auto sources = TriggerSources::make(run.set, origins).value();
    RunOptions options;
    options.arrivals_before = Duration{550};
    options.triggers = sources.table();
    const RunRecord record = run.run(options);
    EXPECT_TRUE(record.jobs.empty());
    EXPECT_EQ(record.triggers[0].missing, 2U);
    EXPECT_EQ(record.length, Duration{550});
  }
}

/// A task that threads or other processes trigger, on a real clock; its job fires the next trigger.
struct RealRun {
  explicit RealRun(std::vector<Task> tasks, WaitKind waiting) : station(std::make_unique<RealClock>(waiting)) {
    admitted = std::make_unique<AdmittedTaskSet>(test::admit({std::nullopt, Policy::Edf, std::move(tasks)}));
  }
  RunRecord run(const TriggerOrigins& origins, std::uint64_t jobs) {
    const auto sources = TriggerSources::make(admitted->tasks(), origins).value();
    RunOptions options = test::first_jobs(jobs);
    options.triggers = sources.table();
    std::vector<test::WatchedProgram> programs(admitted->tasks().tasks.size());
    std::vector<TaskProgram*> table;
    for (auto& program : programs) {
      program.instead = [this](Job&) {
        has_begun = true;
        return Expected<void>{};
      };
      table.push_back(&program);
    }
    return run_tasks(station.executor, *admitted, table, options).value();
  }
  test::Station station;
  std::unique_ptr<AdmittedTaskSet> admitted;
  std::atomic<bool> has_begun = false;  ///< a job has run
};

/// Fires until it is told to stop.
class Firing {
 public:
  template <class Fire>
  explicit Firing(Fire fire)
      : thread_([this, fire] {
          while (!stop_) {
            fire();
            std::this_thread::sleep_for(std::chrono::microseconds{300});
          }
        }) {}
  ~Firing() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// A thread fires about every 300 us, the period is 200 us: each way of waiting sees 30 triggers, and each job arrives
// no later than it starts.
TEST(TriggeredRun, IsWokenByThreads) {
  for (const WaitKind waiting : {WaitKind::Spin, WaitKind::Yield, WaitKind::Block}) {
    RealRun run({external("a", 1000, 200'000)}, waiting);
    const auto handle = std::make_shared<TriggerHandle>();
    EXPECT_FALSE(handle->fire());  // no run has it: ignored
    std::uint64_t taken = 0;
    RunRecord record;
    {
      const Firing firing([&] { taken += handle->fire() ? 1 : 0; });
      record = run.run({.handles = {{"a", handle}}}, 30);
    }
    EXPECT_EQ(record.jobs.size(), 30U);
    for (const JobRecord& job : record.jobs) EXPECT_LE(job.arrival, job.start);
    const TriggerCounts& counts = record.triggers[0];
    EXPECT_EQ(counts.seen, 30 + counts.dropped);
    EXPECT_GE(taken, counts.seen);  // some may come between the last one and the end of the run
    EXPECT_FALSE(handle->has_run());
  }
}

TEST(TriggeredRun, IsWokenByWordsInSharedMemory) {
  for (const WaitKind waiting : {WaitKind::Spin, WaitKind::Block}) {
    const WordName word;
    Task task = external("a", 1000, 200'000);
    task.release.trigger = word.name;
    RealRun run({task, test::task("b", 1000, 1'000'000)}, waiting);
    const auto fired = TriggerWord::open(word.name).value();
    ASSERT_TRUE(fired.fire());  // before the run: ignored
    RunRecord record;
    {
      const Firing firing([&] { EXPECT_TRUE(fired.fire()); });
      record = run.run({}, 30);
    }
    EXPECT_EQ(record.jobs.size(), 30U);
    EXPECT_EQ(record.triggers[0].seen, record.summaries[0].jobs() + record.triggers[0].dropped);
  }
}

// Programs that know neither the library nor the instant: they add 1, and wake nobody.
TEST(TriggerWord, TakesPlainStores) {
  const WordName name;
  WordSource source(TriggerWord::open(name.name).value());
  RealClock clock;
  Waker waker;
  source.begin(clock, {}, waker);
  const MappedWord writer(name);
  waker.look();
  EXPECT_FALSE(source.take(clock.now()));
  writer->count += 3;
  EXPECT_TRUE(waker.changed());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(source.take(Duration{5000}), Duration{5000});
  EXPECT_FALSE(source.take(clock.now()));
  writer->count = 0;  // it has started again
  EXPECT_TRUE(source.take(clock.now()));
  EXPECT_FALSE(source.take(clock.now()));
  writer->count += 0x70000000;  // halfway round
  EXPECT_TRUE(source.take(clock.now()));
  writer->count += 0x70000000;
  while (source.take(clock.now())) {
  }
  writer->count += 2;
  EXPECT_TRUE(source.take(clock.now()));
  EXPECT_TRUE(source.take(clock.now()));
  EXPECT_FALSE(source.take(clock.now()));
  const std::uint64_t lost = source.lost();
  writer->count += 5000;
  for (std::uint32_t i = 0; i < WordSource::kMostWaiting; ++i) EXPECT_TRUE(source.take(clock.now()));
  EXPECT_FALSE(source.take(clock.now()));
  EXPECT_EQ(source.lost() - lost, 5000 - WordSource::kMostWaiting);
  ASSERT_TRUE(TriggerWord::open(name.name)->fire());
  const Duration now = clock.now();
  EXPECT_LE(source.take(now).value(), now);
  writer->last = std::numeric_limits<std::int64_t>::max();  // nonsense: the instant is not known
  writer->count += 1;
  EXPECT_EQ(source.take(Duration{7}), Duration{7});
}

/// How often a file is mapped into this process.
int mappings_of(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  int mappings = 0;
  for (std::string line; std::getline(maps, line);) mappings += line.ends_with(path) ? 1 : 0;
  return mappings;
}

TEST(TriggerWord, IsMappedWhileItLives) {
  const WordName name;
  {
    TriggerWord word = TriggerWord::open(name.name).value();
    EXPECT_EQ(mappings_of(name.path), 1);
    const TriggerWord same = std::move(word);
    EXPECT_EQ(mappings_of(name.path), 1);
  }
  EXPECT_EQ(mappings_of(name.path), 0);
}

// Whoever touches memory of a file that was shortened is killed. A run that waits for its triggers ends, in words; so
// does whoever fires it. A file that another process has made in its place is not the one that the run waits for.
TEST(TriggeredRun, EndsWhereItsWordIsLost) {
  struct Loss {
    std::string sentence;
    std::function<void(const std::string&)> take;
  };
  const std::vector<Loss> losses{
      {"was shortened", [](const std::string& path) { std::filesystem::resize_file(path, 0); }},
      {"was shortened", [](const std::string& path) { std::filesystem::resize_file(path, 8); }},
      {"was removed", [](const std::string& path) { std::filesystem::remove(path); }},
      {"was removed", [](const std::string& path) { std::filesystem::rename(path, path + ".elsewhere"); }}};
  for (const WaitKind waiting : {WaitKind::Spin, WaitKind::Yield, WaitKind::Block}) {
    for (const Loss& loss : losses) {
      const WordName word;
      Task task = external("a", 1000, 200'000);
      task.release.trigger = word.name;
      RealRun run({task, test::task("b", 1000, 1'000'000)}, waiting);
      const auto fired = TriggerWord::open(word.name).value();
      std::jthread other([&] {
        for (int ms = 0; ms < 10'000 && !run.has_begun; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds{1});
        loss.take(word.path);
      });
      const RunRecord record = run.run({}, 20'000);
      other.join();
      ASSERT_TRUE(record.fatal) << loss.sentence;
      EXPECT_EQ(record.fatal->code, ErrorCode::Machine);
      EXPECT_NE(record.fatal->message.find("/dev/shm/tutti." + word.name + " " + loss.sentence), std::string::npos)
          << record.fatal->message;
      const auto late = fired.fire();
      ASSERT_FALSE(late);
      EXPECT_EQ(late.error(), *record.fatal);
      std::filesystem::remove(word.path + ".elsewhere");
    }
  }
}

// Two processes make a word anew: the first one's file is not that of the second.
TEST(TriggerWord, KnowsAFileThatIsNotItsOwn) {
  const WordName name;
  const auto first = TriggerWord::open(name.name).value();
  EXPECT_TRUE(first.check());
  std::filesystem::remove(name.path);
  const auto second = TriggerWord::open(name.name).value();
  EXPECT_TRUE(second.fire());
  EXPECT_FALSE(first.fire());
  EXPECT_EQ(second.count(), 1U);
  EXPECT_EQ(first.count(), 0U);
}

TEST(TriggerWord, RefusesWhatIsNone) {
  EXPECT_EQ(TriggerWord::open("../x").error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(TriggerWord::open("").error().code, ErrorCode::InvalidInput);
  const WordName name;
  std::ofstream(name.path) << "text";
  const auto other = TriggerWord::open(name.name);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("is no trigger; remove it"), std::string::npos) << other.error().message;
  std::filesystem::remove(name.path);
  std::filesystem::create_symlink("/dev/null", name.path);
  EXPECT_FALSE(TriggerWord::open(name.name));
}

TEST(TriggerSources, RefuseWhatDoesNotFit) {
  const TaskSet set{std::nullopt, Policy::Edf, {external("a", 1, 100), test::task("b", 1, 100), external("c", 1, 100)}};
  const auto handle = std::make_shared<TriggerHandle>();
  const auto error = [&](const TriggerOrigins& origins) {
    const auto made = TriggerSources::make(set, origins);
    return made ? std::string() : made.error().message;
  };
  EXPECT_NE(error({}).find("task 'a' waits for triggers, and nothing fires them"), std::string::npos);
  EXPECT_NE(error({.handles = {{"x", handle}}}).find("task 'x', which the set has not"), std::string::npos);
  EXPECT_NE(error({.handles = {{"b", handle}}}).find("whose jobs the clock releases"), std::string::npos);
  EXPECT_NE(error({.handles = {{"a", handle}, {"c", handle}}}).find("make one for each"), std::string::npos);
  EXPECT_EQ(error({.handles = {{"a", handle}}, .simulated = true}), "");
  RealClock clock;
  Waker waker;
  handle->begin(clock, {}, waker);
  EXPECT_NE(error({.handles = {{"a", handle}}, .simulated = true}).find("another run's"), std::string::npos);
}

TEST(TriggerHandle, CountsWhatFindsNoRoom) {
  TriggerHandle handle;
  RealClock clock;
  Waker waker;
  handle.begin(clock, {}, waker);
  waker.look();
  for (std::size_t i = 0; i < TriggerHandle::kMostWaiting + 5; ++i)
    EXPECT_EQ(handle.fire(), i < TriggerHandle::kMostWaiting);
  EXPECT_TRUE(waker.changed());
  EXPECT_EQ(handle.lost(), 5U);
  std::size_t taken = 0;
  for (; handle.take(clock.now()); ++taken) {
  }
  EXPECT_EQ(taken, TriggerHandle::kMostWaiting);
  handle.end();
  EXPECT_FALSE(handle.fire());
  EXPECT_FALSE(handle.take(clock.now()));
}

// Two threads fire 500 times each, at once: there is room for all, and all are taken.
TEST(TriggerHandle, IsFiredByThreadsAtTheSameTime) {
  constexpr int kThreads = 2, kEach = 500, kRounds = 1000;
  TriggerHandle handle;
  RealClock clock;
  Waker waker;
  handle.begin(clock, {}, waker);
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<int> there = 0;
    const auto fire = [&] {
      for (++there; there < kThreads;) std::this_thread::yield();
      for (int i = 0; i < kEach; ++i) handle.fire();
    };
    std::thread other(fire);
    fire();
    other.join();
    int taken = 0;
    while (handle.take(clock.now())) ++taken;
    ASSERT_EQ(taken, kThreads * kEach) << "round " << round;
  }
}

}  // namespace
}  // namespace tutti::internal
