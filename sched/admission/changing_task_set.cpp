#include "sched/admission/changing_task_set.hpp"

#include <fmt/format.h>

#include "sched/tasks/shared_buffers.hpp"

namespace tutti::internal {

Expected<ChangingTaskSet> ChangingTaskSet::make(const AdmissionController& controller, const TaskSet& all,
                                                std::span<const TaskId> running) {
  if (all.arrivals == Arrivals::Periodic)
    return invalid_input("a set of strictly periodic tasks does not change while it runs; write 'arrivals: sporadic'");
  for (const Chain& chain : all.chains)
    if (chain.deadline)
      return invalid_input(fmt::format(
          "the deadline of chain '{}' is not guaranteed where tasks come and go; leave it out", chain.name));
  for (const Task& task : all.tasks)
    if (!task.after.empty())
      return invalid_input(fmt::format(
          "'{}' is after '{}', which is not guaranteed where tasks come and go; leave it out", task.name, task.after));
  if (all.overlap == Overlap::On) return make_overlapping(controller, all, running);
  PlannedTaskSet planned = controller.plan(all);
  if (all.machine)
    if (const Verdict memory = check_device_memory(all, planned.timings); memory.answer == Answer::NotSchedulable)
      return invalid_input(memory.reason);
  Partition whole;
  for (std::size_t i = 0; i < all.tasks.size(); ++i) whole.tasks.emplace_back(i);
  planned.partitions = {whole};
  ChangingTaskSet set(std::move(planned));
  for (const TaskId task : running) {
    const std::string reason = set.refusal({{}, {}, task});
    const ChangeAnswer answered =
        reason.empty() ? set.admit({{}, {}, task}, {}, {}) : ChangeAnswer{Answer::Unknown, reason};
    if (answered.answer != Answer::Schedulable)
      return invalid_input(
          fmt::format("the tasks that run from the start are not schedulable (where tasks change, the machine is one "
                      "partition): {}",
                      answered.reason));
  }
  if (const std::string reason = set.lack_after({}); !reason.empty()) return invalid_input(reason);
  return set;
}

Expected<ChangingTaskSet> ChangingTaskSet::make_overlapping(const AdmissionController& controller, const TaskSet& all,
                                                            std::span<const TaskId> running) {
  const AdmissionVerdict verdict = controller.decide_overlap(all);
  if (!verdict.admitted)
    return invalid_input(
        fmt::format("where jobs overlap, all tasks that may ever run have to be schedulable together: {}",
                    verdict.reasons.empty() ? "they are not" : verdict.reasons.front()));
  ChangingTaskSet set(verdict.admitted->planned());
  set.worst_responses_ = verdict.worst_responses;
  for (const TaskId task : running) set.entries_[task.index()] = task;
  if (const std::string reason = set.lack_after({}); !reason.empty()) return invalid_input(reason);
  return set;
}

ChangeAnswer ChangingTaskSet::ask(const TaskChange& change, Duration now, std::optional<Duration> last_arrival) {
  if (std::string reason = refusal(change); !reason.empty()) return {Answer::Unknown, std::move(reason)};
  if (std::string reason = lack_after(change); !reason.empty()) return {Answer::Unknown, std::move(reason)};
  return admit(change, now, last_arrival);
}

/// Whoever reads what another task leaves needs it.
std::string ChangingTaskSet::lack_after(const TaskChange& change) const {
  const auto name = [&](TaskId task) { return planned_.tasks.tasks[task.index()].name; };
  const auto would_run = [&](TaskId task) { return (runs(task) || task == change.comes) && task != change.leaves; };
  for (std::size_t i = 0; i < planned_.tasks.tasks.size(); ++i) {
    const TaskId reader{i};
    if (!would_run(reader)) continue;
    for (const TaskId owner : owners_read_by(planned_.tasks, reader)) {
      if (would_run(owner)) continue;
      const std::string reads = fmt::format("'{}' reads buffers of '{}'", name(reader), name(owner));
      return owner == change.leaves ? reads + "; let it leave first"
                                    : reads + ", which would not run; let that come first";
    }
  }
  return {};
}

ChangeAnswer ChangingTaskSet::admit(const TaskChange& change, Duration now, std::optional<Duration> last_arrival) {
  if (planned_.overlap) return ask_overlapping(change, now, last_arrival);
  const OnlineAdmission::Outcome outcome = this->change(change, now, last_arrival);
  if (outcome.answer != Answer::Schedulable) {
    const std::string& name = planned_.tasks.tasks[change.comes->index()].name;
    return {outcome.answer, outcome.answer == Answer::NotSchedulable
                                ? fmt::format("with '{}' a deadline of what counts now can be missed", name)
                                : fmt::format("no test can tell whether deadlines hold with '{}'", name)};
  }
  if (change.leaves) entries_[change.leaves->index()].reset();
  if (change.comes) entries_[change.comes->index()] = outcome.task;
  return {Answer::Schedulable, {}};
}

/// A task that comes again arrives no sooner than its period behind the last job that it had.
ChangeAnswer ChangingTaskSet::ask_overlapping(const TaskChange& change, Duration now,
                                              std::optional<Duration> last_arrival) {
  if (change.comes) {
    const Task& task = planned_.tasks.tasks[change.comes->index()];
    const auto& last = last_arrivals_[change.comes->index()];
    if (last && *last > now - task.period)
      return {Answer::Unknown, fmt::format("'{}' had a job less than its period ago; ask again after that", task.name)};
    entries_[change.comes->index()] = change.comes;
  }
  if (change.leaves) {
    entries_[change.leaves->index()].reset();
    if (last_arrival) last_arrivals_[change.leaves->index()] = last_arrival;
  }
  return {Answer::Schedulable, {}};
}

/// Why a request makes no sense; empty where it does.
std::string ChangingTaskSet::refusal(const TaskChange& change) const {
  const auto name = [&](TaskId task) { return planned_.tasks.tasks[task.index()].name; };
  if (change.leaves && !runs(*change.leaves)) return fmt::format("'{}' does not run", name(*change.leaves));
  if (change.comes && runs(*change.comes)) return fmt::format("'{}' runs already", name(*change.comes));
  return {};
}

OnlineAdmission::Outcome ChangingTaskSet::change(const TaskChange& change, Duration now,
                                                 std::optional<Duration> last_arrival) {
  if (!change.comes) {
    if (change.leaves) online_.remove(*entries_[change.leaves->index()], now, last_arrival);
    return {Answer::Schedulable, std::nullopt};
  }
  const TaskTiming& timing = planned_.timings[change.comes->index()];
  const std::size_t position = change.comes->index();
  return change.leaves ? online_.change(*entries_[change.leaves->index()], timing, now, last_arrival, position)
                       : online_.add(timing, now, position);
}

}  // namespace tutti::internal
