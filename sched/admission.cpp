#include "sched/admission.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "sched/utilization.hpp"

namespace tutti {
namespace {

__extension__ typedef __int128 Wide;

/// What the buffers of one job take on each GPU: one for each end of a stream that lies there.
std::map<VertexId, Wide> device_bytes(const Task& task) {
  std::map<VertexId, Wide> bytes;
  for (const JobStep& step : task.steps) {
    const auto* batch = std::get_if<BatchOperation>(&step);
    if (batch == nullptr) continue;
    for (const CommandStream& stream : batch->streams()) {
      if (!stream.transfer) continue;
      bytes[stream.transfer->from] += stream.transfer->size.count;
      bytes[stream.transfer->to] += stream.transfer->size.count;
    }
  }
  return bytes;
}

std::string in_bytes(Wide bytes) {
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  return bytes > kMost ? "more than 9 EB" : to_string(Bytes{static_cast<std::int64_t>(bytes)});
}

/// Whether the buffers of all tasks fit into every GPU whose memory is known.
Verdict check_device_memory(const TaskSet& set, std::span<const TaskTiming> timings) {
  Verdict verdict;
  verdict.test = "device_memory";
  verdict.exactness = Exactness::Necessary;
  if (!set.machine) return verdict;
  std::map<VertexId, Wide> needed;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    for (const auto& [vertex, bytes] : device_bytes(set.tasks[i])) needed[vertex] += bytes * buffer_sets(timings[i]);
  }
  for (const VertexId gpu : set.machine->gpus()) {
    const Vertex& vertex = set.machine->vertex(gpu);
    if (!vertex.memory || needed[gpu] <= vertex.memory->count) continue;
    verdict.answer = Answer::NotSchedulable;
    verdict.reason += fmt::format("{}the buffers of all tasks need {} on {}, which has {}: {} too much", verdict.reason.empty() ? "" : "; ",
                                  in_bytes(needed[gpu]), vertex.name, to_string(*vertex.memory),
                                  in_bytes(needed[gpu] - vertex.memory->count));
  }
  if (verdict.answer == Answer::Unknown) verdict.reason = "the buffers fit, which says nothing about time";
  return verdict;
}

std::string describe(const Verdict& verdict, const TaskSet& set) {
  if (!verdict.witness) return fmt::format("{}: {}", verdict.test, verdict.reason);
  const Witness& witness = *verdict.witness;
  const auto name = [&](TaskId task) { return set.tasks[task.index()].name; };
  std::string text = fmt::format("{}: ", verdict.test);
  if (witness.task) text += fmt::format("task '{}' can miss its deadline: ", name(*witness.task));
  text += fmt::format("in an interval of {} there is {} of work", to_string(witness.interval), to_string(witness.load));
  std::string parts;
  for (const TaskLoad& load : witness.by_task) {
    parts += fmt::format("{}{} of '{}'", parts.empty() ? "" : ", ", to_string(load.load), name(load.task));
  }
  if (witness.blocker) {
    parts += fmt::format("{}{} of '{}', which had just started", parts.empty() ? "" : ", ", to_string(witness.blocking),
                         name(*witness.blocker));
  }
  return parts.empty() ? text : fmt::format("{} ({})", text, parts);
}

Answer combine(std::span<const Verdict> tests) {
  const auto any = [&](Answer answer) {
    return std::any_of(tests.begin(), tests.end(), [&](const Verdict& test) { return test.answer == answer; });
  };
  if (any(Answer::NotSchedulable)) return Answer::NotSchedulable;
  return any(Answer::Schedulable) ? Answer::Schedulable : Answer::Unknown;
}

}  // namespace

std::int64_t buffer_sets(const TaskTiming& timing) {
  if (timing.deadline <= timing.period) return 1;
  const Wide alive = Wide{timing.deadline.count()} + timing.jitter.count();
  return static_cast<std::int64_t>((alive + timing.period.count() - 1) / timing.period.count());
}

AdmissionVerdict AdmissionController::decide(const TaskSet& set) const {
  AdmissionVerdict verdict;
  std::vector<JobBound> bounds;
  for (const Task& task : set.tasks) {
    bounds.push_back(bound_job(task, set.machine, *planner_));
    verdict.timings.push_back({bounds.back().wcet.bound(), task.period, task.deadline, task.jitter});
  }
  verdict.utilization = utilization(verdict.timings);
  verdict.worst_responses.resize(set.tasks.size());
  verdict.tests.push_back(check_device_memory(set, verdict.timings));
  for (const Analysis& analysis : analyses()) {
    if (!analysis.applies(verdict.timings, set.policy)) continue;
    verdict.tests.push_back(analysis.decide(verdict.timings, set.policy));
    const Verdict& test = verdict.tests.back();
    if (!test.worst_response.empty()) verdict.worst_responses = test.worst_response;
  }
  verdict.answer = combine(verdict.tests);
  for (const Verdict& test : verdict.tests) {
    const bool tells = test.answer == Answer::NotSchedulable ||
                       (verdict.answer == Answer::Unknown && test.exactness != Exactness::Necessary);
    if (tells) verdict.reasons.push_back(describe(test, set));
  }
  if (verdict.answer == Answer::Schedulable) {
    verdict.admitted = AdmittedTaskSet();
    verdict.admitted->tasks_ = set;
    verdict.admitted->planner_ = planner_;
    verdict.admitted->timings_ = verdict.timings;
    verdict.admitted->bounds_ = std::move(bounds);
    verdict.admitted->worst_responses_ = verdict.worst_responses;
  }
  return verdict;
}

}  // namespace tutti
