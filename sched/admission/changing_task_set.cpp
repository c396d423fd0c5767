#include "sched/admission/changing_task_set.hpp"

#include <fmt/format.h>

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
  PlannedTaskSet planned = controller.plan(all);
  if (all.machine)
    if (const Verdict memory = check_device_memory(all, planned.timings); memory.answer == Answer::NotSchedulable)
      return invalid_input(memory.reason);
  Partition whole;
  for (std::size_t i = 0; i < all.tasks.size(); ++i) whole.tasks.emplace_back(i);
  planned.partitions = {whole};
  ChangingTaskSet set(std::move(planned));
  for (const TaskId task : running) {
    const ChangeAnswer answered = set.ask({{}, {}, task}, {}, {});
    if (answered.answer != Answer::Schedulable)
      return invalid_input(
          fmt::format("the tasks that run from the start are not schedulable (where tasks change, the machine is one "
                      "partition): {}",
                      answered.reason));
  }
  return set;
}

ChangeAnswer ChangingTaskSet::ask(const TaskChange& change, Duration now, std::optional<Duration> last_arrival) {
  if (std::string reason = refusal(change); !reason.empty()) return {Answer::Unknown, std::move(reason)};
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
