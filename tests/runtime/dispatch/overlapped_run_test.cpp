// Runs whose jobs overlap, on the simulated machine. Times in ns.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/partitioned_run.hpp"
#include "tests/runtime/random_jobs.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/fault_function.hpp"
#include "tests/support/overlap_sets.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/two_sides.hpp"

namespace tutti::internal {
namespace {

using test::first_jobs;
using test::Random;
using test::tasks_of;
using test::two_sides;

TaskSet overlapping(TaskSet set) {
  set.overlap = Overlap::On;
  return set;
}

/// A set whose jobs overlap, on a simulated machine with a test's faults.
struct OverlappedRunTest : testing::Test {
  RunRecord run(const TaskSet& set, const RunOptions& options) {
    const AdmittedTaskSet admitted = test::admit(set);
    EXPECT_TRUE(admitted.planned().overlap.has_value());
    place = std::make_unique<Place>(*set.machine, kernel);
    place->backend.faults = test::FaultFunction(faults);
    programs.clear();
    std::vector<TaskProgram*> table;
    for (const Task& task : set.tasks)
      table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(*set.machine, task, 1)).get());
    if (instead != nullptr) table.front() = instead;
    auto record = run_tasks(place->executor, admitted, table, options);
    EXPECT_TRUE(record) << record.error().text();
    bounds.assign(admitted.worst_responses().begin(), admitted.worst_responses().end());
    return *std::move(record);
  }

  struct Place {
    Place(const Topology& topology, const HostKernel& kernel)
        : kernels(with(kernel)),
          sim(topology, kernels, clock),
          backend(sim, clock),
          executor(topology, backend, clock) {}
    static KernelRegistry with(const HostKernel& kernel) {
      KernelRegistry kernels = KernelRegistry::with_builtins();
      if (kernel && !kernels.add("look", kernel)) ADD_FAILURE();
      return kernels;
    }
    VirtualClock clock;
    KernelRegistry kernels;
    SimBackend sim;
    test::FaultyBackend backend;
    Executor executor;
  };

  std::function<const BatchFault*(const BatchRun&)> faults;
  HostKernel kernel;               ///< "look"
  TaskProgram* instead = nullptr;  ///< of the first task
  std::unique_ptr<Place> place;
  std::vector<std::unique_ptr<PatternProgram>> programs;
  std::vector<std::optional<Duration>> bounds;
};

// A copy of 6 us and a kernel of 5 us every 10 us: the copy of a job runs beside the kernel of the one before it.
TEST_F(OverlappedRunTest, RunsJobsOfOneTaskInAPipeline) {
  TaskSet set = overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 5 us}"}));
  set.tasks[0].deadline = Duration{12'000};
  const RunRecord record = run(set, first_jobs(20));
  ASSERT_EQ(record.jobs.size(), 20U);
  for (const JobRecord& job : record.jobs) {
    EXPECT_EQ(job.verdict, JobVerdict::Met);
    EXPECT_EQ(job.start - job.arrival, Duration{0});
    EXPECT_GE(job.response(), Duration{11'000});
    EXPECT_LE(job.response(), *bounds[0]);
    EXPECT_FALSE(job.broken);
  }
}

// A memory of 1 byte/ns for copies to two GPUs: together each has half of it, and takes 4 us of 2.
TEST_F(OverlappedRunTest, LetsCopiesShareWhatIsBetweenThem) {
  const Topology machine = two_sides(
      "  shared: [{name: memory, capacity: 1 GB/s, members: [{from: mem0, to: gpu0}, {from: mem0, to: gpu1}]}]\n");
  TaskSet set =
      overlapping(tasks_of(machine, {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu1, size: 2 kB"}));
  set.tasks[1].period = set.tasks[1].deadline = Duration{20'000};
  const RunRecord record = run(set, first_jobs(3));
  std::map<std::pair<TaskId, std::uint64_t>, Duration> responses;
  for (const JobRecord& job : record.jobs) responses[{job.task, job.index}] = job.response();
  EXPECT_EQ((responses[{TaskId{0}, 0}]), Duration{4000});
  EXPECT_EQ((responses[{TaskId{1}, 0}]), Duration{4000});
  EXPECT_EQ((responses[{TaskId{0}, 1}]), Duration{2000});  // alone
}

// Two engines, 1 us for each begin. The copy to gpu1 of 2 kB goes in two chunks. The copy to gpu0 of 500 bytes waits
// for the begin of the first chunk until 1000, begins until 2000 and ends at 2500, while the second chunk begins until
// 3000. Its own begin and that of one region of the other engine are 2 of the 3 that it meets: it would be bound to
// 2500.
TEST_F(OverlappedRunTest, WaitsForTheDispatcherAtBothEndsOfARegion) {
  const Topology machine = two_sides("  setup: {dispatch: 1 us}\n");
  TaskSet set =
      overlapping(tasks_of(machine, {"from: mem0, to: gpu1, size: 2 kB", "from: mem0, to: gpu0, size: 500 B"}));
  set.preemption = Preemption::BetweenBatches;
  set.cut = Bytes{1000};
  const RunRecord record = run(set, first_jobs(2));
  const auto job = std::ranges::find(record.jobs, TaskId{1}, &JobRecord::task);
  EXPECT_EQ(job->response(), Duration{3000});
  EXPECT_EQ(bounds[1], Duration{500 + 3 * 1000});
}

/// The run that a refusal shows, on the simulated machine; nothing: it shows none.
std::optional<RunRecord> run_of_refusal(const TaskSet& set) {
  const AdmissionController controller(planners().front());
  const auto shown = counter_example(controller.decide(set), set.policy);
  EXPECT_TRUE(shown || !shown.error().empty());
  if (!shown) return std::nullopt;
  const auto planned = controller.plan_overlap(set);
  EXPECT_TRUE(planned);
  OverlappedRunTest::Place place(*set.machine, nullptr);
  std::vector<std::unique_ptr<PatternProgram>> programs;
  std::vector<TaskProgram*> table;
  for (const Task& task : set.tasks)
    table.push_back(programs.emplace_back(std::make_unique<PatternProgram>(*set.machine, task, 1)).get());
  auto record = run_scenario(place.executor, *planned, table, *shown);
  EXPECT_TRUE(record) << record.error().text();
  return *std::move(record);
}

// Kernels of 5 us on one GPU, both due within 9: the second one is done after 10.
TEST(OverlapRefusal, ShowsARunThatMisses) {
  TaskSet set = overlapping(tasks_of(two_sides(), std::vector<std::string>(2, "kernel: {on: gpu0, time: 5 us}")));
  for (Task& task : set.tasks) task.deadline = Duration{9000};
  const auto record = run_of_refusal(set);
  ASSERT_TRUE(record);
  ASSERT_EQ(record->jobs.size(), 2U);
  EXPECT_EQ(record->jobs[0].verdict, JobVerdict::Met);
  EXPECT_EQ(record->jobs[1].verdict, JobVerdict::Missed);
  EXPECT_EQ(record->jobs[1].response(), Duration{10'000});
}

// A copy of 6 us has just begun when one of 2 us comes, due within 7: it is done after 8 but for that instant.
TEST(OverlapRefusal, ShowsARunThatMissesBehindWhatHasBegun) {
  TaskSet set =
      overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB", "from: mem0, to: gpu0, size: 2 kB"}));
  for (Task& task : set.tasks) task.period = Duration{100'000};
  set.tasks[0].deadline = Duration{50'000};
  set.tasks[1].deadline = Duration{7000};
  const auto record = run_of_refusal(set);
  ASSERT_TRUE(record);
  ASSERT_EQ(record->jobs.size(), 2U);
  EXPECT_EQ(record->jobs[1].task, TaskId{1});
  EXPECT_EQ(record->jobs[1].response(), Duration{7999});
}

// Most of what is refused is shown, the rest says why not, and in what is shown some job misses.
TEST(OverlapRefusal, ShowsRunsOfRandomSetsThatMiss) {
  Random random(11);
  const Topology machine = test::overlap_machine();
  int shown = 0, refused = 0, by_demand = 0, behind = 0, on_the_way = 0;
  for (int round = 0; round < test::rounds(600); ++round) {
    TaskSet set = overlapping(test::random_overlap_set(random, machine));
    const OperationSet operations = operations_of(set).value();
    for (std::size_t i = 0; i < set.tasks.size(); ++i) {
      Task& task = set.tasks[i];
      const Duration alone = longest_way(operations, least_times(operations), TaskId{i});
      task.period /= random.between(1, 2);
      task.deadline = std::max(Duration{1}, alone * random.between(95, 150) / 100 + task.jitter);
    }
    if (random.one_in(4)) {
      set.arrivals = Arrivals::Periodic;
      for (Task& task : set.tasks) task.offset = Duration{random.between(0, 20'000)};
    }
    const OverlapVerdict verdict = decide_overlapping(set).value();
    ASSERT_EQ(verdict.answer == Answer::NotSchedulable, !verdict.refusals.empty());
    ASSERT_EQ(verdict.answer, answer_overlapping(set));
    if (verdict.answer != Answer::NotSchedulable) continue;
    ++refused;
    by_demand += verdict.reasons[0].find(" within ") != std::string::npos ? 1 : 0;
    const auto comes_on_its_way = [](const OverlapRefusal& refusal) {
      const auto& blocker = refusal.witness ? refusal.witness->blocker : std::nullopt;
      return blocker && !refusal.demand->at_once[blocker->index()];
    };
    const auto record = run_of_refusal(set);
    if (!record) on_the_way += std::ranges::all_of(verdict.refusals, comes_on_its_way) ? 1 : 0;
    if (!record) continue;
    ++shown;
    behind += verdict.reasons[0].find("had just begun") != std::string::npos ? 1 : 0;
    const auto is_late = [](const JobRecord& job) { return job.verdict != JobVerdict::Met; };
    ASSERT_TRUE(std::ranges::any_of(record->jobs, is_late)) << round << ": " << verdict.reasons[0];
  }
  EXPECT_GT(shown, 8 * refused / 10);
  EXPECT_GT(shown + on_the_way, 9 * refused / 10);
  EXPECT_GT(refused, test::rounds(600) / 10);
  EXPECT_GT(by_demand, test::rounds(600) / 50);
  EXPECT_GT(behind, test::rounds(600) / 50);
}

// Each copies for 6 us and computes for 5, one every 10 us and one every 20, due within 12. The second one comes,
// leaves, comes too soon after its last job, and comes again; both keep the bounds of both. What runs from the start is
// admitted with all others: a third one on the first one's engine is too much, even if it never comes.
TEST_F(OverlappedRunTest, TasksComeAndGo) {
  const std::string image = ", size: 6 kB, kernel: {time: 5 us}";
  TaskSet set = overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0" + image, "from: mem0, to: gpu1" + image}));
  for (Task& task : set.tasks) task.deadline = Duration{12'000};
  set.tasks[1].period = Duration{20'000};
  const AdmissionController controller(planners().front());
  auto changing = ChangingTaskSet::make(controller, set, std::array{TaskId{0U}});
  ASSERT_TRUE(changing) << changing.error().text();
  place = std::make_unique<Place>(*set.machine, kernel);
  PatternProgram patterns[] = {{*set.machine, set.tasks[0], 1}, {*set.machine, set.tasks[1], 1}};
  TaskProgram* const table[] = {&patterns[0], &patterns[1]};
  ChangeRequests requests;
  for (const auto& [at, leaves] : {std::pair{25'000, false}, {48'000, true}, {60'000, false}, {70'000, false}})
    requests.post({Duration{at}, leaves ? std::optional(TaskId{1U}) : std::nullopt,
                   leaves ? std::nullopt : std::optional(TaskId{1U})});
  RunOptions options;
  options.arrivals_before = Duration{100'000};
  const auto record = run_changing_tasks(place->executor, *changing, table, requests, options);
  ASSERT_TRUE(record) << record.error().text();
  std::vector<Answer> answers;
  for (const ChangeRecord& change : record->changes) answers.push_back(change.answer.answer);
  EXPECT_EQ(answers, (std::vector{Answer::Schedulable, Answer::Schedulable, Answer::Unknown, Answer::Schedulable}));
  EXPECT_EQ(record->changes[2].answer.reason, "'t1' had a job less than its period ago; ask again after that");
  std::map<TaskId, std::vector<Duration>> arrivals;
  for (const JobRecord& job : record->jobs) {
    EXPECT_EQ(job.verdict, JobVerdict::Met);
    EXPECT_FALSE(job.broken);
    EXPECT_LE(job.response(), *changing->worst_responses()[job.task.index()]);
    arrivals[job.task].push_back(job.arrival);
  }
  EXPECT_EQ(arrivals[TaskId{0U}].size(), 10U);
  EXPECT_EQ(arrivals[TaskId{1U}],
            (std::vector<Duration>{Duration{25'000}, Duration{45'000}, Duration{70'000}, Duration{90'000}}));
  set.tasks.push_back(set.tasks[0]);
  set.tasks.back().name = "t2";
  const auto refused = ChangingTaskSet::make(controller, set, std::array{TaskId{0U}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("where jobs overlap, all tasks that may ever run have to be schedulable "
                                         "together: 'gpu0 copies in'"),
            0U)
      << refused.error().message;
}

// The bytes of each job are there at its end, and kernels see them.
TEST_F(OverlappedRunTest, MovesTheBytes) {
  class Program final : public TaskProgram {
   public:
    explicit Program(const Topology& machine, const Task& task) : buffers_(machine, task, 3) {}
    Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                              std::size_t set) override {
      auto bound = buffers_.bind(backend, batch, number, set);
      copies_[set] = {bound->front().source, bound->front().destination};
      return bound;
    }
    void on_ready(const Job& job) override {
      for (std::byte& byte : copies_[job.buffer_set].first.bytes()) byte = static_cast<std::byte>(job.index + 1);
    }
    void on_finished(const Job& job) override {
      const auto there = copies_[job.buffer_set].second.bytes();
      right += std::ranges::all_of(there, [&](std::byte byte) { return byte == static_cast<std::byte>(job.index + 1); })
                   ? 1
                   : 0;
    }
    int right = 0;

   private:
    PatternProgram buffers_;
    std::map<std::size_t, std::pair<BufferView, BufferView>> copies_;
  };
  TaskSet set = overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {time: 2 us}"}));
  set.preemption = Preemption::BetweenBatches;
  set.cut = Bytes{2500};
  set.tasks[0].deadline = Duration{12'000};
  Program program(*set.machine, set.tasks[0]);
  instead = &program;
  run(set, first_jobs(9));
  EXPECT_EQ(program.right, 9);
}

// A copy that takes 3 us longer than admitted: the job behind it on the engine says who took its time. What was long
// ago is nobody's reason: two jobs later the same happens, and is again the copy's alone.
TEST_F(OverlappedRunTest, NamesWhoTookTheTime) {
  TaskSet set =
      overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 4 kB", "from: mem0, to: gpu0, size: 4 kB"}));
  for (Task& task : set.tasks) task.period = task.deadline = Duration{20'000};
  BatchFault longer;
  longer.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{3000}; };
  faults = [&](const BatchRun& one) { return one.job.task == "t0" && one.job.index % 2 == 1 ? &longer : nullptr; };
  const RunRecord record = run(set, first_jobs(8));
  int over = 0;
  for (const JobRecord& job : record.jobs) {
    if (!job.broken) continue;
    ++over;
    EXPECT_EQ(job.index % 2, 1U);
    EXPECT_EQ(job.broken->excess, Duration{3000});
    EXPECT_EQ(job.broken->cause, job.task == TaskId{0} ? BoundCause::Transfer : BoundCause::Blocking);
    EXPECT_EQ(job.broken->by.has_value(), job.task == TaskId{1});
  }
  EXPECT_EQ(over, 4);
}

// A copy in three chunks behind one that took 1.5 us too long, and itself 2 us too long: those 1.5 us count once.
TEST_F(OverlappedRunTest, CountsWhatWentBeforeOnce) {
  TaskSet set =
      overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 1 kB", "from: mem0, to: gpu0, size: 6 kB"}));
  set.preemption = Preemption::BetweenBatches;
  set.cut = Bytes{2000};
  for (Task& task : set.tasks) task.period = task.deadline = Duration{40'000};
  BatchFault before, own;
  before.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{1500}; };
  own.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{2000}; };
  int chunk = 0;
  faults = [&](const BatchRun& one) -> const BatchFault* {
    if (one.job.index != 1) return nullptr;
    if (one.job.task == "t0") return &before;
    return ++chunk == 3 ? &own : nullptr;
  };
  const RunRecord record = run(set, first_jobs(4));
  const auto cut =
      std::ranges::find_if(record.jobs, [](const JobRecord& job) { return job.task == TaskId{1} && job.index == 1; });
  ASSERT_TRUE(cut != record.jobs.end() && cut->broken);
  EXPECT_EQ(cut->broken->cause, BoundCause::Transfer);
}

// A kernel that is 2 us too long behind 3 us of jitter: the jitter is no dispatcher's time.
TEST_F(OverlappedRunTest, CountsNoJitterAsTimeOfTheDispatcher) {
  TaskSet set = overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB, kernel: {time: 1 us}"}));
  set.tasks[0].jitter = Duration{3000};
  BatchFault longer;
  longer.times = [](Timeline& times) {
    if (times.streams[0].kernel) times.streams[0].kernel->end += Duration{3500};
  };
  faults = [&](const BatchRun&) { return &longer; };
  const RunRecord record = run(set, first_jobs(30));
  int kernels = 0;
  for (const JobRecord& job : record.jobs) {
    if (!job.broken) continue;
    EXPECT_EQ(job.broken->cause, BoundCause::Kernel) << to_string(job.broken->cause);
    ++kernels;
  }
  EXPECT_GT(kernels, 0);
}

// Three copies of one job on one engine, each 1 us too long: they are its own, and nobody blocked it.
TEST_F(OverlappedRunTest, IsNotBlockedByItself) {
  TaskSet set = overlapping(tasks_of(two_sides(), {"host"}));
  set.tasks[0].steps = {
      test::make_batch(two_sides(),
                       "  - {from: mem0, to: gpu0, size: 1 kB}\n  - {from: mem0, to: gpu0, size: 1 kB}\n"
                       "  - {from: mem0, to: gpu0, size: 1 kB}\n")};
  BatchFault longer;
  longer.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{1000}; };
  faults = [&](const BatchRun& one) { return one.job.index == 1 ? &longer : nullptr; };
  const RunRecord record = run(set, first_jobs(3));
  ASSERT_TRUE(record.jobs[1].broken);
  EXPECT_EQ(record.jobs[1].broken->cause, BoundCause::Transfer);
}

// t1 has three copies behind one of t0 that was 1.2 us too long, and its kernel takes 2 us too long: 1.2 us count once.
TEST_F(OverlappedRunTest, IsBlockedOnceByWhatWentBefore) {
  TaskSet set = overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 1 kB", "host"}));
  set.tasks[1].steps = {
      test::make_batch(two_sides(),
                       "  - {from: mem0, to: gpu0, size: 1 kB}\n  - {from: mem0, to: gpu0, size: 1 kB}\n"
                       "  - {from: mem0, to: gpu0, size: 1 kB, kernel: {time: 1 us}}\n")};
  BatchFault before, own;
  before.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{1200}; };
  own.times = [](Timeline& times) {
    if (times.streams[0].kernel) times.streams[0].kernel->end += Duration{2000};
  };
  faults = [&](const BatchRun& one) { return one.job.index != 1 ? nullptr : one.job.task == "t0" ? &before : &own; };
  const RunRecord record = run(set, first_jobs(4));
  const auto late =
      std::ranges::find_if(record.jobs, [](const JobRecord& job) { return job.task == TaskId{1} && job.index == 1; });
  ASSERT_TRUE(late != record.jobs.end() && late->broken);
  EXPECT_EQ(late->broken->cause, BoundCause::Kernel);
}

// What was dropped behind a copy that took 25 us too long says whose it was.
TEST_F(OverlappedRunTest, SaysBehindWhomJobsAreDropped) {
  TaskSet set =
      overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu0, size: 2 kB"}));
  set.tasks[0].period = set.tasks[0].deadline = Duration{100'000};
  BatchFault longer;
  longer.times = [](Timeline& times) { times.streams[0].transfer->end += Duration{25'000}; };
  faults = [&](const BatchRun& one) { return one.job.task == "t0" ? &longer : nullptr; };
  const RunRecord record = run(set, first_jobs(9));
  const auto dropped = std::ranges::find(record.jobs, JobVerdict::Dropped, &JobRecord::verdict);
  ASSERT_TRUE(dropped != record.jobs.end() && dropped->broken);
  EXPECT_NE(dropped->broken->cause, BoundCause::Unknown);
}

// Two GPUs end at one instant; the second is lost then. What the first has done is done.
TEST_F(OverlappedRunTest, KeepsWhatEndedAsTheMachineBroke) {
  TaskSet set =
      overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu1, size: 2 kB"}));
  BatchFault breaks;
  breaks.error = Error{ErrorCode::Machine, "it broke", {}};
  faults = [&](const BatchRun& one) { return one.job.task == "t1" && one.job.index == 1 ? &breaks : nullptr; };
  const RunRecord record = run(set, first_jobs(8));
  ASSERT_TRUE(record.fatal);
  for (const JobRecord& job : record.jobs)
    EXPECT_EQ(job.verdict == JobVerdict::Failed, job.task == TaskId{1} && job.index == 1);
}

// A copy whose end is returned 3 us late holds up the dispatcher; the other copy ends meanwhile, and is not forgotten.
TEST_F(OverlappedRunTest, SeesWhatEndedWhileItWasHeldUp) {
  TaskSet set =
      overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 2 kB", "from: mem0, to: gpu1, size: 1 kB"}));
  BatchFault late;
  late.late_return = Duration{3000};
  faults = [&](const BatchRun& one) { return one.job.task == "t1" ? &late : nullptr; };
  const RunRecord record = run(set, first_jobs(2));
  ASSERT_EQ(record.jobs.size(), 2U);
  for (const JobRecord& job : record.jobs) EXPECT_EQ(*job.finish, Duration{4000});
}

// Kernels see what the copy before them brought, all chunks of it.
TEST_F(OverlappedRunTest, ShowsKernelsWhatWasCopied) {
  TaskSet set =
      overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 6 kB, kernel: {name: look, time: 2 us}"}));
  set.preemption = Preemption::BetweenBatches;
  set.cut = Bytes{2500};
  set.tasks[0].deadline = Duration{12'000};
  int looked = 0;
  kernel = [&](const KernelLaunch& launch) {
    looked += launch.input.size() == 6000 && launch.input.back() != std::byte{0} ? 1 : 0;
  };
  run(set, first_jobs(5));
  EXPECT_EQ(looked, 5);
}

// A kernel that fails ends its job alone.
TEST_F(OverlappedRunTest, GoesOnBehindAFailedJob) {
  TaskSet set = overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 1 kB, kernel: {time: 1 us}", "host"}));
  BatchFault fails;
  fails.error = Error{ErrorCode::Kernel, "it failed", {}};
  faults = [&](const BatchRun& one) {
    return one.job.index == 1 && one.plan.batch.streams()[0].kernel ? &fails : nullptr;
  };
  const RunRecord record = run(set, first_jobs(8));
  EXPECT_FALSE(record.fatal);
  for (const JobRecord& job : record.jobs)
    EXPECT_EQ(job.verdict == JobVerdict::Failed, job.task == TaskId{0} && job.index == 1);
  EXPECT_EQ(record.jobs.size(), 8U);
}

// A broken machine ends the run: what is under way ends, and each release has a record.
TEST_F(OverlappedRunTest, EndsWithABrokenMachine) {
  TaskSet set = overlapping(
      tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 4 kB", "from: mem0, to: gpu1, size: 5 kB", "host"}));
  BatchFault breaks;
  breaks.error = Error{ErrorCode::Machine, "it broke", {}};
  faults = [&](const BatchRun& one) { return one.job.index == 2 ? &breaks : nullptr; };
  const RunRecord record = run(set, first_jobs(30));
  ASSERT_TRUE(record.fatal);
  EXPECT_EQ(record.fatal->message, "it broke");
  EXPECT_FALSE(place->executor.busy());
  EXPECT_EQ(std::ranges::count(record.jobs, JobVerdict::Failed, &JobRecord::verdict), 2);
}

// An interrupt lets jobs that have begun end, in all their steps.
TEST_F(OverlappedRunTest, EndsAtAnInterruptWithTheJobsThatHaveBegun) {
  TaskSet set = overlapping(tasks_of(two_sides(), {"from: mem0, to: gpu0, size: 1 kB, kernel: {time: 6 us}"}));
  std::atomic<bool> interrupted = false;
  BatchFault sooner;  // the kernel is held until its guard, while nothing is under way
  sooner.times = [](Timeline& times) {
    if (times.streams[0].transfer) times.streams[0].transfer->end /= 2;
    times.latency /= 2;
  };
  faults = [&](const BatchRun& one) {
    if (one.job.index == 3) interrupted = true;
    return one.job.index == 3 ? &sooner : nullptr;
  };
  RunOptions options = first_jobs(100);
  options.interrupted = &interrupted;
  const RunRecord record = run(set, options);
  EXPECT_TRUE(record.interrupted);
  ASSERT_EQ(record.jobs.size(), 4U);
  for (const JobRecord& job : record.jobs) EXPECT_EQ(job.verdict, JobVerdict::Met);
}

/// Copies whose ended jobs are counted.
struct CountedCopies : TaskProgram {
  CountedCopies(const Topology& machine, const Task& task) : copies(machine, task, 1) {}
  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation, std::size_t batch,
                                            std::size_t buffer_set) override {
    return copies.bind(backend, operation, batch, buffer_set);
  }
  void on_finished(const Job&) override { ++ended; }

  PatternProgram copies;
  std::atomic<int> ended = 0;
};

/// Host steps, the first of which lasts until a job of copies has ended beside it. None does where the run has failed.
struct StepBesideCopies : TaskProgram {
  explicit StepBesideCopies(const CountedCopies& others) : copies(others) {}
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  Expected<void> on_host_step(Job& job, std::size_t) override {
    const int before = copies.ended;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    while (job.index == 0 && !beside && std::chrono::steady_clock::now() < patience) {
      std::this_thread::sleep_for(std::chrono::microseconds{100});
      beside = copies.ended > before;
    }
    return {};
  }

  const CountedCopies& copies;
  std::atomic<bool> beside = false;
};

// In real time host steps have a thread of their own: copies go on beside them.
TEST(OverlappedRunInRealTime, DoesHostStepsBesideCopies) {
  const Topology machine = two_sides();
  TaskSet set = overlapping(tasks_of(machine, {"host", "from: mem0, to: gpu1, size: 500 kB"}));
  set.tasks[0].steps = {HostStep{std::chrono::milliseconds{2}}};
  for (Task& task : set.tasks) task.period = task.deadline = std::chrono::milliseconds{4};
  const AdmittedTaskSet admitted = test::admit(set);
  RealClock clock(WaitKind::Block);
  KernelRegistry kernels = KernelRegistry::with_builtins();
  SimBackend backend(machine, kernels, clock);
  Executor executor(machine, backend, clock);
  CountedCopies copies(machine, set.tasks[1]);
  StepBesideCopies host(copies);
  TaskProgram* const table[] = {&host, &copies};
  const auto record = run_tasks(executor, admitted, table, first_jobs(100));
  ASSERT_TRUE(record) << record.error().text();
  if (record->fatal) {  // a host that stands still for some ms ends the run
    EXPECT_TRUE(record->fatal->message.starts_with("the host is too slow")) << record->fatal->message;
  } else {
    EXPECT_EQ(record->jobs.size(), 100U);
    EXPECT_TRUE(host.beside);
  }
}

/// A program whose host step throws in one of its jobs.
class ThrowingStep final : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  Expected<void> on_host_step(Job& job, std::size_t step) override {
    if (job.index == 2) throw std::runtime_error("no more");
    return TaskProgram::on_host_step(job, step);
  }
};

TEST_F(OverlappedRunTest, EndsWhereAHostStepThrows) {
  TaskSet set = overlapping(tasks_of(two_sides(), {"host", "from: mem0, to: gpu1, size: 5 kB"}));
  ThrowingStep program;
  instead = &program;
  const RunRecord record = run(set, first_jobs(30));
  ASSERT_TRUE(record.fatal);
  EXPECT_NE(record.fatal->message.find("'t0' threw: no more"), std::string::npos) << record.fatal->message;
}

// The real machine's sharing under random sets, on the real dispatcher: no job is late or over its bound, and some come
// near it.
TEST_F(OverlappedRunTest, KeepsEveryBound) {
  Random random(5);
  const Topology alone = test::overlap_machine();
  int sets = 0, close = 0;
  for (int round = 0; round < test::rounds(250); ++round) {
    const Topology machine =
        round % 2 == 0 ? alone : test::with_random_background(alone, static_cast<std::uint64_t>(round));
    TaskSet set = overlapping(test::random_overlap_set(random, machine));
    for (Task& task : set.tasks) task.offset = Duration{random.between(0, 20'000)};
    if (AdmissionController(planners().front()).answer(set) != Answer::Schedulable) continue;
    ++sets;
    const RunRecord record = run(set, first_jobs(60, random.next()));
    bool near = false;
    for (const JobRecord& job : record.jobs) {
      ASSERT_EQ(job.verdict, JobVerdict::Met) << round;
      ASSERT_FALSE(job.broken) << round << ": " << to_string(job.broken->cause) << " " << to_string(job.broken->excess)
                               << ", response " << to_string(job.response()) << " of "
                               << to_string(*bounds[job.task.index()]);
      ASSERT_LE(job.response(), *bounds[job.task.index()]) << round;
      near = near || as_ns(job.response()) > 0.9 * as_ns(*bounds[job.task.index()]);
    }
    close += near ? 1 : 0;
  }
  EXPECT_GT(sets, test::rounds(250) / 8);
  EXPECT_GT(close, sets / 8);
}

}  // namespace
}  // namespace tutti::internal
