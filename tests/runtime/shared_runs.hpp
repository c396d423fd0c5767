#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sched/admission/chain_admission.hpp"
#include "sched/tasks/compile_tasks.hpp"
#include "tests/runtime/named_program.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// Words of a buffer. What a job of the camera leaves is its number, from 1 on, in each of them.
using Word = std::uint64_t;

/// A program of a set that `SharingMaker` drew: cameras write their number everywhere; others note what they see.
class SharingProgram final : public NamedProgram {
 public:
  /// @param fails  every seventh job of a camera, halfway
  SharingProgram(const Topology& machine, const Task& task, bool fails)
      : NamedProgram(machine, task, 1), fails_(fails) {}

  Expected<void> on_start(Executor& executor) override {
    return memory_.fill_kept(executor, [](std::span<const HostBytes>) { return Expected<void>{}; });
  }
  void on_ready(const Job& job) override {
    for (const HostBytes& buffer : memory_.own_of_host(job.buffer_set))
      if (buffer.name == "frame") fill(buffer.bytes, job.index + 1);
  }
  Expected<void> on_host_step(Job& job, std::size_t step) override {
    const HostStep& host = std::get<HostStep>(task_.steps[step]);
    const auto buffers = memory_.of_host(*job.choice);
    for (const BufferId buffer : host.writes) fill(buffers[buffer.index()].bytes, job.index + 1);
    if (fails_ && !host.writes.empty() && job.index % 7 == 6)
      return tl::unexpected(Error{ErrorCode::Kernel, "the lens was covered", {}});
    for (const BufferId buffer : host.reads)
      if (buffers[buffer.index()].name == "camera.notes") note(notes_, job, buffers[buffer.index()].bytes);
    return {};
  }
  void on_finished(const Job& job) override {
    for (const HostBytes& buffer : memory_.of_host(*job.choice))
      if (buffer.name == "seen") note(seen_, job, buffer.bytes);
  }

  /// [jobs] the numbers that a job saw in what it copied, and in its host step; one where nothing was torn.
  using Seen = std::map<std::uint64_t, std::set<Word>>;
  [[nodiscard]] const Seen& seen() const { return seen_; }
  [[nodiscard]] const Seen& notes() const { return notes_; }

 private:
  static void fill(std::span<std::byte> bytes, Word word) {
    for (std::size_t at = 0; at + sizeof word <= bytes.size(); at += sizeof word)
      std::memcpy(bytes.data() + at, &word, sizeof word);
  }
  static void note(Seen& seen, const Job& job, std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at + sizeof(Word) <= bytes.size(); at += sizeof(Word)) {
      Word word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      seen[job.index].insert(word);
    }
  }

  bool fails_;
  Seen seen_, notes_;
};

/// How tasks that share buffers run.
struct SharingWay {
  const char* name;
  Overlap overlap = Overlap::Off;
  Preemption preemption = Preemption::None;
  int alive = 1;  ///< jobs of a task
};
inline constexpr SharingWay kSharingWays[] = {
    {"one by one"},
    {"three alive", Overlap::Off, Preemption::None, 3},
    {"preempted", Overlap::Off, Preemption::BetweenBatches, 2},
    {"overlapping", Overlap::On},
    {"three alive overlapping", Overlap::On, Preemption::None, 3},
};

/// Draws a camera, at times a filter that reads it, and viewers that read one of the two, at unlike rates. Each moves
/// what it reads or writes in two batches, so that it would be torn if somebody wrote there meanwhile.
class SharingMaker {
 public:
  SharingMaker(Random& random, std::vector<std::string> gpus) : random_(random), gpus_(std::move(gpus)) {}

  TaskSetSpec make(const SharingWay& way, Duration base) {
    TaskSetSpec spec{.preemption = way.preemption, .overlap = way.overlap};
    if (way.preemption != Preemption::None) spec.cut = Bytes{100};
    spec.policy = std::vector{Policy::Edf, Policy::Dm, Policy::Rm}[random_.below(3)];
    words_ = random_.between(2, 60);
    spec.tasks.push_back(camera());
    std::string source = "camera.picture";
    if (random_.one_in(2)) {
      spec.tasks.push_back(filter());
      if (random_.one_in(2)) source = "filter.picture";
    }
    for (int i = random_.between(1, 2); i > 0; --i) spec.tasks.push_back(viewer("view" + std::to_string(i), source));
    spec.chains.push_back({"seen", {"camera", "view1"}});
    if (source == "filter.picture") spec.chains.back().tasks = {"camera", "filter", "view1"};
    for (std::size_t i = spec.tasks.size(); i > 1; --i) std::swap(spec.tasks[i - 1], spec.tasks[random_.below(i)]);
    for (TaskSpec& task : spec.tasks) {
      task.period = base * random_.between(2, 9);
      task.deadline = task.period * random_.between(1, way.alive);
      if (random_.one_in(3)) task.jitter = task.period / random_.between(2, 9);
    }
    return spec;
  }

 private:
  [[nodiscard]] BufferSpec buffer(std::string in) const {
    BufferSpec made;
    made.in = std::move(in);
    made.size = Bytes{static_cast<std::int64_t>(sizeof(Word)) * words_};
    return made;
  }
  std::string gpu() { return gpus_[random_.below(gpus_.size())]; }
  /// One half of a copy, as a batch of its own.
  [[nodiscard]] StepSpec half(const std::string& from, const std::string& to, bool second) const {
    StreamSpec stream;
    stream.copy = from;
    stream.to = to;
    const Bytes at{static_cast<std::int64_t>(sizeof(Word)) * (words_ / 2)};
    if (second) stream.at = stream.to_at = at;
    if (!second) stream.size = at;
    StepSpec step;
    step.batch = {stream};
    return step;
  }
  StepSpec host(std::vector<std::string> reads, std::vector<std::string> writes) {
    HostStepSpec work(Duration{random_.between(0, 100)});
    work.reads = std::move(reads);
    work.writes = std::move(writes);
    StepSpec step;
    step.host = work;
    return step;
  }
  TaskSpec camera() {
    TaskSpec task;
    task.name = "camera";
    task.buffers = {{"frame", buffer("mem0")}, {"picture", buffer(gpu())}, {"notes", buffer("mem0")}};
    task.job = {half("frame", "picture", false), host({}, {"notes"}), half("frame", "picture", true)};
    return task;
  }
  TaskSpec filter() {
    TaskSpec task;
    task.name = "filter";
    task.buffers = {{"picture", buffer(gpu())}, {"through", buffer("mem0")}, {"constants", buffer("mem0")}};
    task.buffers.at("constants").keep = true;
    task.job = {half("camera.picture", "through", false), half("camera.picture", "through", true),
                half("through", "picture", true), half("through", "picture", false)};
    return task;
  }
  TaskSpec viewer(std::string name, const std::string& source) {
    TaskSpec task;
    task.name = std::move(name);
    task.buffers = {{"seen", buffer("mem0")}};
    task.job = {half(source, "seen", false), half(source, "seen", true)};
    if (random_.one_in(2)) task.job->insert(task.job->begin() + random_.between(0, 2), host({"camera.notes"}, {}));
    if (source == "filter.picture" && random_.one_in(2))
      task.job->insert(task.job->begin(), host({"filter.constants"}, {}));
    return task;
  }

  Random& random_;
  std::vector<std::string> gpus_;
  int words_ = 0;
};

/// What the jobs of a record leave behind, and read.
class SharingOracle {
 public:
  explicit SharingOracle(const std::vector<JobRecord>& jobs) {
    for (const JobRecord& job : jobs)
      if (job.finish && !job.error) jobs_[job.task].push_back(&job);
  }

  [[nodiscard]] const JobRecord* job(TaskId task, std::uint64_t index) const {
    const auto& of = jobs_of(task);
    const auto found = std::ranges::find(of, index, [](const JobRecord* job) { return job->index; });
    return found == of.end() ? nullptr : *found;
  }
  /// The numbers of the jobs, from 1 on, whose output is the newest at an instant: several where one ends just then.
  [[nodiscard]] std::set<Word> newest(TaskId task, Duration at) const {
    Word before = 0;
    for (const JobRecord* job : jobs_of(task))
      if (*job->finish < at) before = std::max(before, job->index + 1);
    std::set<Word> numbers{before};
    for (const JobRecord* job : jobs_of(task))
      if (*job->finish == at && job->index + 1 > before) numbers.insert(job->index + 1);
    return numbers;
  }

 private:
  [[nodiscard]] const std::vector<const JobRecord*>& jobs_of(TaskId task) const {
    static const std::vector<const JobRecord*> kNone;
    const auto found = jobs_.find(task);
    return found == jobs_.end() ? kNone : found->second;
  }

  std::map<TaskId, std::vector<const JobRecord*>> jobs_;
};

/// What came of runs of random sets.
struct SharingCounts {
  std::uint64_t sets = 0, refused = 0, jobs = 0, looks = 0;
  Duration oldest{};  ///< age of what a job of the last task worked on
};

/// Runs a random set and compares what each job has seen with the newest output at its start.
/// @param in_time  whether bounds hold: nothing else keeps the host busy
inline void expect_sharing(Station& station, std::uint64_t seed, const SharingWay& way, std::vector<std::string> gpus,
                           Duration base, std::uint64_t jobs, SharingCounts& counts, bool in_time = true) {
  SCOPED_TRACE(testing::Message() << way.name << ", seed " << seed);
  Random random(seed);
  const TaskSetSpec spec = SharingMaker(random, std::move(gpus)).make(way, base);
  const auto set = compile(spec, station.machine);
  ASSERT_TRUE(set.has_value()) << set.error().text();
  const AdmissionVerdict verdict = AdmissionController(planners().front()).decide(*set);
  ++counts.sets;
  if (!verdict.admitted) {
    ++counts.refused;
    return;
  }
  ASSERT_EQ(verdict.admitted->partitions().size(), 1U);
  const bool fails = seed % 2 == 0;  // without an output data are older than the bound of a chain
  std::vector<std::unique_ptr<SharingProgram>> programs;
  std::vector<TaskProgram*> table;
  std::map<std::string, TaskId> tasks;
  for (std::size_t i = 0; i < set->tasks.size(); ++i) {
    tasks[set->tasks[i].name] = TaskId{i};
    programs.push_back(std::make_unique<SharingProgram>(station.machine, set->tasks[i], fails));
    table.push_back(programs.back().get());
  }
  const auto record = run_tasks(station.executor, *verdict.admitted, table, first_jobs(jobs, seed));
  ASSERT_TRUE(record.has_value()) << record.error().text();
  counts.jobs += record->jobs.size();
  const SharingOracle oracle(record->jobs);
  /// What a job reads that names a buffer: the camera's number, through the filter where that is between.
  const auto numbers = [&](const std::string& owner, Duration at) {
    std::set<Word> found;
    for (const Word number : oracle.newest(tasks.at(owner), at)) {
      if (owner == "camera" || number == 0) found.insert(number);
      if (owner == "camera" || number == 0) continue;
      const JobRecord* const job = oracle.job(tasks.at(owner), number - 1);
      const auto through = oracle.newest(tasks.at("camera"), job->start);
      found.insert(through.begin(), through.end());
    }
    return found;
  };
  const auto expect_seen = [&](std::size_t task, const SharingProgram::Seen& seen, const std::string& owner) {
    for (const auto& [index, words] : seen) {
      ++counts.looks;
      ASSERT_EQ(words.size(), 1U) << set->tasks[task].name << ", job " << index << ": torn";
      const JobRecord* const job = oracle.job(TaskId{task}, index);
      if (job == nullptr) continue;
      EXPECT_TRUE(numbers(owner, job->start).contains(*words.begin()))
          << set->tasks[task].name << ", job " << index << " saw " << *words.begin();
    }
  };
  /// From the start of the camera's job until the viewer's next job has ended, and acts on it no longer.
  const auto viewer = tasks.at("view1");
  for (const auto& [index, words] : programs[viewer.index()]->seen()) {
    const JobRecord* const next = oracle.job(viewer, index + 1);
    if (next == nullptr || index == 0 || *words.begin() < 2) continue;
    const JobRecord* const camera = oracle.job(tasks.at("camera"), *words.begin() - 1);
    const Duration age = *next->finish - camera->start;
    ASSERT_TRUE(verdict.chain_latencies.front().has_value());
    if (in_time && !fails) {
      EXPECT_LE(age, *verdict.chain_latencies.front()) << "job " << index;
    }
    counts.oldest = std::max(counts.oldest, age);
  }
  for (std::size_t i = 0; i < programs.size(); ++i) {
    expect_seen(i, programs[i]->notes(), "camera");
    for (const NamedBuffer& buffer : set->tasks[i].buffers)
      if (buffer.own_name() == "picture" && !buffer.owner().empty())
        expect_seen(i, programs[i]->seen(), std::string(buffer.owner()));
  }
}

}  // namespace tutti::internal::test
