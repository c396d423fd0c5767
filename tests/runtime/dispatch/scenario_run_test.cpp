// Jobs that a scenario gives, and jobs that let more urgent ones pass between their batches; worked by hand on the
// small machine, where n bytes take n ns.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/runtime/task_runs.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::copy_stream;
using test::Random;
using test::Row;
using test::Station;
using test::task;
using test::with_deadline;

ScenarioJob job(std::size_t task, std::int64_t arrival, std::int64_t ready, std::int64_t takes) {
  return {TaskId{task}, Duration{arrival}, Duration{ready}, Duration{takes}};
}

/// Runs scenarios of a set, admitted or not.
struct ScenarioRun {
  /// A task of so many batches of 1000 ns each.
  Task of_batches(std::string name, int batches, std::int64_t period) const {
    Task made = task(std::move(name), 0, period);
    made.declared_wcet.reset();
    for (int i = 0; i < batches; ++i)
      made.steps.emplace_back(station.batch({copy_stream("s", station.at("mem0"), station.at("gpu0"), 1000)}));
    return made;
  }

  std::vector<Row> rows(std::vector<Task> tasks, const Scenario& scenario, Preemption preemption = Preemption::None) {
    const TaskSet set{station.machine, Policy::Edf, std::move(tasks), Arrivals::Sporadic, preemption};
    const PlannedTaskSet planned = AdmissionController(planners().front()).plan(set);
    std::vector<std::unique_ptr<PatternProgram>> programs;
    std::vector<TaskProgram*> table;
    for (const Task& each : planned.tasks.tasks)
      table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(station.machine, each, 1)).get());
    return test::rows_of(set, run_scenario(station.executor, planned, table, scenario).value());
  }

  Station station;
};

// b (declared 8) takes 5, so x, ready at 4, runs 5 to 6, late for 5; x's second one takes nothing.
TEST(ScenarioRun, GivesEachJobTheTimeOfTheScenario) {
  ScenarioRun run;
  const auto rows = run.rows({with_deadline(task("x", 1, 4), 2), task("b", 8, 40)},
                             {{job(1, 0, 0, 5), job(0, 3, 4, 1), job(0, 7, 7, 0)}});
  EXPECT_EQ(rows, (std::vector<Row>{{"b", 0, 0, 0, 5, 40}, {"x", 0, 3, 5, 6, 5}, {"x", 1, 7, 7, 7, 9}}));
}

// x has one buffer set (D = T). Its first job waits for b until 8, beyond the arrival of its second at 5, which gets
// the buffers when the first one ends.
TEST(ScenarioRun, AJobWaitsForTheBuffersOfALateOne) {
  ScenarioRun run;
  const auto rows =
      run.rows({task("x", 1, 4), task("b", 8, 40)}, {{job(1, 0, 0, 8), job(0, 1, 1, 1), job(0, 5, 5, 1)}});
  EXPECT_EQ(rows, (std::vector<Row>{{"b", 0, 0, 0, 8, 40}, {"x", 0, 1, 8, 9, 5}, {"x", 1, 5, 9, 10, 9}}));
}

// Two batches take 2000; the scenario says 2500 for one job and 1500 for the other, whose second batch takes 500.
TEST(ScenarioRun, GivesBatchesTheTimeOfTheScenario) {
  ScenarioRun run;
  const auto rows = run.rows({run.of_batches("a", 2, 10'000)}, {{job(0, 0, 0, 2500), job(0, 10'000, 10'000, 1500)}});
  EXPECT_EQ(rows, (std::vector<Row>{{"a", 0, 0, 0, 2500, 10'000}, {"a", 1, 10'000, 10'000, 11'500, 20'000}}));
}

// 300 of the host, 1000 of a batch, 300 of the host: of 1100 the batch has 800, of 200 the first step has all. Where
// the dispatch of the batch takes 50, it has 750; of 340 not even the dispatch fits behind the first step.
TEST(ScenarioRun, ShortensBatchesAndHostSteps) {
  const auto finish = [](std::int64_t takes, std::int64_t dispatch) {
    const Topology machine = test::changed(test::small_machine(), [&](MachineSpec& spec) {
      spec.setup.dispatch.nominal = spec.setup.dispatch.guaranteed = Duration{dispatch};
    });
    ScenarioRun run{Station(std::make_unique<VirtualClock>(), Station::make_sim, machine)};
    Task task = run.of_batches("a", 1, 10'000);
    task.steps.insert(task.steps.begin(), HostStep{Duration{300}});
    task.steps.emplace_back(HostStep{Duration{300}});
    return run.rows({task}, {{job(0, 0, 0, takes)}});
  };
  for (const std::int64_t dispatch : {0, 50})
    for (const std::int64_t takes : std::vector<std::int64_t>{0, 200, 340, 1100, 1300, 1400, 1600 + dispatch, 2000})
      EXPECT_EQ(finish(takes, dispatch), (std::vector<Row>{{"a", 0, 0, 0, takes, 10'000}})) << takes << " " << dispatch;
}

// short is ready at 500. Without preemption it waits for all three batches; with it, for the first: 1000 to 1200, and
// long goes on: 1200 to 3200. Its scenario's 3000 are over then.
TEST(ScenarioRun, LetsMoreUrgentJobsPassBetweenBatches) {
  ScenarioRun run;
  const std::vector<Task> tasks{run.of_batches("long", 3, 10'000), task("short", 200, 2000)};
  const Scenario scenario{{job(0, 0, 0, 3000), job(1, 500, 500, 200)}};
  EXPECT_EQ(run.rows(tasks, scenario),
            (std::vector<Row>{{"long", 0, 0, 0, 3000, 10'000}, {"short", 0, 500, 3000, 3200, 2500}}));
  EXPECT_EQ(run.rows(tasks, scenario, Preemption::BetweenBatches),
            (std::vector<Row>{{"short", 0, 500, 1000, 1200, 2500}, {"long", 0, 0, 0, 3200, 10'000}}));
}

// Due later than long, it waits. And the last batch runs through: ready at 2500, it starts at 3000.
TEST(ScenarioRun, LetsNoOtherJobPass) {
  ScenarioRun run;
  const std::vector<Task> tasks{run.of_batches("long", 3, 10'000), task("late", 200, 20'000), task("short", 200, 2000)};
  EXPECT_EQ(run.rows(tasks, {{job(0, 0, 0, 3000), job(1, 500, 500, 200), job(2, 2500, 2500, 200)}},
                     Preemption::BetweenBatches),
            (std::vector<Row>{{"long", 0, 0, 0, 3000, 10'000},
                              {"short", 0, 2500, 3000, 3200, 4500},
                              {"late", 0, 500, 3200, 3400, 20'500}}));
}

// The machine fails in short's job, which passes long after its first batch: long ends then, without its second one,
// and names the same fault.
TEST(ScenarioRun, AMachineThatFailsInAPassingJobFailsForTheJobBelow) {
  ScenarioRun run;
  const TaskSet set{run.station.machine,
                    Policy::Edf,
                    {run.of_batches("long", 3, 10'000), task("short", 200, 2000)},
                    Arrivals::Sporadic,
                    Preemption::BetweenBatches};
  const PlannedTaskSet planned = AdmissionController(planners().front()).plan(set);
  PatternProgram of_batches(run.station.machine, planned.tasks.tasks[0], 1);
  test::WatchedProgram fails;
  fails.instead = [](Job&) -> Expected<void> { return machine_error("the link is gone"); };
  TaskProgram* table[]{&of_batches, &fails};
  const RunRecord record =
      run_scenario(run.station.executor, planned, table, {{job(0, 0, 0, 3000), job(1, 500, 500, 200)}}).value();
  ASSERT_EQ(record.jobs.size(), 2U);
  for (const JobRecord& each : record.jobs) {
    ASSERT_TRUE(each.error.has_value());
    EXPECT_EQ(each.error->message, "the link is gone");
  }
  EXPECT_TRUE(record.fatal.has_value());
}

// Two levels: middle (two batches) passes long at 1000; short passes middle at 2000, then middle ends, then long.
//   0 long 1000 middle 2000 short 2200 middle 3200 long 4200
TEST(ScenarioRun, NestsPreemptions) {
  ScenarioRun run;
  const auto rows =
      run.rows({run.of_batches("long", 2, 50'000), run.of_batches("middle", 2, 10'000), task("short", 200, 2000)},
               {{job(0, 0, 0, 2000), job(1, 100, 100, 2000), job(2, 1500, 1500, 200)}}, Preemption::BetweenBatches);
  EXPECT_EQ(rows, (std::vector<Row>{{"short", 0, 1500, 2000, 2200, 3500},
                                    {"middle", 0, 100, 1000, 3200, 10'100},
                                    {"long", 0, 0, 0, 4200, 50'000}}));
}

// A padded job that was passed is padded by its own time only: 2500 of its own and the 200 of short.
TEST(ScenarioRun, PadsByTheOwnTime) {
  ScenarioRun run;
  const auto rows = run.rows({run.of_batches("long", 2, 10'000), task("short", 200, 2000)},
                             {{job(0, 0, 0, 2500), job(1, 500, 500, 200)}}, Preemption::BetweenBatches);
  EXPECT_EQ(rows, (std::vector<Row>{{"short", 0, 500, 1000, 1200, 2500}, {"long", 0, 0, 0, 2700, 10'000}}));
}

// With a margin of 5 % a batch of 1000 ns may take 1050: long keeps the machine for the other 50 before short passes,
// and at its end: 3150 and 200. Of 2500 in all, 400 are left for the last region, whose batch is shortened.
TEST(ScenarioRun, PadsEachPart) {
  const Topology machine = test::changed(test::small_machine(), [](MachineSpec& spec) { spec.margin.relative = 0.05; });
  ScenarioRun run{Station(std::make_unique<VirtualClock>(), Station::make_sim, machine)};
  const std::vector<Task> tasks{run.of_batches("long", 3, 10'000), task("short", 200, 2000)};
  const auto rows = [&](std::int64_t takes) {
    return run.rows(tasks, {{job(0, 0, 0, takes), job(1, 500, 500, 200)}}, Preemption::BetweenBatches);
  };
  EXPECT_EQ(rows(3150), (std::vector<Row>{{"short", 0, 500, 1050, 1250, 2500}, {"long", 0, 0, 0, 3350, 10'000}}));
  EXPECT_EQ(rows(2500), (std::vector<Row>{{"short", 0, 500, 1050, 1250, 2500}, {"long", 0, 0, 0, 2700, 10'000}}));
  // 1020 are left for the last region: more than its batch takes, less than it may take.
  EXPECT_EQ(rows(3120), (std::vector<Row>{{"short", 0, 500, 1050, 1250, 2500}, {"long", 0, 0, 0, 3320, 10'000}}));
}

/// Copies a pattern up, has a kernel look at it, and copies it back.
class ThereAndBack final : public TaskProgram {
 public:
  explicit ThereAndBack(Station& station)
      : up_(station.allocate(station.at("mem0"), kSize)),
        there_(station.allocate(station.at("gpu0"), kSize)),
        back_(station.allocate(station.at("mem0"), kSize)) {
    const auto bytes = test::pattern(kSize, 5);
    std::ranges::copy(bytes, up_.view().bytes().begin());
  }

  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t batch, std::size_t) override {
    return std::vector<StreamBinding>{batch == 0 ? test::bound(up_.view(), there_.view())
                                                 : test::bound(there_.view(), back_.view())};
  }
  [[nodiscard]] bool has_all_back() { return std::ranges::equal(up_.view().bytes(), back_.view().bytes()); }

  static constexpr std::size_t kSize = 2500;

 private:
  Buffer up_, there_, back_;
};

// 2500 bytes in chunks of 1000: three batches of 833, 833 and 834 ns each way, one kernel of 50 ns that sees all bytes.
// short, ready at 100, goes at 833 instead of 2550.
TEST(CutBatches, MoveEveryByteAndLetOthersPass) {
  Station station;
  std::vector<std::size_t> seen;
  ASSERT_TRUE(station.kernels.add("look", [&](const KernelLaunch& launch) { seen.push_back(launch.input.size()); }));
  Task large = task("large", 0, 100'000);
  large.declared_wcet.reset();
  CommandStream up = copy_stream("s", station.at("mem0"), station.at("gpu0"), ThereAndBack::kSize);
  up.kernel = Kernel{station.at("gpu0"), Duration{50}, Duration{50}, "look"};
  large.steps = {station.batch({up}),
                 station.batch({copy_stream("s", station.at("gpu0"), station.at("mem0"), ThereAndBack::kSize)})};
  const TaskSet set{
      station.machine, Policy::Edf, {large, task("short", 100, 2000)}, Arrivals::Sporadic, Preemption::BetweenBatches,
      Bytes{1000}};
  const PlannedTaskSet planned = AdmissionController(planners().front()).plan(set);
  EXPECT_EQ(planned.bounds[0].regions.size(), 6U);
  EXPECT_EQ(planned.timings[0].wcet, Duration{5050});
  EXPECT_EQ(planned.timings[0].regions,
            JobRegions::of({Duration{833}, Duration{833}, Duration{884}, Duration{833}, Duration{833}, Duration{834}}));
  ThereAndBack program(station);
  PatternProgram other(station.machine, set.tasks[1], 1);
  TaskProgram* const table[] = {&program, &other};
  const auto record = run_scenario(station.executor, planned, table, {{job(0, 0, 0, 5050), job(1, 100, 100, 100)}});
  EXPECT_EQ(test::rows_of(set, record.value()),
            (std::vector<Row>{{"short", 0, 100, 833, 933, 2100}, {"large", 0, 0, 0, 5150, 100'000}}));
  EXPECT_EQ(seen, (std::vector<std::size_t>{ThereAndBack::kSize}));
  EXPECT_TRUE(program.has_all_back());
}

/// A task of host steps and batches, with a deadline and an offset.
Task random_task(const ScenarioRun& run, std::size_t number, Random& random) {
  const int period = random.between(6, 24) * 1000;
  Task made = run.of_batches("t" + std::to_string(number), random.between(0, 2), period);
  if (made.steps.empty() || random.between(0, 1) == 0)
    made.steps.insert(made.steps.begin() + random.between(0, static_cast<int>(made.steps.size())),
                      HostStep{Duration{random.between(1, 30) * 100}});
  made.deadline = Duration{random.between(period / 3, period)};
  made.offset = Duration{random.between(0, period)};
  return made;
}

// Whatever is refused with a run that misses: the same job of it is the first to miss in the replay, at the same
// instant. Under strictly periodic arrivals jobs of such runs are shorter than their Wcet, down to nothing.
TEST(ScenarioRun, MissesWhereACounterExampleDoes) {
  Random random(7);
  int replayed = 0, shortened = 0;
  for (int trial = 0; trial < 400; ++trial) {
    ScenarioRun run;
    const std::vector policies{Policy::Edf, Policy::Rm, Policy::Dm};
    TaskSet set{run.station.machine, policies[static_cast<std::size_t>(random.between(0, 2))], {}};
    set.arrivals = random.between(0, 3) == 0 ? Arrivals::Sporadic : Arrivals::Periodic;
    set.preemption = random.between(0, 2) == 0 ? Preemption::BetweenBatches : Preemption::None;
    for (std::size_t t = 0; t < 4; ++t) set.tasks.push_back(random_task(run, t, random));
    const AdmissionController controller(planners().front());
    const AdmissionVerdict verdict = controller.decide(set);
    const CounterExample example = counter_example(verdict, set.policy);
    if (verdict.answer != Answer::NotSchedulable || !example) continue;
    const PlannedTaskSet planned = controller.plan(set);
    std::vector<std::unique_ptr<PatternProgram>> programs;
    std::vector<TaskProgram*> table;
    for (const Task& each : planned.tasks.tasks)
      table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(run.station.machine, each, 1)).get());
    const Miss miss = first_miss(planned.timings, set.policy, *example).value();
    if (planned.partitions.size() != 1) continue;  // an executor runs one
    const RunRecord record = run_scenario(run.station.executor, planned, table, *example).value();
    const bool is_there = std::ranges::any_of(record.jobs, [&](const JobRecord& each) {
      return each.task == miss.task && each.index == miss.index && each.finish == miss.finish && each.missed();
    });
    EXPECT_TRUE(is_there) << "trial " << trial;
    ++replayed;
    shortened += std::ranges::any_of(
        example->jobs, [&](const ScenarioJob& each) { return *each.takes < planned.timings[each.task.index()].wcet; });
  }
  EXPECT_GT(replayed, 50);
  EXPECT_GT(shortened, 3);
}

TEST(ScenarioRun, KnowsNoTable) {
  TaskSet set{{}, Policy::CwEdf, {test::task("a", 1, 10)}, Arrivals::Periodic};
  test::VirtualRun run(set);
  const PlannedTaskSet planned = AdmissionController(planners().front()).plan(set);
  const auto refused = run_scenario(run.station.executor, planned, run.table, {{job(0, 0, 0, 1)}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().message.find("give --policy edf"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace tutti::internal
