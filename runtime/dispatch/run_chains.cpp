#include "runtime/dispatch/run_chains.hpp"

#include <algorithm>

namespace tutti::internal {
namespace {

/// [tasks] the jobs that have started, in the order of their starts.
std::vector<std::vector<ChainJob>> jobs_by_task(const TaskSet& set, const RunRecord& record) {
  std::vector<std::vector<ChainJob>> jobs(set.tasks.size());
  for (const JobRecord& job : record.jobs) {
    if (!job.finish) continue;
    const bool has_output = !job.error && (job.verdict == JobVerdict::Met || job.verdict == JobVerdict::Missed);
    jobs[job.task.index()].push_back({job.start, has_output ? job.finish : std::nullopt, job.programs});
  }
  for (std::vector<ChainJob>& of_task : jobs) std::ranges::stable_sort(of_task, {}, &ChainJob::start);
  return jobs;
}

}  // namespace

std::vector<ChainLatencies> measure_chains(const TaskSet& set, std::span<const std::optional<Duration>> bounds,
                                           const RunRecord& record) {
  const auto by_task = jobs_by_task(set, record);
  std::vector<ChainLatencies> measured;
  for (std::size_t i = 0; i < set.chains.size(); ++i) {
    const Chain& chain = set.chains[i];
    std::vector<std::vector<ChainJob>> jobs;
    for (const TaskId task : chain.tasks) jobs.push_back(by_task[task.index()]);
    measured.push_back(measure_chain(jobs, {bounds.empty() ? std::nullopt : bounds[i], chain.deadline}));
  }
  return measured;
}

}  // namespace tutti::internal
