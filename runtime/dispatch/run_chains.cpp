#include "runtime/dispatch/run_chains.hpp"

namespace tutti::internal {

std::vector<ChainLatencies> measure_chains(const TaskSet& set, KnownBounds bounds, const RunRecord& record) {
  ChainJobs jobs;
  for (const JobRecord& job : record.jobs) {
    if (!job.finish) continue;
    const bool has_output = !job.error && (job.verdict == JobVerdict::Met || job.verdict == JobVerdict::Missed);
    jobs.add(job.task, {job.start, has_output ? job.finish : std::nullopt, job.programs});
  }
  std::vector<ChainLatencies> measured;
  for (std::size_t i = 0; i < set.chains.size(); ++i)
    measured.push_back(jobs.measure(set.chains[i].tasks, {bound_of(bounds, i), set.chains[i].deadline}));
  return measured;
}

}  // namespace tutti::internal
