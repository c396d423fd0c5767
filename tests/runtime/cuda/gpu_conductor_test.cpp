// Runs that a GPU leads: from the queues that the host fills to the records that it takes.
#include "runtime/cuda/led/gpu_conductor.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/led_task_run.hpp"
#include "runtime/dispatch/task_state.hpp"
#include "tests/runtime/cuda/device_kernels.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/runtime/task_runs.hpp"
#ifdef TUTTI_HOST_CUDA
#include "tests/support/host_cuda/host_cuda.hpp"
#endif

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using test::copy_stream;
using test::kernel_stream;
using test::make_cuda;
using test::Station;

/// Each job sums up its input on a GPU and brings the sum back; the program compares it and changes the input of the
/// buffer set, which a later job has.
class Sums final : public TaskProgram {
 public:
  static constexpr std::size_t kInput = 4096;

  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                            std::size_t set) override {
    Memory& memory = sets_[set];
    const CommandStream& stream = batch.streams().front();
    const auto allocate = [&](Buffer& buffer, VertexId where, std::size_t size) {
      buffer = backend.allocate(where, Bytes{static_cast<std::int64_t>(size)}).value();
    };
    if (number == 0) {
      allocate(memory.input, stream.transfer->from, kInput);
      allocate(memory.on_gpu, stream.transfer->to, kInput);
      allocate(memory.sum, stream.transfer->to, sizeof(std::uint64_t));
      fill(memory);
      return std::vector<StreamBinding>{
          {memory.input.view(), memory.on_gpu.view(), memory.on_gpu.view(), memory.sum.view(), {}}};
    }
    allocate(memory.report, stream.transfer->to, sizeof(std::uint64_t));
    return std::vector<StreamBinding>{{memory.sum.view(), memory.report.view(), {}, {}, {}}};
  }
  bool fills_input() const override { return false; }
  void on_finished(const Job& job) override {
    Memory& memory = sets_[job.buffer_set];
    std::uint64_t report = 0;
    std::memcpy(&report, memory.report.view().data, sizeof report);
    right += report == memory.expected ? 1 : 0;
    wrong += report == memory.expected ? 0 : 1;
    fill(memory);
  }
  void on_dropped(const Job&, const JobRecord&) override { ++dropped; }

  int right = 0, wrong = 0, dropped = 0;

 private:
  struct Memory {
    Buffer input, on_gpu, sum, report;
    std::uint64_t expected = 0;
  };
  void fill(Memory& memory) {
    const std::vector<std::byte> bytes = test::pattern(kInput, ++seed_);
    std::copy(bytes.begin(), bytes.end(), memory.input.view().data);
    static const KernelRegistry registry = KernelRegistry::with_builtins();
    std::byte* const sum = reinterpret_cast<std::byte*>(&memory.expected);
    registry.find(kChecksumKernel)->host({bytes, {sum, sizeof memory.expected}, {}, {}});
  }
  std::map<std::size_t, Memory> sets_;
  std::uint64_t seed_ = 0;
};

Task sums(const Topology& machine, const std::string& name, const char* gpu, Duration period, Duration deadline) {
  const VertexId mem = *machine.find_vertex("mem0"), device = *machine.find_vertex(gpu);
  CommandStream up = copy_stream("up", mem, device, Sums::kInput);
  up.kernel = Kernel{device, milliseconds{1}, milliseconds{1}, std::string(kChecksumKernel)};
  Task task;
  task.name = name;
  task.period = period;
  task.deadline = deadline;
  task.steps = {Batch::make(machine, {up}).value(),
                Batch::make(machine, {copy_stream("down", device, mem, sizeof(std::uint64_t))}).value()};
  return task;
}

/// Jobs for gpu0 every 10 ms, for gpu1 every 15 ms; they can last 3 periods each where the host is busy.
TaskSet two_tasks(const Topology& machine) {
  TaskSet set{machine, Policy::Edf, {}};
  set.tasks = {sums(machine, "a", "gpu0", milliseconds{10}, milliseconds{30}),
               sums(machine, "b", "gpu1", milliseconds{15}, milliseconds{45})};
  return set;
}

RunOptions led(std::uint64_t jobs) {
  RunOptions options;
  options.jobs = jobs;
  options.conductor = ConductorKind::Gpu;
  return options;
}

/// An admitted set, bound to memory of its programs.
LedSet bound_by(std::array<Sums, 2>& programs, DeviceBackend& backend, const AdmittedTaskSet& admitted,
                std::uint64_t jobs, Duration host_away) {
  const PlannedTaskSet& planned = admitted.planned();
  LedSet led;
  led.by_deadline = true;
  led.host_away = host_away;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    LedTask& task = led.tasks.emplace_back();
    task.period = planned.tasks.tasks[i].period.count();
    task.deadline = planned.tasks.tasks[i].deadline.count();
    task.jobs = jobs;
    task.sets = 3;
    task.first_set = static_cast<std::uint32_t>(3 * i);
    task.first_batch = static_cast<std::uint32_t>(2 * i);
    task.batches = 2;
    auto& sets = led.plans.emplace_back();
    for (std::size_t s = 0; s < 3; ++s) {
      auto& batches = sets.emplace_back();
      for (std::size_t b = 0; b < 2; ++b) {
        const ExecutionPlan& plan = planned.bounds[i].plans[b].front();
        batches.push_back(
            {plan, batch_name(planned.tasks.tasks[i], b), programs[i].bind(backend, plan.batch, b, s).value()});
      }
    }
  }
  led.batches.resize(4);
  return led;
}

/// A machine whose GPUs set multiprocessors apart for gates.
Topology machine_of(int conductor_sms) {
  return test::changed(test::small_machine(), [&](MachineSpec& spec) { spec.conductor_sms = conductor_sms; });
}

struct Conducting {
  Station::MakeBackend make_backend;
  int gate_sms;  ///< multiprocessors that are set apart
};

class GpuConductor : public testing::TestWithParam<Conducting> {
 protected:
  Station station{std::make_unique<test::DeviceClock>(), GetParam().make_backend, machine_of(GetParam().gate_sms)};
};

INSTANTIATE_TEST_SUITE_P(Gates, GpuConductor,
                         testing::Values(Conducting{make_cuda<GateKind::PollingKernel>, 0},
                                         Conducting{make_cuda<GateKind::DeviceTimer>, 8}));

// In each run of the set every job is in exactly one record, none starts before its arrival; one has the machine at a
// time, those of a task in their order; and what comes back is the sum of what was there when the job began.
TEST_P(GpuConductor, LeadsEachJobOnce) {
  const TaskSet set = two_tasks(station.machine);
  const AdmittedTaskSet admitted = test::admit(set);
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::array<Sums, 2> programs;
    TaskProgram* const table[] = {&programs[0], &programs[1]};
    const auto record = run_tasks(station.executor, admitted, table, led(100));
    ASSERT_TRUE(record.has_value()) << record.error().text();
    EXPECT_FALSE(record->fatal) << record->fatal->text();
    ASSERT_EQ(record->jobs.size(), 100U);
    std::array<std::uint64_t, 2> next{};
    std::set<std::pair<std::size_t, std::uint64_t>> seen;
    Duration free{};
    int ended = 0;
    for (const JobRecord& job : record->jobs) {
      EXPECT_TRUE(seen.insert({job.task.index(), job.index}).second) << job.index;
      EXPECT_EQ(job.arrival, set.tasks[job.task.index()].period * static_cast<std::int64_t>(job.index));
      if (!job.finish) continue;
      EXPECT_GE(job.index, std::exchange(next[job.task.index()], job.index + 1));
      ++ended;
      EXPECT_GE(job.start, job.arrival);
      EXPECT_GE(job.start, free);
      EXPECT_GE(*job.finish, job.start);
      free = *job.finish;
    }
    EXPECT_GT(record->start_on_gpu.value_or(0), 0U);
    EXPECT_EQ(programs[0].wrong + programs[1].wrong, 0);
    EXPECT_EQ(programs[0].right + programs[1].right, ended);
    EXPECT_EQ(programs[0].dropped + programs[1].dropped, 100 - ended);
    EXPECT_GT(ended, test::kDevicesAreInTime ? 95 : 0);
  }
}

// A host that looks away for 200 ms, as it said, finds all jobs of that time: 20 of the one task, 13 or 14 of the
// other.
TEST_P(GpuConductor, LeadsOnWhileTheHostIsAway) {
  const AdmittedTaskSet admitted = test::admit(two_tasks(station.machine));
  std::array<Sums, 2> programs;
  LedSet led = bound_by(programs, *station.backend, admitted, 60, milliseconds{200});
  auto run = station.backend->lead(std::move(led));
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_GE((*run)->host_away(), milliseconds{200});
  (*run)->arm();
  const Duration start = station.clock->now() + milliseconds{50};
  (*run)->begin(start);
  station.clock->wait_until(start);
  std::this_thread::sleep_for(milliseconds{200});
  std::array<std::uint64_t, 2> next{};
  while (const auto record = (*run)->take()) {
    const std::uint64_t index = next[record->task]++;
    EXPECT_NE(record->kind, LedRecord::Kind::DropNotArmed);
    if (!test::kDevicesAreInTime) continue;  // jobs that are late have the buffers of those behind them
    EXPECT_EQ(record->kind, LedRecord::Kind::Ended);
    EXPECT_EQ(record->index, index);
    EXPECT_EQ(record->run, record->index);
  }
  EXPECT_GE(next[0], test::kDevicesAreInTime ? 20U : 1U);
  EXPECT_GE(next[1], test::kDevicesAreInTime ? 13U : 1U);
  EXPECT_FALSE((*run)->is_over());
  (*run)->stop();
  while (!(*run)->is_over() && !(*run)->fault()) std::this_thread::sleep_for(milliseconds{1});
  EXPECT_FALSE((*run)->fault()) << (*run)->fault()->text();
}

// Reads what a copy writes meanwhile, as it must: ThreadSanitizer would report that of GPUs of the host.
#ifndef __SANITIZE_THREAD__
/// Marks the one report that a job has, reads for 25 ms, and looks whether it still has its mark.
class SlowReader final : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                            std::size_t set) override {
    auto bound = of_.bind(backend, batch, number, set);
    if (number == 1) report_ = bound->front().destination;
    return bound;
  }
  bool fills_input() const override { return false; }
  void on_finished(const Job& job) override {
    constexpr std::uint64_t kMark = 0x5555555555555555;
    std::memcpy(report_.data, &kMark, sizeof kMark);
    std::this_thread::sleep_for(milliseconds{25});
    std::uint64_t report = 0;
    std::memcpy(&report, report_.data, sizeof report);
    const bool told = job.overwritten();
    (report == kMark ? whole : torn) += 1;
    not_told += report != kMark && !told ? 1 : 0;
  }
  void on_dropped(const Job&, const JobRecord&) override { ++dropped; }

  int whole = 0, torn = 0, not_told = 0, dropped = 0;

 private:
  Sums of_;
  BufferView report_{};
};

// Jobs every 10 ms run into the one report that a consumer reads for 25: it is told each time, and none is dropped.
TEST_P(GpuConductor, TellsAConsumerWhoseBuffersItOverwrites) {
  TaskSet set = two_tasks(station.machine);
  set.tasks.pop_back();
  set.tasks.front().deadline = set.tasks.front().period;
  set.tasks.front().late_consumer = LateConsumer::Overwrite;
  SlowReader program;
  TaskProgram* const table[] = {&program};
  const auto run = run_tasks(station.executor, test::admit(set), table, led(40));
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_EQ(program.not_told, 0);
  EXPECT_GT(program.torn, 0);
  std::uint64_t whole = 0, overwritten = 0;
  for (const JobRecord& job : run->jobs) (job.overwritten ? overwritten : whole) += job.finish ? 1 : 0;
  EXPECT_EQ(run->summaries.front().overwritten(), overwritten);
  EXPECT_GE(overwritten, static_cast<std::uint64_t>(program.torn));
  EXPECT_LE(whole, static_cast<std::uint64_t>(program.whole));
  EXPECT_TRUE(program.dropped == 0 || !test::kDevicesAreInTime) << program.dropped;
}
#endif

/// Fills all words of the input with the next number, in two halves with a pause between them now and then. Before that
/// it compares the sum that the last job in these buffers has left.
class SlowFiller final : public TaskProgram {
 public:
  static constexpr std::size_t kWords = Sums::kInput / sizeof(std::uint64_t);

  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                            std::size_t set) override {
    auto bound = of_.bind(backend, batch, number, set);
    (number == 0 ? sets_[set].input : sets_[set].report) =
        number == 0 ? bound->front().source : bound->front().destination;
    return bound;
  }
  void on_ready(const Job& job) override {
    Memory& memory = sets_.at(job.buffer_set);
    std::uint64_t report = 0;
    std::memcpy(&report, memory.report.data, sizeof report);
    if (memory.number > 0) ++(report == checksum_of(memory.number) ? right : wrong);
    memory.number = ++last_;
    std::uint64_t* const words = reinterpret_cast<std::uint64_t*>(memory.input.data);
    std::fill_n(words, kWords / 2, last_);
    if (last_ % 2 == 0) std::this_thread::sleep_for(milliseconds{12});
    std::fill_n(words + kWords / 2, kWords / 2, last_);
  }
  bool hears_of_end() const override { return false; }

  int right = 0, wrong = 0;

 private:
  struct Memory {
    BufferView input{}, report{};
    std::uint64_t number = 0;  // that its input has; 0: none
  };
  static std::uint64_t checksum_of(std::uint64_t number) {
    static const KernelRegistry registry = KernelRegistry::with_builtins();
    const std::vector<std::uint64_t> input(kWords, number);
    std::uint64_t sum = 0;
    registry.find(kChecksumKernel)
        ->host({std::as_bytes(std::span(input)), std::as_writable_bytes(std::span(&sum, 1)), {}, {}});
    return sum;
  }
  Sums of_;
  std::map<std::size_t, Memory> sets_;
  std::uint64_t last_ = 0;
};

/// Takes long for results now and then, which keeps the programs of other tasks waiting.
class Busy final : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                            std::size_t set) override {
    return of_.bind(backend, batch, number, set);
  }
  bool fills_input() const override { return false; }
  void on_finished(const Job& job) override {
    if (job.index % 5 == 0) std::this_thread::sleep_for(milliseconds{25});
  }

 private:
  Sums of_;
};

// Jobs every 10 ms, whose program takes longer for the input of every other one, and waits for that of another task.
// None has an input that is half of one and half of another. With the one rule some use theirs again.
TEST_P(GpuConductor, GivesEachJobWholeInput) {
  for (const LateInput rule : {LateInput::Drop, LateInput::Reuse}) {
    TaskSet set = two_tasks(station.machine);
    set.tasks.front().deadline = set.tasks.front().period;
    set.tasks.front().late_input = rule;
    SlowFiller program;
    Busy other;
    TaskProgram* const table[] = {&program, &other};
    const auto run = run_tasks(station.executor, test::admit(set), table, led(80));
    ASSERT_TRUE(run.has_value()) << run.error().text();
    EXPECT_EQ(program.wrong, 0);
    EXPECT_GT(program.right, 0);
    std::uint64_t reused = 0;
    for (const JobRecord& job : run->jobs) reused += job.reused_input ? 1 : 0;
    EXPECT_EQ(run->summaries.front().reused_input(), reused);
    EXPECT_EQ(reused > 0, rule == LateInput::Reuse);
  }
}

// A run has a lane for each of two batches. The host has armed one run of the first task whole, and half of one of the
// other: what lies in the queues ends all the same.
TEST_P(GpuConductor, ARunThatIsHalfArmedEnds) {
  const AdmittedTaskSet admitted = test::admit(two_tasks(station.machine));
  std::array<Sums, 2> programs;
  {
    auto run = station.backend->lead(bound_by(programs, *station.backend, admitted, 60, milliseconds{200}));
    ASSERT_TRUE(run.has_value()) << run.error().text();
    for (int lane = 0; lane < 3; ++lane) EXPECT_TRUE((*run)->arm_some());
  }
  EXPECT_FALSE(station.backend->busy());
  TaskProgram* const table[] = {&programs[0], &programs[1]};
  const auto after = run_tasks(station.executor, admitted, table, led(10));
  ASSERT_TRUE(after.has_value()) << after.error().text();
  EXPECT_EQ(after->jobs.size(), 10U);
}

// What is said before a run is true of it: its queues hold so much.
TEST_P(GpuConductor, ItsQueuesLastAsLongAsWasSaid) {
  TaskSet set = two_tasks(station.machine);
  set.led_by_gpu = true;
  set.host_away = std::chrono::hours{1};
  const AdmittedTaskSet admitted = test::admit(set);
  const auto said = host_may_be_away(admitted.planned());
  ASSERT_FALSE(said.has_value());
  std::array<Sums, 2> programs;
  const auto run = station.backend->lead(bound_by(programs, *station.backend, admitted, 1'000'000, set.host_away));
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().message, said.error().message);
}

// What is armed and not used runs out: afterwards the host leads the same set on the same streams.
TEST_P(GpuConductor, LeavesNothingBehind) {
  const AdmittedTaskSet admitted = test::admit(two_tasks(station.machine));
  std::array<Sums, 2> programs;
  TaskProgram* const table[] = {&programs[0], &programs[1]};
  std::atomic<bool> interrupted = false;
  RunOptions options = led(100'000);
  options.interrupted = &interrupted;
  std::thread user([&] {
    std::this_thread::sleep_for(milliseconds{150});
    interrupted = true;
  });
  const auto record = run_tasks(station.executor, admitted, table, options);
  user.join();
  ASSERT_TRUE(record.has_value()) << record.error().text();
  EXPECT_TRUE(record->interrupted);
  EXPECT_LT(record->jobs.size(), 100'000U);
  EXPECT_EQ(programs[0].wrong + programs[1].wrong, 0);
  RunOptions by_host;
  by_host.jobs = 10;
  const auto after = run_tasks(station.executor, admitted, table, by_host);
  ASSERT_TRUE(after.has_value()) << after.error().text();
  EXPECT_EQ(after->jobs.size(), 10U);
  EXPECT_FALSE(after->fatal);
}

// Three batches of a job share their streams, and four tasks on one GPU have 4 of them; the fixed priorities decide.
TEST_P(GpuConductor, GoesByTheFixedPriorities) {
  TaskSet set{station.machine, Policy::Rm, {}};
  for (int i = 0; i < 4; ++i)
    set.tasks.push_back(sums(station.machine, std::string(1, static_cast<char>('a' + i)), "gpu0",
                             milliseconds{20 * (i + 1)}, milliseconds{20 * (i + 1)}));
  const AdmittedTaskSet admitted = test::admit(set);
  std::array<Sums, 4> programs;
  TaskProgram* const table[] = {&programs[0], &programs[1], &programs[2], &programs[3]};
  const auto record = run_tasks(station.executor, admitted, table, led(50));
  ASSERT_TRUE(record.has_value()) << record.error().text();
  ASSERT_GE(record->jobs.size(), 4U);
  if (!test::kDevicesAreInTime) return;
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(record->jobs[i].task.index(), i);  // all arrive together
}

// 24 tasks have a lane each, more than armed batches may have of a GPU; afterwards batches find theirs again.
TEST_P(GpuConductor, HasAllLanesOfAGpu) {
  constexpr std::size_t kTasks = 24;
  TaskSet set{station.machine, Policy::Edf, {}};
  for (std::size_t i = 0; i < kTasks; ++i)
    set.tasks.push_back(sums(station.machine, "t" + std::to_string(i), "gpu0", milliseconds{500}, milliseconds{500}));
  const AdmittedTaskSet admitted = test::admit(set);
  std::array<Sums, kTasks> programs;
  std::vector<TaskProgram*> table;
  for (Sums& program : programs) table.push_back(&program);
  for (const ConductorKind conductor : {ConductorKind::Gpu, ConductorKind::Host}) {
    RunOptions options = led(kTasks);
    options.conductor = conductor;
    const auto record = run_tasks(station.executor, admitted, table, options);
    ASSERT_TRUE(record.has_value()) << record.error().text();
    EXPECT_FALSE(record->fatal) << record->fatal->text();
    EXPECT_EQ(record->jobs.size(), kTasks);
    for (const Sums& program : programs) EXPECT_EQ(program.wrong, 0);
  }
}

/// The set as a GPU leads it where its jobs overlap.
TaskSet overlapping(TaskSet set) {
  set.overlap = Overlap::On;
  set.deadline_at = DeadlineAt::Device;
  set.led_by_gpu = true;
  return set;
}

// Jobs of three tasks, two of them on one GPU, overlap: each job is in one record, those of a task begin and end in
// their order, and what comes back is the sum of what was there when the job began. In the second run the input of
// each job goes up in four chunks, between which others pass.
TEST_P(GpuConductor, LeadsJobsThatOverlap) {
  TaskSet set = two_tasks(station.machine);
  set.tasks.push_back(sums(station.machine, "c", "gpu0", milliseconds{12}, milliseconds{36}));
  for (Task& task : set.tasks) {  // each chunk may wait for the kernels beside it
    task.period *= 2;
    task.deadline *= 2;
  }
  for (const std::size_t chunks : {1U, 4U}) {
    set.preemption = chunks > 1 ? Preemption::BetweenBatches : Preemption::None;
    set.cut = Bytes{chunks > 1 ? static_cast<std::int64_t>(Sums::kInput / chunks) : 0};
    const AdmittedTaskSet admitted = test::admit(overlapping(set));
    ASSERT_TRUE(admitted.planned().overlap.has_value());
    EXPECT_EQ(admitted.planned().overlap->operations.operations.front().regions().size(), chunks);
    std::array<Sums, 3> programs;
    TaskProgram* const table[] = {&programs[0], &programs[1], &programs[2]};
    const auto record = run_tasks(station.executor, admitted, table, led(150));
    ASSERT_TRUE(record.has_value()) << record.error().text();
    EXPECT_FALSE(record->fatal) << record->fatal->text();
    ASSERT_EQ(record->jobs.size(), 150U);
    std::array<std::uint64_t, 3> next{};
    std::array<Duration, 3> started{}, ended{};
    std::set<std::pair<std::size_t, std::uint64_t>> seen;
    int ends = 0;
    for (const JobRecord& job : record->jobs) {
      const std::size_t task = job.task.index();
      EXPECT_TRUE(seen.insert({task, job.index}).second) << job.index;
      if (!job.finish) continue;
      ++ends;
      EXPECT_GE(job.index, std::exchange(next[task], job.index + 1));
      EXPECT_GE(job.start, std::max(job.arrival, std::exchange(started[task], job.start)));
      EXPECT_GT(*job.finish, std::exchange(ended[task], *job.finish));
    }
    int right = 0, wrong = 0, dropped = 0;
    for (const Sums& program : programs) {
      right += program.right;
      wrong += program.wrong;
      dropped += program.dropped;
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(right, ends);
    EXPECT_EQ(dropped, 150 - ends);
    EXPECT_GT(ends, test::kDevicesAreInTime ? 145 : 0);
  }
}

// A kernel has its GPU half of the time, and copies of another task to that GPU and back go on beside it: every other
// time they are released as it has 5 ms left.
TEST_P(GpuConductor, LeadsCopiesBesideKernels) {
  const VertexId mem = station.at("mem0"), gpu = station.at("gpu0");
  Task holds;
  holds.name = "holds";
  holds.period = holds.deadline = milliseconds{20};
  holds.steps = {station.batch({kernel_stream("kernel", gpu, std::string(kSpinKernel), 10'000'000)})};
  Task copies;
  copies.name = "copies";
  copies.period = milliseconds{30};
  copies.deadline = milliseconds{90};
  copies.offset = milliseconds{5};
  copies.steps = {station.batch({copy_stream("up", mem, gpu, 4096)}),
                  station.batch({copy_stream("down", gpu, mem, 4096)})};
  TaskSet set{station.machine, Policy::Edf, {holds, copies}};
  const AdmittedTaskSet admitted = test::admit(overlapping(set));
  PatternProgram one(station.machine, set.tasks[0], 1), other(station.machine, set.tasks[1], 1);
  TaskProgram* const table[] = {&one, &other};
  const auto record = run_tasks(station.executor, admitted, table, led(100));
  ASSERT_TRUE(record.has_value()) << record.error().text();
  EXPECT_FALSE(record->fatal) << record->fatal->text();
  int beside = 0;
  for (const JobRecord& job : record->jobs)
    for (const JobRecord& kernel : record->jobs)
      beside += job.task == TaskId{1} && kernel.task == TaskId{0} && job.finish && kernel.finish &&
                        kernel.start < job.start && *job.finish < *kernel.finish
                    ? 1
                    : 0;
  EXPECT_GT(beside, 3);
}

// Each operation needs a stream of its own: 30 copies of one batch are more than a GPU has.
TEST_P(GpuConductor, LeadsSoManyOperationsAtMost) {
  std::vector<CommandStream> streams;
  for (int i = 0; i < 30; ++i)
    streams.push_back(copy_stream("up" + std::to_string(i), station.at("mem0"), station.at("gpu0"), 64));
  Task task;
  task.name = "a";
  task.period = task.deadline = milliseconds{20};
  task.steps = {station.batch(std::move(streams))};
  TaskSet set{station.machine, Policy::Edf, {task}};
  const AdmittedTaskSet admitted = test::admit(overlapping(set));
  PatternProgram program(station.machine, set.tasks[0], 1);
  TaskProgram* const table[] = {&program};
  const auto record = run_tasks(station.executor, admitted, table, led(10));
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().message.find("a GPU that leads the set needs 31 streams"), 0U) << record.error().message;
}

#ifdef TUTTI_HOST_CUDA
/// Kernels that a GPU has begun: those that compute on 132, 124 and 8 multiprocessors, and those that wait or mark.
using Begun = std::array<std::uint64_t, 6>;
Begun begun_on(host_cuda::Device gpu) {
  return {gpu.computing_on(132), gpu.computing_on(124), gpu.computing_on(8),
          gpu.waiting_on(132),   gpu.waiting_on(124),   gpu.waiting_on(8)};
}

// Where jobs with kernels overlap, gates and marks of copies are on the multiprocessors that are set apart, the
// conductor with them, and the kernels on the others, with their own gates. Where no kernel runs, and where the machine
// sets none apart, all is where the driver puts it. Beside the jobs some other batches run.
TEST_P(GpuConductor, SetsGatesApartFromKernels) {
  constexpr std::uint64_t kJobs = 100, kMany = kJobs / 2;
  const auto gpu = host_cuda::device(0);
  const VertexId place = station.at("gpu0");
  for (const bool computes : {true, false}) {
    Task task;
    task.name = "a";
    task.period = task.deadline = milliseconds{5};
    task.steps = {station.batch({copy_stream("up", station.at("mem0"), place, 64)})};
    if (computes) task.steps.emplace_back(station.batch({kernel_stream("kernel", place, std::string(kSpinKernel))}));
    const AdmittedTaskSet admitted = test::admit(overlapping(TaskSet{station.machine, Policy::Edf, {task}}));
    PatternProgram program(station.machine, task, 1);
    TaskProgram* const table[] = {&program};
    Begun more = begun_on(gpu);
    const auto record = run_tasks(station.executor, admitted, table, led(kJobs));
    ASSERT_TRUE(record.has_value()) << record.error().text();
    EXPECT_FALSE(record->fatal) << record->fatal->text();
    const Begun after = begun_on(gpu);
    for (std::size_t i = 0; i < more.size(); ++i) more[i] = after[i] - more[i];
    const auto& [computing, computing_beside, computing_with_gates, waiting, waiting_with_kernels, waiting_apart] =
        more;
    const bool is_apart = GetParam().gate_sms > 0 && computes;
    EXPECT_EQ(computing > kMany, computes && !is_apart);
    EXPECT_EQ(computing_beside > kMany, is_apart);
    EXPECT_EQ(computing_with_gates, 0U);
    EXPECT_EQ(waiting > kMany, !is_apart);
    EXPECT_EQ(waiting_with_kernels > kMany, is_apart);
    EXPECT_EQ(waiting_apart > kMany, is_apart);
  }
}

// What kernels have while a GPU leads jobs that overlap, `profile` measures them on.
TEST_P(GpuConductor, KernelsAreMeasuredWithoutTheGates) {
  if (GetParam().gate_sms == 0) return;
  const auto gpu = host_cuda::device(0);
  const auto nothing = [](host_cuda::Instant begin, host_cuda::Instant) { return std::optional(begin); };
  ASSERT_TRUE(station.kernels
                  .add(
                      "recorded", [](const KernelLaunch&) {},
                      [=](const KernelLaunch&, DeviceStream stream) { host_cuda::launch(stream, nothing); })
                  .has_value());
  ASSERT_TRUE(station.backend->set_gates_apart().has_value());
  const Begun before = begun_on(gpu);
  for (const char* name : {"recorded", "spin"}) {
    auto prepared = station.prepare({kernel_stream("kernel", station.at("gpu0"), name, 1000)}, {{}});
    station.run(prepared);
  }
  EXPECT_EQ(begun_on(gpu)[0], before[0]);
  EXPECT_GT(begun_on(gpu)[1], before[1] + 1);
}

TEST_P(GpuConductor, RefusesADriverThatSetsNothingApart) {
  const AdmittedTaskSet admitted = test::admit(overlapping(two_tasks(station.machine)));
  std::array<Sums, 2> programs;
  TaskProgram* const table[] = {&programs[0], &programs[1]};
  EXPECT_EQ(discover_host()->devices[0].gate_sms, 8);
  host_cuda::set_splits_sms(false);
  EXPECT_EQ(discover_host()->devices[0].gate_sms, 0);
  const auto record = run_tasks(station.executor, admitted, table, led(10));
  host_cuda::set_splits_sms(true);
  ASSERT_EQ(record.has_value(), GetParam().gate_sms == 0);
  EXPECT_TRUE(record || record.error().message.starts_with("cuDeviceGetDevResource")) << record.error().message;
}

TEST_P(GpuConductor, LeadsNothingWhereTheDriverEndsLongKernels) {
  const AdmittedTaskSet admitted = test::admit(two_tasks(station.machine));
  std::array<Sums, 2> programs;
  TaskProgram* const table[] = {&programs[0], &programs[1]};
  host_cuda::set_limits_kernels(true);
  const auto record = run_tasks(station.executor, admitted, table, led(10));
  host_cuda::set_limits_kernels(false);
  ASSERT_FALSE(record.has_value());
  EXPECT_EQ(record.error().code, ErrorCode::InvalidInput);
  EXPECT_EQ(record.error().message.find("the driver ends kernels on a GPU of the set that take seconds"), 0U);
}

/// In a process of its own: its GPU is lost afterwards.
void hang_in_a_run(bool overlaps) {
  Station station(std::make_unique<test::DeviceClock>(), make_cuda<GateKind::PollingKernel, test::kDeviceWait, 1>);
  const TaskSet set = two_tasks(station.machine);
  const AdmittedTaskSet admitted = test::admit(overlaps ? overlapping(set) : set);
  std::array<Sums, 2> programs;
  TaskProgram* const table[] = {&programs[0], &programs[1]};
  std::thread breaker([] {
    std::this_thread::sleep_for(milliseconds{300});
    host_cuda::device(0).hang_next_kernel();
  });
  const auto record = run_tasks(station.executor, admitted, table, led(100'000));
  breaker.join();
  std::fputs(record && record->fatal ? record->fatal->message.c_str() : "nothing", stderr);
  std::exit(0);
}

// A kernel that does not end within its limit is given up, as by the host, and the run says so.
TEST(GpuConductorDeathTest, AKernelThatHangsEndsTheRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(hang_in_a_run(false), testing::ExitedWithCode(0),
              "batch 1 of task 'a' has not ended within its limit; nothing more can run on its GPUs");
  EXPECT_EXIT(
      hang_in_a_run(true), testing::ExitedWithCode(0),
      "the kernel of stream 'up' in batch 1 of task 'a' has not ended within its limit; nothing more can run on "
      "its GPUs");
}
#endif

}  // namespace
}  // namespace tutti::internal
