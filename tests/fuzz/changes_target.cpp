// A file of changes for a small task set: read, asked for and answered while the set runs on the simulated machine.
#include "model/base/document.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "sched/admission/task_changes_yaml.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/small_task_set.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::size_t kMostChangesRun = 16;
constexpr Duration kLength{200'000'000};  // of the run

void run(ChangingTaskSet set, const std::vector<TaskChange>& changes) {
  const PlannedTaskSet planned = set.planned();
  SimulatedMachine machine(planned);
  ChangeRequests requests;
  for (const TaskChange& change : changes) requests.post(change);
  RunOptions options;
  options.arrivals_before = kLength;
  const auto triggers = machine.triggers().value();
  options.triggers = triggers.table();
  const auto record = run_changing_tasks(machine.executor(), std::move(set), machine.programs(), requests, options);
  require(record.has_value(), "a set that changes runs: " + (record ? "" : record.error().text()));
  for (const JobRecord& job : record->jobs) require(!job.missed(), "no job of a set that changes misses its deadline");
}

}  // namespace

bool takes_changes(std::string_view bytes) {
  const auto changes = parse_document(bytes, std::string(kFile)).and_then([](const Node& document) {
    return task_changes_from(document, small_task_set());
  });
  if (!changes) return refused(changes.error());
  if (changes->changes.size() > kMostChangesRun) return true;
  auto set = ChangingTaskSet::make(AdmissionController(planners().front()), small_task_set(), changes->running);
  if (set) run(*std::move(set), changes->changes);
  return true;
}

}  // namespace tutti::internal::fuzz
