#include "sched/analyses/partition_verdict.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace tutti::internal {
namespace {

/// Gives the tasks that a verdict names other ids.
/// @param id  (TaskId) -> TaskId
template <class Id>
void rename(Verdict& verdict, const Id& id) {
  if (verdict.witness) {
    Witness& witness = *verdict.witness;
    if (witness.task) witness.task = id(*witness.task);
    if (witness.blocker) witness.blocker = id(*witness.blocker);
    for (TaskLoad& load : witness.by_task) load.task = id(load.task);
  }
  for (ExecutedJob& job : verdict.late_run) job.source = id(TaskId{job.source}).index();
  if (!verdict.late_run.empty()) verdict.reason = describe_late_run(verdict.late_run);
}

}  // namespace

Verdict in_whole_set(Verdict verdict, const Partition& partition, std::size_t tasks) {
  rename(verdict, [&](TaskId task) { return partition.tasks[task.index()]; });
  if (verdict.worst_response.empty()) return verdict;
  std::vector<std::optional<Duration>> responses(tasks);
  for (std::size_t i = 0; i < partition.tasks.size(); ++i)
    responses[partition.tasks[i].index()] = verdict.worst_response[i];
  verdict.worst_response = std::move(responses);
  return verdict;
}

Verdict in_partition(Verdict verdict, const Partition& partition) {
  rename(verdict, [&](TaskId task) {
    const auto place = std::ranges::lower_bound(partition.tasks, task);
    return TaskId{static_cast<std::size_t>(place - partition.tasks.begin())};
  });
  std::vector<std::optional<Duration>> responses;
  if (!verdict.worst_response.empty())
    for (const TaskId task : partition.tasks) responses.push_back(verdict.worst_response[task.index()]);
  verdict.worst_response = std::move(responses);
  return verdict;
}

}  // namespace tutti::internal
