#include "sched/admission/conductor_choice.hpp"

#include <optional>
#include <utility>

#include <fmt/format.h>

namespace tutti::internal {

ConductorChoice decide_by_conductor(const AdmissionController& controller, TaskStudy study) {
  AdmissionVerdict verdict = controller.decide(study.tasks);
  const bool is_guaranteed = verdict.answer == Answer::Schedulable;
  std::optional<TaskStudy> by_host = is_guaranteed ? std::nullopt : led_by_host_instead(study);
  if (!by_host) return {std::move(study), std::move(verdict)};
  by_host->tasks.why_host = "a GPU's conductor does not guarantee the deadlines, and the host's does";
  if (!verdict.reasons.empty()) by_host->tasks.why_host += fmt::format(" ({})", verdict.reasons.front());
  AdmissionVerdict other = controller.decide(by_host->tasks);
  if (other.answer == Answer::Schedulable) return {*std::move(by_host), std::move(other)};
  verdict.reasons.emplace_back("with 'conductor: host' no deadline is guaranteed either");
  return {std::move(study), std::move(verdict)};
}

}  // namespace tutti::internal
