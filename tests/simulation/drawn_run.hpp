#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/dispatch/task_program.hpp"
#include "runtime/sim/fault_backend.hpp"
#include "runtime/triggers/simulated_triggers.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/run_faults.hpp"
#include "tests/runtime/small_machine.hpp"
#include "tests/support/random.hpp"

namespace tutti::internal::simulation {

/// The small machine of the tests; two thirds of the time its commands have costs, and then it has a margin at times.
[[nodiscard]] Topology drawn_machine(test::Random& random);

/// A set of two to so many tasks that is admitted, as busy as the draw says, or less where that is refused. The jobs of
/// every third set overlap.
/// @param overlap  of all sets, not of every third
[[nodiscard]] AdmittedTaskSet drawn_set(const test::Station& station, test::Random& random, std::size_t most,
                                        bool overlap);

/// What goes wrong with a trigger, in or out of the envelope of its task: the runtime lets no job out of it.
[[nodiscard]] TriggerFault drawn_trigger(test::Random& random, Duration period);

/// What is true of the machine and the programs in one run, where it is not what is declared.
struct Truth {
  Truth(std::uint64_t seed, bool keeps_envelope, const AdmittedTaskSet& admitted, const Topology& machine,
        std::uint64_t jobs);

  /// Nothing, or far beyond the envelope.
  [[nodiscard]] Duration beyond(bool happens) { return happens && random.one_in(one_in) ? by : Duration{0}; }

  test::Random random;
  bool inside = false;  ///< nothing takes longer than declared
  std::uint64_t one_in = 1;
  bool late_submit = false, late_return = false, fails = false, programs_busy = false;
  Duration by{};
  RunFaults faults;  ///< of the machine and its host: rates, costs, times; what hangs and what is lost
};

/// What a list of faults does not have: ends that are noticed late, anywhere within a batch's latest finish, or where
/// batches overlap within what a job may be held up, and errors and pauses of the driver.
class DriverFaults final : public BatchFaults {
 public:
  DriverFaults(Truth& truth, bool overlaps) : truth_(truth), overlaps_(overlaps) {}
  [[nodiscard]] const BatchFault* of(const BatchRun& run) override;

 private:
  Truth& truth_;
  bool overlaps_;
  JobLabel job_;  // of the last run
  BatchFault fault_;
};

/// A task's program: patterns as input, and programs that take their time beside their jobs as the truth says.
class DrawnProgram final : public TaskProgram {
 public:
  DrawnProgram(const Topology& machine, const Task& task, std::uint64_t seed, Truth& truth)
      : buffers_(machine, task, seed), truth_(truth) {}

  Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation, std::size_t batch,
                                            std::size_t set) override {
    return buffers_.bind(backend, operation, batch, set);
  }
  void on_ready(const Job& job) override { pass(job); }
  void on_finished(const Job& job) override { pass(job); }

 private:
  void pass(const Job& job) {
    Clock& clock = job.executor().clock();
    clock.wait_until(clock.now() + truth_.beyond(truth_.programs_busy));
  }

  PatternProgram buffers_;
  Truth& truth_;
};

}  // namespace tutti::internal::simulation
