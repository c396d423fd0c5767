#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "sched/tasks/compile_tasks.hpp"
#include "tests/runtime/named_program.hpp"
#include "tests/runtime/task_runs.hpp"
#include "tests/support/random_flow.hpp"

namespace tutti::internal::test {

/// What the kernels and host steps of a random flow do: byte j of what is written is a sum over what is read.
inline void mix(const KernelLaunch& launch) {
  for (std::size_t k = 0; k < launch.writes.size(); ++k) {
    const std::span<std::byte> out = launch.writes[k].bytes;
    for (std::size_t j = 0; j < out.size(); ++j) {
      unsigned sum = static_cast<unsigned>(k) + 1;
      for (std::size_t r = 0; r < launch.reads.size(); ++r) {
        const std::span<const std::byte> in = launch.reads[r].bytes;
        const bool in_place = in.data() == out.data();
        sum += (2 * static_cast<unsigned>(r) + 3) * static_cast<unsigned>(in[in_place ? j : (7 * j + r) % in.size()]);
      }
      out[j] = static_cast<std::byte>(sum & 0xffU);
    }
  }
}

/// Memory of a program; it outlives what works there.
struct OwnMemory {
  std::deque<ByteList> own;
  UsersSlots users;
};

/// A program of a random flow that keeps what its jobs got and put out.
class FlowProgram final : private OwnMemory, public NamedProgram {
 public:
  /// @param is_own  whether buffers in memories lie in memory of the program
  FlowProgram(const Topology& machine, const TaskSpec& spec, const Task& task, bool is_own)
      : NamedProgram(machine, task, 1, &users), spec_(spec), plain_(spec) {
    for (const NamedBuffer& buffer : task.buffers)
      for (int slot = 0; is_own && slot < kSlots && machine.vertex(buffer.in).kind == VertexKind::Memory; ++slot)
        users[buffer.name].push_back(own.emplace_back(static_cast<std::size_t>(buffer.size.count) + 3));
  }

  Expected<void> on_start(Executor& executor) override {
    return memory_.fill_kept(executor, [&](std::span<const HostBytes> kept) {
      for (const HostBytes& buffer : kept) {
        const auto bytes = pattern(buffer.bytes.size(), buffer.name.size());
        std::ranges::copy(bytes, buffer.bytes.begin());
        plain_.buffer(std::string(buffer.name)) = bytes;
      }
      return Expected<void>{};
    });
  }
  void on_ready(const Job& job) override {
    for (const HostBytes& buffer : memory_.of_host(job.buffer_set))
      std::ranges::copy(input(job.index, buffer), buffer.bytes.begin());
  }
  Expected<void> on_host_step(Job& job, std::size_t step) override {
    const HostStep& host = std::get<HostStep>(task_.steps[step]);
    const auto buffers = memory_.of_host(job.buffer_set);
    std::vector<ReadBuffer> reads;
    std::vector<WrittenBuffer> writes;
    for (const BufferId buffer : host.reads) reads.push_back({"", "", buffers[buffer.index()].bytes});
    for (const BufferId buffer : host.writes) writes.push_back({"", "", buffers[buffer.index()].bytes});
    KernelLaunch launch;
    launch.reads = reads;
    launch.writes = writes;
    mix(launch);
    return {};
  }
  void on_finished(const Job& job) override {
    std::map<std::string, ByteList> output;
    for (const HostBytes& buffer : memory_.of_host(job.buffer_set))
      if (!buffer.bytes.empty()) output[std::string(buffer.name)] = {buffer.bytes.begin(), buffer.bytes.end()};
    outputs_[job.index] = std::move(output);
  }

  /// Jobs that have put out something.
  [[nodiscard]] std::size_t jobs() const { return outputs_.size(); }
  /// Compares them with those of a plain program, in the order of their numbers.
  void expect_as_plain() {
    for (const auto& [index, output] : outputs_) {
      for (const std::string& name : plain_.of_host()) {
        const HostBytes buffer{name, plain_.buffer(name)};
        plain_.buffer(name) = input(index, buffer);
      }
      plain_.run();
      for (const auto& [name, bytes] : output)
        EXPECT_EQ(bytes, plain_.buffer(name)) << spec_.name << ", job " << index << ", " << name;
    }
  }

  static constexpr int kSlots = 3;  ///< of memory of the program

 private:
  static ByteList input(std::uint64_t index, const HostBytes& buffer) {
    return pattern(buffer.bytes.size(),
                   977 * index + buffer.name.size() + static_cast<unsigned char>(buffer.name.back()));
  }

  TaskSpec spec_;
  PlainProgram plain_;
  std::map<std::uint64_t, std::map<std::string, ByteList>> outputs_;
};

/// How random flows run.
struct FlowWay {
  const char* name;
  Overlap overlap = Overlap::Off;
  bool cut = false;
  int sets = 1;             ///< jobs of a task that may be alive
  bool own_memory = false;  ///< buffers in memories lie in memory of the program
};
inline constexpr FlowWay kFlowWays[] = {{"one by one"},
                                        {"cut", Overlap::Off, true, 1},
                                        {"overlapping", Overlap::On, false, 1},
                                        {"three sets", Overlap::On, false, 3},
                                        {"three sets cut", Overlap::On, true, 3},
                                        {"own memory", Overlap::Off, false, 1, true},
                                        {"three slots", Overlap::On, false, 3, true}};

/// The set of some flows with a period for all of them.
inline TaskSetSpec with_period(TaskSetSpec spec, const FlowWay& way, Duration period) {
  for (TaskSpec& task : spec.tasks) {
    task.period = period;
    task.deadline = way.sets * period;
    for (auto& [name, buffer] : task.buffers)
      if (way.own_memory && !buffer.keep && buffer.in == "mem0") buffer.slots = FlowProgram::kSlots;
  }
  return spec;
}

/// The set with about the shortest period that is admitted, so that many jobs are under way at a time.
/// @param longest  period
inline TaskSetSpec with_shortest_period(const TaskSetSpec& spec, const FlowWay& way, const Topology& machine,
                                        Duration longest) {
  std::vector<Duration> periods;
  for (Duration period = std::chrono::microseconds{2}; period < longest; period = period * 3 / 2)
    periods.push_back(period);
  const auto is_refused = [&](Duration period) {
    const auto set = compile(with_period(spec, way, period), machine);
    return !set || !AdmissionController(planners().front()).decide(*set).admitted;
  };
  const auto first = std::ranges::partition_point(periods, is_refused);  // few are asked: what is refused takes long
  return with_period(spec, way, first == periods.end() ? longest : *first);
}

/// Runs random flows on a machine and compares every job with a plain sequential program.
/// @param shortest  whether their periods are as short as they may be; otherwise as long as they may be
inline void expect_flows(Station& station, std::uint64_t seed, const FlowWay& way, FlowTraits traits, Duration longest,
                         bool shortest = true, std::uint64_t jobs = 5) {
  SCOPED_TRACE(testing::Message() << way.name << ", seed " << seed);
  Random random(seed);
  if (way.overlap == Overlap::On) traits.kept = false;
  std::vector<TaskSpec> tasks;
  for (int i = random.between(1, 2); i > 0; --i) tasks.push_back(random_flow(random, "t" + std::to_string(i), traits));
  TaskSetSpec flows{.overlap = way.overlap, .tasks = std::move(tasks)};
  if (way.cut) flows.preemption = Preemption::BetweenBatches, flows.cut = Bytes{100};
  const TaskSetSpec spec = shortest ? with_shortest_period(flows, way, station.machine, longest)
                                    : with_period(std::move(flows), way, longest);
  const auto set = compile(spec, station.machine);
  ASSERT_TRUE(set.has_value()) << set.error().text();
  std::vector<std::unique_ptr<FlowProgram>> programs;
  std::vector<TaskProgram*> table;
  for (std::size_t i = 0; i < spec.tasks.size(); ++i)
    table.push_back(
        programs
            .emplace_back(std::make_unique<FlowProgram>(station.machine, spec.tasks[i], set->tasks[i], way.own_memory))
            .get());
  const auto record = run_tasks(station.executor, admit(*set), table, first_jobs(jobs * spec.tasks.size()));
  ASSERT_TRUE(record.has_value()) << record.error().text();
  std::size_t dropped = 0, compared = 0;
  for (const JobRecord& job : record->jobs) {
    if (job.verdict == JobVerdict::Dropped && !kDevicesAreInTime)
      ++dropped;  // the host was busy
    else
      EXPECT_FALSE(job.error) << job.error->text();
  }
  for (const auto& program : programs) {
    program->expect_as_plain();
    compared += program->jobs();
  }
  EXPECT_EQ(compared + dropped, record->jobs.size());
}

}  // namespace tutti::internal::test
