#include "tests/simulation/invariants.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace tutti::internal::simulation {
namespace {

struct Checked {
  const AdmittedTaskSet& admitted;
  const RunRecord& record;
  std::span<const std::uint64_t> released;  // [tasks] that a run releases
  bool inside;

  using Violation = std::optional<std::string>;

  [[nodiscard]] std::string name(const JobRecord& job) const {
    return fmt::format("job {} of {}", job.index, admitted.tasks().tasks[job.task.index()].name);
  }

  Violation accounts() const {
    std::vector<std::vector<std::uint64_t>> seen(released.size());
    for (const JobRecord& job : record.jobs) {
      auto& of_task = seen[job.task.index()];
      if (of_task.size() <= job.index) of_task.resize(job.index + 1);
      if (++of_task[job.index] > 1) return name(job) + " ends twice";
    }
    const bool cut = record.fatal || record.interrupted;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto suspended = std::ranges::find(record.suspensions, TaskId{i}, &Suspension::task);
      if (seen[i].size() > released[i]) return fmt::format("t{}: more jobs than were to come", i);
      if (std::ranges::count(seen[i], 0U) > 0) return fmt::format("t{}: a job that was released has no end", i);
      if (!cut && suspended == record.suspensions.end() && seen[i].size() != released[i])
        return fmt::format("t{}: {} jobs have no end, of {} that it was to have: one was released", i,
                           released[i] - seen[i].size(), released[i]);
    }
    return {};
  }

  Violation arrivals() const {
    std::vector<std::vector<Duration>> of_tasks(released.size());
    for (const JobRecord& job : record.jobs) of_tasks[job.task.index()].push_back(job.arrival);
    for (std::size_t i = 0; i < of_tasks.size(); ++i) {
      auto& of_task = of_tasks[i];
      std::ranges::sort(of_task);
      for (std::size_t job = 1; job < of_task.size(); ++job)
        if (of_task[job] - of_task[job - 1] < admitted.tasks().tasks[i].period)
          return fmt::format("t{}: two jobs arrive less than its period apart", i);
      if (record.triggers.empty() || !admitted.tasks().tasks[i].release.is_external()) continue;
      const TriggerCounts& counts = record.triggers[i];
      const std::uint64_t kept = counts.seen - counts.dropped;  // one of them may still be deferred
      if (kept != of_task.size() && kept != of_task.size() + 1)
        return fmt::format("t{}: {} triggers were seen and {} dropped, for {} jobs", i, counts.seen, counts.dropped,
                           of_task.size());
    }
    return {};
  }

  Violation order() const {
    std::vector<const JobRecord*> ran;
    for (const JobRecord& job : record.jobs)
      if (job.finish) ran.push_back(&job);
    std::ranges::stable_sort(ran, {}, &JobRecord::start);
    std::map<std::pair<TaskId, bool>, std::uint64_t> last;
    for (const JobRecord* job : ran) {
      const bool late = job->start > job->deadline;
      const auto [found, first] = last.try_emplace({job->task, late}, job->index);
      if (!first && job->index < found->second) return name(*job) + ": jobs do not start in their order";
      found->second = job->index;
    }
    return {};
  }

  Violation machine() const {
    std::vector<const JobRecord*> ran;
    for (const JobRecord& job : record.jobs) {
      if (!job.finish) continue;
      if (job.start < job.arrival) return name(job) + " starts before it arrived";
      ran.push_back(&job);
    }
    if (admitted.planned().overlap) return {};
    std::ranges::stable_sort(ran, {}, [](const JobRecord* job) { return std::pair(job->start, -*job->finish); });
    std::vector<const JobRecord*> open;
    for (const JobRecord* job : ran) {
      while (!open.empty() && *open.back()->finish <= job->start) open.pop_back();
      const bool lent = admitted.tasks().preemption == Preemption::BetweenBatches;
      if (!open.empty() && (!lent || *job->finish > *open.back()->finish))
        return fmt::format("{} and {} have the machine at once", name(*job), name(*open.back()));
      open.push_back(job);
    }
    return {};
  }

  Violation promises() const {
    for (const JobRecord& job : record.jobs) {
      const bool lags = job.missed() || job.broken || job.error;
      if (inside && lags)
        return fmt::format(
            "{} is late, over its bound or failed inside the envelope: {}{}", name(job), to_string(job.verdict),
            job.broken  ? fmt::format(", over by {} ({})", to_string(job.broken->excess), to_string(job.broken->cause))
            : job.error ? ", " + job.error->message
                        : "");
      const auto& bound = admitted.worst_responses()[job.task.index()];
      const bool over = job.finish && bound && job.response() > *bound;
      const bool late = job.missed() && job.verdict != JobVerdict::Skipped;  // its task asks for that
      if (!job.broken && (over || late)) return name(job) + " is late or over its bound and has no cause";
    }
    return {};
  }

  [[nodiscard]] Violation first() const {
    for (const auto check :
         {&Checked::accounts, &Checked::arrivals, &Checked::order, &Checked::machine, &Checked::promises})
      if (auto violation = (this->*check)()) return violation;
    return {};
  }
};

}  // namespace

std::optional<std::string> broken_invariant(const AdmittedTaskSet& admitted, const RunRecord& record,
                                            std::span<const std::uint64_t> released, bool inside) {
  return Checked{admitted, record, released, inside}.first();
}

}  // namespace tutti::internal::simulation
