// Runs in which something takes longer than was promised: which jobs are over their bound, and what is named as the
// cause. Times in ns.
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/task_runs.hpp"
#include "tests/support/fault_function.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::Station;

/// A virtual clock that oversleeps when somebody waits for one instant.
class SleepyClock final : public Clock {
 public:
  [[nodiscard]] std::string_view name() const override { return "sleepy"; }
  [[nodiscard]] Duration now() const override { return now_; }
  using Clock::wait_until;
  void wait_until(Duration at) override { now_ = std::max(now_, at == oversleeps ? at + by : at); }
  Duration aside(Duration start, const std::function<void()>& work) override {
    const Duration before = std::exchange(now_, start);
    work();
    return std::exchange(now_, before + handing_over);
  }
  [[nodiscard]] bool runs_by_itself() const override { return false; }

  Duration oversleeps{-1};
  Duration by{};
  Duration handing_over{};  ///< of work for another thread

 private:
  Duration now_{};
};

/// A program whose work on the host takes time.
class BusyProgram final : public TaskProgram {
 public:
  BusyProgram(const Topology& machine, const Task& task, Clock& clock) : buffers_(machine, task, 1), clock_(clock) {}

  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation, std::size_t batch,
                                            std::size_t set) override {
    return buffers_.bind(backend, operation, batch, set);
  }
  void on_ready(const Job& job) override { pass(job.index == 0 ? filling + filling_first : filling); }
  Expected<void> on_host_step(Job& job, std::size_t step) override {
    auto done = TaskProgram::on_host_step(job, step);
    pass(host_longer);
    return done;
  }
  void on_finished(const Job&) override { pass(reading); }

  Duration filling{}, filling_first{}, host_longer{}, reading{};

 private:
  void pass(Duration time) { clock_.wait_until(clock_.now() + time); }

  PatternProgram buffers_;
  Clock& clock_;
};

/// Tasks on the small machine, or another one; t is a copy of 1000 bytes to gpu0 with a kernel of 100 behind, every
/// 100'000.
struct FaultyRun {
  explicit FaultyRun(Topology machine = test::small_machine())
      : station(std::unique_ptr<Clock>(clock), Station::make_sim, std::move(machine)) {}

  Task copying(const std::string& name, std::int64_t bytes, std::int64_t period, std::int64_t offset = 0) {
    Task task = test::with_offset(test::task(name, 0, period), offset);
    task.declared_wcet.reset();
    CommandStream stream = test::copy_stream("s", station.at("mem0"), station.at("gpu0"), bytes);
    stream.kernel = Kernel{station.at("gpu0"), Duration{100}, Duration{100}, "spin"};
    task.steps = {station.batch({stream})};
    return task;
  }

  /// The given fault in one run of the batches of a task, or of all of them.
  void go_wrong(BatchFault the_fault, std::string task = "t", std::optional<std::uint64_t> at = 1) {
    fault = std::move(the_fault);
    backend.faults = test::FaultFunction([this, task = std::move(task), at](const BatchRun& run) {
      return run.job.task == task && (!at || run.job.index == *at) ? &fault : nullptr;
    });
  }

  AdmittedTaskSet make(std::vector<Task> tasks, Policy policy = Policy::Dm) {
    AdmittedTaskSet admitted = test::admit({station.machine, policy, std::move(tasks)});
    for (const Task& task : admitted.tasks().tasks)
      programs.push_back(std::make_unique<BusyProgram>(station.machine, task, *station.clock));
    return admitted;
  }

  RunRecord run(const AdmittedTaskSet& admitted, std::uint64_t jobs = 3) {
    std::vector<TaskProgram*> table;
    for (const auto& program : programs) table.push_back(program.get());
    return run_tasks(executor, admitted, table, first_jobs(jobs)).value();
  }

  /// [jobs] of a run of t alone.
  std::vector<std::optional<BrokenBound>> broken() {
    std::vector<std::optional<BrokenBound>> all;
    const AdmittedTaskSet admitted = make({copying("t", 1000, 100'000)});
    EXPECT_EQ(admitted.worst_responses()[0], Duration{1100});
    for (const JobRecord& job : run(admitted).jobs) all.push_back(job.broken);
    return all;
  }

  SleepyClock* clock = new SleepyClock;
  Station station;
  test::FaultyBackend backend{*station.backend, *station.clock};
  Executor executor{station.machine, backend, *station.clock};
  BatchFault fault;
  std::vector<std::unique_ptr<BusyProgram>> programs;
};

using Broken = std::vector<std::optional<BrokenBound>>;

Broken second_by(BoundCause cause, std::int64_t excess) {
  return {std::nullopt, BrokenBound{cause, Duration{excess}}, std::nullopt};
}

void slow_copy(Timeline& run) {
  StreamTimeline& line = run.streams[0];
  line.transfer->end += Duration{70};
  line.kernel->start += Duration{70};
  line.kernel->end += Duration{70};
}

TEST(OverBound, IsNoJobThatGoesAsPlanned) { EXPECT_EQ(FaultyRun().broken(), Broken(3)); }

TEST(OverBound, IsAJobWhoseCopyIsSlow) {
  FaultyRun run;
  run.go_wrong({.times = slow_copy});
  EXPECT_EQ(run.broken(), second_by(BoundCause::Transfer, 70));
}

TEST(OverBound, IsAJobWhoseCopyIsSlowBesideAnotherProcess) {
  FaultyRun run;
  run.go_wrong({.times = slow_copy});
  run.backend.foreign = {"another run of tutti uses gpu0"};
  EXPECT_EQ(run.broken(), second_by(BoundCause::Foreign, 70));
}

// The other process is there when the run is prepared, and gone before its end.
TEST(OverBound, IsAJobWhoseCopyIsSlowBesideAnotherProcessThatEnds) {
  FaultyRun run;
  run.go_wrong({.times = slow_copy});
  run.backend.foreign = {"another run of tutti uses gpu0"};
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000)});
  RunOptions options = first_jobs(3);
  options.on_job_end = [&](const JobRecord&) { run.backend.foreign.clear(); };
  TaskProgram* const table[] = {run.programs[0].get()};
  const RunRecord record = run_tasks(run.executor, admitted, table, options).value();
  EXPECT_EQ(record.jobs[1].broken, (BrokenBound{BoundCause::Foreign, Duration{70}}));
}

// What another process does to copies it does not do to kernels.
TEST(OverBound, IsAJobWhoseKernelIsLong) {
  FaultyRun run;
  run.go_wrong({.times = [](Timeline& line) { line.streams[0].kernel->end += Duration{30}; }});
  run.backend.foreign = {"another run of tutti uses gpu0"};
  EXPECT_EQ(run.broken(), second_by(BoundCause::Kernel, 30));
}

TEST(OverBound, IsAJobWhoseGateIsLate) {
  FaultyRun run;
  run.go_wrong({.times = [](Timeline& line) {
    line.streams[0].transfer->start += Duration{70};
    slow_copy(line);
  }});
  EXPECT_EQ(run.broken(), second_by(BoundCause::Gate, 70));
}

TEST(OverBound, IsAJobThatTheDispatcherHandlesLate) {
  for (const BatchFault& fault : {BatchFault{.late_submit = Duration{40}}, BatchFault{.late_return = Duration{40}},
                                  BatchFault{.late_notice = Duration{40}}}) {
    FaultyRun run;
    run.go_wrong(fault);
    EXPECT_EQ(run.broken(), second_by(BoundCause::Dispatch, 40));
  }
}

// The dispatcher may take 50 for a start and takes none, so the kernel, which takes 30 longer, is the cause.
TEST(OverBound, IsNotTheDispatchersWhichTookLessThanItMay) {
  FaultyRun run(test::make_machine(R"(  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}
  links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}]
  setup: {dispatch: {nominal: 0, guaranteed: 50 ns}}
)"));
  run.go_wrong({.times = [](Timeline& line) { line.streams[0].kernel->end += Duration{30}; }});
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000)});
  EXPECT_EQ(admitted.worst_responses()[0], Duration{1150});
  EXPECT_EQ(run.run(admitted).jobs[1].broken, (BrokenBound{BoundCause::Kernel, Duration{30}}));
}

// The copy seems to be 70 late. Where the host was held up for so long, it may have seen the end late by that much.
TEST(OverBound, IsTheHostsWhereItsPauseExplainsAllOfIt) {
  for (const auto& [held_up, cause] : {std::pair(69, BoundCause::Transfer), {70, BoundCause::Dispatch}}) {
    FaultyRun run;
    run.go_wrong({.times = slow_copy, .held_up = Duration{held_up}});
    EXPECT_EQ(run.broken(), second_by(cause, 70));
  }
}

// The copy is 70 late. Threads that copy stood for so long: the work of the host took longer.
TEST(OverBound, IsTheHostsWhereItsCopyingThreadsStood) {
  for (const auto& [copies, poll, cause] : {std::tuple(69, 0, BoundCause::Transfer),
                                            {70, 0, BoundCause::Host},
                                            {30, 40, BoundCause::Host},
                                            {70, 70, BoundCause::Dispatch}}) {
    FaultyRun run;
    run.go_wrong({.times = slow_copy, .held_up = Duration{poll}, .copies_held_up = Duration{copies}});
    EXPECT_EQ(run.broken(), second_by(cause, 70));
  }
}

// The dispatcher sleeps for 60 too long when it waits for the second arrival.
TEST(OverBound, IsAJobThatIsReleasedLate) {
  FaultyRun run;
  run.clock->oversleeps = Duration{100'000};
  run.clock->by = Duration{60};
  EXPECT_EQ(run.broken(), second_by(BoundCause::Release, 60));
}

// t starts at 40, once its input is handed over, and ends at 1140; handing over its end takes until 1180. u is ready at
// 1150 and seen as soon as the dispatcher is free: that is not late.
TEST(OverBound, IsNoJobThatWaitsForTheEndOfAnotherToBeHandedOver) {
  FaultyRun run;
  run.clock->handing_over = Duration{40};
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000), run.copying("u", 1000, 200'000, 1150)});
  const RunRecord record = run.run(admitted, 2);
  ASSERT_EQ(record.jobs[1].task, TaskId{1});
  EXPECT_EQ(record.jobs[0].finish, Duration{1140});
  EXPECT_EQ(record.jobs[1].late, Duration{0});
}

// It wakes 1300 late and finds t, ready since 100'000, and u, ready since 100'100. The bound of each, 2200, has the
// time of the other. t takes 1300 + 1100 and u 1200 + 1100 + 1100; filling t's buffer does not hide how late u was
// seen.
TEST(OverBound, IsEveryJobThatALateAwakeningFinds) {
  FaultyRun run;
  const AdmittedTaskSet admitted =
      run.make({run.copying("t", 1000, 100'000), run.copying("u", 1000, 200'000, 100'100)});
  ASSERT_EQ(admitted.worst_responses()[1], Duration{2200});
  run.clock->oversleeps = Duration{100'000};
  run.clock->by = Duration{1300};
  run.programs[0]->filling = Duration{7};
  const RunRecord record = run.run(admitted);
  ASSERT_EQ(record.jobs.size(), 3U);
  EXPECT_EQ(record.jobs[1].broken, (BrokenBound{BoundCause::Release, Duration{200}}));
  EXPECT_EQ(record.jobs[2].late, Duration{1200});
  EXPECT_EQ(record.jobs[2].broken, (BrokenBound{BoundCause::Release, Duration{1200}}));
}

// It wakes 5 periods late and finds six jobs. Those for which no buffers are left are dropped for that reason, the last
// one too, which it sees in time.
TEST(OverBound, IsAJobWithoutBuffersThatALateAwakeningFinds) {
  FaultyRun run;
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000)});
  run.clock->oversleeps = Duration{100'000};
  run.clock->by = Duration{500'000};
  const RunRecord record = run.run(admitted, 8);
  ASSERT_EQ(record.jobs.size(), 8U);
  int dropped = 0;
  for (const JobRecord& job : record.jobs) {
    if (job.verdict != JobVerdict::Dropped) continue;
    ++dropped;
    EXPECT_EQ(job.broken->cause, BoundCause::Release) << job.index;
  }
  EXPECT_GE(dropped, 3);
}

TEST(OverBound, IsWhatTheBackendDoesNotTolerate) {
  FaultyRun run;
  run.go_wrong({.times = slow_copy});
  run.backend.lag = Duration{70};
  EXPECT_EQ(run.broken(), Broken(3));
}

// A host step of 500 takes 580.
TEST(OverBound, IsAJobWhoseHostWorkTakesLongerThanDeclared) {
  FaultyRun run;
  Task task = run.copying("t", 1000, 100'000);
  task.steps.emplace_back(HostStep{Duration{500}});
  const AdmittedTaskSet admitted = run.make({task});
  EXPECT_EQ(run.run(admitted).jobs[2].broken, std::nullopt);
  run.programs[0]->host_longer = Duration{80};
  for (const JobRecord& job : run.run(admitted).jobs)
    EXPECT_EQ(job.broken, (BrokenBound{BoundCause::Host, Duration{80}}));
}

// long (100'100) has just started when t arrives at 1. In dense time t may wait for all but an instant of that, and
// take 1100. Here it waits 1 less; long takes 50 more, so t is 49 over.
TEST(OverBound, IsAJobThatWaitsForOneThatTookTooLong) {
  FaultyRun run;
  run.go_wrong({.times = [](Timeline& line) { line.streams[0].kernel->end += Duration{50}; }}, "long", 0);
  const AdmittedTaskSet admitted =
      run.make({run.copying("t", 1000, 200'000, 1), run.copying("long", 100'000, 1'000'000)});
  ASSERT_EQ(admitted.worst_responses()[0], Duration{101'200});
  const RunRecord record = run.run(admitted);
  ASSERT_EQ(record.jobs.size(), 3U);
  EXPECT_EQ(record.jobs[0].broken->cause, BoundCause::Kernel);
  EXPECT_EQ(record.jobs[1].broken, (BrokenBound{BoundCause::Blocking, Duration{49}, TaskId{1U}})) << "by long";
  EXPECT_EQ(record.jobs[2].broken, std::nullopt);
}

// Filling a buffer takes 300 and reading the result 200, beside 1100 of the job itself.
TEST(Response, LeavesOutWhatProgramsDoBesideTheirJobs) {
  FaultyRun run;
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000)});
  run.programs[0]->filling = Duration{300};
  run.programs[0]->reading = Duration{200};
  for (const JobRecord& job : run.run(admitted).jobs) {
    EXPECT_EQ(job.response(), Duration{1100});
    EXPECT_EQ(job.end_to_end(), Duration{1600});
    EXPECT_EQ(job.broken, std::nullopt);
  }
}

// u arrives at 100, while t's buffer is filled until 300; its own takes no time, behind that. Then t runs until 1400,
// and u until 2500, while t's result is read until 1600: 2400 from its arrival, of which it waited 200 for its input.
TEST(Response, LeavesOutTheTimeUntilTheInputIsThere) {
  FaultyRun run;
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000), run.copying("u", 1000, 100'001, 100)});
  run.programs[0]->filling = Duration{300};
  run.programs[0]->reading = Duration{200};
  const RunRecord record = run.run(admitted, 2);
  EXPECT_EQ(record.jobs[1].finish, Duration{2500});
  EXPECT_EQ(record.jobs[1].programs, Duration{200});
  EXPECT_EQ(record.jobs[1].response(), Duration{2200});
}

// t's first input takes 2500, so its first two jobs bunch: 2500 to 3600, and to 4700. u, which arrives at 2600, has a
// bound of 2200 and ends at 5800.
TEST(OverBound, IsAJobBehindAnInputThatCameLate) {
  FaultyRun run;
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 3000), run.copying("u", 1000, 4000, 2600)});
  ASSERT_EQ(admitted.worst_responses()[1], Duration{2200});
  run.programs[0]->filling_first = Duration{2500};
  const RunRecord record = run.run(admitted, 4);
  const auto late = std::ranges::find(record.jobs, TaskId{1}, &JobRecord::task);
  EXPECT_EQ(late->finish, Duration{5800});
  ASSERT_TRUE(late->broken);
  EXPECT_EQ(late->broken->cause, BoundCause::Host);
}

// t's first input takes 2500, which its own response leaves out: it is over its bound by its kernel alone.
TEST(OverBound, IsNoJobByItsOwnInput) {
  FaultyRun run;
  run.go_wrong({.times = [](Timeline& line) { line.streams[0].kernel->end += Duration{30}; }}, "t", 0);
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000)});
  run.programs[0]->filling_first = Duration{2500};
  const RunRecord record = run.run(admitted);
  EXPECT_EQ(record.jobs[0].start, Duration{2500});
  EXPECT_EQ(record.jobs[0].broken, (BrokenBound{BoundCause::Kernel, Duration{30}}));
}

// t is ready by 700, and its input, which takes 300, is there within its jitter of 1000: no job behind it is late by
// that. u, which arrives while t runs, takes 30 longer than planned.
TEST(OverBound, IsNoJobBehindAnInputThatCameWithinTheJitter) {
  FaultyRun run;
  run.go_wrong({.times = [](Timeline& line) { line.streams[0].kernel->end += Duration{30}; }}, "u", 0);
  const AdmittedTaskSet admitted =
      run.make({test::with_jitter(run.copying("t", 1000, 100'000), 1000), run.copying("u", 1000, 200'000, 1350)});
  run.programs[0]->filling_first = Duration{300};
  const RunRecord record = run.run(admitted, 2);
  ASSERT_LE(record.jobs[0].ready, Duration{700});
  ASSERT_GT(record.jobs[0].finish, Duration{1350});
  EXPECT_EQ(record.jobs[1].broken, (BrokenBound{BoundCause::Kernel, Duration{30}}));
}

// Another process is seen behind the run, whose jobs are not kept: their summary is.
TEST(OverBound, LeavesSummariesAloneWhereJobsAreNotKept) {
  FaultyRun run;
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000)});
  RunOptions options = first_jobs(3);
  options.keeps_jobs = false;
  options.on_job_end = [&](const JobRecord&) { run.backend.foreign = {"another run of tutti uses gpu0"}; };
  TaskProgram* const table[] = {run.programs[0].get()};
  const RunRecord record = run_tasks(run.executor, admitted, table, options).value();
  EXPECT_EQ(record.summaries.at(0).jobs(), 3U);
}

// Nothing was promised to a scenario.
TEST(OverBound, IsNoJobOfAScenario) {
  FaultyRun run;
  run.go_wrong({.times = slow_copy}, "t", std::nullopt);
  const AdmittedTaskSet admitted = run.make({run.copying("t", 1000, 100'000)});
  Scenario scenario;
  for (std::int64_t i = 0; i < 3; ++i)
    scenario.jobs.push_back({TaskId{0}, Duration{i * 100'000}, Duration{i * 100'000}, Duration{1100}});
  TaskProgram* const table[] = {run.programs[0].get()};
  const auto record = run_scenario(run.executor, admitted.planned(), table, scenario);
  ASSERT_EQ(record->jobs.size(), 3U);
  for (const JobRecord& job : record->jobs) EXPECT_EQ(job.broken, std::nullopt);
}

// Where no response is bounded, the batches still are.
TEST(OverBound, IsABatchWhereTasksComeAndGo) {
  FaultyRun run;
  run.go_wrong({.times = slow_copy});
  const TaskSet set{run.station.machine, Policy::Edf, {run.copying("t", 1000, 100'000)}};
  run.programs.push_back(std::make_unique<BusyProgram>(run.station.machine, set.tasks[0], *run.station.clock));
  const AdmissionController controller(planners().front());
  auto changing = ChangingTaskSet::make(controller, set, std::vector<TaskId>{TaskId{0}}).value();
  ChangeRequests requests;
  RunOptions options;
  options.arrivals_before = Duration{250'000};
  TaskProgram* const table[] = {run.programs[0].get()};
  const auto record = run_changing_tasks(run.executor, changing, table, requests, options);
  ASSERT_TRUE(record.has_value()) << record.error().text();
  Broken all;
  for (const JobRecord& job : record->jobs) all.push_back(job.broken);
  EXPECT_EQ(all, second_by(BoundCause::Transfer, 70));
}

// One thing goes wrong in some of the batches of several tasks, under every policy. A job is over its bound where its
// response or one of its batches is, and then there is a cause; where nothing goes wrong no job is.
TEST(OverBound, IsEveryJobThatBrokeAPromiseAndNoOther) {
  int over = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    test::Random random(seed);
    FaultyRun run;
    std::vector<Task> tasks;
    for (int i = 0; i < 3; ++i) {
      const auto bytes = static_cast<std::int64_t>(100 + random.below(3000));
      const auto period = static_cast<std::int64_t>(20'000 + random.below(20'000));
      tasks.push_back(
          run.copying("t" + std::to_string(i), bytes, period, static_cast<std::int64_t>(random.below(5000))));
      if (random.one_in(2)) tasks.back().steps.emplace_back(HostStep{Duration{50}});
      tasks.back().jitter = Duration{static_cast<std::int64_t>(random.below(500))};
    }
    const AdmittedTaskSet admitted = run.make(tasks, std::array{Policy::Edf, Policy::Rm, Policy::Dm}[seed % 3]);
    const Duration by{static_cast<std::int64_t>(random.below(4000))};
    const std::array<BatchFault, 5> faults{
        BatchFault{.times = [by](Timeline& line) { line.streams[0].kernel->end += by; }},
        BatchFault{.times = slow_copy}, BatchFault{.late_submit = by}, BatchFault{.late_return = by}, BatchFault{}};
    const BatchFault& fault = faults[seed % 5];
    const bool batch_late = fault.times != nullptr;
    const bool busy = seed % 5 == 4 && seed % 2 == 0;
    for (const auto& program : run.programs) program->reading = Duration{busy ? 3 * by.count() : 0};
    run.backend.faults = test::FaultFunction([&](const BatchRun&) { return random.one_in(4) ? &fault : nullptr; });
    const RunRecord record = run.run(admitted, 60);
    for (const JobRecord& job : record.jobs) {
      const auto bound = admitted.worst_responses()[job.task.index()];
      const bool late = job.missed() || (bound && job.response() > *bound);
      ASSERT_TRUE(!late || job.broken.has_value());
      ASSERT_TRUE(!job.broken || batch_late || late);
      if (!job.broken) continue;
      ++over;
      ASSERT_NE(job.broken->cause, BoundCause::Unknown);
      ASSERT_TRUE(seed % 5 != 4 || (busy && job.broken->cause == BoundCause::Host)) << "nothing else went wrong";
    }
  }
  EXPECT_GT(over, 100);
}

}  // namespace
}  // namespace tutti::internal
