// Traces of which the truth is known: what is learned of them is compared with it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <span>

#include <gtest/gtest.h>
#include <unistd.h>

#include "apps/lab/learn/chrome_trace.hpp"
#include "apps/lab/learn/learn.hpp"
#include "apps/lab/learn/learned_tasks.hpp"
#include "apps/lab/learn/nsys_trace.hpp"
#include "apps/lab/learn/trace_builder.hpp"
#include "model/base/quantile.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "sched/tasks/compile_tasks.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "sched/tasks/wcet.hpp"
#include "tests/support/made_up_trace.hpp"

namespace tutti::internal {
namespace {

using test::MadeUpRecord;
using test::MadeUpTask;
using test::MadeUpTrace;

RecordedTrace recorded(const MadeUpTrace& trace) {
  TraceBuilder builder;
  for (const MadeUpRecord& record : trace.records) {
    const MadeUpTask& task = trace.tasks[static_cast<std::size_t>(record.task)];
    const auto& operation = task.operations[static_cast<std::size_t>(record.operation)];
    TraceEntry entry{.start = record.start,
                     .end = record.end,
                     .bytes = operation.bytes,
                     .process = task.process,
                     .gpu = task.gpu,
                     .stream = operation.stream};
    if (operation.kind == 'u') entry.kind = RecordedKind::Up;
    if (operation.kind == 'd') entry.kind = RecordedKind::Down;
    if (operation.kind == 'k') entry.name = builder.name(operation.name);
    builder.add(entry);
  }
  return std::move(builder).finish("a made-up trace", "made up").value();
}

/// The task of the truth that a learned one is; nothing where it is none of them as it is. Positions of operations in
/// the recorded trace are those of the records: both are sorted by start.
std::optional<std::size_t> truth_of(const LearnedTask& learned, const MadeUpTrace& trace) {
  std::map<int, double> of_task;
  double all = 0, begins = 0, astray = 0;
  for (const auto& job : learned.jobs) {
    const MadeUpRecord* first = nullptr;
    for (const std::uint32_t place : job) {
      if (place == kMissing) continue;
      const MadeUpRecord& record = trace.records[place];
      if (first == nullptr) first = &record;
      ++all, ++of_task[record.task];
      astray += record.job != first->job ? 1 : 0;
    }
    begins += first != nullptr && first->operation == 0 ? 1 : 0;
  }
  const auto most = std::ranges::max_element(of_task, {}, [](const auto& entry) { return entry.second; });
  const auto number = static_cast<std::size_t>(most->first);
  const MadeUpTask& task = trace.tasks[number];
  const auto records = static_cast<double>(std::ranges::count(trace.records, most->first, &MadeUpRecord::task));
  const bool same_work = learned.operations.size() == task.operations.size() && most->second >= 0.99 * all &&
                         most->second >= 0.98 * records && begins >= 0.95 * static_cast<double>(learned.jobs.size()) &&
                         astray <= 0.01 * all;
  const bool same_release =
      learned.release == Release::Periodic &&
      std::abs(static_cast<double>(learned.period - task.period)) <= 1e-3 * static_cast<double>(task.period);
  return same_work && same_release ? std::optional(number) : std::nullopt;
}

/// The longest kernel that a trace has for each operation of a learned task is no longer than the learned one.
void expect_worst_times(const LearnedTask& task, const RecordedTrace& trace) {
  for (const auto& job : task.jobs)
    for (std::size_t i = 0; i < job.size(); ++i) {
      if (job[i] == kMissing) continue;
      EXPECT_GE(task.operations[i].length.worst, trace.operations[job[i]].length());
    }
}

/// No copy that was alone is longer than the machine's guaranteed rates and costs make it.
void expect_copies_within(const MachineSpec& machine, const RecordedTrace& trace) {
  for (std::size_t i = 0; i < trace.operations.size(); ++i) {
    const RecordedOperation& copy = trace.operations[i];
    if (!is_copy(copy.kind)) continue;
    const bool alone = std::ranges::none_of(trace.operations, [&](const RecordedOperation& other) {
      return &other != &copy && is_copy(other.kind) && other.start < copy.end && copy.start < other.end;
    });
    if (!alone) continue;
    const auto link = std::ranges::find(machine.links, learned_gpu_name(copy.gpu), &LinkSpec::to);
    const double rate = (copy.kind == RecordedKind::Up ? link->bandwidth : *link->back).guaranteed.value;
    const Cost cost = machine.setup.transfer.of(copy.kind == RecordedKind::Up ? CopyKind::Up : CopyKind::Down).each;
    EXPECT_LE(static_cast<double>(copy.length()),
              static_cast<double>(cost.guaranteed.count()) + static_cast<double>(copy.bytes) / rate + 1);
  }
}

// 95 of 100 tasks, 99 % of the bytes and 95 % of the kernels' time, ends within 2 % (half of them) and 5 % (95 of 100).
TEST(MadeUpTraces, TasksAreFoundAsTheyAre) {
  const int count = test::rounds(64);
  std::size_t tasks = 0, found = 0;
  std::vector<double> medians, bytes, kernels, far;
  for (int seed = 0; seed < count; ++seed) {
    test::Random random(static_cast<std::uint64_t>(seed));
    const MadeUpTrace trace = test::random_trace(random);
    const RecordedTrace what = recorded(trace);
    const auto learned = learn(what, "made up");
    ASSERT_TRUE(learned) << learned.error().text();
    std::map<std::size_t, int> times;
    for (const LearnedTask& task : learned->tasks) {
      if (const auto truth = truth_of(task, trace)) ++times[*truth];
      expect_worst_times(task, what);
    }
    if (seed % 8 == 0) expect_copies_within(learned->machine.spec, what);
    tasks += trace.tasks.size();
    found +=
        static_cast<std::size_t>(std::ranges::count_if(times, [](const auto& entry) { return entry.second == 1; }));
    medians.push_back(learned->replay.median);
    far.push_back(learned->replay.most_of_95_percent);
    bytes.push_back(learned->bytes.share());
    kernels.push_back(learned->kernel_time.share());
  }
  EXPECT_GE(static_cast<double>(found), 0.95 * static_cast<double>(tasks)) << found << " of " << tasks;
  EXPECT_GE(median(bytes), 0.99);
  EXPECT_GE(quantile(kernels, 0.05), 0.95);
  EXPECT_LE(quantile(medians, 0.95), 0.02);
  EXPECT_LE(median(far), 0.05);
}

/// The longest job of a task beside which no operation of another one was active, ns.
std::int64_t longest_alone(const LearnedTask& task, const RecordedTrace& trace) {
  std::int64_t longest = 0;
  for (const auto& job : task.jobs) {
    std::int64_t start = std::numeric_limits<std::int64_t>::max(), end = 0;
    for (const std::uint32_t place : job) {
      if (place == kMissing) continue;
      start = std::min(start, trace.operations[place].start);
      end = std::max(end, trace.operations[place].end);
    }
    bool alone = true;
    for (std::uint32_t place = 0; place < trace.operations.size() && alone; ++place)
      alone = std::ranges::count(job, place) > 0 || trace.operations[place].end <= start ||
              trace.operations[place].start >= end;
    if (alone) longest = std::max(longest, end - start);
  }
  return longest;
}

/// What the files promise of each task by itself is no shorter than a job that was by itself.
/// @return  tasks that had such a job
int expect_bounds(const TaskStudy& study, const Topology& machine, std::span<const LearnedTask> tasks,
                  const RecordedTrace& trace) {
  int compared = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Wcet bound = bound_job(study.tasks.tasks[i], machine, planners().front()).wcet;
    const std::int64_t longest = longest_alone(tasks[i], trace);
    EXPECT_GE(bound.bound().count(), longest) << tasks[i].name;
    compared += longest > 0 ? 1 : 0;
  }
  return compared;
}

// A machine and a task set that read back, whatever the trace.
TEST(MadeUpTraces, FilesReadBack) {
  int compared = 0;
  for (int seed = 100; seed < 100 + test::rounds(16); ++seed) {
    test::Random random(static_cast<std::uint64_t>(seed));
    const RecordedTrace what = recorded(test::random_trace(random));
    const auto learned = learn(what, "made up");
    ASSERT_TRUE(learned) << learned.error().text();
    for (const std::size_t gpus : {what.gpus, what.gpus + 1, std::size_t{1}}) {
      const auto machine =
          parse_document(learned_machine_text({on_gpus(learned->machine.spec, what.gpus, gpus), {}, {}}, "x"), "m")
              .and_then(machine_from);
      ASSERT_TRUE(machine) << machine.error().text();
      const std::vector<LearnedTask> tasks = on_gpus(learned->tasks, what.gpus, gpus);
      const auto study = parse_study(learned_tasks_text(learned_task_set(what, tasks, "m"), tasks, "x"), *machine);
      ASSERT_TRUE(study) << study.error().text();
      EXPECT_EQ(study->tasks.tasks.size(), tasks.size());
      EXPECT_EQ(machine->gpus().size(), gpus);
      if (gpus == what.gpus) compared += expect_bounds(*study, *machine, tasks, what);
    }
  }
  EXPECT_GT(compared, 0);
}

TEST(MadeUpTraces, BothFormatsSayTheSame) {
  test::Random random(7);
  MadeUpTrace trace = test::random_trace(random);
  for (MadeUpTask& task : trace.tasks) task.process = 0;
  const auto json = parse_chrome_trace(test::as_chrome_json(trace), "t.json");
  ASSERT_TRUE(json) << json.error().text();
  const std::string path = std::filesystem::temp_directory_path() / ("made-up-" + std::to_string(getpid()) + ".sqlite");
  std::filesystem::remove(path);
  test::write_as_nsys_sqlite(trace, path);
  const auto sqlite = read_nsys_trace(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(sqlite) << sqlite.error().text();
  ASSERT_EQ(json->operations.size(), trace.records.size());
  ASSERT_EQ(sqlite->operations.size(), trace.records.size());
  const std::int64_t later = json->operations.front().start - sqlite->operations.front().start;
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const RecordedOperation &one = json->operations[i], &other = sqlite->operations[i];
    EXPECT_EQ(one.start - later, other.start);
    EXPECT_EQ(one.end - later, other.end);
    EXPECT_EQ(one.bytes, other.bytes);
    EXPECT_EQ(one.kind, other.kind);
  }
}

// One task every 10 ms on a link of 25 GB/s: 10 MB in 0.4 ms, a kernel of 1 ms, 5 MB back in 0.2 ms, 2 us for each
// copy.
MadeUpTrace plain_trace() {
  MadeUpTrace trace;
  trace.tasks.push_back({.period = 10'000'000,
                         .offset = 1'000'000,
                         .operations = {{.kind = 'u', .bytes = 10'000'000, .stream = 1},
                                        {.kind = 'k', .length = 1'000'000, .gap = 5'000, .stream = 1, .name = "work"},
                                        {.kind = 'd', .bytes = 5'000'000, .gap = 5'000, .stream = 1}}});
  test::Random random(1);
  test::run(trace, random, 500'000'000);
  return trace;
}

TEST(Learn, FindsPeriodRatesAndTimesOfAPlainTask) {
  const RecordedTrace what = recorded(plain_trace());
  const auto learned = learn(what, "made up");
  ASSERT_TRUE(learned);
  ASSERT_EQ(learned->tasks.size(), 1U);
  const LearnedTask& task = learned->tasks.front();
  EXPECT_EQ(task.jobs.size(), 50U);
  EXPECT_EQ(task.period, 10'000'000);
  EXPECT_EQ(task.release, Release::Periodic);
  ASSERT_EQ(task.operations.size(), 3U);
  EXPECT_EQ(task.operations[1].length.usual, 1'000'000);
  // The kernel is in the stream of the copy before it; the copy back is a step of its own.
  EXPECT_EQ(task.operations[1].step, 0U);
  EXPECT_EQ(task.operations[2].step, 1U);
  const auto link = std::ranges::find(learned->machine.spec.links, "gpu0", &LinkSpec::to);
  EXPECT_NEAR(link->bandwidth.nominal.value, 10e6 / 402e3, 0.01);  // no small copy says what the 2 us are
  EXPECT_LT(learned->replay.most_of_95_percent, 0.005);
}

// Two GPUs do the same, the second one 5 ms later: 402 us up, 5 us, a kernel of 6 ms. A job takes 11.407 ms, and what
// is written of it is not promised sooner.
TEST(Learn, RowsThatStartApartAreNoShorter) {
  TraceBuilder builder;
  for (int job = 0; job < 20; ++job)
    for (const int gpu : {0, 1}) {
      const std::int64_t start = 1'000'000 + 30'000'000LL * job + 5'000'000LL * gpu;
      builder.add({.kind = RecordedKind::Up,
                   .start = start,
                   .end = start + 402'000,
                   .bytes = 10'000'000,
                   .gpu = gpu,
                   .stream = 1});
      TraceEntry kernel{.start = start + 407'000, .end = start + 6'407'000, .gpu = gpu, .stream = 1};
      kernel.name = builder.name("work");
      builder.add(kernel);
    }
  const RecordedTrace what = std::move(builder).finish("a made-up trace", "made up").value();
  const auto learned = learn(what, "made up");
  ASSERT_TRUE(learned) << learned.error().text();
  ASSERT_EQ(learned->tasks.size(), 1U);
  const auto machine = compile(learned->machine.spec);
  ASSERT_TRUE(machine) << machine.error().text();
  const auto set = compile(learned_task_set(what, learned->tasks, "m"), *machine);
  ASSERT_TRUE(set) << set.error().text();
  const auto promised = bound_job(set->tasks.front(), *machine, planners().front()).wcet.bound().count();
  EXPECT_GE(promised, 11'407'000);
  EXPECT_LE(promised, 11'407'000 + 500'000);
}

TEST(Learn, FindsALoopByItsPauses) {
  MadeUpTrace trace = plain_trace();
  trace.records.clear();
  trace.tasks.front().closed_loop = true;
  trace.tasks.front().period = 200'000;  // its pause
  trace.tasks.front().operations[1].spread = 0.3;
  test::Random random(2);
  test::run(trace, random, 300'000'000);
  const auto learned = learn(recorded(trace), "made up");
  ASSERT_TRUE(learned);
  ASSERT_EQ(learned->tasks.size(), 1U);
  EXPECT_EQ(learned->tasks.front().release, Release::ClosedLoop);
}

TEST(Learn, RefusesWorkThatDoesNotRepeat) {
  MadeUpTrace trace = plain_trace();
  trace.records.resize(6);  // two jobs
  const auto learned = learn(recorded(trace), "made up");
  ASSERT_FALSE(learned);
  EXPECT_NE(learned.error().message.find("record more rounds"), std::string::npos);
}

TEST(TraceBuilder, KeepsTheLastWordOfAKernel) {
  EXPECT_EQ(short_kernel_name("void at::native::(anonymous namespace)::sum_kernel<float, 4>(float*)"), "sum_kernel");
  EXPECT_EQ(short_kernel_name("ampere_sgemm_128x64"), "ampere_sgemm_128x64");
  EXPECT_EQ(short_kernel_name("/data/someone/k.cu:kernel"), "kernel");
  EXPECT_EQ(short_kernel_name(""), "kernel");
  EXPECT_EQ(short_kernel_name("\xff\xfe!"), "___");
}

// Today in us has 16 digits before the point: as a double its ns would be lost.
TEST(ChromeTrace, ReadsInstantsExactly) {
  const auto trace = parse_chrome_trace(
      R"([{"ph":"X","cat":"kernel","name":"a","ts":1700000000000000.123,"dur":1.001,"args":{"device":3,"stream":7}},
          {"ph":"X","cat":"kernel","name":"b","ts":1700000000000001,"dur":2,"pid":0,"tid":7}])",
      "t.json");
  ASSERT_TRUE(trace) << trace.error().text();
  EXPECT_EQ(trace->operations[0].start, 1'700'000'000'000'000'123);
  EXPECT_EQ(trace->operations[0].end, 1'700'000'000'000'001'124);
  EXPECT_EQ(trace->operations[1].end, 1'700'000'000'000'003'000);
  EXPECT_EQ(trace->gpus, 2U);
  EXPECT_EQ(trace->operations[0].gpu, 1U);  // numbers in the order of the trace's
}

}  // namespace
}  // namespace tutti::internal
