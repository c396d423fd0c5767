// Runs that the simulated machine leads, beside the same runs led by the host: on a virtual clock, and on a machine
// whose commands cost nothing, both are the same schedule.
#include "runtime/dispatch/led_task_run.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/core/plain_backend.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "tests/runtime/led_runs.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal {
namespace {

using test::copy_stream;
using test::DrowsyClock;
using test::Listening;
using test::Random;
using test::Station;

/// A job copies so many bytes up, a byte/ns, and half of them down.
Task copying(const Station& station, const std::string& name, std::int64_t bytes, std::int64_t period) {
  const VertexId mem = station.at("mem0"), gpu = station.at("gpu0");
  Task task;
  task.name = name;
  task.period = task.deadline = Duration{period};
  task.steps = {station.batch({copy_stream("up", mem, gpu, bytes)}),
                station.batch({copy_stream("down", gpu, mem, bytes / 2)})};
  return task;
}

struct Ran {
  RunRecord record;
  int finished = 0;  ///< that programs heard of
};

/// Runs a set that is admitted. @param hears  whether programs hear of ends
Ran run_by(ConductorKind conductor, const TaskSet& set, Station& station, bool hears, std::uint64_t jobs = 60) {
  std::vector<std::unique_ptr<Listening>> programs;
  std::vector<TaskProgram*> table;
  for (const Task& task : set.tasks) {
    programs.push_back(std::make_unique<Listening>(station.machine, task));
    programs.back()->hears = hears;
    table.push_back(programs.back().get());
  }
  RunOptions options;
  options.jobs = jobs;
  options.conductor = conductor;
  auto record = run_tasks(station.executor, test::admit(set), table, options);
  if (!record) return ADD_FAILURE() << record.error().text(), Ran{};
  Ran ran{*std::move(record)};
  for (const auto& program : programs) ran.finished += program->finished;
  return ran;
}

void expect_same(const TaskSet& set, const RunRecord& led, const RunRecord& by_host) {
  EXPECT_EQ(test::rows_of(set, led), test::rows_of(set, by_host));
  ASSERT_EQ(led.jobs.size(), by_host.jobs.size());
  for (std::size_t i = 0; i < led.jobs.size(); ++i) {
    EXPECT_EQ(led.jobs[i].verdict, by_host.jobs[i].verdict);
    EXPECT_EQ(led.jobs[i].broken, by_host.jobs[i].broken);
  }
}

// Each job of admitted sets of 1 to 4 tasks starts and ends as the host would let it, and each end is heard of.
TEST(LedTaskRun, IsTheScheduleOfTheHost) {
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{200}); ++seed) {
    Random random(seed);
    Station led, by_host;
    TaskSet set{led.machine, std::array{Policy::Edf, Policy::Rm, Policy::Dm}[seed % 3], {}};
    const int tasks = random.between(1, 4);
    for (int i = 0; i < tasks; ++i)  // of at most 40 % of the time together, and none blocks for more than a period
      set.tasks.push_back(
          copying(led, std::string(1, static_cast<char>('a' + i)), random.between(2, 60), random.between(900, 2000)));
    const bool hears = random.one_in(2);
    const Ran one = run_by(ConductorKind::Gpu, set, led, hears),
              other = run_by(ConductorKind::Host, set, by_host, hears);
    expect_same(set, one.record, other.record);
    EXPECT_EQ(one.finished, hears ? 60 : 0);
    EXPECT_TRUE(one.record.host_away.has_value());
    EXPECT_FALSE(one.record.start_on_gpu.has_value()) << "on a simulated machine";
    EXPECT_FALSE(other.record.host_away.has_value());
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

// A job has the machine for 90 ns, more than its budget of 50: after three of them its task is suspended, and of 20
// jobs 17 never come.
TEST(LedTaskRun, SuspendsAsTheHostDoes) {
  Station led, by_host;
  TaskSet set{led.machine, Policy::Edf, {copying(led, "a", 60, 1000)}};
  set.tasks.front().overrun = {OverrunPolicy::Continue, Duration{50}, 3};
  const RunRecord one = run_by(ConductorKind::Gpu, set, led, false, 20).record;
  const RunRecord other = run_by(ConductorKind::Host, set, by_host, false, 20).record;
  expect_same(set, one, other);
  ASSERT_EQ(one.suspensions.size(), 1U);
  EXPECT_EQ(one.suspensions.front().task, other.suspensions.front().task);
  EXPECT_EQ(one.suspensions.front().at, other.suspensions.front().at);
  EXPECT_EQ(one.jobs.size(), 3U);
}

// The conductor takes 50 ns of each batch, which the job's bound counts, and jobs are held up for 30 ns at most.
TEST(LedTaskRun, TheTimeOfTheConductorMakesNoBatchLate) {
  Station led(std::make_unique<VirtualClock>(), Station::make_sim, test::led_machine(Duration{50}));
  TaskSet set{led.machine, Policy::Edf, {copying(led, "a", 60, 1000)}};
  set.led_by_gpu = true;
  const RunRecord record = run_by(ConductorKind::Gpu, set, led, false, 20).record;
  EXPECT_EQ(record.jobs.size(), 20U);
  for (const JobRecord& job : record.jobs) EXPECT_FALSE(job.broken);
}

/// A machine whose conductor leaves these records.
class Recorded final : public PlainBackend {
 public:
  Recorded(std::unique_ptr<DeviceBackend> machine, std::vector<LedRecord> records)
      : machine_(std::move(machine)), records_(std::move(records)) {}
  std::string_view name() const override { return machine_->name(); }
  bool busy() const override { return false; }
  Expected<Buffer> allocate(VertexId where, Bytes size) override { return machine_->allocate(where, size); }
  Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory, std::shared_ptr<void> owner) override {
    return machine_->wrap(where, memory, std::move(owner));
  }
  Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override {
    return machine_->prepare(std::move(bound));
  }
  Expected<std::unique_ptr<LedRun>> lead(LedSet) override { return std::make_unique<Run>(records_); }

 private:
  class Run final : public LedRun {
   public:
    explicit Run(std::vector<LedRecord> records) : records_(std::move(records)) {}
    Duration host_away() const override { return Duration{1}; }
    bool arm_some() override { return false; }
    void begin(Duration) override {}
    std::optional<LedRecord> take() override {
      return taken_ < records_.size() ? std::optional(records_[taken_++]) : std::nullopt;
    }
    void give_back(std::uint32_t) override {}
    bool begin_input(std::uint32_t, std::uint64_t) override { return true; }
    void end_input(std::uint32_t, std::uint64_t) override {}
    std::uint64_t* runs_taken(std::uint32_t) override { return nullptr; }
    void stop() override {}
    bool is_over() override { return taken_ == records_.size(); }
    std::optional<Error> fault() override { return std::nullopt; }
    Ns now() override { return 0; }
    Duration next_look() override { return Duration{}; }

   private:
    std::vector<LedRecord> records_;
    std::size_t taken_ = 0;
  };
  std::unique_ptr<DeviceBackend> machine_;
  std::vector<LedRecord> records_;
};

LedRecord recorded(LedRecord::Kind kind, std::uint64_t index, std::uint64_t run = 0) {
  LedRecord record;
  record.kind = kind;
  record.index = index;
  record.run = run;
  record.arrival = record.ready = record.start = static_cast<Ns>(index) * 1000;
  record.finish = record.start + 90;
  record.in_batches = 90;
  return record;
}

// Jobs 1 and 4 wait for the machine while 2, 3 and 5 are dropped, whose records come first; those of 0 and 6 found no
// room. Each job is in one record.
TEST(LedTaskRun, EachJobIsInOneRecordWhateverComesFirst) {
  using Kind = LedRecord::Kind;
  Station station(
      std::make_unique<VirtualClock>(),
      [](const Topology& machine, const KernelRegistry& kernels, Clock& clock) -> std::unique_ptr<DeviceBackend> {
        return std::make_unique<Recorded>(
            std::make_unique<SimBackend>(machine, kernels, clock),
            std::vector{recorded(Kind::DropNoSet, 2), recorded(Kind::DropSkipped, 3), recorded(Kind::Ended, 1, 0),
                        recorded(Kind::DropNoSet, 5), recorded(Kind::Ended, 4, 1), recorded(Kind::DropNotArmed, 7)});
      });
  TaskSet set{station.machine, Policy::Edf, {copying(station, "a", 60, 1000)}};
  const RunRecord record = run_by(ConductorKind::Gpu, set, station, false, 9).record;
  std::map<std::uint64_t, std::string> ends;
  for (const JobRecord& job : record.jobs) {
    const bool away = job.error && job.error->message.find("the host had armed no run") == 0;
    const char* const end = job.finish                           ? "ended"
                            : job.verdict == JobVerdict::Skipped ? "skipped"
                            : job.verdict == JobVerdict::Dropped ? away ? "host" : "buffers"
                                                                 : "else";
    EXPECT_TRUE(ends.try_emplace(job.index, end).second) << job.index;
  }
  const std::map<std::uint64_t, std::string> expected = {{0, "host"},    {1, "ended"}, {2, "buffers"},
                                                         {3, "skipped"}, {4, "ended"}, {5, "buffers"},
                                                         {6, "host"},    {7, "host"},  {8, "host"}};
  EXPECT_EQ(ends, expected);
}

/// What must hold of the records of a run that had time for all its jobs, whatever the host did meanwhile.
void expect_each_job_once(const TaskSet& set, const RunRecord& record, std::uint64_t jobs) {
  std::vector<std::map<std::uint64_t, const JobRecord*>> of(set.tasks.size());
  for (const JobRecord& job : record.jobs)
    EXPECT_TRUE(of[job.task.index()].try_emplace(job.index, &job).second) << job.task.index() << " " << job.index;
  std::vector<const JobRecord*> ended;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < of.size(); ++i) {
    const bool suspended =
        std::ranges::find(record.suspensions, TaskId{i}, &Suspension::task) != record.suspensions.end();
    all += of[i].size();
    if (!suspended && !of[i].empty()) {
      EXPECT_EQ(of[i].rbegin()->first + 1, of[i].size()) << "none is left out";
    }
    Duration before{-1};
    for (const auto& [index, job] : of[i]) {
      EXPECT_EQ(job->arrival, set.tasks[i].offset + set.tasks[i].period * static_cast<std::int64_t>(index));
      if (!job->finish) continue;
      EXPECT_GE(job->start, std::max(job->arrival, before));
      EXPECT_EQ(job->verdict, *job->finish <= job->deadline ? JobVerdict::Met : JobVerdict::Missed);
      before = *job->finish;
      ended.push_back(job);
    }
  }
  EXPECT_TRUE(all == jobs || !record.suspensions.empty());
  std::ranges::sort(ended, {}, &JobRecord::start);
  for (std::size_t i = 1; i < ended.size(); ++i) EXPECT_GE(ended[i]->start, *ended[i - 1]->finish);
}

// The host is away for longer than its queues last, and callbacks give buffers back late.
TEST(LedTaskRun, EachJobIsInOneRecordWhateverTheHostDoes) {
  std::uint64_t dropped = 0, away = 0, overtaken = 0, overwritten = 0, without_input = 0, reused = 0;
  for (std::uint64_t seed = 1; seed <= test::rounds(std::uint64_t{1000}); ++seed) {
    Random random(seed);
    Station station(std::make_unique<DrowsyClock>(random));
    TaskSet set{station.machine, random.one_in(2) ? Policy::Edf : Policy::Dm, {}};
    const int tasks = random.between(1, 4);
    for (int i = 0; i < tasks; ++i) {
      const std::string name(1, static_cast<char>('a' + i));
      const bool keeps_others = i == 0 && random.one_in(2);  // jobs of theirs wait, while later ones are dropped
      Task& task = set.tasks.emplace_back(
          keeps_others ? copying(station, name, random.between(300, 800), random.between(4000, 8000))
                       : copying(station, name, random.between(2, 60), random.between(400, 900)));
      task.deadline = task.period * random.between(1, 3);
      task.offset = Duration{random.between(0, 500)};
      if (random.one_in(4))
        task.overrun = {OverrunPolicy::SkipNext, Duration{random.between(30, 90)}, random.between(0, 5)};
      if (random.one_in(3)) task.late_consumer = LateConsumer::Overwrite;
      if (random.one_in(2)) task.late_input = LateInput::Reuse;
    }
    const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
    if (!verdict.admitted) continue;
    std::vector<std::unique_ptr<Listening>> programs;
    std::vector<TaskProgram*> table;
    std::map<std::string, std::ptrdiff_t> filled;
    for (const Task& task : set.tasks) {
      Listening& program = *programs.emplace_back(std::make_unique<Listening>(station.machine, task));
      program.hears = random.one_in(2);
      program.fills = random.one_in(3);
      const auto takes_time = [&] {
        if (random.one_in(8)) station.clock->wait_until(station.clock->now() + Duration{random.between(1, 5000)});
      };
      program.when_ready = [&, takes_time](const Job& job) {
        ++filled[job.task().name];
        takes_time();
      };
      program.when_finished = [takes_time](const Job&) { takes_time(); };
      table.push_back(&program);
    }
    RunOptions options;
    options.jobs = 100;
    options.conductor = ConductorKind::Gpu;
    options.host_away = Duration{random.between(0, 1) * random.between(1, 1500)};
    const auto run = run_tasks(station.executor, *verdict.admitted, table, options);
    ASSERT_TRUE(run.has_value()) << run.error().text();
    EXPECT_FALSE(run->fatal) << run->fatal->text();
    expect_each_job_once(set, *run, 100);
    std::vector<std::uint64_t> next(set.tasks.size());
    for (const JobRecord& job : run->jobs) {
      overtaken += job.index < std::exchange(next[job.task.index()], job.index + 1);
      dropped += job.verdict == JobVerdict::Dropped;
      away += job.error && job.error->message.starts_with("the host had armed no run");
      EXPECT_EQ(job.seen.has_value(), job.finish.has_value());
      EXPECT_TRUE(!job.seen || *job.seen >= *job.finish);
    }
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const auto ends = [&](const JobRecord& job) { return job.task.index() == i && job.finish; };
      const auto count = programs[i]->hears ? std::ranges::count_if(run->jobs, ends) : 0;
      const auto lost = static_cast<std::ptrdiff_t>(run->summaries[i].overwritten());
      EXPECT_LE(programs[i]->finished, count);
      EXPECT_GE(programs[i]->finished, count - lost) << "whole results are handed over";
      EXPECT_TRUE(lost == 0 || (programs[i]->hears && set.tasks[i].late_consumer == LateConsumer::Overwrite));
      overwritten += run->summaries[i].overwritten();
      const auto again = static_cast<std::ptrdiff_t>(run->summaries[i].reused_input());
      const auto own = std::ranges::count_if(
          run->jobs, [&](const JobRecord& job) { return job.task.index() == i && job.finish && !job.reused_input; });
      const auto bare = std::ranges::count_if(run->jobs, [&](const JobRecord& job) {
        return job.task.index() == i && job.error && job.error->message.starts_with("its program had not filled");
      });
      EXPECT_TRUE((again == 0 || set.tasks[i].late_input == LateInput::Reuse) &&
                  (again + bare == 0 || programs[i]->fills));
      EXPECT_TRUE(!programs[i]->fills || (own <= filled[set.tasks[i].name] && own + 4 > filled[set.tasks[i].name]))
          << own << " jobs with " << filled[set.tasks[i].name] << " inputs";
      without_input += static_cast<std::uint64_t>(bare);
      reused += static_cast<std::uint64_t>(again);
    }
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GT(dropped - away, test::rounds(100U)) << "of buffers that came back late";
  EXPECT_GT(away, test::rounds(100U));
  EXPECT_GT(overwritten, test::rounds(100U));
  EXPECT_GT(without_input, test::rounds(100U));
  EXPECT_GT(reused, test::rounds(100U));
  EXPECT_GE(overtaken, test::rounds(20U)) << "by the record of a later one that was dropped";
}

// Jobs of 90 ns arrive every 1000, into one set, and a consumer reads for 2500: it is called for jobs 0, 3, 6, ..., two
// more run into what it reads, and nobody hears of their results. Each record says so. A consumer that drops loses
// them.
TEST(LedTaskRun, AConsumerThatIsTooSlowIsTold) {
  for (const LateConsumer rule : {LateConsumer::Drop, LateConsumer::Overwrite}) {
    for (const Duration reads : {Duration{500}, Duration{2500}}) {
      Station station;
      TaskSet set{station.machine, Policy::Edf, {copying(station, "a", 60, 1000)}};
      set.tasks.front().late_consumer = rule;
      Listening program(station.machine, set.tasks.front());
      program.hears = true;
      program.when_finished = [&](const Job&) { station.clock->wait_until(station.clock->now() + reads); };
      TaskProgram* const table[] = {&program};
      RunOptions options;
      options.jobs = 30;
      options.conductor = ConductorKind::Gpu;
      std::map<std::uint64_t, int> heard;
      options.on_job_end = [&](const JobRecord& job) { ++heard[job.index]; };
      const auto run = run_tasks(station.executor, test::admit(set), table, options);
      ASSERT_TRUE(run.has_value()) << run.error().text();
      ASSERT_EQ(run->jobs.size(), 30U);
      EXPECT_EQ(heard.size(), 30U) << "each job is heard of";
      const bool is_slow = reads > Duration{1000}, overwrites = is_slow && rule == LateConsumer::Overwrite;
      EXPECT_EQ(program.finished, is_slow ? 10 : 30);
      for (const JobRecord& job : run->jobs) {
        const bool has_run = !is_slow || overwrites || job.index % 3 == 0;
        EXPECT_EQ(job.verdict, has_run ? JobVerdict::Met : JobVerdict::Dropped) << job.index;
        EXPECT_EQ(job.overwritten, overwrites) << job.index;
      }
      EXPECT_EQ(run->summaries.front().overwritten(), overwrites ? 30U : 0U);
    }
  }
}

// Nobody can read what such jobs leave, so no buffer waits for the one who hears of their ends, 2500 ns each.
TEST(LedTaskRun, WhoHearsOfEndsAloneHoldsNoBuffers) {
  Station station;
  const TaskSet set{station.machine, Policy::Edf, {copying(station, "a", 60, 1000)}};
  PatternProgram program(station.machine, set.tasks.front(), 1);
  TaskProgram* const table[] = {&program};
  RunOptions options;
  options.jobs = 30;
  options.conductor = ConductorKind::Gpu;
  int heard = 0;
  options.on_job_end = [&](const JobRecord& job) {
    ++heard;
    EXPECT_EQ(job.verdict, JobVerdict::Met);
    station.clock->wait_until(station.clock->now() + Duration{2500});
  };
  const auto run = run_tasks(station.executor, test::admit(set), table, options);
  ASSERT_TRUE(run.has_value()) << run.error().text();
  EXPECT_EQ(run->jobs.size(), 30U);
  EXPECT_EQ(heard, 30);
}

// A host that oversleeps by up to 3 ms has the record of a job of 90 ns within these and its look every 5 ms, and not
// at once where nobody listens.
TEST(LedTaskRun, TheHostSeesEachEndWithinItsLookAndItsPause) {
  for (const bool hears : {false, true}) {
    Random random(7);
    constexpr int kPause = 3'000'000;
    Station station(std::make_unique<DrowsyClock>(random, kPause));
    const TaskSet set{station.machine, Policy::Edf, {copying(station, "a", 60, 700'000)}};
    const RunRecord record = run_by(ConductorKind::Gpu, set, station, hears, 1000).record;
    Duration latest{};
    std::uint64_t ended = 0;
    for (const JobRecord& job : record.jobs) {
      if (!job.finish) continue;
      ++ended;
      EXPECT_EQ(job.finish, job.arrival + Duration{90});
      latest = std::max(latest, *job.seen - *job.finish);
    }
    EXPECT_GT(ended, 500U);
    EXPECT_LE(latest, kLongestLook + Duration{kPause});
    EXPECT_GE(latest, hears ? Duration{kPause / 2} : kLongestLook);
    EXPECT_EQ(record.summaries.front().worst_at_host(), latest + Duration{90});
  }
}

/// A run of a task whose program fills its input.
struct Filled {
  RunRecord record;
  std::vector<std::uint64_t> asked;    ///< indices of the jobs that it was called for
  std::vector<std::size_t> sets;       ///< the buffers of these
  std::vector<Duration> arrivals, at;  ///< of these, and when
};

/// @param fills  how long its program takes for that @param reads  and for results; 0: it does not hear of them
Filled run_filled(Task task, Station& station, Duration fills, Duration reads, std::uint64_t jobs) {
  const TaskSet set{station.machine, Policy::Edf, {std::move(task)}};
  Listening program(station.machine, set.tasks.front());
  Filled filled;
  const auto wait = [&](Duration time) { station.clock->wait_until(station.clock->now() + time); };
  program.fills = true;
  program.hears = reads > Duration{0};
  program.when_ready = [&](const Job& job) {
    filled.asked.push_back(job.index);
    filled.sets.push_back(job.buffer_set);
    filled.arrivals.push_back(job.arrival);
    filled.at.push_back(station.clock->now());
    wait(fills);
  };
  program.when_finished = [&](const Job&) { wait(reads); };
  TaskProgram* const table[] = {&program};
  RunOptions options;
  options.jobs = jobs;
  options.conductor = ConductorKind::Gpu;
  auto record = run_tasks(station.executor, test::admit(set), table, options);
  if (!record) return ADD_FAILURE() << record.error().text(), Filled{};
  filled.record = *std::move(record);
  return filled;
}

// Jobs of 90 ns arrive every 1000 into one set, and their program fills it for 300, from the end of the job before on.
TEST(LedTaskRun, JobsHaveTheInputThatTheirProgramFills) {
  Station station;
  const Filled filled = run_filled(copying(station, "a", 60, 1000), station, Duration{300}, {}, 20);
  ASSERT_EQ(filled.record.jobs.size(), 20U);
  ASSERT_EQ(filled.asked.size(), 20U);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const JobRecord& job = filled.record.jobs[i];
    EXPECT_EQ(job.finish, job.arrival + Duration{90});
    EXPECT_FALSE(job.reused_input || job.broken);
    EXPECT_EQ(filled.asked[i], i);
    EXPECT_EQ(filled.sets[i], 0U);
    EXPECT_EQ(filled.arrivals[i], job.arrival + (i > 0 ? filled.record.start : Duration{0}));
    EXPECT_EQ(filled.at[i], i > 0 ? filled.record.start + *filled.record.jobs[i - 1].finish : Duration{0});
  }
}

// It fills for 2500, behind the end of a job: two more arrive meanwhile, are dropped, and cost no input. Nothing is
// there to be used again while it fills.
TEST(LedTaskRun, AJobWithoutInputIsDroppedAndTheHostIsTheCause) {
  for (const LateInput rule : {LateInput::Drop, LateInput::Reuse}) {
    Station station;
    Task task = copying(station, "a", 60, 1000);
    task.late_input = rule;
    const Filled filled = run_filled(std::move(task), station, Duration{2500}, {}, 30);
    ASSERT_EQ(filled.record.jobs.size(), 30U);
    for (const JobRecord& job : filled.record.jobs) {
      const bool has_input = job.index % 3 == 0;
      EXPECT_EQ(job.verdict, has_input ? JobVerdict::Met : JobVerdict::Dropped) << job.index;
      if (has_input) continue;
      EXPECT_EQ(job.error->message, "its program had not filled its input when it was to start");
      ASSERT_TRUE(job.broken);
      EXPECT_EQ(job.broken->cause, BoundCause::Host);
    }
    EXPECT_EQ(filled.record.summaries.front().reused_input(), 0U);
    // 0 before the run; then as the job before ends, for the next one that is expected: the last one never comes.
    ASSERT_EQ(filled.asked.size(), 11U);
    for (std::size_t i = 0; i < filled.asked.size(); ++i) EXPECT_EQ(filled.asked[i], i == 0 ? 0 : 3 * (i - 1) + 1);
  }
}

// It reads the results of a job for 2500, into whose buffers two more run: those have its input, or none. Then, for
// 100, it fills the next one.
TEST(LedTaskRun, AJobWhoseProgramIsBusyHasTheInputThatIsThere) {
  for (const LateInput rule : {LateInput::Drop, LateInput::Reuse}) {
    Station station;
    Task task = copying(station, "a", 60, 1000);
    task.late_consumer = LateConsumer::Overwrite;
    task.late_input = rule;
    const Filled filled = run_filled(std::move(task), station, Duration{100}, Duration{2500}, 30);
    ASSERT_EQ(filled.record.jobs.size(), 30U);
    const bool reuses = rule == LateInput::Reuse;
    for (const JobRecord& job : filled.record.jobs) {
      const bool has_own = job.index % 3 == 0;
      EXPECT_EQ(job.verdict, has_own || reuses ? JobVerdict::Met : JobVerdict::Dropped) << job.index;
      EXPECT_EQ(job.reused_input, !has_own && reuses) << job.index;
    }
    EXPECT_EQ(filled.record.summaries.front().reused_input(), reuses ? 20U : 0U);
    ASSERT_EQ(filled.asked.size(), 10U);
  }
}

// Two buffer sets, as jobs may last two periods: both are filled before the run, and each again behind its job. A host
// that oversleeps by up to 900 twice has done so within 90 + 900 + 50 + 900 of the arrival, before the job after next.
TEST(LedTaskRun, FillsAsFarAheadAsThereAreBuffers) {
  Random random(3);
  Station station(std::make_unique<DrowsyClock>(random, 900));
  Task task = copying(station, "a", 60, 1000);
  task.deadline = Duration{2000};
  const Filled filled = run_filled(std::move(task), station, Duration{50}, {}, 200);
  ASSERT_EQ(filled.asked.size(), 200U);
  for (std::uint64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(filled.asked[i], i);
    EXPECT_EQ(filled.sets[i], i % 2);
    EXPECT_EQ(filled.record.jobs[i].verdict, JobVerdict::Met);
  }
}

// It fails at the third job: the run ends, and that job never comes.
TEST(LedTaskRun, AProgramThatFailsToFillEndsTheRun) {
  Station station;
  const TaskSet set{station.machine, Policy::Edf, {copying(station, "a", 60, 1000)}};
  Listening program(station.machine, set.tasks.front());
  program.fills = true;
  program.when_ready = [&](const Job& job) {
    if (job.index == 2) throw std::runtime_error("no camera");
  };
  TaskProgram* const table[] = {&program};
  RunOptions options;
  options.jobs = 10;
  options.conductor = ConductorKind::Gpu;
  const auto record = run_tasks(station.executor, test::admit(set), table, options);
  ASSERT_TRUE(record.has_value()) << record.error().text();
  ASSERT_TRUE(record->fatal);
  EXPECT_EQ(record->fatal->message, "on_ready of task 'a' threw: no camera; catch it there");
  EXPECT_EQ(record->jobs.size(), 2U);
}

}  // namespace
}  // namespace tutti::internal
