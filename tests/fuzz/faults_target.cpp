// A file of faults for a small task set: read, met by the set's first jobs on the simulated machine.
#include "model/base/document.hpp"
#include "runtime/dispatch/faulty_machines.hpp"
#include "runtime/dispatch/partitioned_run.hpp"
#include "sched/whatif/run_faults_yaml.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/small_task_set.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::uint64_t kJobsWithFaults = 12;

AdmittedTaskSet admitted_small_set() {
  return *AdmissionController(planners().front()).decide(small_task_set()).admitted;
}

/// A run ends, whatever goes wrong: every job that was released has a verdict, and what ended it is said.
void run(const AdmittedTaskSet& admitted, const RunFaults& faults) {
  SimulatedMachine machine(admitted.planned());
  Executor* const executor = &machine.executor();
  const FaultyMachines faulty({&executor, 1}, machine.programs(), admitted.planned(), faults, Watchdog{}, 1);
  const auto triggers =
      machine.triggers([&](TaskId task, std::uint64_t number, Duration at) { return faulty.trigger(task, number, at); })
          .value();
  RunOptions options;
  options.jobs = kJobsWithFaults;
  options.triggers = triggers.table();
  const auto record = run_tasks(faulty.executors(), admitted, faulty.programs(), options);
  require(record.has_value(), "a set with faults runs: " + (record ? "" : record.error().text()));
  require(!record->fatal || !record->fatal->message.empty(), "what ended a run is said");
  for (const JobRecord& job : record->jobs)
    require(job.verdict != JobVerdict::Failed || job.error.has_value(), "a job that failed says why");
  require(faulty.counts().size() == faults.faults.size(), "each fault is counted");
}

}  // namespace

bool takes_faults(std::string_view bytes) {
  static const AdmittedTaskSet admitted = admitted_small_set();
  const auto faults = parse_document(bytes, std::string(kFile)).and_then([](const Node& document) {
    return run_faults_from(document, small_task_set());
  });
  if (!faults) return refused(faults.error());
  run(admitted, *faults);
  return true;
}

}  // namespace tutti::internal::fuzz
