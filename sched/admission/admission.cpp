#include "sched/admission/admission.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "model/base/wide.hpp"
#include "sched/admission/chain_admission.hpp"
#include "sched/analyses/hold_ups.hpp"
#include "sched/analyses/partition_verdict.hpp"
#include "sched/analyses/utilization.hpp"
#include "sched/tasks/compile_after.hpp"
#include "sched/tasks/cut.hpp"
#include "sched/tasks/shared_buffers.hpp"

namespace tutti::internal {
namespace {

/// Most entries in a reason's list of tasks; where there are more tasks, the last entry sums up the rest.
constexpr std::size_t kMostNamed = 10;
/// Cap on the bytes of one task: above any memory, and far from overflow when summed over all tasks of a file.
constexpr Wide kManyBytes = Wide{1} << 100;

/// Bytes of a task's buffers by vertex: without names, each transfer has one at its source and one at its destination.
/// @param sets  jobs that can be alive
std::map<VertexId, Wide> device_bytes(const Task& task, Wide sets) {
  std::map<VertexId, Wide> bytes;
  const auto add = [&](VertexId where, Bytes size, Wide times) {
    bytes[where] += size.count > kManyBytes / times ? kManyBytes : size.count * times;
  };
  for (const NamedBuffer& buffer : task.buffers)
    if (buffer.owner().empty()) add(buffer.in, buffer.size, buffer.is_kept ? 1 : sets);
  for (const Batch* batch : batches_of(task)) {
    for (const CommandStream& stream : batch->streams()) {
      if (!stream.transfer || stream.copied) continue;
      for (const VertexId end : {stream.transfer->from, stream.transfer->to})
        add(end, bytes_at(batch->machine(), *stream.transfer, end), sets);
    }
  }
  return bytes;
}

std::string in_bytes(Wide bytes) {
  constexpr Wide kMost = std::numeric_limits<std::int64_t>::max();
  return bytes > kMost ? "more than 9 EB" : to_string(Bytes{static_cast<std::int64_t>(bytes)});
}

std::string describe(const Verdict& verdict, const TaskSet& set) {
  if (!verdict.late_run.empty()) {
    return fmt::format("{}: {}", verdict.test, describe_late_run(verdict.late_run, [&](const ExecutedJob& job) {
                         return fmt::format("job {} of '{}'", job.number, set.tasks[job.source].name);
                       }));
  }
  if (!verdict.witness) return fmt::format("{}: {}", verdict.test, verdict.reason);
  const Witness& witness = *verdict.witness;
  const auto name = [&](TaskId task) { return set.tasks[task.index()].name; };
  std::string text = fmt::format("{}: ", verdict.test);
  if (witness.task) text += fmt::format("task '{}' can miss its deadline: ", name(*witness.task));
  if (witness.interval <= Duration{0})
    return text + "after its jitter there is no time left before it; lower one or raise the other";
  text += fmt::format("in an interval of {} there is {} of work", to_string(witness.interval), to_string(witness.load));
  std::string parts;
  Duration others{};
  const std::size_t named = witness.by_task.size() > kMostNamed ? kMostNamed - 1 : witness.by_task.size();
  for (const TaskLoad& load : std::span(witness.by_task).first(named))
    parts += fmt::format("{}{} of '{}'", parts.empty() ? "" : ", ", to_string(load.load), name(load.task));
  for (const TaskLoad& load : std::span(witness.by_task).subspan(named)) others += load.load;
  if (others > Duration{0})
    parts += fmt::format(", {} of {} other tasks", to_string(others), witness.by_task.size() - named);
  if (witness.blocker) {
    parts += fmt::format("{}{} of '{}', which had just started", parts.empty() ? "" : ", ", to_string(witness.blocking),
                         name(*witness.blocker));
  }
  if (witness.held_up > Duration{0})
    parts += fmt::format(", {} for which the machine may be held up", to_string(witness.held_up));
  return parts.empty() ? text : fmt::format("{} ({})", text, parts);
}

/// Combined answer of all tests of one partition.
Answer combine(std::span<const Verdict> tests) {
  const auto any = [&](Answer answer) {
    return std::any_of(tests.begin(), tests.end(), [&](const Verdict& test) { return test.answer == answer; });
  };
  if (any(Answer::NotSchedulable)) return Answer::NotSchedulable;
  return any(Answer::Schedulable) ? Answer::Schedulable : Answer::Unknown;
}

/// Combined answer of two conditions that must both hold.
Answer both(Answer a, Answer b) {
  if (a == Answer::Schedulable || b == Answer::NotSchedulable) return b;
  return a;
}

/// Reasons of the tests that refused or, where the answer is unknown, of those that could not decide. A witness that
/// several tests share is described once.
/// @param answers  [partitions]
std::vector<std::string> reasons_of(const AdmissionVerdict& verdict, const TaskSet& set,
                                    std::span<const Answer> answers) {
  std::vector<std::string> reasons;
  std::vector<Witness> reported;
  for (const Verdict& test : verdict.tests) {
    if (verdict.answer == Answer::Schedulable || test.answer != verdict.answer) continue;
    if (verdict.answer == Answer::Unknown && test.exactness == Exactness::Necessary) continue;
    if (test.partition && answers[*test.partition] != verdict.answer) continue;
    if (test.witness && std::find(reported.begin(), reported.end(), *test.witness) != reported.end()) continue;
    if (test.witness) reported.push_back(*test.witness);
    const bool says_partition = test.partition && answers.size() > 1;
    reasons.push_back(says_partition ? fmt::format("partition {}: {}", *test.partition, describe(test, set))
                                     : describe(test, set));
  }
  return reasons;
}

}  // namespace

Verdict check_device_memory(const TaskSet& set, std::span<const TaskTiming> timings) {
  Verdict verdict;
  verdict.test = "device_memory";
  verdict.exactness = Exactness::Necessary;
  std::map<VertexId, Wide> needed;
  std::vector<std::int64_t> alive;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) alive.push_back(buffer_sets(set.tasks[i], timings[i]));
  const std::vector<std::int64_t> sets = sets_of_buffers(set, alive);
  for (std::size_t i = 0; i < set.tasks.size(); ++i)
    for (const auto& [vertex, bytes] : device_bytes(set.tasks[i], sets[i])) needed[vertex] += bytes;
  for (const VertexId gpu : set.machine->gpus()) {
    const Vertex& vertex = set.machine->vertex(gpu);
    if (!vertex.memory || needed[gpu] <= vertex.memory->count) continue;
    verdict.answer = Answer::NotSchedulable;
    verdict.reason += fmt::format("{}the buffers of all tasks need {} on {}, which has {}: {} too much",
                                  verdict.reason.empty() ? "" : "; ", in_bytes(needed[gpu]), vertex.name,
                                  to_string(*vertex.memory), in_bytes(needed[gpu] - vertex.memory->count));
  }
  if (verdict.answer == Answer::Unknown) verdict.reason = "the buffers fit, which says nothing about time";
  return verdict;
}

std::int64_t buffer_sets(const Task& task, const TaskTiming& timing) {
  return std::max(jobs_alive(timing.period, timing.deadline, timing.jitter), slots_of(task));
}

bool ask_for_too_much(std::span<const Partition> partitions, std::span<const TaskTiming> timings) {
  return std::ranges::any_of(partitions, [&](const Partition& partition) {
    return utilization_sum(in_the_long_run(timings_of(partition, timings))).compare_with_one() > 0;
  });
}

Effort effort_of(const TaskSet& set) {
  std::size_t plans = 0;
  for (const Task& task : set.tasks)
    for (const Batch* batch : batches_of(task)) plans += chunks_of(*batch, cut_in_force(set, task));
  return Effort::shared_by(plans);
}

namespace {

/// What is known of the tasks without plans: all but what their jobs take.
std::vector<TaskTiming> timings_without_plans(const TaskSet& set) {
  std::vector<TaskTiming> timings;
  for (const Task& task : set.tasks) {
    TaskTiming& timing = timings.emplace_back();
    timing.period = task.period;
    timing.deadline = task.deadline;
    timing.jitter = task.jitter;
    timing.priority = task.priority;
    timing.offset = task.offset;
    timing.arrivals = set.arrivals;
  }
  return timings;
}

/// Why jobs of this set may not overlap; empty where they may.
std::string refusal_to_overlap(const TaskSet& set) {
  if (set.policy == Policy::CwEdf) return "under cw_edf jobs run one at a time; write 'overlap: off'";
  for (const Task& task : set.tasks)
    if (!task.after.empty())
      return fmt::format("'{}' is after '{}', which is not guaranteed where jobs overlap; write 'overlap: off'",
                         task.name, task.after);
  return "";
}

Answer answer_with_overlap(const TaskSet& set) {
  if (!refusal_to_overlap(set).empty()) return Answer::Unknown;
  if (set.machine && check_device_memory(set, timings_without_plans(set)).answer == Answer::NotSchedulable)
    return Answer::NotSchedulable;
  return answer_overlapping(set);
}

Partition all_of(const TaskSet& set) {
  Partition all;
  for (std::size_t task = 0; task < set.tasks.size(); ++task) all.tasks.emplace_back(task);
  return all;
}

AdmissionVerdict verdict_overlapping(const TaskSet& set) {
  AdmissionVerdict verdict;
  verdict.worst_responses.resize(set.tasks.size());
  verdict.timings = timings_without_plans(set);
  if (std::string refusal = refusal_to_overlap(set); !refusal.empty()) {
    verdict.reasons = {std::move(refusal)};
    return verdict;
  }
  auto found = decide_overlapping(set);
  if (!found) {
    verdict.reasons = {found.error().text()};
    return verdict;
  }
  verdict.overlap = *std::move(found);
  verdict.answer = verdict.overlap->answer;
  verdict.reasons = verdict.overlap->reasons;
  verdict.worst_responses = verdict.overlap->worst_responses;
  for (std::size_t i = 0; i < set.tasks.size(); ++i)
    verdict.timings[i].wcet = longest_alone(verdict.overlap->operations, TaskId{i});
  if (!verdict.overlap->utilization.empty()) verdict.utilization = std::ranges::max(verdict.overlap->utilization);
  if (set.machine) {
    verdict.tests.push_back(check_device_memory(set, verdict.timings));
    if (verdict.tests.back().answer == Answer::NotSchedulable) {
      verdict.answer = Answer::NotSchedulable;
      verdict.reasons.insert(verdict.reasons.begin(), verdict.tests.back().reason);
    }
  }
  const bool refused = verdict.overlap->answer == Answer::NotSchedulable;
  const std::string reason = verdict.overlap->reasons.empty() ? "" : verdict.overlap->reasons.front();
  Verdict& demand = verdict.tests.emplace_back();
  demand.test = "demand_alone";
  demand.exactness = Exactness::Necessary;
  demand.answer = refused ? Answer::NotSchedulable : Answer::Unknown;
  if (refused) demand.witness = verdict.overlap->refusals.front().witness;
  demand.reason = refused ? reason : "no engine or GPU is in demand for more than there is time, which is not enough";
  Verdict& test = verdict.tests.emplace_back();
  test.test = "local_deadlines";
  test.exactness = Exactness::Sufficient;
  test.answer = refused ? Answer::Unknown : verdict.overlap->answer;
  test.reason = reason;
  test.worst_response = verdict.worst_responses;
  return verdict;
}

}  // namespace

namespace {

/// For how long the jobs of one busy period may be held up in all; 0 where that is not known.
Duration hold_ups_together(const TaskSet& set) {
  const auto& known = set.led_by_gpu ? set.machine->spec().setup.conductor_jobs : std::nullopt;
  return known ? known->guaranteed : Duration{0};
}

}  // namespace

PlannedTaskSet AdmissionController::plan(const TaskSet& set) const {
  PlannedTaskSet planned{set, planner_, {}, {}, partitions_of(set)};
  const Effort effort = effort_of(set);
  const auto groups = arrival_groups(set);
  for (const Task& task : set.tasks) {
    const JobBound& bound =
        planned.bounds.emplace_back(bound_job(task, set.machine, *planner_, cut_in_force(set, task), effort));
    const Duration wcet = wcet_of(bound, set.preemption).bound();
    TaskTiming& timing = planned.timings.emplace_back();
    timing = {wcet,
              task.period,
              task.deadline,
              task.jitter,
              task.priority,
              task.offset,
              std::min(task.best_case, wcet),
              set.arrivals};
    if (runs_in_regions(bound, set.preemption)) timing.regions = JobRegions::of(bound.regions);
    timing.arrives_with = groups[planned.timings.size() - 1];
    timing.held_up = bound.held_up;
    timing.held_up_together = hold_ups_together(set);
  }
  return planned;
}

Answer AdmissionController::answer(const TaskSet& set) const { return answer_after(set, 0).answer; }

CutAnswer AdmissionController::answer_after(const TaskSet& set, int further) const {
  const AdmissionVerdict as_cut = short_verdict(set);
  if (as_cut.answer == Answer::Schedulable) return {as_cut.answer, further};
  const std::optional<int> times = times_to_cut_further(set, as_cut, further);
  return times ? CutAnswer{Answer::Schedulable, *times} : CutAnswer{as_cut.answer, further};
}

Answer AdmissionController::answer_as_cut(const TaskSet& set) const { return short_verdict(set).answer; }

namespace {

Answer answer_one_at_a_time(const PlannedTaskSet& planned) {
  const TaskSet& set = planned.tasks;
  if (set.machine && check_device_memory(set, planned.timings).answer == Answer::NotSchedulable)
    return Answer::NotSchedulable;
  Answer answer = Answer::Schedulable;
  for (const Partition& partition : planned.partitions) {
    answer = both(answer, answer_of(timings_of(partition, planned.timings), set.policy));
    if (answer == Answer::NotSchedulable) break;
  }
  return answer;
}

}  // namespace

AdmissionVerdict AdmissionController::short_verdict(const TaskSet& set) const {
  if (has_chain_deadlines(set)) return decide_as_cut(set);
  AdmissionVerdict verdict;
  if (set.overlap != Overlap::On) {
    PlannedTaskSet planned = plan(set);
    verdict.answer = answer_one_at_a_time(planned);
    verdict.timings = std::move(planned.timings);
    verdict.partitions = std::move(planned.partitions);
  }
  if (set.overlap != Overlap::Off && verdict.answer != Answer::Schedulable) verdict.answer = answer_with_overlap(set);
  return verdict;
}

namespace {

/// Runs every applicable test on one partition and records the verdicts.
Answer decide_partition(AdmissionVerdict& verdict, std::size_t number, Policy policy) {
  const Partition& partition = verdict.partitions[number];
  const std::vector<TaskTiming> timings = timings_of(partition, verdict.timings);
  const std::size_t first = verdict.tests.size();
  for (const Analysis& analysis : analyses()) {
    if (!analysis.applies(timings, policy)) continue;
    verdict.tests.push_back(in_whole_set(ask(analysis, timings, policy), partition, verdict.timings.size()));
    Verdict& test = verdict.tests.back();
    test.partition = number;
    keep_smaller(verdict.worst_responses, test.worst_response);  // each test's is a bound
  }
  verdict.utilization = std::max(verdict.utilization, utilization(in_the_long_run(timings)));
  return combine(std::span(verdict.tests).subspan(first));
}

PlannedTaskSet planned_overlapping(const TaskSet& set, const Planner* planner, std::vector<TaskTiming> timings,
                                   const OverlapVerdict& found) {
  PlannedTaskSet planned{set, planner, std::move(timings), std::vector<JobBound>(set.tasks.size()), {all_of(set)}};
  planned.overlap =
      plan_operations(set, found.operations, found.deadlines ? *found.deadlines : in_proportion(set, found.operations));
  return planned;
}

}  // namespace

Expected<PlannedTaskSet> AdmissionController::plan_overlap(const TaskSet& set) const {
  return decide_overlapping(set).map([&](const OverlapVerdict& found) {
    return planned_overlapping(set, planner_, timings_without_plans(set), found);
  });
}

AdmissionVerdict AdmissionController::decide_overlap(const TaskSet& set) const {
  AdmissionVerdict verdict = verdict_overlapping(set);
  if (verdict.answer != Answer::Schedulable) return verdict;
  verdict.admitted = AdmittedTaskSet();
  verdict.admitted->planned_ = planned_overlapping(set, planner_, verdict.timings, *verdict.overlap);
  verdict.admitted->worst_responses_ = verdict.worst_responses;
  return verdict;
}

namespace {

/// Tries to cut a refused set further: first into one piece more each time, then into a quarter more.
constexpr int kSingle = 8, kMostTries = 16;

/// Cuts each batch that is to be cut into one piece more, or a few where several have one `cut`.
/// @param a_quarter  into a quarter more @return whether it can
bool cut_finer(TaskSet& set, bool a_quarter) {
  bool any = false;
  const auto finer = [&](Bytes& size, const std::vector<std::int64_t>& largest) {
    if (largest.empty()) return;
    const CutRange as_now = sizes_with_equal_cuts(largest, size.count);
    if (as_now.least <= 1) return;
    const std::int64_t next = a_quarter ? as_now.least - (as_now.least + 4) / 5 : as_now.least - 1;
    size = Bytes{sizes_with_equal_cuts(largest, std::max<std::int64_t>(next, 1)).rounded()};
    any = true;
  };
  if (set.cut > Bytes{0}) finer(set.cut, transfers_to_cut(set));
  for (Task& task : set.tasks)
    if (task.cut) finer(*task.cut, transfers_to_cut(task));
  return any;
}

/// The set cut further so many times; nothing where it cannot be.
std::optional<TaskSet> cut_further(TaskSet set, int times) {
  for (int i = 0; i < times; ++i)
    if (!cut_finer(set, i >= kSingle)) return std::nullopt;
  return set;
}

/// Whether more pieces may help a refused set: they take no less time.
bool may_be_cut_further(const TaskSet& set, const AdmissionVerdict& refused) {
  const auto is_cut = [](const Task& task) { return task.cut.has_value(); };
  if (set.preemption == Preemption::None || (set.cut == Bytes{0} && std::ranges::none_of(set.tasks, is_cut)))
    return false;
  if (set.overlap != Overlap::On && !ask_for_too_much(refused.partitions, refused.timings)) return true;
  return set.overlap != Overlap::Off && may_fit(set);
}

}  // namespace

AdmissionVerdict AdmissionController::decide(const TaskSet& set) const {
  AdmissionVerdict verdict = decide_as_cut(set);
  if (verdict.answer == Answer::Schedulable) return verdict;
  const std::optional<int> times = times_to_cut_further(set, verdict, 0);
  if (!times) return verdict;
  const TaskSet further = *cut_further(set, *times);
  verdict = decide_as_cut(further);
  if (further.cut != set.cut) verdict.cuts.push_back({{}, further.cut});
  for (std::size_t i = 0; i < set.tasks.size(); ++i)
    if (further.tasks[i].cut != set.tasks[i].cut) verdict.cuts.push_back({TaskId{i}, *further.tasks[i].cut});
  return verdict;
}

/// More pieces are shorter, and each pays the set-up again. Let s <= s' be images of which s' holds in k' pieces, each
/// of s'/k': then s holds in k = ceil(s k' / s') <= k' pieces, since none is longer. From ceil(s / cut) pieces on, k is
/// less than k' - ceil(s' / cut) + 2 further. So single pieces come first; beyond 8 more a few too many do no harm.
std::optional<int> AdmissionController::times_to_cut_further(const TaskSet& set, const AdmissionVerdict& refused,
                                                             int first) const {
  if (!may_be_cut_further(set, refused)) return std::nullopt;
  const auto holds = [&](int times) {
    const auto further = cut_further(set, times);
    return further && answer_as_cut(*further) == Answer::Schedulable;
  };
  for (int times = std::max(first, 1); times <= kMostTries; ++times)
    if (holds(times)) return times;
  for (int times = first - 1; times >= 1; --times)
    if (holds(times)) return times;
  return std::nullopt;
}

AdmissionVerdict AdmissionController::decide_as_cut(const TaskSet& set) const {
  if (set.overlap == Overlap::On) {
    AdmissionVerdict verdict = with_chains(decide_overlap(set), set);
    TaskSet one_at_a_time = set;
    one_at_a_time.overlap = Overlap::Off;
    if (verdict.answer != Answer::Schedulable && answer_as_cut(one_at_a_time) == Answer::Schedulable)
      verdict.reasons.emplace_back("with 'overlap: off' every deadline is guaranteed");
    return verdict;
  }
  AdmissionVerdict verdict = with_chains(decide(plan(set)), set);
  if (set.overlap == Overlap::Off || verdict.answer == Answer::Schedulable) return verdict;
  AdmissionVerdict overlapping = with_chains(decide_overlap(set), set);
  if (overlapping.answer == Answer::Schedulable) return overlapping;
  for (const std::string& reason : overlapping.reasons) verdict.reasons.push_back("where jobs overlap: " + reason);
  return verdict;
}

AdmissionVerdict AdmissionController::decide_as_one(const TaskSet& set) const {
  PlannedTaskSet planned = plan(set);
  planned.tasks.chains.clear();
  planned.partitions = {all_of(set)};
  return decide(std::move(planned));
}

AdmissionVerdict AdmissionController::decide(PlannedTaskSet planned) const {
  const TaskSet& set = planned.tasks;
  AdmissionVerdict verdict;
  verdict.planner = planner_;
  verdict.timings = planned.timings;
  verdict.partitions = planned.partitions;
  verdict.worst_responses.resize(set.tasks.size());
  verdict.answer = Answer::Schedulable;
  if (set.machine) {
    verdict.tests.push_back(check_device_memory(set, verdict.timings));
    if (verdict.tests.back().answer == Answer::NotSchedulable) verdict.answer = Answer::NotSchedulable;
  }
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < planned.partitions.size(); ++i) {
    answers.push_back(decide_partition(verdict, i, set.policy));
    verdict.answer = both(verdict.answer, answers.back());
  }
  verdict.reasons = reasons_of(verdict, set, answers);
  if (verdict.answer == Answer::Schedulable) {
    for (std::size_t i = 0; i < set.tasks.size(); ++i)  // where no test gives a response, all deadlines still hold
      if (!verdict.worst_responses[i]) verdict.worst_responses[i] = set.tasks[i].deadline;
    verdict.admitted = AdmittedTaskSet();
    verdict.admitted->planned_ = std::move(planned);
    verdict.admitted->worst_responses_ = verdict.worst_responses;
  }
  return verdict;
}

PlannedTaskSet part_of(const PlannedTaskSet& planned, std::size_t partition) {
  PlannedTaskSet part{planned.tasks, planned.planner, {}, {}, {Partition{}}, planned.overlap};
  part.tasks.tasks.clear();
  part.tasks.chains.clear();  // they may leave the partition
  for (const TaskId task : planned.partitions[partition].tasks) {
    part.partitions[0].tasks.emplace_back(part.tasks.tasks.size());
    part.tasks.tasks.push_back(planned.tasks.tasks[task.index()]);
    part.timings.push_back(planned.timings[task.index()]);
    part.bounds.push_back(planned.bounds[task.index()]);
  }
  return part;
}

AdmittedTaskSet AdmittedTaskSet::part(std::size_t partition) const {
  AdmittedTaskSet part;
  part.planned_ = part_of(planned_, partition);
  for (const TaskId task : planned_.partitions[partition].tasks)
    part.worst_responses_.push_back(worst_responses_[task.index()]);
  return part;
}

}  // namespace tutti::internal
