// A task file on the shipped machine that it names: read, its tasks planned, decided, the answer reported, a
// counter-example written and read, remedies looked for, its first jobs run on the simulated machine.
#include <algorithm>

#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"
#include "runtime/dispatch/partitioned_run.hpp"
#include "sched/admission/admission.hpp"
#include "sched/admission/sooner_plans.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "sched/whatif/remedies.hpp"
#include "sched/whatif/scenario_yaml.hpp"
#include "tests/fuzz/known_machines.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/small_task_set.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

// Bounds: of what is decided, of what remedies are looked for in, of what is run.
constexpr std::size_t kMostTasksDecided = 6;
constexpr std::size_t kMostStreamsDecided = 12;
constexpr std::size_t kMostTasksRemedied = 2;
constexpr std::size_t kMostStreamsRemedied = 3;
constexpr std::uint64_t kMostJobsOfSetRun = 16;
constexpr Bytes kMostBytesRun{100'000};

struct Size {
  std::size_t tasks = 0;
  std::size_t streams = 0;
  std::int64_t bytes = 0;  ///< of the largest transfer
};

Size size_of(const TaskSet& set) {
  Size size{set.tasks.size()};
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task)) {
      size.streams += batch->streams().size();
      for (const CommandStream& stream : batch->streams())
        if (stream.transfer) size.bytes = std::max(size.bytes, stream.transfer->size.count);
    }
  return size;
}

void write_and_read(const Scenario& misses, const TaskSet& set) {
  const std::string text = to_yaml(misses, set);
  const auto again =
      parse_document(text, std::string(kFile)).and_then([&](const Node& node) { return scenario_from(node, set); });
  require(again.has_value(), "a counter-example is read: " + (again ? "" : again.error().text()) + "\n" + text);
  require(*again == misses, "a counter-example reads back as it was:\n" + text);
}

/// Whether a task asks for jobs to be left out that are inside their bounds.
bool has_too_small_budget(const PlannedTaskSet& planned, TaskId task) {
  const auto& budget = planned.tasks.tasks[task.index()].overrun.budget;
  return budget && *budget < planned.timings[task.index()].wcet;
}

/// Runs the first jobs of an admitted set: none of them misses its deadline, but where its task has too small a budget.
void run(const AdmittedTaskSet& admitted) {
  const PlannedTaskSet& planned = admitted.planned();
  if (planned.partitions.size() > 1 || !planned.tasks.machine) return;
  SimulatedMachine machine(planned);
  RunOptions options;
  options.jobs = kMostJobsOfSetRun;
  const auto triggers = machine.triggers().value();
  options.triggers = triggers.table();
  const auto record = run_tasks(machine.executor(), admitted, machine.programs(), options);
  if (!record) {
    require(!record.error().message.empty(), "a run that does not start has a reason");
    return;
  }
  require(!record->fatal, "a run ends well: " + (record->fatal ? record->fatal->text() : ""));
  for (const JobRecord& job : record->jobs)
    require(!job.missed() || has_too_small_budget(planned, job.task), "no job of an admitted set misses its deadline");
}

void decide(const TaskStudy& study) {
  const TaskSet& set = study.tasks;
  const Planner& planner = set.planner == nullptr ? planners().front() : *set.planner;
  const AdmissionVerdict verdict = AdmissionController(planner).decide(set);
  const auto misses = counter_example(verdict, set.policy);
  require((verdict.answer == Answer::Schedulable) == verdict.admitted.has_value(), "what is schedulable is admitted");
  require(!misses || verdict.answer == Answer::NotSchedulable, "only a refused set has a counter-example");
  require(!verdict_text(set, verdict, misses).empty(), "a verdict is reported");
  require(!json_of(verdict_output(set, verdict, misses)).dump().empty(), "a verdict is reported");
  if (misses) write_and_read(*misses, set);
  const Size size = size_of(set);
  if (size.tasks <= kMostTasksRemedied && size.streams <= kMostStreamsRemedied) {
    (void)find_sooner_plans(set, verdict);
    (void)find_remedies(study, planner, verdict);
  }
  if (verdict.admitted && size.bytes <= kMostBytesRun.count) run(*verdict.admitted);
}

}  // namespace

bool takes_tasks(std::string_view bytes) {
  const auto document = parse_document(bytes, std::string(kFile));
  if (!document) return refused(document.error());
  const auto study = study_from(*document, machine_named_in(*document));
  if (!study) return refused(study.error());
  const Size size = size_of(study->tasks);
  if (size.tasks <= kMostTasksDecided && size.streams <= kMostStreamsDecided) decide(*study);
  return true;
}

}  // namespace tutti::internal::fuzz
