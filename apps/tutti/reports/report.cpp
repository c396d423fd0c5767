#include "apps/tutti/reports/report.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "apps/terminal.hpp"
#include "apps/tutti/reports/chains_report.hpp"
#include "model/base/joined.hpp"
#include "runtime/core/clock.hpp"
#include "sched/analyses/hold_ups.hpp"
#include "sched/analyses/utilization.hpp"
#include "sched/tasks/led_set.hpp"

namespace tutti::internal {
namespace {

WitnessOutput witness_output(const TaskSet& set, const Witness& witness) {
  WitnessOutput output{witness.interval, witness.load, witness.blocking, name_of_task(set, witness.blocker),
                       name_of_task(set, witness.task)};
  for (const TaskLoad& load : witness.by_task) output.by_task.push_back({name_of_task(set, load.task), load.load});
  return output;
}

/// A run that a test found, job by job in the order of their execution; nothing where it found none.
std::optional<std::vector<LateRunOutput>> late_run_output(const TaskSet& set, std::span<const ExecutedJob> run) {
  if (run.empty()) return std::nullopt;
  const auto as_ms = [](HalfNs time) { return static_cast<double>(time) / 2e6; };
  std::vector<LateRunOutput> jobs;
  for (const ExecutedJob& job : run) {
    LateRunOutput& row = jobs.emplace_back(
        LateRunOutput{set.tasks[job.source].name, job.number, as_ms(job.arrival), as_ms(job.release)});
    row.deadline_ms = as_ms(job.due);
    if (job.finish == kNotYetRun) continue;
    row.start_ms = as_ms(job.start);
    row.finish_ms = as_ms(job.finish);
  }
  return jobs;
}

/// The utilisation of each partition.
std::string partitions_text(const AdmissionVerdict& verdict) {
  std::string text =
      fmt::format("{} partitions share nothing of the machine and run independently:", verdict.partitions.size());
  for (std::size_t i = 0; i < verdict.partitions.size(); ++i) {
    const auto timings = timings_of(verdict.partitions[i], verdict.timings);
    text += fmt::format("{} {} with {} task{}, utilization {:.4f}", i == 0 ? "" : ",", i, timings.size(),
                        timings.size() == 1 ? "" : "s", utilization(in_the_long_run(timings)));
  }
  return text;
}

/// Names by partition.
std::vector<std::vector<std::string>> partitions_output(const TaskSet& set, const AdmissionVerdict& verdict) {
  std::vector<std::vector<std::string>> list;
  for (const Partition& partition : verdict.partitions) list.push_back(names_of_tasks(set, partition.tasks));
  return list;
}

CounterExampleOutput counter_example_output(const TaskSet& set, const AdmissionVerdict& verdict,
                                            const Scenario& scenario) {
  CounterExampleOutput output{scenario.jobs.size()};
  if (verdict.overlap) return output;
  if (const auto miss = first_miss(verdict.timings, set.policy, scenario))
    output.misses = MissOutput{name_of_task(set, miss->task), miss->index, miss->finish, miss->deadline};
  return output;
}

std::string scenario_text(const TaskSet& set, const AdmissionVerdict& verdict, const Scenario& scenario) {
  if (verdict.overlap)
    return fmt::format(
        "a run of {} job{} that misses, whatever the order; --counter-example FILE writes it, 'tutti run --scenario "
        "FILE "
        "--overlap on' replays it",
        scenario.jobs.size(), scenario.jobs.size() == 1 ? "" : "s");
  const std::optional<Miss> miss = first_miss(verdict.timings, set.policy, scenario);
  if (!miss) return "";
  return fmt::format(
      "a run of {} job{} that misses: job {} of '{}' ends at {}, due at {}; --counter-example FILE writes it, "
      "'tutti run --scenario FILE' replays it",
      scenario.jobs.size(), scenario.jobs.size() == 1 ? "" : "s", miss->index, set.tasks[miss->task.index()].name,
      to_string(miss->finish), to_string(miss->deadline));
}

programs::Table tasks_table(const TaskSet& set, const AdmissionVerdict& verdict) {
  std::vector<std::string> header{"task",      "wcet ms",           "period ms", "deadline ms",
                                  "jitter ms", "worst response ms", "slack ms"};
  const bool apart = verdict.partitions.size() > 1;
  if (apart) header.emplace_back("partition");
  programs::Table table(std::move(header));
  std::vector<std::size_t> partition_of(set.tasks.size());
  for (std::size_t i = 0; i < verdict.partitions.size(); ++i)
    for (const TaskId task : verdict.partitions[i].tasks) partition_of[task.index()] = i;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const TaskTiming& timing = verdict.timings[i];
    const auto& response = verdict.worst_responses[i];
    std::vector<std::string> row{set.tasks[i].name,
                                 ms(timing.wcet),
                                 ms(timing.period),
                                 ms(timing.deadline),
                                 ms(timing.jitter),
                                 ms(response),
                                 response ? ms(timing.deadline - *response) : "-"};
    if (apart) row.push_back(fmt::to_string(partition_of[i]));
    table.add(std::move(row));
  }
  return table;
}

programs::Table tests_table(const AdmissionVerdict& verdict) {
  const bool apart = verdict.partitions.size() > 1;
  std::vector<std::string> header{"test", "exactness", "verdict"};
  if (apart) header.emplace_back("partition");
  programs::Table table(std::move(header));
  table.align_left(1);
  table.align_left(2);
  for (const Verdict& test : verdict.tests) {
    const bool passed = test.exactness == Exactness::Necessary && test.answer == Answer::Unknown;
    std::vector<std::string> row{std::string(test.test), std::string(to_string(test.exactness)),
                                 std::string(passed ? "holds" : to_string(test.answer))};
    if (apart) row.push_back(test.partition ? fmt::to_string(*test.partition) : "all");
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

std::string ms(const std::optional<Duration>& time) { return time ? fmt::format("{:.3f}", to_ms(*time)) : "-"; }

const std::string& name_of_task(const TaskSet& set, TaskId task) { return set.tasks[task.index()].name; }

std::optional<std::string> name_of_task(const TaskSet& set, const std::optional<TaskId>& task) {
  return task ? std::optional(name_of_task(set, *task)) : std::nullopt;
}

std::vector<std::string> names_of_tasks(const TaskSet& set, std::span<const TaskId> tasks) {
  std::vector<std::string> names;
  for (const TaskId task : tasks) names.push_back(name_of_task(set, task));
  return names;
}

std::string json_report(const Json& json) {
  return programs::shown_json(json.dump(2, ' ', false, Json::error_handler_t::replace)) + "\n";
}

std::string discipline(const TaskSet& set, bool overlaps) {
  if (overlaps)
    return fmt::format("non-preemptive {} by local deadline, jobs overlap", to_string(policy_of_resources(set.policy)));
  const bool preemptive = set.preemption == Preemption::BetweenBatches;
  return fmt::format("{}{}{}{}", preemptive ? "" : "non-preemptive ", to_string(set.policy),
                     preemptive ? ", preemptive between batches" : "",
                     set.arrivals == Arrivals::Periodic ? ", strictly periodic" : "");
}

std::string conductor_text(const TaskSet& set, std::optional<Duration> host_away) {
  if (set.deadline_at != DeadlineAt::Device) return "";
  if (!set.led_by_gpu) return "  led by: a thread of the host; bounds count until it has seen the end\n";
  std::string text = "  led by: a GPU's conductor; bounds count to the end on the device\n";
  if (host_away == kNever)
    text += "  all runs were armed before the first job: the host may be away until the end\n";
  else if (host_away)
    text += fmt::format("  the host may be away for {}\n", to_string(*host_away));
  if (sets_gates_apart(set))
    text += fmt::format(
        "  where jobs overlap, kernels have all multiprocessors of a GPU but {}, on which gates run; 'tutti profile' "
        "measures them so\n",
        set.machine->spec().conductor_sms);
  if (const auto within = host_sees_within(set))
    text += fmt::format("  the host sees each end within {}\n", to_string(*within));
  return text;
}

ConductorOutput conductor_output(const TaskSet& set, std::optional<Duration> host_away) {
  ConductorOutput output;
  if (set.deadline_at != DeadlineAt::Device) return output;
  output.conductor = set.led_by_gpu ? Conductor::Gpu : Conductor::Host;
  if (host_away) output.host_may_be_away.emplace(host_away == kNever ? std::nullopt : host_away);
  return output;
}

std::string_view to_string(Exactness exactness) {
  switch (exactness) {
    case Exactness::Exact: return "exact";
    case Exactness::Sufficient: return "sufficient";
    case Exactness::Necessary: return "necessary";
  }
  return "";
}

std::string_view to_string(Answer answer) {
  switch (answer) {
    case Answer::Schedulable: return "schedulable";
    case Answer::NotSchedulable: return "not_schedulable";
    case Answer::Unknown: return "unknown";
  }
  return "";
}

std::string sentence(Answer answer) {
  switch (answer) {
    case Answer::Schedulable: return programs::green("schedulable: every deadline is guaranteed");
    case Answer::NotSchedulable: return programs::red("NOT schedulable");
    case Answer::Unknown: break;
  }
  return "unknown: no proof either way";
}

std::vector<std::string> rate_sources_of(const TransferInterval& transfer) {
  std::vector<std::string> sources;
  for (const RateSource source : {RateSource::Graph, RateSource::Table, RateSource::Interpolated}) {
    const auto has_it = [&](const Segment& segment) { return segment.bytes.count > 0 && segment.source == source; };
    if (std::any_of(transfer.segments.begin(), transfer.segments.end(), has_it))
      sources.emplace_back(to_string(source));
  }
  return sources;
}

std::vector<StreamOutput> streams_output(const Topology& machine, const Timeline& timeline,
                                         const LatestFinish* latest) {
  std::vector<StreamOutput> streams;
  for (const StreamTimeline& line : timeline.streams) {
    StreamOutput stream{line.name};
    if (latest != nullptr) stream.latest = latest->streams[streams.size()] + latest->held_up;
    if (const auto& copy = line.transfer)
      stream.transfer = {std::string(copy->method.name), copy->start, copy->end, rate_sources_of(*copy)};
    if (const auto& kernel = line.kernel) stream.kernel = {machine.vertex(kernel->on).name, kernel->start, kernel->end};
    streams.push_back(std::move(stream));
  }
  return streams;
}

BatchOutput batch_output(const Planner& planner, const Topology& machine, const Timeline& timeline,
                         const LatestFinish& latest) {
  return {std::string(planner.name), timeline.latency, latest.alone(), streams_output(machine, timeline, &latest)};
}

std::string assumption(Arrivals arrivals, Policy policy) {
  const std::string sizes =
      "holds for sizes, kernel and set-up times of at most those declared and bandwidths of at least those guaranteed";
  if (arrivals == Arrivals::Sporadic) return sizes;
  const std::string at = sizes + ", for arrivals exactly at the offsets and periods";
  return at + (policy == Policy::CwEdf ? "; each job starts at its instant in the time table"
                                       : " and jobs that take no less than their best case");
}

namespace {

/// "copy of part0"; of several parts all, in order.
std::string stage_name(const TaskSet& set, const Operation& operation) {
  std::vector<std::string> names;
  for (const OperationPart& part : operation.parts) {
    const auto* batch = std::get_if<Batch>(&set.tasks[operation.task.index()].steps[part.step]);
    if (batch == nullptr)
      names.push_back(fmt::format("host step {}", part.step));
    else
      names.push_back(fmt::format("{} of {}", part.kind == OperationPart::Kind::Copy ? "copy" : "kernel",
                                  batch->streams()[part.stream].name));
  }
  return joined(names);
}

/// Whether a verdict is on jobs that overlap.
bool overlaps(const TaskSet& set, const AdmissionVerdict& verdict) {
  return verdict.overlap.has_value() || set.overlap == Overlap::On;
}

/// Where jobs overlap: the operations of a task.
std::vector<StageOutput> stages_output(const TaskSet& set, const OverlapVerdict& verdict, TaskId task) {
  std::vector<StageOutput> stages;
  for (std::size_t i = 0; i < verdict.operations.operations.size(); ++i) {
    const Operation& operation = verdict.operations.operations[i];
    if (operation.task != task) continue;
    StageOutput& stage =
        stages.emplace_back(StageOutput{stage_name(set, operation), operation.parts.front().step,
                                        verdict.operations.resources[operation.resource].name, operation.worst()});
    if (const auto& deadlines = verdict.deadlines) {
      stage.from = deadlines->guards[i];
      stage.deadline = deadlines->guards[i] + deadlines->deadlines[i];
    }
  }
  return stages;
}

std::vector<ResourceOutput> resources_output(const OverlapVerdict& verdict) {
  std::vector<ResourceOutput> resources;
  for (std::size_t r = 0; r < verdict.utilization.size(); ++r)
    resources.push_back({verdict.operations.resources[r].name, verdict.utilization[r]});
  return resources;
}

std::string resources_text(const OverlapVerdict& verdict) {
  programs::Table table({"resource", "utilization"});
  std::vector<std::size_t> order(verdict.utilization.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t r) { return verdict.utilization[r]; });
  for (const std::size_t r : order)
    table.add({verdict.operations.resources[r].name, fmt::format("{:.4f}", verdict.utilization[r])});
  return table.text();
}

std::string stages_text(const TaskSet& set, const OverlapVerdict& verdict) {
  constexpr std::size_t kMostRows = 100;
  programs::Table table({"task", "step", "stage", "resource", "worst ms", "from ms", "deadline ms"});
  table.align_left(2);
  table.align_left(3);
  const auto& deadlines = verdict.deadlines;
  const std::size_t count = verdict.operations.operations.size();
  for (std::size_t i = 0; i < std::min(count, kMostRows); ++i) {
    const Operation& operation = verdict.operations.operations[i];
    table.add({set.tasks[operation.task.index()].name, fmt::to_string(operation.parts.front().step),
               stage_name(set, operation), verdict.operations.resources[operation.resource].name, ms(operation.worst()),
               deadlines ? ms(deadlines->guards[i]) : "-",
               deadlines ? ms(deadlines->guards[i] + deadlines->deadlines[i]) : "-"});
  }
  return count <= kMostRows ? table.text()
                            : fmt::format("{}and {} more, which --json has\n", table.text(), count - kMostRows);
}

/// Where a set is cut into smaller pieces than it says.
std::vector<CutOutput> cuts_output(const TaskSet& set, std::span<const CutSize> cuts) {
  std::vector<CutOutput> list;
  for (const CutSize& cut : cuts) list.push_back({name_of_task(set, cut.task), cut.size});
  return list;
}

std::string cuts_text(const TaskSet& set, std::span<const CutSize> cuts) {
  std::string text;
  for (const CutSize& cut : cuts)
    text += fmt::format("  {}cut into pieces of at most {}, since it does not hold with those of {}\n",
                        cut.task ? fmt::format("'{}' is ", set.tasks[cut.task->index()].name) : "", to_string(cut.size),
                        to_string(cut.task ? *set.tasks[cut.task->index()].cut : set.cut));
  return text;
}

}  // namespace

namespace {

std::vector<TaskOutput> tasks_output(const TaskSet& set, const AdmissionVerdict& verdict) {
  std::vector<TaskOutput> tasks;
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const TaskTiming& timing = verdict.timings[i];
    const auto& response = verdict.worst_responses[i];
    TaskOutput& task = tasks.emplace_back(
        TaskOutput{set.tasks[i].name, timing.wcet, timing.period, timing.deadline, timing.jitter, response});
    if (response) task.slack = timing.deadline - *response;
    if (set.led_by_gpu) task.worst_response_at_host.emplace(bound_at_host(set, response));
    if (verdict.overlap) task.stages = stages_output(set, *verdict.overlap, TaskId{i});
  }
  return tasks;
}

std::vector<TestOutput> tests_output(const TaskSet& set, const AdmissionVerdict& verdict) {
  std::vector<TestOutput> tests;
  for (const Verdict& test : verdict.tests) {
    TestOutput& row = tests.emplace_back(TestOutput{std::string(test.test), test.exactness, test.answer});
    if (test.witness) row.witness = witness_output(set, *test.witness);
    row.late_run = late_run_output(set, test.late_run);
    row.reason = text_if_any(test.reason);
    if (verdict.partitions.size() > 1) row.partition.emplace(test.partition);
  }
  return tests;
}

}  // namespace

VerdictOutput verdict_output(const TaskSet& set, const AdmissionVerdict& verdict, const CounterExample& misses,
                             std::optional<Duration> host_away) {
  VerdictOutput output{conductor_output(set, host_away), verdict.answer == Answer::Schedulable, verdict.answer};
  if (verdict.planner != nullptr) output.planner = verdict.planner->name;
  output.policy = set.policy;
  output.arrivals = set.arrivals;
  output.preemption = set.preemption;
  output.overlap = overlaps(set, verdict) ? Overlap::On : Overlap::Off;
  output.utilization = verdict.utilization;
  if (verdict.overlap) output.resources = resources_output(*verdict.overlap);
  output.tasks = tasks_output(set, verdict);
  output.chains = chains_output(set, verdict.chain_latencies);
  output.tests = tests_output(set, verdict);
  output.reasons = verdict.reasons;
  if (misses)
    output.counter_example = counter_example_output(set, verdict, *misses);
  else
    output.no_counter_example = text_if_any(misses.error());
  output.assumption = assumption(set.arrivals, set.policy);
  if (verdict.partitions.size() > 1) output.partitions = partitions_output(set, verdict);
  if (!verdict.cuts.empty()) output.cuts = cuts_output(set, verdict.cuts);
  return output;
}

std::string verdict_text(const TaskSet& set, const AdmissionVerdict& verdict, const CounterExample& misses,
                         std::optional<Duration> host_away) {
  std::string text;
  const bool apart = verdict.partitions.size() > 1;
  const bool plans = verdict.planner != nullptr &&
                     std::ranges::any_of(set.tasks, [](const Task& task) { return !batches_of(task).empty(); });
  text +=
      fmt::format("{} ({}{}, utilization {:.4f})\n", sentence(verdict.answer), discipline(set, overlaps(set, verdict)),
                  plans ? fmt::format(", {}", verdict.planner->name) : "", verdict.utilization);
  text += conductor_text(set, host_away);
  text += cuts_text(set, verdict.cuts);
  if (apart) text += fmt::format("  {}\n", partitions_text(verdict));
  for (const std::string& reason : verdict.reasons) text += fmt::format("  {}\n", reason);
  if (misses)
    text += fmt::format("  {}\n", scenario_text(set, verdict, *misses));
  else if (!misses.error().empty())
    text += fmt::format("  no run that misses is shown: {}\n", misses.error());
  if (set.tasks.empty()) text += "  the task set is empty\n";
  text += fmt::format("\n{}\n{}", tasks_table(set, verdict).text(), tests_table(verdict).text());
  if (!set.chains.empty()) text += fmt::format("\n{}", chains_text(set, verdict.chain_latencies));
  if (verdict.overlap)
    text += fmt::format("\n{}\n{}", resources_text(*verdict.overlap), stages_text(set, *verdict.overlap));
  if (verdict.answer == Answer::Schedulable) text += fmt::format("\n{}\n", assumption(set.arrivals, set.policy));
  return text;
}

}  // namespace tutti::internal
