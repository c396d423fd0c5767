// A file of jobs: read, written back, explored.
#include "apps/tutti/formats/job_csv.hpp"
#include "sched/exploration/exploration.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool takes_jobs(std::string_view bytes) {
  const auto jobs = parse_jobs(bytes, std::string(kFile));
  if (!jobs) return refused(jobs.error());
  const std::string text = jobs_text(*jobs);
  const auto again = parse_jobs(text, std::string(kFile));
  require(again.has_value() && *again == *jobs, "jobs read back as they were:\n" + text);
  const Exploration found = explore(*jobs, {.visits = 100'000});
  require(found.answer != Answer::Schedulable || found.responses.size() == jobs->size(),
          "each job of a set that is schedulable has a response");
  require(found.answer != Answer::NotSchedulable || !found.late_run.empty(), "a set that is not has a late run");
  return true;
}

}  // namespace tutti::internal::fuzz
