#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/clock.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::test {

/// A program with the pattern's buffers that counts the ends of jobs.
class Listening final : public TaskProgram {
 public:
  Listening(const Topology& machine, const Task& task) : buffers_(machine, task, 1) {}
  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& batch, std::size_t number,
                                            std::size_t set) override {
    return buffers_.bind(backend, batch, number, set);
  }
  bool fills_input() const override { return fills; }
  void on_ready(const Job& job) override {
    if (when_ready) when_ready(job);
  }
  bool hears_of_end() const override { return hears; }
  void on_finished(const Job& job) override {
    ++finished;
    if (when_finished) when_finished(job);
  }

  bool fills = false, hears = false;
  int finished = 0;
  std::function<void(const Job&)> when_ready, when_finished;

 private:
  PatternProgram buffers_;
};

/// Virtual time of a host that oversleeps now and then.
class DrowsyClock final : public Clock {
 public:
  /// @param most  ns
  explicit DrowsyClock(Random& random, int most = 5000) : random_(random), most_(most) {}
  std::string_view name() const override { return "drowsy"; }
  Duration now() const override { return time_.now(); }
  using Clock::wait_until;
  void wait_until(Duration at) override {
    const bool oversleeps = at > now() && at < kNever && random_.one_in(8);
    time_.wait_until(oversleeps ? at + Duration{random_.between(1, most_)} : at);
  }
  Duration aside(Duration start, const std::function<void()>& work) override { return time_.aside(start, work); }
  bool runs_by_itself() const override { return false; }

 private:
  VirtualClock time_;
  Random& random_;
  int most_;
};

/// A memory that copies fill, and a conductor that takes so long for each region, and for one visit.
inline Topology led_machine(Duration conductor = Duration{20}, std::optional<Duration> visit = {}) {
  const Topology machine = changed(small_machine("2 GB/s"), [&](MachineSpec& spec) {
    spec.setup.conductor = {conductor, conductor};
    spec.setup.conductor_job = {Duration{0}, Duration{30}};
    if (visit) spec.setup.conductor_visit = Cost{*visit};
  });
  return *machine.led_by_gpu();
}

/// A job copies up for kernels, to one GPU or two, and mostly brings results down.
inline Task drawn_led_task(Random& random, const Topology& machine, const std::string& name) {
  const VertexId mem = *machine.find_vertex("mem0");
  const auto gpu = [&] { return *machine.find_vertex(random.one_in(2) ? "gpu0" : "gpu1"); };
  Task task;
  task.name = name;
  task.period = Duration{random.between(3'000, 30'000)};
  task.deadline = task.period * random.between(1, 3);
  task.offset = Duration{random.between(0, 5'000)};
  std::vector<CommandStream> up, down;
  for (int i = random.between(1, 2); i > 0; --i) {
    CommandStream& stream =
        up.emplace_back(copy_stream("up" + std::to_string(i), mem, gpu(), random.between(50, 2'000)));
    if (random.one_in(2)) {
      const Duration time{random.between(50, 800)};
      stream.kernel = Kernel{stream.transfer->to, time, time, "spin"};
    }
  }
  for (int i = random.between(0, 2); i > 0; --i)
    down.push_back(copy_stream("down" + std::to_string(i), gpu(), mem, random.between(50, 1'000)));
  task.steps.emplace_back(Batch::make(machine, std::move(up)).value());
  if (!down.empty()) task.steps.emplace_back(Batch::make(machine, std::move(down)).value());
  return task;
}

inline TaskSet drawn_led_set(Random& random, const Topology& machine) {
  TaskSet set{machine, random.one_in(2) ? Policy::Edf : Policy::Dm, {}};
  set.overlap = Overlap::On;
  set.deadline_at = DeadlineAt::Device;
  set.led_by_gpu = true;
  if (random.one_in(3)) {
    set.preemption = Preemption::BetweenBatches;
    set.cut = Bytes{random.between(300, 1'500)};
  }
  for (int i = random.between(1, 4); i > 0; --i)
    set.tasks.push_back(drawn_led_task(random, machine, std::string(1, static_cast<char>('e' - i))));
  return set;
}

}  // namespace tutti::internal::test
