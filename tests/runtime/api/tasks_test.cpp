// Task sets through the installed headers alone, linked with the shared library.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

namespace {

using std::chrono::milliseconds;
using tutti::Answer;
using tutti::TaskSet;

const std::string kTwoTasks = TUTTI_EXAMPLES "/two_tasks.yaml";
const std::string kRefused = TUTTI_CONFIGS "/tasks/alarm-behind-image.yaml";
const std::string kDeclared = TUTTI_TEST_FILES "/declared.yaml";
const std::string kLed = TUTTI_TEST_FILES "/../../apps/cli/led.yaml";

tutti::Kernels with_threshold() {
  tutti::Kernels kernels;
  EXPECT_TRUE(kernels.add("threshold", [](const tutti::KernelLaunch&) {}));
  return kernels;
}

/// Why something was refused.
template <class T>
std::string refusal(const tutti::Expected<T>& answer) {
  EXPECT_FALSE(answer.has_value());
  return answer ? "" : answer.error().message;
}

tutti::AdmittedTaskSet two_tasks() { return *tutti::check(TaskSet::load(kTwoTasks).value()).value().admitted; }

tutti::RunOptions twelve_jobs() {
  tutti::RunOptions options;
  options.jobs = 12;  // arrivals: 2 of 'image' every 10 ms, 10 of 'command' every 2 ms
  return options;
}

TEST(ApiCheck, AdmitsWithABoundForEveryTask) {
  const auto verdict = tutti::check(TaskSet::load(kTwoTasks).value()).value();
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_TRUE(verdict.admitted && verdict.reasons.empty() && verdict.counter_example.empty());
  ASSERT_EQ(verdict.tasks.size(), 2U);
  // 'image': 4 MB at 12 GB/s up (333,334 ns, rounded up), 400 us at worst, 4 MB down.
  EXPECT_NEAR(static_cast<double>(verdict.tasks[0].wcet.count()), 1'066'667, 3);
  EXPECT_LE(verdict.tasks[0].worst_response, milliseconds(10));
  EXPECT_FALSE(verdict.tests.empty());
}

// camera -> inspect -> decide -> gate: the bound of `check` holds for all reactions of the run.
TEST(ApiCheck, BoundsChainsThatARunMeasures) {
  const auto set = TaskSet::load(TUTTI_CONFIGS "/tasks/camera-inspect-gate.yaml").value();
  const auto verdict = tutti::check(set).value();
  ASSERT_EQ(verdict.chains.size(), 1U);
  EXPECT_EQ(verdict.chains[0].chain, "reject");
  EXPECT_EQ(verdict.chains[0].deadline, milliseconds(100));
  tutti::RunOptions options;
  options.jobs = 100;
  tutti::Kernels kernels;
  for (const char* const name : {"die_compare", "classify_defects"})
    ASSERT_TRUE(kernels.add(name, [](const tutti::KernelLaunch&) {}));
  const auto record = tutti::run(*verdict.admitted, kernels, {}, options).value();
  ASSERT_EQ(record.chains.size(), 1U);
  EXPECT_EQ(record.chains[0].bound, verdict.chains[0].worst_latency);
  EXPECT_GT(record.chains[0].reactions, 15U);
  EXPECT_GT(record.chains[0].worst_reaction, milliseconds(20));
  EXPECT_LE(record.chains[0].worst_reaction, record.chains[0].bound);
  EXPECT_EQ(record.chains[0].over_bound + record.chains[0].over_deadline, 0U);
}

TEST(ApiCheck, RefusesWithReasonWitnessExampleAndRemedies) {
  const auto set = TaskSet::load(kRefused).value();
  const auto verdict = tutti::check(set).value();
  EXPECT_EQ(verdict.answer, Answer::NotSchedulable);
  EXPECT_FALSE(verdict.admitted);
  EXPECT_FALSE(verdict.reasons.empty());
  const auto witness = std::ranges::find_if(verdict.tests, [](const auto& test) { return test.witness.has_value(); });
  ASSERT_NE(witness, verdict.tests.end());
  EXPECT_EQ(witness->witness->blocker, "inspect");
  EXPECT_GT(witness->witness->load, witness->witness->interval);
  ASSERT_FALSE(verdict.counter_example.empty());
  EXPECT_EQ(verdict.counter_example.front().task, "inspect");
  const auto remedies = tutti::remedies(set).value();
  EXPECT_TRUE(std::ranges::any_of(remedies, [](const auto& remedy) { return remedy.name == "deadline of 'alarm'"; }));
}

// One task with C = 3 ms and T = D = 10 ms: it holds up to C = T, and down to T = D = C.
TEST(ApiCapacity, IsWhereTheTaskFillsItsPeriod) {
  const auto set = TaskSet::load(kDeclared).value();
  const auto longest = tutti::capacity(set, tutti::Tunable::Wcet, "only").value();
  EXPECT_EQ(longest.present, 3'000'000);
  EXPECT_EQ(longest.limit, 10'000'000);
  EXPECT_EQ(tutti::capacity(set, tutti::Tunable::Period, "only").value().limit, 3'000'000);
  EXPECT_NE(refusal(tutti::capacity(set, tutti::Tunable::Period, "nobody")).find("'nobody'"), std::string::npos);
  EXPECT_NE(refusal(tutti::capacity(set, tutti::Tunable::Parameter, "image")).find("'image'"), std::string::npos);
}

// 12 MB at 12 GB/s take 1 ms: a period of 1 ms is filled, and one of 0.9 ms is too short.
TEST(ApiTaskSet, IsMadeOfFields) {
  const auto machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  tutti::StepSpec step;
  step.batch = {{.name = "up", .from = "mem0", .to = "gpu0", .size = tutti::Bytes{12'000'000}}};
  tutti::TaskSetSpec spec;
  spec.tasks = {{.name = "copy", .period = milliseconds(1), .job = {{step}}}};
  const auto verdict = tutti::check(TaskSet::make(machine, spec).value()).value();
  EXPECT_EQ(verdict.answer, Answer::Schedulable);
  EXPECT_EQ(verdict.tasks[0].wcet, milliseconds(1));
  spec.tasks[0].period = std::chrono::microseconds(900);
  EXPECT_EQ(tutti::check(TaskSet::make(machine, spec).value()).value().answer, Answer::NotSchedulable);
  spec.tasks[0].period = {};
  EXPECT_FALSE(TaskSet::make(machine, spec));
}

TEST(ApiTaskSet, IsMadeOfDeclaredTimesAlone) {
  tutti::TaskSetSpec spec{.tasks = {{.name = "only", .period = milliseconds(10), .wcet = milliseconds(3)}}};
  const auto set = TaskSet::make(spec).value();
  EXPECT_EQ(tutti::check(set).value().answer, Answer::Schedulable);
  EXPECT_EQ(tutti::capacity(set, tutti::Tunable::Wcet, "only").value().limit, 10'000'000);
  tutti::StepSpec step;
  step.batch = {{.name = "up", .from = "mem0", .to = "gpu0", .size = tutti::Bytes{1}}};
  spec.tasks[0].wcet.reset();
  spec.tasks[0].job = {{step}};
  const auto refused = TaskSet::make(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text().find("tasks[0].job"), 0U) << refused.error().text();
}

constexpr auto kMachine = R"(version: 1
machine:
  name: one
  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}
  links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]
)";
constexpr auto kText = R"(version: 1
parameters: {image: 12 MB}
tasks:
  - name: inspect
    period: 5 ms
    job:
      - host: 100 us
      - batch: [{name: up, from: mem0, to: gpu0, size: 100% of image, kernel: {throughput: 12 GB/s}}]
)";

TEST(ApiTaskSet, NamesTheStreamAtFault) {
  tutti::StepSpec step;
  step.batch = {{.name = "up", .from = "mem0", .size = tutti::Bytes{1}}};
  const tutti::TaskSetSpec spec{.tasks = {{.name = "t", .period = milliseconds(1), .job = {{step}}}}};
  const auto refused = TaskSet::make(tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value(), spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().text().find("tasks[0].job[0].batch[0]: 'to' is missing"), 0U) << refused.error().text();
}

TEST(ApiTaskSet, IsReadFromText) {
  const auto machine = tutti::Machine::parse(kMachine).value();
  EXPECT_EQ(tutti::check(TaskSet::parse(machine, kText).value()).value().tasks[0].wcet,
            std::chrono::microseconds(2100));
  const auto broken = TaskSet::parse(machine, "version: 1\ntasks:\n  - {name: t, period: 0 ms, wcet: 1 ms}\n");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().text().find("the task set:3:"), 0U) << broken.error().text();
  EXPECT_EQ(tutti::Machine::parse("version: 1\nmachine: 7\n").error().place.line, 2);
}

// 60 % of 12 MB are 7,200,000 bytes, and a kernel without a place runs where its transfer ends.
TEST(ApiTaskSet, ShowsItsFieldsItsMachineAndItsBatches) {
  const auto machine = tutti::Machine::parse(kMachine).value();
  const auto set = TaskSet::parse(machine, kText).value();
  EXPECT_EQ(set.machine().value().name(), "one");
  tutti::TaskSetSpec spec = set.spec();
  EXPECT_EQ(spec.parameters.at("image"), tutti::Bytes{12'000'000});
  EXPECT_EQ(tutti::check(TaskSet::make(machine, spec).value()).value().tasks[0].wcet, std::chrono::microseconds(2100));
  (*spec.tasks[0].job)[1].batch->front().size = {"image", "60"};
  const auto batches = TaskSet::make(machine, spec).value().batches("inspect").value();
  ASSERT_FALSE(batches.empty());
  const tutti::StreamSpec first = batches[0].spec().streams.front();
  EXPECT_EQ(first.size, tutti::SizeSpec(tutti::Bytes{7'200'000}));
  EXPECT_EQ(first.kernel->on, "gpu0");
  EXPECT_EQ(tutti::predictBatchLatency(batches[0]).value(), std::chrono::microseconds(600 + 600));
  EXPECT_NE(refusal(set.batches("nobody")).find("'nobody'"), std::string::npos);
  EXPECT_EQ(set.bytes({"image", "33.33333"}).value(), tutti::Bytes{3'999'999}) << "of 3999999.6";
  EXPECT_EQ(set.bytes(tutti::Bytes{7}).value(), tutti::Bytes{7});
  EXPECT_NE(refusal(set.bytes({"imago", "50"})).find("'imago'"), std::string::npos);
  const auto declared = TaskSet::load(kDeclared).value();
  EXPECT_TRUE(declared.batches("only").value().empty());
  EXPECT_NE(refusal(declared.machine()).find("no machine"), std::string::npos);
}

// A copy between GPUs that cannot reach each other goes through a memory, and takes longer.
TEST(ApiTaskSet, CanBePlannedWithoutPeerAccess) {
  const auto longest = [](bool no_peer) {
    return tutti::check(TaskSet::load(TUTTI_TEST_FILES "/between_gpus.yaml", {.no_peer = no_peer}).value())
        .value()
        .tasks[0]
        .wcet;
  };
  EXPECT_GT(longest(true), longest(false));
}

// Kernels are measured on GPUs; what was measured is declared, and checked again.
TEST(ApiProfile, GivesTimesToDeclare) {
  const auto set = TaskSet::parse(tutti::Machine::parse(kMachine).value(), kText).value();
  tutti::KernelTimes measured{.task = "inspect", .time = milliseconds(2), .worst = std::chrono::microseconds(2500)};
  const auto slower = tutti::with_times(set, {measured}).value();
  EXPECT_EQ(tutti::check(slower).value().tasks[0].wcet, std::chrono::microseconds(3600));
  measured.worst = milliseconds(1);
  EXPECT_NE(refusal(tutti::with_times(set, {measured})).find("below 0 or above its worst"), std::string::npos);
  measured.worst = milliseconds(3);
  measured.remark = "two\nlines";
  EXPECT_NE(refusal(tutti::with_times(set, {measured})).find("control character"), std::string::npos);
  measured.remark = "";
  EXPECT_NE(refusal(tutti::with_times(set, {measured, measured})).find("there twice"), std::string::npos);
  measured.stream = 1;
  EXPECT_NE(refusal(tutti::with_times(set, {measured})).find("no kernel in stream 1 of batch 0"), std::string::npos);
  EXPECT_NE(refusal(tutti::file_with_times(kTwoTasks, {measured})).find("no kernel"), std::string::npos);
}

TEST(ApiProfile, WritesTimesIntoAFile) {
  const tutti::KernelTimes measured{
      .task = "image", .time = milliseconds(1), .worst = milliseconds(2), .remark = "now"};
  const std::string text = tutti::file_with_times(kTwoTasks, {measured}).value();
  EXPECT_NE(text.find("time: 1 ms, worst: 2 ms"), std::string::npos) << text;
  EXPECT_NE(text.find("  # measured now\n"), std::string::npos) << text;
}

TEST(ApiProfile, RefusesWhatCannotBeMeasured) {
  const auto set = TaskSet::load(kTwoTasks).value();
  tutti::ProfileOptions options;
  options.backend.kind = tutti::BackendKind::Simulated;
  EXPECT_NE(refusal(tutti::profile(set, {}, {}, options)).find("takes the times that are declared"), std::string::npos);
  options.backend.kind = tutti::BackendKind::Cuda;
  EXPECT_NE(refusal(tutti::profile(set, {}, {{"nobody", {}}}, options)).find("nobody"), std::string::npos);
  EXPECT_NE(refusal(tutti::profile(TaskSet::load(kDeclared).value())).find("nothing to measure"), std::string::npos);
  options.repeats = 0;
  EXPECT_NE(refusal(tutti::profile(set, {}, {}, options)).find("repeats"), std::string::npos);
  options.repeats = 1;
  options.margin = -1;
  EXPECT_NE(refusal(tutti::profile(set, {}, {}, options)).find("margin"), std::string::npos);
}

TEST(ApiTaskSet, TakesOtherValues) {
  tutti::TaskSetOptions options;
  options.parameters["image"] = tutti::Bytes{1'000'000};
  options.policy = tutti::Policy::Dm;
  EXPECT_EQ(tutti::check(TaskSet::load(kRefused, options).value()).value().answer, Answer::Schedulable);
}

// A copy of 10 us: the host adds 230 us around it and 3.76 ms once a job, a GPU 10 and 50 us.
TEST(ApiTaskSet, IsLedByAGpuWhereItAsksForIt) {
  tutti::TaskSetOptions options;
  const auto promised = [&] { return tutti::check(TaskSet::load(kLed, options).value()).value().tasks[0].wcet; };
  EXPECT_EQ(promised(), std::chrono::microseconds(70));
  options.conductor = tutti::Conductor::Host;
  EXPECT_EQ(promised(), milliseconds(4));
  EXPECT_EQ(tutti::check(TaskSet::load(kLed, options).value()).value().host_away, std::nullopt);
  EXPECT_EQ(tutti::check(TaskSet::load(kLed).value()).value().host_away, milliseconds(100));
  auto spec = TaskSet::load(kLed).value().spec();
  EXPECT_EQ(spec.deadline_at, tutti::DeadlineAt::Device);
  spec.host_away = std::chrono::seconds(3);
  const auto asked = TaskSet::make(TaskSet::load(kLed).value().machine().value(), spec).value();
  EXPECT_EQ(
      tutti::check(asked).error().message,
      "the queues of batch 1 of task 'look' hold 2.99 s, less than the 3 s for which the host may be away; let it be "
      "away for less");
  spec.deadline_at = tutti::DeadlineAt::Host;
  spec.conductor = tutti::Conductor::Gpu;
  EXPECT_TRUE(refusal(TaskSet::make(TaskSet::load(kLed).value().machine().value(), spec))
                  .starts_with("deadlines count until the host has seen the end of a job"));
}

TEST(ApiRun, ReportsTheEndOfEveryJob) {
  tutti::RunOptions options = twelve_jobs();
  std::vector<tutti::JobRecord> ended;
  options.on_job_end = [&](const tutti::JobRecord& job) { ended.push_back(job); };
  const auto record = tutti::run(two_tasks(), with_threshold(), {}, options).value();
  ASSERT_EQ(ended.size(), 12U);
  ASSERT_EQ(record.jobs.size(), 12U);
  for (std::size_t i = 0; i < ended.size(); ++i) {
    EXPECT_EQ(std::pair(ended[i].task, ended[i].index), std::pair(record.jobs[i].task, record.jobs[i].index));
    EXPECT_EQ(ended[i].finish, record.jobs[i].finish);
    EXPECT_FALSE(record.jobs[i].missed() || record.jobs[i].broken);
  }
}

// Two lines that share nothing are two partitions; each job's end carries the position of its task in the whole set.
TEST(ApiRun, NumbersTheTasksOfAllPartitions) {
  const auto set = TaskSet::load(TUTTI_CONFIGS "/tasks/two-lines.yaml").value();
  tutti::Kernels kernels;
  ASSERT_TRUE(kernels.add("die_compare", [](const tutti::KernelLaunch&) {}));
  tutti::RunOptions options;
  options.jobs = 20;
  std::vector<std::size_t> ended(set.tasks().size()), recorded(set.tasks().size());
  options.on_job_end = [&](const tutti::JobRecord& job) { ++ended.at(job.task); };
  const auto record = tutti::run(*tutti::check(set).value().admitted, kernels, {}, options).value();
  for (const auto& job : record.jobs) ++recorded.at(job.task);
  EXPECT_EQ(ended, recorded);
  EXPECT_GT(ended.back(), 0U);
}

TEST(ApiRun, GivesProgramsTheMemoryOfTheirJobs) {
  std::size_t bytes = 0, finished = 0;
  tutti::TaskProgram command;
  command.on_ready = [&](const tutti::Job& job) { bytes += job.source(0, 0).size(); };
  command.on_finished = [&](const tutti::Job& job) {
    finished += job.destination(0, 0).empty() && job.source(0, 1).empty() && job.source(1, 0).empty() ? 1 : 0;
  };
  ASSERT_TRUE(tutti::run(two_tasks(), with_threshold(), {{"command", command}}, twelve_jobs()));
  EXPECT_EQ(bytes, 10U * 4000U);
  EXPECT_EQ(finished, 10U) << "a GPU's memory is not the host's, and there is one stream";
}

TEST(ApiRun, PassesParametersToKernels) {
  std::vector<std::size_t> seen;
  tutti::Kernels kernels;
  ASSERT_TRUE(
      kernels.add("threshold", [&](const tutti::KernelLaunch& launch) { seen.push_back(launch.parameters.size()); }));
  tutti::TaskProgram image;
  image.parameters = [](std::size_t batch, std::size_t) { return std::vector<std::byte>(batch == 0 ? 5 : 0); };
  ASSERT_TRUE(tutti::run(two_tasks(), kernels, {{"image", image}}, twelve_jobs()));
  EXPECT_EQ(seen, (std::vector<std::size_t>{5, 5}));
}

// 'command' every 2 ms and 'image' every 10: of six jobs five are the former's.
TEST(ApiRun, HasNoEndInBoundedMemory) {
  std::atomic<bool> stop = false;
  std::size_t ended = 0;
  tutti::RunOptions options;
  options.endless = true;
  options.stop = &stop;
  options.on_job_end = [&](const tutti::JobRecord&) { stop = ++ended == 6000; };
  const auto record = tutti::run(two_tasks(), with_threshold(), {}, options).value();
  EXPECT_TRUE(record.interrupted);
  EXPECT_TRUE(record.jobs.empty());
  ASSERT_EQ(record.summaries.size(), 2U);
  EXPECT_EQ(record.summaries[0].met + record.summaries[1].met, 6000U);
  EXPECT_EQ(std::min(record.summaries[0].met, record.summaries[1].met), 1000U);
  EXPECT_GT(record.summaries[0].worst_response, tutti::Duration{0});
  options.jobs = 3;
  EXPECT_NE(refusal(tutti::run(two_tasks(), with_threshold(), {}, options)).find("an endless run has no number"),
            std::string::npos);
}

TEST(ApiRun, WritesAJournal) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tutti_api_journal";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  tutti::RunOptions options = twelve_jobs();
  options.journal = folder / "run.journal";
  const auto record = tutti::run(two_tasks(), with_threshold(), {}, options).value();
  EXPECT_EQ(record.jobs.front().verdict, "met");
  EXPECT_GT(std::filesystem::file_size(options.journal), 12U * 20U);
  options.journal = folder / "mine";
  std::ofstream(options.journal) << "a file of mine\n";
  EXPECT_NE(refusal(tutti::run(two_tasks(), with_threshold(), {}, options)).find("is no journal"), std::string::npos);
  EXPECT_EQ(std::filesystem::file_size(options.journal), 15U) << "nothing of the user's is touched";
  std::filesystem::remove_all(folder);
}

// 'clock' runs at 0, 10, ... 90 ms. Its first job fires twice as it ends, at once: one frame and a double. 30 ms behind
// that one is missing, and again twice until the run ends at 100 ms.
TEST(ApiRun, ReleasesJobsByTriggers) {
  const auto machine = tutti::Machine::load(TUTTI_CONFIGS "/machines/inspection-example.yaml").value();
  const auto set =
      TaskSet::parse(machine,
                     "version: 1\n"
                     "tasks:\n"
                     "  - {name: clock, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 MB}]}]}\n"
                     "  - {name: frame, period: 10 ms, missing_after: 30 ms, release: external,\n"
                     "     job: [{batch: [{from: mem0, to: gpu0, size: 1 MB}]}]}\n")
          .value();
  tutti::RunOptions options;
  options.arrivals_before = milliseconds(100);
  const tutti::Trigger trigger = options.triggers["frame"];
  tutti::TaskProgram clock;
  clock.on_finished = [&](const tutti::Job& job) {
    for (int i = 0; job.index == 0 && i < 2; ++i) trigger.fire();
  };
  const auto admitted = *tutti::check(set).value().admitted;
  const auto record = tutti::run(admitted, {}, {{"clock", clock}}, options).value();
  const tutti::TriggerCounts& counts = record.summaries[1].triggers;
  EXPECT_EQ(record.summaries[1].met, 1U);
  EXPECT_EQ(counts.seen, 2U);
  EXPECT_EQ(counts.dropped, 1U);
  EXPECT_EQ(counts.missing, 3U);
  EXPECT_EQ(counts.most_early, milliseconds(10));
  EXPECT_EQ(record.summaries[0].triggers.seen, 0U);
  options.triggers["nobody"];
  EXPECT_NE(refusal(tutti::run(admitted, {}, {}, options)).find("task 'nobody', which the set has not"),
            std::string::npos);
}

TEST(ApiRun, TellsProgramsOfJobsThatFail) {
  std::vector<std::string> told;
  tutti::TaskProgram command;
  command.on_failed = [&](const tutti::Job& job, const tutti::JobRecord& record) {
    told.push_back(std::to_string(job.index) + " " + std::string(record.verdict) + " " + record.error->message);
  };
  tutti::TaskProgram image;
  std::size_t finished = 0, failed = 0;
  image.on_finished = [&](const tutti::Job&) { ++finished; };
  image.on_failed = [&](const tutti::Job& job, const tutti::JobRecord& record) {
    EXPECT_EQ(job.task, record.task);
    EXPECT_EQ(record.verdict, "failed");
    ++failed;
  };
  tutti::Kernels kernels;
  std::size_t launched = 0;
  ASSERT_TRUE(kernels.add("threshold", [&](const tutti::KernelLaunch&) {
    if (++launched == 2) throw std::runtime_error("it is dark");
  }));
  const auto record = tutti::run(two_tasks(), kernels, {{"command", command}, {"image", image}}, twelve_jobs()).value();
  EXPECT_EQ(record.jobs.size(), 12U);
  EXPECT_TRUE(told.empty());
  EXPECT_EQ(finished, 1U);
  EXPECT_EQ(failed, 1U);
}

TEST(ApiRun, EndsWhereACallbackThrows) {
  std::size_t ended = 0;
  const auto run_with = [&](tutti::TaskProgram program, bool on_end) {
    ended = 0;
    tutti::RunOptions options = twelve_jobs();
    options.on_job_end = [&, on_end](const tutti::JobRecord&) {
      if (++ended == 3 && on_end) throw std::runtime_error("third");
    };
    return refusal(tutti::run(two_tasks(), with_threshold(), {{"command", std::move(program)}}, options));
  };
  tutti::TaskProgram throws;
  throws.on_ready = [](const tutti::Job& job) {
    if (job.index == 2) throw std::runtime_error("no picture");
  };
  EXPECT_NE(run_with(throws, false).find("on_ready of task 'command' threw: no picture"), std::string::npos);
  EXPECT_LT(ended, 12U);
  EXPECT_NE(run_with({}, true).find("on_job_end of task"), std::string::npos);
  EXPECT_EQ(ended, 3U);
  throws = {};
  throws.parameters = [](std::size_t, std::size_t) -> std::vector<std::byte> { throw 1; };
  EXPECT_NE(run_with(throws, false).find("parameters of task 'command'"), std::string::npos);
  EXPECT_EQ(ended, 0U);
}

TEST(ApiRun, StopsWhenAsked) {
  std::atomic<bool> stop = false;
  tutti::RunOptions options = twelve_jobs();
  options.stop = &stop;
  options.on_job_end = [&](const tutti::JobRecord& job) { stop = job.index == 1; };
  const auto record = tutti::run(two_tasks(), with_threshold(), {}, options).value();
  EXPECT_TRUE(record.interrupted);
  EXPECT_LT(record.jobs.size(), 12U);
}

TEST(ApiRun, RefusesWhatDoesNotFitTheSet) {
  EXPECT_NE(refusal(tutti::run(two_tasks(), with_threshold(), {{"nobody", {}}})).find("'nobody'"), std::string::npos);
  EXPECT_NE(refusal(tutti::run(two_tasks())).find("'threshold'"), std::string::npos);
  const auto declared = tutti::check(TaskSet::load(kDeclared).value()).value();
  EXPECT_NE(refusal(tutti::run(*declared.admitted)).find("nothing to run"), std::string::npos);
  tutti::RunOptions options;
  options.jobs = 20'000'000;
  EXPECT_FALSE(tutti::run(two_tasks(), with_threshold(), {}, options));
}

// 'command' comes at 5 ms and leaves at 9 ms: arrivals at 5, 7 and 9 ms, or none at 9.
TEST(ApiChanges, ComeAndGoWhileTheSetRuns) {
  const auto requests = tutti::ChangeRequests::make(TaskSet::load(kTwoTasks).value()).value();
  auto posted = requests;
  ASSERT_TRUE(posted.post({milliseconds(5), "", "command"}));
  ASSERT_TRUE(posted.post({milliseconds(9), "command", ""}));
  tutti::RunOptions options;
  options.arrivals_before = milliseconds(20);
  const auto record = tutti::run_changing(requests, {"image"}, with_threshold(), {}, options).value();
  ASSERT_EQ(record.changes.size(), 2U);
  EXPECT_EQ(record.changes[0].change.comes, "command");
  EXPECT_EQ(record.changes[0].answer, Answer::Schedulable);
  EXPECT_EQ(std::ranges::count(record.jobs, 0U, &tutti::JobRecord::task), 2) << "images at 0 and 10 ms";
  const auto commands = std::ranges::count(record.jobs, 1U, &tutti::JobRecord::task);
  EXPECT_TRUE(commands == 2 || commands == 3) << commands;
  EXPECT_NE(refusal(tutti::run_changing(requests, {"image"}, with_threshold(), {}, options)).find("already"),
            std::string::npos);
}

TEST(ApiChanges, AreRefusedWhereTheyMakeNoSense) {
  const auto set = TaskSet::load(kTwoTasks).value();
  auto requests = tutti::ChangeRequests::make(set).value();
  EXPECT_NE(refusal(requests.post({milliseconds(1), "nobody", ""})).find("'nobody'"), std::string::npos);
  EXPECT_FALSE(requests.post({milliseconds(1), "", ""}));
  EXPECT_FALSE(requests.post({milliseconds(1), "image", "image"}));
  tutti::RunOptions options;
  EXPECT_NE(refusal(tutti::run_changing(requests, {}, with_threshold(), {}, options)).find("arrivals_before"),
            std::string::npos);
  options.arrivals_before = milliseconds(20);
  for (const std::vector<std::string>& running : {std::vector<std::string>{"nobody"}, {"image", "image"}})
    EXPECT_FALSE(tutti::run_changing(requests, running, with_threshold(), {}, options));
}

TEST(ApiMisuse, TaskSetsThatWereMovedFrom) {
  TaskSet set = TaskSet::load(kTwoTasks).value();
  auto admitted = two_tasks();
  auto requests = tutti::ChangeRequests::make(set).value();
  const TaskSet its = std::move(set);
  const auto its_admitted = std::move(admitted);
  const auto its_requests = std::move(requests);
  EXPECT_TRUE(set.tasks().empty() && set.spec().tasks.empty());
  EXPECT_NE(refusal(set.machine()).find("empty"), std::string::npos);
  EXPECT_NE(refusal(set.batches("image")).find("empty"), std::string::npos);
  EXPECT_NE(refusal(set.bytes(tutti::Bytes{7})).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::check(set)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::remedies(set)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::capacity(set, tutti::Tunable::Period, "image")).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::run(admitted)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::profile(set)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::with_times(set, {})).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::ChangeRequests::make(set)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(requests.post({milliseconds(1), "image", ""})).find("empty"), std::string::npos);
  EXPECT_NE(refusal(tutti::run_changing(requests, {}, {}, {}, {})).find("empty"), std::string::npos);
}

}  // namespace
