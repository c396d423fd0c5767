#include "apps/tutti/reports/run_report.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "apps/tutti/reports/outcome.hpp"
#include "sched/tasks/led_set.hpp"

namespace tutti::internal {
namespace {

struct TaskSummary {
  std::uint64_t released = 0;
  std::uint64_t completed = 0;
  std::uint64_t missed = 0;
  std::uint64_t failed = 0;
  std::uint64_t overruns = 0;
  std::uint64_t over_bound = 0;
  std::optional<Duration> worst_response;
  std::optional<Duration> worst_end_to_end;
  std::optional<Duration> worst_at_host;
};

std::vector<TaskSummary> summarize(const RunRecord& record) {
  std::vector<TaskSummary> summary;
  for (const JobSummary& jobs : record.summaries) {
    TaskSummary& row = summary.emplace_back();
    row.released = jobs.jobs();
    row.completed = jobs.with(JobVerdict::Met) + jobs.with(JobVerdict::Missed);
    row.missed = jobs.without_deadline_met();
    row.failed = jobs.with(JobVerdict::Failed) + jobs.with(JobVerdict::Dropped);
    row.overruns = jobs.overruns();
    row.over_bound = jobs.over_bound();
    if (row.completed == 0) continue;
    row.worst_response = jobs.responses().largest();
    row.worst_end_to_end = jobs.worst_end_to_end();
    row.worst_at_host = jobs.worst_at_host();
  }
  return summary;
}

/// The number of partitions as text; empty where there is only one.
std::string in_partitions(std::size_t partitions) {
  return partitions > 1 ? fmt::format(" in {} partitions", partitions) : "";
}

/// How late the dispatcher, though free, saw that jobs were ready, ms; and the processor time of the threads that
/// dispatch jobs and open gates. Only in real time.
struct Lateness {
  double median, most, worst;  // the second: 99.9 %
  double processor_share;      // of one core, until the last job ended

  static std::optional<Lateness> of(const RunRecord& record) {
    if (record.processor == Duration{0}) return std::nullopt;
    const JobSummary all = summary_of_all(record);
    const DurationHistogram& late = all.lateness();
    if (late.count() == 0) return std::nullopt;
    return Lateness{to_ms(late.quantile(500)), to_ms(late.quantile(999)), to_ms(late.largest()),
                    as_ns(record.processor) / as_ns(record.length)};
  }
};

std::optional<LatenessOutput> lateness_output(const RunRecord& record) {
  const auto late = Lateness::of(record);
  if (!late) return std::nullopt;
  return LatenessOutput{late->median, late->most, late->worst, late->processor_share};
}

std::string lateness_text(const RunRecord& record) {
  const auto late = Lateness::of(record);
  if (!late) return "";
  return fmt::format(
      "\nThe dispatcher saw ready jobs late by {:.1f} us in the median, {:.1f} us at 99.9 %, {:.1f} us at worst; the "
      "threads that dispatch jobs and open gates took {:.1f} % of a core.\n",
      late->median * 1e3, late->most * 1e3, late->worst * 1e3, late->processor_share * 100);
}

std::optional<std::vector<PinnedOutput>> pinned_output(const RunPlace& place) {
  if (place.pinned.empty()) return std::nullopt;
  std::vector<PinnedOutput> nodes;
  for (const PinnedUse& use : place.pinned)
    nodes.push_back({use.numa_node < 0 ? std::nullopt : std::optional(use.numa_node), use.in_use, use.kept, use.largest,
                     use.taken, use.allocations, use.reuses});
  return nodes;
}

std::string pinned_text(const RunPlace& place) {
  if (place.pinned.empty()) return "";
  const auto mib = [](Bytes size) { return fmt::format("{:.2f}", static_cast<double>(size.count) / (1 << 20)); };
  programs::Table table({"pinned memory", "in use MiB", "largest MiB", "kept MiB", "taken MiB", "pinned", "reused"});
  for (const PinnedUse& use : place.pinned)
    table.add({use.numa_node < 0 ? "any node" : fmt::format("node {}", use.numa_node), mib(use.in_use),
               mib(use.largest), mib(use.kept), mib(use.taken), fmt::to_string(use.allocations),
               fmt::to_string(use.reuses)});
  return "\n" + table.text();
}

/// The triggers of a task; nothing where the clock releases its jobs.
std::optional<TriggerCounts> triggers_of(const TaskSet& set, const RunRecord& record, std::size_t task) {
  if (!set.tasks[task].release.is_external() || task >= record.triggers.size()) return std::nullopt;
  return record.triggers[task];
}

std::optional<TriggersOutput> triggers_output(const std::optional<TriggerCounts>& triggers) {
  if (!triggers) return std::nullopt;
  return TriggersOutput{triggers->seen,    triggers->deferred, triggers->dropped,
                        triggers->missing, triggers->lost,     triggers->most_early};
}

std::string triggers_text(const TaskSet& set, const RunRecord& record) {
  programs::Table table({"triggers of", "seen", "deferred", "dropped", "missing", "lost", "most early ms"});
  bool any = false;
  std::string remedies;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const auto triggers = triggers_of(set, record, i);
    if (!triggers) continue;
    any = true;
    table.add({set.tasks[i].name, fmt::to_string(triggers->seen), fmt::to_string(triggers->deferred),
               fmt::to_string(triggers->dropped), fmt::to_string(triggers->missing), fmt::to_string(triggers->lost),
               ms(triggers->most_early)});
    if (triggers->most_early > Duration{0} && triggers->most_early < set.tasks[i].period)
      remedies += fmt::format(
          "Triggers of '{}' came up to {} ms before its period allows: with so much more jitter in its task they are "
          "in "
          "time.\n",
          set.tasks[i].name, ms(triggers->most_early));
  }
  return any ? "\n" + table.text() + remedies : "";
}

std::vector<SuspensionOutput> suspended_output(const TaskSet& set, const RunRecord& record) {
  std::vector<SuspensionOutput> list;
  for (const auto& [task, at] : record.suspensions) list.push_back({name_of_task(set, task), at});
  return list;
}

std::vector<ReplanningOutput> replanned_output(const TaskSet& set, const RunRecord& record) {
  std::vector<ReplanningOutput> list;
  for (const Replanning& replanned : record.replanned) {
    ReplanningOutput& row = list.emplace_back(ReplanningOutput{replanned.at});
    for (const VertexId gpu : replanned.gpus) row.gpus.push_back(set.machine->vertex(gpu).name);
    row.ended = names_of_tasks(set, replanned.ended);
    row.resumed = names_of_tasks(set, replanned.resumed);
    row.resumed_at = replanned.resumed_at;
    row.refused = names_of_tasks(set, replanned.refused);
    row.reason = text_if_any(replanned.reason);
  }
  return list;
}

std::vector<ChangeOutput> changes_output(const TaskSet& set, const RunRecord& record) {
  std::vector<ChangeOutput> changes;
  for (const auto& [change, answered, answer] : record.changes) {
    ChangeOutput& row =
        changes.emplace_back(ChangeOutput{change.at, name_of_task(set, change.leaves), name_of_task(set, change.comes),
                                          answered, answer.answer == Answer::Schedulable});
    row.reason = text_if_any(answer.reason);
  }
  return changes;
}

std::string changes_text(const TaskSet& set, const RunRecord& record) {
  if (record.changes.empty()) return "";
  const auto name = [&](std::optional<TaskId> task) { return task ? set.tasks[task->index()].name : "-"; };
  programs::Table table({"asked at ms", "answered ms", "remove", "add", "answer"});
  for (const std::size_t column : {2U, 3U, 4U}) table.align_left(column);
  for (const auto& [change, answered, answer] : record.changes)
    table.add({ms(change.at), ms(answered), name(change.leaves), name(change.comes),
               answer.reason.empty() ? "granted" : "refused: " + answer.reason});
  return "\n" + table.text();
}

/// Nothing where the task only declares how long it takes, or no job of it has finished.
std::optional<BoundBy> bound_by_of(const TaskSet& set, const RunRecord& record, std::size_t task) {
  if (set.tasks[task].steps.empty() || record.loads[task].length == Duration{0}) return std::nullopt;
  return bound_by(record.loads[task]);
}

std::vector<JobOutput> jobs_output(const TaskSet& set, const RunRecord& record) {
  std::vector<JobOutput> jobs;
  for (const JobRecord& job : record.jobs) {
    JobOutput& row = jobs.emplace_back(JobOutput{name_of_task(set, job.task), job.index, job.arrival});
    if (job.finish) {
      row.start = job.start;
      row.finish = job.finish;
      row.response = job.response();
      row.end_to_end = job.end_to_end();
      row.late = job.late;
    }
    row.deadline = job.deadline;
    row.missed = job.missed();
    row.verdict = job.verdict;
    if (job.error) row.error = job.error->message;
    if (job.broken) {
      row.cause = job.broken->cause;
      row.caused_by = name_of_task(set, job.broken->by);
      row.over_by = job.broken->excess;
    }
    if (!set.led_by_gpu) continue;
    row.seen.emplace(job.seen);
    row.overwritten = job.overwritten;
    row.reused_input = job.reused_input;
  }
  return jobs;
}

std::vector<RunSummaryOutput> summary_output(const TaskSet& set, const WorstResponses& bounds,
                                             const RunRecord& record) {
  std::vector<RunSummaryOutput> summary;
  const auto rows = summarize(record);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::optional<Duration> bound = bound_of(bounds, i);
    RunSummaryOutput& row = summary.emplace_back(
        RunSummaryOutput{set.tasks[i].name, rows[i].released, rows[i].completed, rows[i].missed, rows[i].failed,
                         rows[i].overruns, rows[i].worst_response, bound, rows[i].over_bound, rows[i].worst_end_to_end,
                         triggers_output(triggers_of(set, record, i))});
    if (!set.led_by_gpu) continue;
    row.overwritten = record.summaries[i].overwritten();
    row.reused_input = record.summaries[i].reused_input();
    row.worst_at_device.emplace(rows[i].worst_response);
    row.bound_at_device.emplace(bound);
    row.worst_at_host.emplace(rows[i].worst_at_host);
    row.bound_at_host.emplace(bound_at_host(set, bound));
  }
  return summary;
}

}  // namespace

RunOutput run_output(const TaskSet& set, const WorstResponses& bounds, const RunRecord& record, const RunPlace& place) {
  RunOutput output{conductor_output(set, record.host_away)};
  output.backend = place.backend;
  output.overlap = place.overlaps ? Overlap::On : Overlap::Off;
  output.clock = place.clock;
  output.notes = place.notes;
  output.jobs = jobs_output(set, record);
  output.summary = summary_output(set, bounds, record);
  output.suspended = suspended_output(set, record);
  output.replanned = replanned_output(set, record);
  output.lateness = lateness_output(record);
  output.pinned_memory = pinned_output(place);
  output.changes = changes_output(set, record);
  return output;
}

std::vector<BoundByOutput> bound_by_output(const TaskSet& set, const RunRecord& record) {
  std::vector<BoundByOutput> list;
  for (std::size_t i = 0; i < record.loads.size(); ++i) {
    const auto bound = bound_by_of(set, record, i);
    if (!bound) continue;
    BoundByOutput& row = list.emplace_back(BoundByOutput{set.tasks[i].name, bound->cpu_share, bound->gpu_share});
    if (bound->processor) row.bound_by = *bound->processor == Processor::Cpu ? "cpu" : "gpu";
    row.amdahl_ceiling = bound->amdahl_ceiling;
  }
  return list;
}

std::string bound_by_text(const TaskSet& set, const RunRecord& record) {
  programs::Table table({"time of jobs", "CPU %", "GPU %", "bound by", "ceiling"});
  table.align_left(3);
  bool any = false;
  for (std::size_t i = 0; i < record.loads.size(); ++i) {
    const auto bound = bound_by_of(set, record, i);
    if (!bound) continue;
    any = true;
    table.add({set.tasks[i].name, fmt::format("{:.1f}", 100 * bound->cpu_share),
               fmt::format("{:.1f}", 100 * bound->gpu_share),
               !bound->processor                     ? "-"
               : *bound->processor == Processor::Cpu ? "CPU"
                                                     : "GPU",
               fmt::format("{:.2f}", bound->amdahl_ceiling)});
  }
  if (!any) return "";
  return fmt::format(
      "\n{}CPU: work of the job was due, and no queue of the machine had any. GPU: the host had nothing to do but wait "
      "for it. The ceiling is Amdahl's: overlapping the two makes jobs faster by this factor at most.\n",
      table.text());
}

std::string run_text(const TaskSet& set, const WorstResponses& bounds, const RunRecord& record, const RunPlace& place) {
  const auto rows = summarize(record);
  const bool overran = std::any_of(rows.begin(), rows.end(), [](const TaskSummary& row) { return row.overruns > 0; });
  std::vector<std::string> header{
      "task",     "jobs",       "completed",     "missed",     "failed", "worst response ms",
      "bound ms", "over bound", "end to end ms", "deadline ms"};
  if (set.led_by_gpu) header.insert(header.end(), {"worst at host ms", "bound at host ms"});
  if (overran) header.emplace_back("kernel overruns");
  programs::Table table(std::move(header));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells{set.tasks[i].name,
                                   fmt::to_string(rows[i].released),
                                   fmt::to_string(rows[i].completed),
                                   fmt::to_string(rows[i].missed),
                                   fmt::to_string(rows[i].failed),
                                   ms(rows[i].worst_response),
                                   ms(bound_of(bounds, i)),
                                   fmt::to_string(rows[i].over_bound),
                                   ms(rows[i].worst_end_to_end),
                                   ms(set.tasks[i].deadline)};
    if (set.led_by_gpu) {
      cells.push_back(ms(rows[i].worst_at_host));
      cells.push_back(ms(bound_at_host(set, bound_of(bounds, i))));
    }
    if (overran) cells.push_back(fmt::to_string(rows[i].overruns));
    table.add(std::move(cells));
  }
  return fmt::format("{} jobs on the {} backend, {} clock, {}{}{}\n{}\n{}{}{}{}{}", summary_of_all(record).jobs(),
                     place.backend, place.clock, discipline(set, place.overlaps), in_partitions(place.partitions),
                     note_of_simulated(place.backend), conductor_text(set, record.host_away), table.text(),
                     triggers_text(set, record), lateness_text(record), changes_text(set, record), pinned_text(place));
}

}  // namespace tutti::internal
