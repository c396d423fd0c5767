// Partitions of a task set, each on a machine of its own: what they do together is what each does alone.
#include "runtime/dispatch/partitioned_run.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/runtime/task_runs.hpp"
#include "tests/runtime/thread_limit.hpp"
#include "tests/support/fault_function.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::Row;
using test::rows_of;
using test::tasks_of;
using test::two_sides;

constexpr Duration kTenMilliseconds = std::chrono::milliseconds{10};
constexpr const char* kUp0 = "from: mem0, to: gpu0, size: 6 kB";
constexpr const char* kUp1 = "from: mem0, to: gpu1, size: 6 kB";

/// A machine of its own for each partition of a set, and a program for each task.
struct PartitionedRun {
  explicit PartitionedRun(const TaskSet& set, std::unique_ptr<Clock> (*make_clock)() = make<VirtualClock>)
      : planned(AdmissionController(planners().front()).plan(set)) {
    for (std::size_t i = 0; i < planned.partitions.size(); ++i) {
      stations.push_back(std::make_unique<test::Station>(make_clock(), test::Station::make_sim, *set.machine));
      executors.push_back(&stations.back()->executor);
    }
    for (const Task& task : planned.tasks.tasks)
      table.push_back(patterns.emplace_back(std::make_unique<PatternProgram>(*set.machine, task, 1)).get());
  }

  template <class SomeClock>
  static std::unique_ptr<Clock> make() {
    return std::make_unique<SomeClock>();
  }

  Expected<RunRecord> try_run(const RunOptions& options = {}) {
    return run_tasks(executors, test::admit(planned.tasks), table, options);
  }
  RunRecord run(const RunOptions& options = {}) { return try_run(options).value(); }

  PlannedTaskSet planned;
  std::vector<std::unique_ptr<test::Station>> stations;  ///< [partitions]
  std::vector<Executor*> executors;
  std::vector<std::unique_ptr<PatternProgram>> patterns;  ///< [tasks]
  std::vector<TaskProgram*> table;
};

/// Binds the buffers of another program, and does what a test gives it where a job is ready.
class LookedAt final : public TaskProgram {
 public:
  explicit LookedAt(TaskProgram& program) : program_(&program) {}
  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation, std::size_t batch,
                                            std::size_t buffer_set) override {
    return program_->bind(backend, operation, batch, buffer_set);
  }
  void on_ready(const Job& job) override {
    threads.push_back(std::this_thread::get_id());
    if (when_ready) when_ready(job);
  }

  std::vector<std::thread::id> threads;
  std::function<void(const Job&)> when_ready;

 private:
  TaskProgram* program_;
};

// t0 and t1 take 6 us of every 10, on links of their own: both start at once and neither waits.
TEST(PartitionedRun, RunsPartitionsAtTheSameTime) {
  const TaskSet set = tasks_of(two_sides(), {kUp0, kUp1});
  EXPECT_EQ(rows_of(set, PartitionedRun(set).run(first_jobs(4))),
            (std::vector<Row>{{"t0", 0, 0, 0, 6000, 10'000},
                              {"t1", 0, 0, 0, 6000, 10'000},
                              {"t0", 1, 10'000, 10'000, 16'000, 20'000},
                              {"t1", 1, 10'000, 10'000, 16'000, 20'000}}));
}

// Inside a partition one job runs at a time: t2 (2 us) waits for t0, of the same GPU, t1 for nobody. The records are in
// the order in which jobs ended, with the ids of the whole set.
TEST(PartitionedRun, MergesRecordsInTheOrderOfTheirEnds) {
  const TaskSet set =
      tasks_of(two_sides(), {kUp0, "from: mem0, to: gpu1, size: 7 kB", "from: mem0, to: gpu0, size: 2 kB"});
  EXPECT_EQ(rows_of(set, PartitionedRun(set).run(first_jobs(3))),
            (std::vector<Row>{
                {"t0", 0, 0, 0, 6000, 10'000}, {"t1", 0, 0, 0, 7000, 10'000}, {"t2", 0, 0, 6000, 8000, 10'000}}));
}

// Each partition tells of its jobs, with the ids of the whole set.
TEST(PartitionedRun, TellsOfEachJobThatEnds) {
  const TaskSet set = tasks_of(two_sides(), {kUp0, kUp1});
  std::vector<std::pair<TaskId, std::uint64_t>> told, recorded;
  RunOptions options = first_jobs(6);
  options.on_job_end = [&](const JobRecord& job) { told.emplace_back(job.task, job.index); };
  for (const JobRecord& job : PartitionedRun(set).run(options).jobs) recorded.emplace_back(job.task, job.index);
  EXPECT_EQ(told.size(), 6U);
  std::ranges::sort(told);
  std::ranges::sort(recorded);
  EXPECT_EQ(told, recorded);
}

// So many jobs are those that arrive first in all partitions together; without a number it is a hyperperiod of all.
TEST(PartitionedRun, CountsTheJobsOfAllPartitions) {
  TaskSet set = tasks_of(two_sides(), {kUp0, kUp1});
  set.tasks[1].period = set.tasks[1].deadline = Duration{30'000};
  const auto jobs_of = [&](std::size_t task, const RunOptions& options) {
    const RunRecord record = PartitionedRun(set).run(options);
    return std::ranges::count(record.jobs, TaskId{task}, &JobRecord::task);
  };
  EXPECT_EQ(jobs_of(0, first_jobs(3)), 2);
  EXPECT_EQ(jobs_of(1, first_jobs(3)), 1);
  EXPECT_EQ(jobs_of(0, {}), 3);
  EXPECT_EQ(jobs_of(1, {}), 1);
}

// Two jobs of t0, one of t1, one of t2: t2 is ready with t0, waits for it, and t1 does not.
TEST(PartitionedRun, ReplaysAScenarioByPartition) {
  const TaskSet set = tasks_of(two_sides(), {kUp0, kUp1, "from: mem0, to: gpu0, size: 2 kB"});
  PartitionedRun run(set);
  const auto job = [](std::size_t task, std::int64_t at, std::int64_t takes) {
    return ScenarioJob{TaskId{task}, Duration{at}, Duration{at}, Duration{takes}};
  };
  const Scenario scenario{{job(0, 0, 6000), job(1, 0, 6500), job(2, 0, 2000), job(0, 20'000, 6000)}};
  EXPECT_EQ(rows_of(set, run_scenario(run.executors, run.planned, run.table, scenario).value()),
            (std::vector<Row>{{"t0", 0, 0, 0, 6000, 10'000},
                              {"t1", 0, 0, 0, 6500, 10'000},
                              {"t2", 0, 0, 6000, 8000, 10'000},
                              {"t0", 1, 20'000, 20'000, 26'000, 30'000}}));
}

// What shows that one partition fails fails when it is run, though the others are there: t3 (6 us) just before t1.
TEST(PartitionedRun, ReplaysACounterExample) {
  const TaskSet set = tasks_of(two_sides(), {kUp0, kUp1, kUp0, kUp1}, Policy::Rm);
  const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
  ASSERT_EQ(verdict.answer, Answer::NotSchedulable);
  const auto scenario = counter_example(verdict, set.policy);
  ASSERT_TRUE(scenario.has_value());
  PartitionedRun run(set);
  const RunRecord record = run_scenario(run.executors, run.planned, run.table, *scenario).value();
  const Miss miss = first_miss(verdict.timings, set.policy, *scenario).value();
  const auto late = std::ranges::find_if(record.jobs, [](const JobRecord& job) { return job.missed(); });
  ASSERT_NE(late, record.jobs.end());
  EXPECT_EQ(late->task, miss.task);
  EXPECT_EQ(late->finish, miss.finish);
}

/// A job of one or two batches to and from one of the GPUs, now and then with a host step or a kernel.
std::vector<JobStep> random_steps(const Topology& machine, test::Random& random) {
  constexpr std::array kSides{std::pair("mem0", "gpu0"), std::pair("mem0", "gpu1"), std::pair("mem1", "gpu2")};
  const auto [memory, gpu] = kSides[random.below(kSides.size())];
  const VertexId mem = *machine.find_vertex(memory), end = *machine.find_vertex(gpu);
  std::vector<JobStep> steps;
  for (int batch = random.between(1, 2); batch > 0; --batch) {
    CommandStream up = test::copy_stream("up", mem, end, random.between(0, 3000));
    if (random.one_in(2)) up.kernel = Kernel{end, Duration{200}, Duration{400}, "checksum"};
    CommandStream down = test::copy_stream("down", end, mem, random.between(0, 3000));
    steps.emplace_back(Batch::make(machine, {up, down}).value());
  }
  if (random.one_in(6)) steps.emplace_back(HostStep{Duration{random.between(0, 500)}});
  return steps;
}

/// Four or five random tasks that arrive every 0.4 to 2 times the work of all, with jitter and offsets.
TaskSet random_set(const Topology& machine, std::uint64_t seed) {
  test::Random random(seed);
  TaskSet set{machine, random.one_in(2) ? Policy::Edf : Policy::Dm, {}};
  if (random.one_in(3)) set.preemption = Preemption::BetweenBatches;
  Duration work{100};
  for (int i = random.between(4, 5); i > 0; --i) {
    Task& task = set.tasks.emplace_back();
    task.name = "t" + std::to_string(i);
    task.steps = random_steps(machine, random);
    work += bound_job(task, set.machine, planners().front()).wcet.bound();
  }
  for (Task& task : set.tasks) {
    task.period = work * random.between(4, 20) / 10;
    task.deadline = task.period * random.between(8, 15) / 10;
    task.jitter = task.period * random.between(0, 2) / 20;
    task.offset = task.period * random.between(0, 10) / 10;
  }
  return set;
}

/// The jobs of some tasks, with the ids that these have among themselves.
std::vector<JobRecord> jobs_of(const Partition& partition, std::span<const JobRecord> all) {
  std::vector<JobRecord> own;
  for (JobRecord job : all) {
    const auto place = std::ranges::find(partition.tasks, job.task);
    if (place == partition.tasks.end()) continue;
    job.task = TaskId{static_cast<std::size_t>(place - partition.tasks.begin())};
    own.push_back(job);
  }
  return own;
}

// Each partition's jobs start and end exactly as when it runs alone, where it has a set and a run of its own.
TEST(PartitionedRun, ChangesNothingForAnyPartition) {
  const Topology machine = two_sides();
  int several = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(300U); ++seed) {
    const TaskSet set = random_set(machine, seed);
    PartitionedRun together(set);
    const std::vector<Partition>& partitions = together.planned.partitions;
    if (partitions.size() < 2 || !AdmissionController(planners().front()).decide(set).admitted) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    ++several;
    const RunOptions options = first_jobs(60, seed);
    const RunRecord record = together.run(options);
    EXPECT_TRUE(std::ranges::is_sorted(record.jobs, {}, &JobRecord::finish));
    EXPECT_EQ(record.jobs.size(), 60U);
    const std::vector<std::uint64_t> counts = jobs_per_task(set, options).value();
    for (const Partition& partition : partitions) {
      TaskSet group = set;
      group.tasks.clear();
      std::vector<std::uint64_t> own_counts;
      for (const TaskId task : partition.tasks) {
        group.tasks.push_back(set.tasks[task.index()]);
        own_counts.push_back(counts[task.index()]);
      }
      PartitionedRun alone(group);
      ASSERT_EQ(alone.executors.size(), 1U);
      const AdmittedTaskSet promise = test::admit(group);
      const RunRecord own = prepare_run(*alone.executors[0], promise, alone.table, own_counts, options).value()->run();
      const std::vector<JobRecord> same = jobs_of(partition, record.jobs);
      ASSERT_EQ(own.jobs.size(), same.size());
      for (std::size_t i = 0; i < own.jobs.size(); ++i) {
        EXPECT_EQ(own.jobs[i].task, same[i].task);
        EXPECT_EQ(own.jobs[i].index, same[i].index);
        EXPECT_EQ(own.jobs[i].start, same[i].start);
        EXPECT_EQ(own.jobs[i].finish, same[i].finish);
        EXPECT_FALSE(same[i].missed());
      }
    }
  }

  EXPECT_GT(several, test::rounds(300) / 3);
}

// ---- threads

/// The partitioned run with a look at two of its tasks.
struct LookedAtRun : PartitionedRun {
  explicit LookedAtRun(const TaskSet& set, std::unique_ptr<Clock> (*make_clock)() = make<VirtualClock>)
      : PartitionedRun(set, make_clock), first(*table[0]), second(*table[1]) {
    table[0] = &first;
    table[1] = &second;
  }

  LookedAt first, second;
};

/// Two partitions with a job every 20 ms.
TaskSet slow_set() {
  TaskSet set = tasks_of(two_sides(), {kUp0, kUp1});
  for (Task& task : set.tasks) task.period = task.deadline = std::chrono::milliseconds{20};
  return set;
}

/// Looks at runs until one was not ended by a host that is too slow to play the machine in real time.
/// @param look  makes a run, and looks at it unless it `was_too_slow`; returns its record
template <class Look>
void look_at_a_whole_run(Look look) {
  for (int attempt = 0; attempt < 50; ++attempt)
    if (!test::was_too_slow(look())) return;
  GTEST_SKIP() << "the host is too slow for each of 50 runs";
}

TEST(PartitionedRun, HasAThreadForEachPartition) {
  const auto look = [](std::unique_ptr<Clock> (*make_clock)()) {
    LookedAtRun run(slow_set(), make_clock);
    RunRecord record = run.run(first_jobs(6));
    if (test::was_too_slow(record)) return record;
    EXPECT_EQ(record.jobs.size(), 6U);
    const auto thread_of = [](const LookedAt& program) {  // a loaded host may drop some jobs
      const auto first = program.threads.empty() ? std::this_thread::get_id() : program.threads[0];
      EXPECT_EQ(program.threads, std::vector(program.threads.size(), first));
      EXPECT_NE(first, std::this_thread::get_id());
      return first;
    };
    EXPECT_NE(thread_of(run.first), thread_of(run.second));
    return record;
  };
  look_at_a_whole_run([&] { return look(PartitionedRun::make<RealClock>); });
  look_at_a_whole_run([&] { return look(PartitionedRun::make<VirtualClock>); });
}

// Each of the two jobs waits, in its own time, until the other one has begun: one after the other they never would.
TEST(PartitionedRun, GoesOnWhileAnotherPartitionRuns) {
  LookedAtRun run(slow_set(), PartitionedRun::make<RealClock>);
  std::atomic<int> begun{0};
  run.first.when_ready = run.second.when_ready = [&](const Job&) {
    begun.fetch_add(1);
    begun.notify_all();
    for (int seen = begun.load(); seen < 2; seen = begun.load()) begun.wait(seen);
  };
  EXPECT_EQ(run.run(first_jobs(2)).jobs.size(), 2U);
}

/// A clock of the host's kind that stands until somebody waits, and notes until when.
class StandingClock final : public Clock {
 public:
  explicit StandingClock(Duration at) : at_(at) {}
  [[nodiscard]] std::string_view name() const override { return "standing"; }
  [[nodiscard]] Duration now() const override { return first_wait ? *first_wait + clock_.now() : at_; }
  using Clock::wait_until;
  void wait_until(Duration at) override {
    if (!first_wait) first_wait = at;
    clock_.wait_until(at - *first_wait);
  }
  [[nodiscard]] bool runs_by_itself() const override { return true; }

  std::optional<Duration> first_wait;

 private:
  RealClock clock_{WaitKind::Block};
  Duration at_;
};

std::unique_ptr<Clock> standing_clock() {
  static std::int64_t made = 0;
  return std::make_unique<StandingClock>(Duration{1000 * ++made});
}

// The partitions' clocks show other times, and each waits for the same moment.
TEST(PartitionedRun, CountsTheTimesOfAllFromOneMoment) {
  PartitionedRun run(slow_set(), standing_clock);
  std::vector<Duration> shown, until;
  for (const Executor* executor : run.executors) shown.push_back(executor->clock().now());
  EXPECT_EQ(run.run(first_jobs(2)).jobs.size(), 2U);
  for (const Executor* executor : run.executors)
    until.push_back(dynamic_cast<const StandingClock&>(executor->clock()).first_wait.value());
  EXPECT_NE(shown[0], shown[1]);
  EXPECT_EQ(until[0] - shown[0], until[1] - shown[1]);
}

// ---- what ends a run

/// Jobs of a task but for those that had arrived before the run ended, which a busy host has more of.
std::ptrdiff_t jobs_run(const RunRecord& record, TaskId task) {
  return std::ranges::count_if(
      record.jobs, [&](const JobRecord& job) { return job.task == task && job.verdict != JobVerdict::NeverRun; });
}

// The interrupt comes in t0's first job. In real time it ends the other partition as well, which would go on for
// minutes; on virtual clocks that does not begin.
TEST(PartitionedRun, EndsAllPartitionsAtAnInterrupt) {
  for (const auto make_clock : {PartitionedRun::make<VirtualClock>, PartitionedRun::make<RealClock>}) {
    LookedAtRun run(slow_set(), make_clock);
    std::atomic<bool> interrupted{false};
    run.first.when_ready = [&](const Job&) { interrupted = true; };
    RunOptions options;
    options.jobs = 100'000;
    options.interrupted = &interrupted;
    const RunRecord record = run.run(options);
    EXPECT_TRUE(record.interrupted);
    EXPECT_LE(jobs_run(record, TaskId{0}), 1);  // none where the interrupt is seen before it starts
    EXPECT_LT(record.jobs.size(), 1000U);
  }
}

// t1's only job has ended, and its partition with it, when the interrupt comes in t0's second job: the run was
// interrupted all the same.
TEST(PartitionedRun, WasInterruptedWhereOnePartitionWas) {
  TaskSet set = slow_set();
  set.tasks[1].period = set.tasks[1].deadline = std::chrono::seconds{10};
  look_at_a_whole_run([&] {
    LookedAtRun run(set, PartitionedRun::make<RealClock>);
    std::atomic<bool> interrupted{false};
    run.first.when_ready = [&](const Job& job) {  // a loaded host may drop some
      if (job.index >= 4) interrupted = true;
    };
    RunOptions options;
    options.jobs = 400;
    options.interrupted = &interrupted;
    RunRecord record = run.run(options);
    EXPECT_TRUE(record.interrupted || test::was_too_slow(record));
    return record;
  });
}

// t0's first job takes 25 us in place of 6, and t2's first one waits for it. At 25 t0's second one gets the
// buffers that are free then; its third one and t2's second and third find none. They stand behind the job that held
// them up among the jobs of both partitions: t1's end at 6, 16 and 26, then t2's first one at 27, since it is due at
// 10, and t0's second at 33.
TEST(PartitionedRun, MergesJobsThatNeverRanBehindTheOneThatHeldThemUp) {
  const TaskSet set = tasks_of(two_sides(), {kUp0, kUp1, "from: mem0, to: gpu0, size: 2 kB"});
  LookedAtRun run(set);
  test::FaultyBackend slow(run.executors[0]->backend(), run.executors[0]->clock());
  const BatchFault longer{.late_return = std::chrono::microseconds{19}};
  slow.faults = test::FaultFunction(
      [&](const BatchRun& one) { return one.run == 0 && one.job.task == "t0" ? &longer : nullptr; });
  Executor executor(run.executors[0]->machine(), slow, run.executors[0]->clock());
  run.executors[0] = &executor;
  const RunRecord record = run.run(first_jobs(9));
  using Places = std::vector<std::pair<std::size_t, std::uint64_t>>;
  Places order, never_ran;
  for (const JobRecord& job : record.jobs) {
    order.emplace_back(job.task.index(), job.index);
    if (!job.finish) never_ran.push_back(order.back());
  }
  EXPECT_EQ(order, (Places{{1, 0}, {1, 1}, {0, 0}, {2, 1}, {2, 2}, {0, 2}, {1, 2}, {2, 0}, {0, 1}}));
  EXPECT_EQ(never_ran, (Places{{2, 1}, {2, 2}, {0, 2}}));
}

// The machine of t0 breaks in its first job: no more jobs of t0, all of t1.
TEST(PartitionedRun, GoesOnWhereAnotherPartitionsMachineBreaks) {
  const auto look = [](std::unique_ptr<Clock> (*make_clock)()) {
    LookedAtRun run(slow_set(), make_clock);
    test::FaultyBackend broken(run.executors[0]->backend(), run.executors[0]->clock());
    const BatchFault gone{.error = Error{ErrorCode::Machine, "the link is gone", {}}};
    broken.faults = test::FaultFunction([&](const BatchRun&) { return &gone; });
    Executor executor(run.executors[0]->machine(), broken, run.executors[0]->clock());
    run.executors[0] = &executor;
    RunRecord record = run.run(first_jobs(8));
    if (test::was_too_slow(record)) return record;
    EXPECT_TRUE(record.fatal && record.fatal->message == "the link is gone");
    EXPECT_FALSE(record.interrupted);
    EXPECT_EQ(jobs_run(record, TaskId{0}), 1);
    EXPECT_EQ(std::ranges::count(record.jobs, TaskId{1}, &JobRecord::task), 4);
    return record;
  };
  look_at_a_whole_run([&] { return look(PartitionedRun::make<VirtualClock>); });
  look_at_a_whole_run([&] { return look(PartitionedRun::make<RealClock>); });
}

// t1 gets no buffers: nothing of t0 has run either.
TEST(PartitionedRun, RunsNothingWhereAPartitionCannotBePrepared) {
  LookedAtRun run(slow_set());
  class NoBuffers final : public TaskProgram {
   public:
    Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
      return invalid_input("no buffers today");
    }
  } none;
  run.table[1] = &none;
  const auto record = run.try_run(first_jobs(2));
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().message, "no buffers today");
  EXPECT_TRUE(run.first.threads.empty());
}

// Whole batches with their bytes, in threads; a busy host may be too slow for it, which the records then say.
TEST(PartitionedRun, RunsBatchesInThreads) {
  PartitionedRun run(slow_set(), PartitionedRun::make<RealClock>);
  const RunRecord record = run.run(first_jobs(6));
  for (const JobRecord& job : record.jobs) {
    if (job.error) {
      EXPECT_EQ(job.error->code, ErrorCode::Machine) << job.error->text();
    } else {
      EXPECT_GE(*job.finish - job.start, Duration{6000});
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which need memory for each thread themselves
// There is room for one of two threads: the first one ends, and the run says why.
TEST(PartitionedRunDeath, RunsNothingWhereTheHostHasNoThreadForEach) {
  const auto run_with_one_thread = [] {
    PartitionedRun run(slow_set(), PartitionedRun::make<RealClock>);  // without callbacks: no other threads
    test::leave_room_for_threads(1);
    const auto record = run.try_run(first_jobs(2));
    const std::string why = record ? "it ran" : record.error().message;
    std::fprintf(stderr, "%s\n", why.c_str());
    std::_Exit(record ? 1 : 0);
  };
  EXPECT_EXIT(run_with_one_thread(), testing::ExitedWithCode(0), "the host has no thread for each of the 2 partitions");
}
#endif

TEST(PartitionedRunDeath, TwoPartitionsWantTwoExecutors) {
  PartitionedRun run(tasks_of(two_sides(), {kUp0, kUp1}));
  const AdmittedTaskSet admitted = test::admit(run.planned.tasks);
  EXPECT_DEATH(static_cast<void>(run_tasks(*run.executors[0], admitted, run.table, {})),
               "an executor runs one partition");
  EXPECT_DEATH(static_cast<void>(run_tasks(std::span(run.executors).first(1), admitted, run.table, {})),
               "each partition has its executor");
}

// Virtual clocks advance together: no partition waits for the end of another one, which may have none.
TEST(PartitionedRun, OnVirtualClocksAdvancesAllWithoutAnEnd) {
  TaskSet set = tasks_of(two_sides(), {kUp0, "from: mem1, to: gpu2, size: 6 kB"});
  set.tasks[1].period = set.tasks[1].deadline = 3 * set.tasks[0].period;
  PartitionedRun run(set);
  ASSERT_EQ(run.executors.size(), 2U);
  std::atomic<bool> interrupted = false;
  std::array<std::uint64_t, 2> jobs{};
  RunOptions options;
  options.endless = true;
  options.keeps_jobs = false;
  options.interrupted = &interrupted;
  options.on_job_end = [&](const JobRecord& job) {
    ++jobs[job.task.index()];
    const std::uint64_t ahead = kTenMilliseconds / set.tasks[0].period;
    EXPECT_LE(jobs[0], 3 * (jobs[1] + 1) + ahead);
    EXPECT_LE(3 * jobs[1], jobs[0] + 3 + ahead);
    interrupted = jobs[0] + jobs[1] >= 20'000;
  };
  ASSERT_TRUE(run.try_run(options));
  EXPECT_NEAR(static_cast<double>(jobs[0]), 3 * static_cast<double>(jobs[1]), 1100);
}

}  // namespace
}  // namespace tutti::internal
