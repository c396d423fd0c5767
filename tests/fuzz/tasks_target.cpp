// A task file on the shipped machine that it names: read, its tasks planned, decided, the answer reported, a
// counter-example written and read.
#include "apps/tutti/reports/report.hpp"
#include "model/base/document.hpp"
#include "sched/admission/admission.hpp"
#include "sched/tasks/task_yaml.hpp"
#include "sched/whatif/scenario_yaml.hpp"
#include "tests/fuzz/known_machines.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

// Bounds of what is decided.
constexpr std::size_t kMostTasksDecided = 6;
constexpr std::size_t kMostStreamsDecided = 12;

std::size_t streams_of(const TaskSet& set) {
  std::size_t streams = 0;
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task)) streams += batch->streams().size();
  return streams;
}

void decide(const TaskSet& set) {
  const Planner& planner = set.planner == nullptr ? planners().front() : *set.planner;
  const AdmissionVerdict verdict = AdmissionController(planner).decide(set);
  const auto misses = counter_example(verdict, set.policy);
  require((verdict.answer == Answer::Schedulable) == verdict.admitted.has_value(), "what is schedulable is admitted");
  require(!misses || verdict.answer == Answer::NotSchedulable, "only a refused set has a counter-example");
  require(!verdict_text(set, verdict, misses).empty(), "a verdict is reported");
  require(!verdict_json(set, verdict, misses).dump().empty(), "a verdict is reported");
  if (!misses) return;
  const std::string text = to_yaml(*misses, set);
  const auto again =
      parse_document(text, std::string(kFile)).and_then([&](const Node& node) { return scenario_from(node, set); });
  require(again.has_value(), "a counter-example is read: " + (again ? "" : again.error().text()) + "\n" + text);
  require(*again == *misses, "a counter-example reads back as it was:\n" + text);
}

}  // namespace

bool takes_tasks(std::string_view bytes) {
  const auto document = parse_document(bytes, std::string(kFile));
  if (!document) return refused(document.error());
  const auto study = study_from(*document, machine_named_in(*document));
  if (!study) return refused(study.error());
  const TaskSet& set = study->tasks;
  if (set.tasks.size() <= kMostTasksDecided && streams_of(set) <= kMostStreamsDecided) decide(set);
  return true;
}

}  // namespace tutti::internal::fuzz
