#include "sched/tasks/executed_job.hpp"

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

std::string in_ns(HalfNs time) {
  return time % 2 == 0 ? to_string(Duration{time / 2}) : fmt::format("{}.5 ns", time / 2);
}

}  // namespace

std::string describe_late_run(std::span<const ExecutedJob> run,
                              const std::function<std::string(const ExecutedJob&)>& name) {
  TUTTI_EXPECTS(!run.empty(), "a run ends with the job that is late");
  const ExecutedJob& late = run.back();
  std::size_t first = run.size() - 1;
  while (first > 0 && run.size() - first <= 6 && run[first - 1].finish == run[first].start) --first;
  std::string text =
      fmt::format("{} arrives at {}, is due at {} and ", name(late), in_ns(late.arrival), in_ns(late.due));
  text += late.finish == kNotYetRun ? fmt::format("still waits at {}", in_ns(late.start))
                                    : fmt::format("ends at {}", in_ns(late.finish));
  if (first + 1 == run.size()) return fmt::format("{}: it starts at {}", text, in_ns(late.start));
  text += ":";
  for (std::size_t i = first; i + 1 < run.size(); ++i) {
    const ExecutedJob& job = run[i];
    text += i == first ? fmt::format(" {} runs from {} to {}", name(job), in_ns(job.start), in_ns(job.finish))
                       : fmt::format(", {} to {}", name(job), in_ns(job.finish));
    if (job.finish - job.start < job.most)
      text += fmt::format(" ({} less than its longest)", in_ns(job.most - (job.finish - job.start)));
  }
  return late.finish == kNotYetRun ? text : text + ", then it does";
}

std::string describe_late_run(std::span<const ExecutedJob> run) {
  return describe_late_run(
      run, [](const ExecutedJob& job) { return fmt::format("job {} of task {}", job.number, job.source); });
}

}  // namespace tutti::internal
