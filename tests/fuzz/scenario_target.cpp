// A scenario file for a small task set: read, written back, looked through for a miss, run on the simulated machine.
#include "model/base/document.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "sched/whatif/scenario_yaml.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/small_task_set.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::size_t kMostJobsRun = 32;

Expected<Scenario> read_scenario(std::string_view text) {
  return parse_document(text, std::string(kFile)).and_then([](const Node& document) {
    return scenario_from(document, small_task_set());
  });
}

void run(const PlannedTaskSet& planned, const Scenario& scenario) {
  SimulatedMachine machine(planned);
  const auto record = run_scenario(machine.executor(), planned, machine.programs(), scenario);
  require(record.has_value(), "a scenario runs: " + (record ? "" : record.error().text()));
  require(record->fatal || record->jobs.size() == scenario.jobs.size(), "each job of a scenario has a record");
}

}  // namespace

bool takes_scenario(std::string_view bytes) {
  static const PlannedTaskSet planned = AdmissionController(planners().front()).plan(small_task_set());
  const auto scenario = read_scenario(bytes);
  if (!scenario) return refused(scenario.error());
  const std::string text = to_yaml(*scenario, small_task_set());
  const auto again = read_scenario(text);
  require(again.has_value() && *again == *scenario, "a scenario reads back as it was:\n" + text);
  if (scenario->jobs.size() > kMostJobsRun) return true;
  (void)first_miss(planned.timings, planned.tasks.policy, *scenario);
  run(planned, *scenario);
  return true;
}

}  // namespace tutti::internal::fuzz
