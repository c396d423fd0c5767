// Runs whose partition loses a GPU: which tasks end, which go on, and that the record is one. Times in ns.
#include "runtime/dispatch/replanning.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/api/user_program.hpp"
#include "runtime/dispatch/faulty_machines.hpp"
#include "runtime/dispatch/partition_machines.hpp"
#include "runtime/dispatch/partitioned_run.hpp"
#include "runtime/triggers/trigger_sources.hpp"
#include "tests/runtime/random_jobs.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/simulation/journal_truth.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::kUp0;
using test::kUp1;
using test::kUp2;
using Texts = std::vector<std::string>;

/// A set on simulated machines as a program runs it, with spare ones; GPUs are lost.
struct LossyRun {
  explicit LossyRun(TaskSet the_set) : set(std::move(the_set)), admitted(test::admit(set)) {}

  void lose(std::string_view gpu, std::int64_t at) {
    faults.faults.push_back({.kind = FaultKind::LostGpu, .gpu = set.machine->find_vertex(gpu), .at = Duration{at}});
  }

  RunRecord run(RunOptions options) {
    auto machines = PartitionMachines::make(backend, admitted.planned(), *set.machine, kernels).value();
    std::atomic<bool> stop = false;
    CallbackGuard guard(stop);
    const UserPrograms programs(set, users, 1, guard);
    const auto table = programs.table();
    FaultyMachines faulty(machines.executors(), table, admitted.planned(), faults, {}, options.seed, &machines);
    const TriggerSources triggers = TriggerSources::make(set, {.simulated = true, .seed = options.seed}).value();
    options.triggers = triggers.table();
    if (replans) options.spares = &faulty;
    RunRecord record = run_tasks(faulty.executors(), admitted, faulty.programs(), options).value();
    counts = faulty.counts();
    return record;
  }
  RunRecord until(std::int64_t end) {
    RunOptions options;
    options.arrivals_before = Duration{end};
    return run(options);
  }

  [[nodiscard]] Texts names(const std::vector<TaskId>& tasks) const {
    Texts names;
    for (const TaskId task : tasks) names.push_back(set.tasks[task.index()].name);
    return names;
  }

  TaskSet set;
  AdmittedTaskSet admitted;
  KernelRegistry kernels = KernelRegistry::with_builtins();
  tutti::BackendOptions backend = {};
  TaskPrograms users;
  RunFaults faults;
  bool replans = true;
  std::vector<std::uint64_t> counts;
};

/// A job of a schedule in whole us: "t0#2 18 18-24", with its verdict unless it was met.
Texts jobs_of(const TaskSet& set, const RunRecord& record) {
  Texts rows;
  for (const JobRecord& job : record.jobs) {
    std::string row = fmt::format("{}#{} {}", set.tasks[job.task.index()].name, job.index, job.arrival.count() / 1000);
    if (job.finish) row += fmt::format(" {}-{}", job.start.count() / 1000, job.finish->count() / 1000);
    if (job.verdict != JobVerdict::Met) row += fmt::format(" {}", to_string(job.verdict));
    rows.push_back(row);
  }
  return rows;
}

/// Every 10 us: t0 has gpu0 for 6 us, t1 gpu1 for 2, t2 the host for 1. Nobody knows what t2 uses, so all are one
/// partition, and run in the order of their names.
TaskSet three_in_one() { return test::tasks_of(test::two_sides(), {kUp0, "from: mem0, to: gpu1, size: 2 kB", "wcet"}); }

// gpu1 is lost at 15 us. t1's second batch is issued at 16, fails at 18, and t2 has no turn. t0 and t2 begin again at
// 18, and the last jobs before 40 us are those of 38.
TEST(Replanning, LetsTheOthersGoOn) {
  LossyRun run(three_in_one());
  run.lose("gpu1", 15'000);
  const RunRecord record = run.until(40'000);
  EXPECT_EQ(
      jobs_of(run.set, record),
      (Texts{"t0#0 0 0-6", "t1#0 0 6-8", "t2#0 0 8-9", "t0#1 10 10-16", "t1#1 10 16-18 failed", "t2#1 10 never_run",
             "t0#2 18 18-24", "t2#2 18 24-25", "t0#3 28 28-34", "t2#3 28 34-35", "t0#4 38 38-44", "t2#4 38 44-45"}));
  ASSERT_EQ(record.replanned.size(), 1U);
  const Replanning& replanned = record.replanned.front();
  EXPECT_EQ(replanned.at, Duration{18'000});
  EXPECT_EQ(replanned.gpus, (std::vector{*run.set.machine->find_vertex("gpu1")}));
  EXPECT_EQ(run.names(replanned.ended), Texts{"t1"});
  EXPECT_EQ(run.names(replanned.resumed), (Texts{"t0", "t2"}));
  EXPECT_EQ(replanned.resumed_at, Duration{18'000});
  EXPECT_EQ(record.notes,
            Texts{"gpu1 was lost at 18 us: 't1' needs it and has ended; 't0', 't2' go on, admitted anew"});
  ASSERT_TRUE(record.fatal.has_value());
  EXPECT_EQ(record.fatal->message, "batch 1 of task 't1': gpu1 was lost; nothing more can run on it");
  EXPECT_EQ(record.length, Duration{45'000});
  EXPECT_EQ(record.summaries, summaries_of(record.jobs, 3));
  EXPECT_EQ(run.counts, std::vector<std::uint64_t>{1});
}

// Without spare machines the run ends with the GPU.
TEST(Replanning, NeedsSpareMachines) {
  LossyRun run(three_in_one());
  run.replans = false;
  run.lose("gpu1", 15'000);
  const RunRecord record = run.until(40'000);
  EXPECT_EQ(record.jobs.size(), 6U);
  EXPECT_TRUE(record.replanned.empty());
}

// Nine jobs of each task are those of 27 arrivals; t0 and t2 have had two at the loss, and seven are left to each.
TEST(Replanning, CountsTheJobsOfTheWholeRun) {
  LossyRun run(three_in_one());
  run.lose("gpu1", 15'000);
  const RunRecord record = run.run(test::first_jobs(27));
  EXPECT_EQ(record.summaries[0].jobs(), 9U);
  EXPECT_EQ(record.summaries[1].jobs(), 2U);
  EXPECT_EQ(record.summaries[2].jobs(), 9U);
  EXPECT_EQ(record.jobs.back().index, 8U);
  EXPECT_EQ(record.jobs.back().arrival, Duration{18'000 + 6 * 10'000});
}

// A second loss, of gpu0 at 26 us, met at 28 by t0's fourth batch, leaves t2 alone.
TEST(Replanning, ComesAsOftenAsGpusAreLost) {
  LossyRun run(three_in_one());
  run.lose("gpu1", 15'000);
  run.lose("gpu0", 26'000);
  const RunRecord record = run.until(50'000);
  EXPECT_EQ(record.notes, (Texts{"gpu1 was lost at 18 us: 't1' needs it and has ended; 't0', 't2' go on, admitted anew",
                                 "gpu0 was lost at 34 us: 't0' needs it and has ended; 't2' goes on, admitted anew"}));
  EXPECT_EQ(record.fatal->message, "batch 1 of task 't1': gpu1 was lost; nothing more can run on it");
  const Texts jobs = jobs_of(run.set, record);
  EXPECT_EQ(Texts(jobs.end() - 4, jobs.end()),
            (Texts{"t0#3 28 28-34 failed", "t2#3 28 never_run", "t2#4 34 34-35", "t2#5 44 44-45"}));
}

TEST(Replanning, EndsWhereAllNeedTheGpu) {
  LossyRun run(
      test::tasks_of(test::two_sides(), {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu0, size: 3 kB"}));
  run.lose("gpu0", 1000);
  const RunRecord record = run.until(40'000);
  EXPECT_EQ(jobs_of(run.set, record), (Texts{"t0#0 0 0-2", "t1#0 0 2-5 failed"}));
  EXPECT_EQ(record.notes,
            Texts{"gpu0 was lost at 5 us: 't0', 't1' need it and have ended; no other task has jobs left"});
  EXPECT_FALSE(record.replanned.front().resumed_at.has_value());
}

// The loss is met by the last job of the run: t1's, behind the one of t0.
TEST(Replanning, HasNothingToDoBehindTheLastArrival) {
  LossyRun run(three_in_one());
  run.lose("gpu1", 15'000);
  const RunRecord record = run.until(18'000);
  EXPECT_EQ(record.jobs.size(), 6U);
  EXPECT_EQ(record.notes, Texts{"gpu1 was lost at 18 us: 't1' needs it and has ended; no other task has jobs left"});
}

// Under periodic arrivals offsets count, and a task that ends may have kept another one from starting too soon. t1 has
// the machine from 0 to 2; t0, which arrived at 1, goes before t2, which arrived at 0.5. Without t1, t2 starts at 0.5,
// holds the machine for 7 us, and t0 misses its deadline at 4.
TEST(Replanning, SaysWhatIsNotSchedulableAnyMore) {
  TaskSet set = test::tasks_of(test::two_sides(), {"wcet", "from: mem0, to: gpu1, size: 2 kB", "wcet"}, Policy::Given);
  set.arrivals = Arrivals::Periodic;
  Task& urgent = set.tasks[0];
  Task& of_gpu = set.tasks[1];
  Task& late = set.tasks[2];
  urgent.offset = Duration{1000};
  urgent.deadline = Duration{3000};
  of_gpu.priority = 1;
  late.offset = Duration{500};
  late.declared_wcet = Duration{7000};
  late.priority = 2;
  for (Task& task : set.tasks) task.best_case = Duration{7000};
  LossyRun run(set);
  run.lose("gpu1", 15'000);
  const RunRecord record = run.until(60'000);
  ASSERT_EQ(record.replanned.size(), 1U);
  const Replanning& replanned = record.replanned.front();
  EXPECT_EQ(run.names(replanned.ended), Texts{"t1"});
  EXPECT_EQ(run.names(replanned.refused), (Texts{"t0", "t2"}));
  EXPECT_TRUE(replanned.resumed.empty());
  EXPECT_EQ(replanned.reason.find("their deadlines are not guaranteed without the others: "), 0U) << replanned.reason;
  EXPECT_NE(record.notes.front().find("'t0', 't2' do not go on: their deadlines"), std::string::npos);
  EXPECT_LT(record.length, Duration{30'000});
}

// t0 and t1 have gpu0 and gpu2, each with a side of the machine for itself. t0's side goes on as if nothing were.
TEST(Replanning, DisturbsNoOtherPartition) {
  const TaskSet set = test::tasks_of(test::two_sides(), {kUp0, kUp2, "from: mem0, to: gpu0, size: 2 kB"});
  LossyRun whole(set), lossy(set);
  ASSERT_EQ(whole.admitted.partitions().size(), 2U);
  lossy.lose("gpu2", 12'000);
  const RunRecord before = whole.until(40'000), record = lossy.until(40'000);
  const auto of_first_side = [](const RunRecord& all) {
    std::vector<std::tuple<TaskId, std::uint64_t, Duration, std::optional<Duration>>> jobs;
    for (const JobRecord& job : all.jobs)
      if (job.task != TaskId{1U}) jobs.emplace_back(job.task, job.index, job.start, job.finish);
    return jobs;
  };
  EXPECT_EQ(of_first_side(record), of_first_side(before));
  EXPECT_EQ(record.notes, Texts{"gpu2 was lost at 26 us: 't1' needs it and has ended; no other task has jobs left"});
}

// Both partitions lose a GPU and go on; ids are those of the whole set. A copy between gpu0 and gpu1 makes the first
// side one partition of t0, t2 and t3; the second one has t1 alone, which ends.
TEST(Replanning, NamesTasksOfTheWholeSet) {
  const TaskSet set =
      test::tasks_of(test::two_sides(), {"from: mem0, to: gpu0, size: 1 kB", kUp2, "from: gpu0, to: gpu1, size: 1 kB",
                                         "from: mem0, to: gpu1, size: 1 kB"});
  LossyRun run(set);
  ASSERT_EQ(run.admitted.partitions().size(), 2U);
  run.lose("gpu1", 11'000);
  run.lose("gpu2", 15'000);
  const RunRecord record = run.until(40'000);
  ASSERT_EQ(record.replanned.size(), 2U);
  EXPECT_EQ(run.names(record.replanned[0].ended), (Texts{"t2", "t3"}));
  EXPECT_EQ(run.names(record.replanned[0].resumed), Texts{"t0"});
  EXPECT_EQ(run.names(record.replanned[1].ended), Texts{"t1"});
  EXPECT_TRUE(record.replanned[1].resumed.empty());
  EXPECT_EQ(std::ranges::max(record.jobs, {}, [](const JobRecord& job) { return job.arrival; }).task, TaskId{0U});
}

// The device of t0 fires every 10 us whatever happens: its next trigger behind the loss at 18 us is that of 20.
TEST(Replanning, TakesTriggersFurther) {
  TaskSet set = three_in_one();
  set.tasks[0].release.source = ReleaseSource::External;
  LossyRun run(set);
  run.lose("gpu1", 15'000);
  const RunRecord record = run.until(40'000);
  Texts of_first;
  for (const std::string& job : jobs_of(run.set, record))
    if (job.starts_with("t0")) of_first.push_back(job);
  EXPECT_EQ(of_first, (Texts{"t0#0 0 0-6", "t0#1 10 10-16", "t0#2 20 20-26", "t0#3 30 30-36"}));
  EXPECT_EQ(record.triggers[0].seen, 4U);
}

// A kernel sees the input that the program has filled for its job, behind the loss too, where buffers are others.
TEST(Replanning, GivesProgramsTheNewBuffers) {
  std::vector<std::byte> seen;
  LossyRun run(
      test::tasks_of(test::two_sides(), {"from: mem0, to: gpu0, size: 1 kB, kernel: {name: see, on: gpu0, time: 1 us}",
                                         "wcet", "from: mem0, to: gpu1, size: 2 kB"}));
  ASSERT_TRUE(run.kernels.add("see", [&](const KernelLaunch& launch) { seen.push_back(launch.input[0]); }).has_value());
  run.users["t0"].on_ready = [](const tutti::Job& job) { job.source(0, 0)[0] = static_cast<std::byte>(job.index); };
  run.lose("gpu1", 15'000);
  const RunRecord record = run.until(40'000);
  std::vector<std::byte> expected;
  for (std::uint64_t index = 0; index < record.summaries[0].jobs(); ++index)
    expected.push_back(static_cast<std::byte>(index));
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(expected.size(), 5U);
}

/// What two partitions do on the real clock, each with a thread of its own: t0 and t2 lose their GPU at once, and t1,
/// on the side of t0, needs none of them.
RunRecord lose_in_both_threads(const TaskSet& set) {
  LossyRun run(set);
  EXPECT_EQ(run.admitted.partitions().size(), 2U);
  run.backend.clock = ClockKind::Real;
  run.lose("gpu0", 0);
  run.lose("gpu2", 0);
  return run.until(60'000'000);
}

// A host that is too slow to play the machine in real time ends a run, so there are several attempts.
TEST(Replanning, IsDoneByEachPartitionsThread) {
  using std::chrono::milliseconds;
  TaskSet set = test::tasks_of(test::two_sides(), {kUp0, kUp1, kUp2});
  set.tasks[0].steps.emplace_back(test::make_batch(*set.machine, "  - {from: mem0, to: gpu1, size: 1 kB}\n"));
  for (Task& task : set.tasks) task.period = task.deadline = milliseconds{20};
  RunRecord record = lose_in_both_threads(set);
  for (int attempt = 1; attempt < 50 && test::was_too_slow(record); ++attempt) record = lose_in_both_threads(set);
  ASSERT_EQ(record.replanned.size(), 2U);
  const bool is_first = record.replanned[0].ended == std::vector{TaskId{0U}};
  const Replanning& of_first_side = record.replanned[is_first ? 0 : 1];
  const Replanning& of_second_side = record.replanned[is_first ? 1 : 0];
  EXPECT_EQ(of_first_side.ended, std::vector{TaskId{0U}});
  EXPECT_EQ(of_first_side.resumed, std::vector{TaskId{1U}});
  ASSERT_TRUE(of_first_side.resumed_at.has_value());
  EXPECT_GE(*of_first_side.resumed_at, of_first_side.at);
  EXPECT_EQ(of_second_side.ended, std::vector{TaskId{2U}});
  EXPECT_TRUE(of_second_side.resumed.empty());
  EXPECT_EQ(record.summaries, summaries_of(record.jobs, 3));
  const auto last = std::ranges::max(record.jobs, {}, &JobRecord::arrival);
  EXPECT_EQ(last.task, TaskId{1U});
  EXPECT_GE(last.arrival, *of_first_side.resumed_at);
  EXPECT_LT(last.arrival, milliseconds{60});
}

// A loss that an interrupt is faster than ends the run as any interrupt does.
TEST(Replanning, IsNotForARunThatIsInterrupted) {
  LossyRun run(three_in_one());
  run.lose("gpu1", 0);
  std::atomic<bool> interrupted = false;
  RunOptions options = test::first_jobs(30);
  options.interrupted = &interrupted;
  options.on_job_end = [&](const JobRecord& job) { interrupted = job.index == 3; };
  const RunRecord record = run.run(options);
  EXPECT_TRUE(record.interrupted);
  EXPECT_EQ(record.replanned.size(), 1U);
  EXPECT_LT(record.jobs.size(), 12U);
}

/// A random set on the small machine, whose tasks are one partition, with times that are not round.
TaskSet drawn_set(test::Random& random) {
  const test::Station station;
  for (;;) {
    TaskSet set = test::random_batch_set(station, random, random.one_in(2) ? Policy::Edf : Policy::Dm);
    if (set.tasks.size() > 1 && AdmissionController(planners().front()).decide(set).admitted) return set;
  }
}

/// Jobs of a task: indices from 0 on, each once.
void expect_all_jobs(const RunRecord& record, std::size_t tasks) {
  std::vector<std::vector<std::uint64_t>> seen(tasks);
  for (const JobRecord& job : record.jobs) seen[job.task.index()].push_back(job.index);
  for (auto& indices : seen) {
    std::ranges::sort(indices);
    for (std::size_t i = 0; i < indices.size(); ++i) ASSERT_EQ(indices[i], i);
  }
}

/// Tasks that ended release nothing behind the loss; those that go on begin at their offsets from there, and inside
/// their guarantee.
void expect_new_start(const TaskSet& set, const RunRecord& record, const Replanning& replanned, Duration end) {
  std::vector<std::optional<Duration>> first(set.tasks.size());
  for (const JobRecord& job : record.jobs) {
    if (job.arrival < replanned.at) continue;
    ASSERT_EQ(std::ranges::count(replanned.ended, job.task), 0);
    ASSERT_LT(job.arrival, end);
    EXPECT_EQ(job.verdict, JobVerdict::Met);
    EXPECT_FALSE(job.broken.has_value());
    if (!first[job.task.index()]) first[job.task.index()] = job.arrival;
  }
  for (const TaskId task : replanned.resumed) {
    const Duration expected = *replanned.resumed_at + set.tasks[task.index()].offset;
    EXPECT_EQ(first[task.index()], expected < end ? std::optional(expected) : std::nullopt);
  }
}

// Of random sets one GPU is lost at a random instant: the record has each job once and equals the journal, and what
// goes on keeps its deadlines.
TEST(Replanning, HoldsForRandomSets) {
  int resumed = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(120U); ++seed) {
    SCOPED_TRACE(seed);
    test::Random random(seed);
    LossyRun run(drawn_set(random));
    const Duration end = run.set.tasks.front().period * 40;
    run.lose(std::array{"gpu0", "gpu1", "gpu2"}[random.below(3)], random.between(0, static_cast<int>(end.count())));
    simulation::JournalOfRun journal(run.admitted, random);
    RunOptions options;
    options.arrivals_before = end;
    options.seed = seed;
    options.recorders = journal.recorders();
    const RunRecord record = run.run(options);
    EXPECT_EQ(journal.difference(record, random, ""), std::nullopt);
    EXPECT_EQ(record.summaries, summaries_of(record.jobs, run.set.tasks.size()));
    expect_all_jobs(record, run.set.tasks.size());
    EXPECT_EQ(record.fatal.has_value(), record.replanned.size() == 1);
    if (record.replanned.empty()) continue;
    expect_new_start(run.set, record, record.replanned.front(), end);
    resumed += record.replanned.front().resumed_at ? 1 : 0;
  }
  EXPECT_GT(resumed, 0);
}

}  // namespace
}  // namespace tutti::internal
