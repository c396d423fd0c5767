#include "runtime/dispatch/faulty_machines.hpp"

#include <algorithm>

#include "model/base/expects.hpp"

namespace tutti::internal {

/// One partition's machine, and those that have taken its place. All have the faults of one script and the host's
/// clock.
struct FaultyMachines::Machine final : BatchFaults {
  /// A machine behind the faults.
  struct Wrapped {
    Wrapped(Executor& inner, Machine& machine, std::size_t first)
        : backend(inner.backend(), machine.clock, machine, first),
          executor(inner.machine(), backend, machine.clock, inner.role()) {}
    FaultBackend backend;
    Executor executor;
  };

  Machine(Executor& inner, const PlannedTaskSet& planned, const RunFaults& faults, const Watchdog& watchdog,
          std::uint64_t seed)
      : script(faults, planned.tasks, inner.machine(), watchdog, seed),
        clock(inner.clock(), FaultScript::stalls_of(faults)) {
    add(inner);
  }
  Executor& add(Executor& inner) {
    const std::size_t first = wrapped.empty() ? 0 : wrapped.back()->backend.batches();
    return wrapped.emplace_back(std::make_unique<Wrapped>(inner, *this, first))->executor;
  }

  void begin(Duration at) override {
    script.begin(at);
    clock.begin(at);
  }
  [[nodiscard]] const BatchFault* of(const BatchRun& run) override { return script.of(run); }

  FaultScript script;
  FaultClock clock;
  std::vector<std::unique_ptr<Wrapped>> wrapped;
};

/// The program of one task, whose work on the host may take longer.
class FaultyMachines::Program final : public TaskProgram {
 public:
  Program(TaskProgram& program, FaultScript& script, TaskId task) : program_(program), script_(script), task_(task) {}

  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation, std::size_t batch,
                                            std::size_t choice) override {
    return program_.bind(backend, operation, batch, choice);
  }
  [[nodiscard]] Expected<void> make_sets(DeviceBackend& backend, std::size_t sets) override {
    return program_.make_sets(backend, sets);
  }
  [[nodiscard]] NamedMemory* memory() override { return program_.memory(); }
  void sets_are_made(std::size_t choices) override { program_.sets_are_made(choices); }
  [[nodiscard]] Expected<void> on_start(Executor& executor) override { return program_.on_start(executor); }
  [[nodiscard]] bool fills_input() const override { return program_.fills_input(); }
  void on_ready(const Job& job) override { program_.on_ready(job); }
  Expected<void> on_host_step(Job& job, std::size_t step) override {
    const Duration declared = std::get<HostStep>(job.task().steps[step]).time;
    return lengthened(job, declared, [&] { return program_.on_host_step(job, step); });
  }
  Expected<void> on_work(Job& job) override {
    const Duration declared = job.takes.value_or(job.task().declared_wcet.value_or(Duration{0}));
    return lengthened(job, declared, [&] { return program_.on_work(job); });
  }
  [[nodiscard]] bool hears_of_end() const override { return program_.hears_of_end(); }
  [[nodiscard]] bool is_reached() const override { return program_.is_reached(); }
  void on_finished(const Job& job) override { program_.on_finished(job); }
  void on_missed(const Job& job, const JobRecord& record) override { program_.on_missed(job, record); }
  void on_dropped(const Job& job, const JobRecord& record) override { program_.on_dropped(job, record); }
  void on_failed(const Job& job, const JobRecord& record) override { program_.on_failed(job, record); }

 private:
  template <class Work>
  Expected<void> lengthened(Job& job, Duration declared, const Work& work) {
    Clock& clock = job.executor().clock();
    const Duration start = clock.now();
    const Duration takes = script_.host_time(task_, job.index, declared, start);
    auto done = work();
    if (takes > declared) clock.wait_until(add_saturating(start, takes));
    return done;
  }

  TaskProgram& program_;
  FaultScript& script_;
  TaskId task_;
};

FaultyMachines::FaultyMachines(std::span<Executor* const> machines, std::span<TaskProgram* const> programs,
                               const PlannedTaskSet& planned, const RunFaults& faults, const Watchdog& watchdog,
                               std::uint64_t seed, SpareMachines* spares)
    : faults_(faults),
      spares_(spares),
      wrapped_(programs.size()),
      programs_(programs.size()),
      scripts_(programs.size()) {
  TUTTI_EXPECTS(machines.size() == planned.partitions.size(), "each partition has its machine");
  for (std::size_t i = 0; i < machines.size(); ++i) {
    Machine& machine =
        *machines_.emplace_back(std::make_unique<Machine>(*machines[i], planned, faults, watchdog, seed));
    executors_.push_back(&machine.wrapped.front()->executor);
    for (const TaskId task : planned.partitions[i].tasks) {
      auto& wrapped = wrapped_[task.index()];
      wrapped = std::make_unique<Program>(*programs[task.index()], machine.script, task);
      programs_[task.index()] = wrapped.get();
      scripts_[task.index()] = &machine.script;
    }
  }
}

FaultyMachines::~FaultyMachines() = default;

Expected<Executor*> FaultyMachines::without(std::size_t partition, std::span<const VertexId> lost) {
  TUTTI_EXPECTS(spares_ != nullptr, "faulty machines have spare ones where they were given some");
  return spares_->without(partition, lost).map([&](Executor* inner) { return &machines_[partition]->add(*inner); });
}

TriggerFault FaultyMachines::trigger(TaskId task, std::uint64_t number, Duration at) const {
  return scripts_[task.index()]->trigger(task, number, at);
}

std::vector<std::uint64_t> FaultyMachines::counts() const {
  std::vector<std::uint64_t> counts(faults_.faults.size());
  for (const auto& machine : machines_) {
    const auto stalls = machine->clock.counts();
    for (std::size_t i = 0, stall = 0; i < counts.size(); ++i) {
      counts[i] += machine->script.counts()[i];
      if (faults_.faults[i].kind == FaultKind::HostStall) counts[i] += stalls[stall++];
    }
  }
  return counts;
}

}  // namespace tutti::internal
