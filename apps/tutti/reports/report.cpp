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
#include "sched/analyses/utilization.hpp"
#include "sched/tasks/led_set.hpp"

namespace tutti::internal {
namespace {

std::string_view word(Exactness exactness) {
  switch (exactness) {
    case Exactness::Exact: return "exact";
    case Exactness::Sufficient: return "sufficient";
    case Exactness::Necessary: return "necessary";
  }
  return "";
}

Json witness_json(const TaskSet& tasks, const Witness& witness) {
  Json by_task = Json::array();
  for (const TaskLoad& load : witness.by_task) {
    by_task.push_back({{"name", tasks.tasks[load.task.index()].name}, {"load_ms", to_ms(load.load)}});
  }
  const auto name = [&](const std::optional<TaskId>& task) {
    return task ? Json(tasks.tasks[task->index()].name) : Json(nullptr);
  };
  return {{"interval_ms", to_ms(witness.interval)},
          {"load_ms", to_ms(witness.load)},
          {"blocking_ms", to_ms(witness.blocking)},
          {"blocker", name(witness.blocker)},
          {"task", name(witness.task)},
          {"by_task", by_task}};
}

/// A run that a test found, job by job in the order of their execution; null where it found none.
Json late_run_json(const TaskSet& set, std::span<const ExecutedJob> run) {
  if (run.empty()) return nullptr;
  const auto json_ms = [](HalfNs time) { return Json(static_cast<double>(time) / 2e6); };
  Json jobs = Json::array();
  for (const ExecutedJob& job : run) {
    const bool has_run = job.finish != kNotYetRun;
    jobs.push_back({{"task", set.tasks[job.source].name},
                    {"index", job.number},
                    {"arrival_ms", json_ms(job.arrival)},
                    {"ready_ms", json_ms(job.release)},
                    {"start_ms", has_run ? json_ms(job.start) : Json(nullptr)},
                    {"finish_ms", has_run ? json_ms(job.finish) : Json(nullptr)},
                    {"deadline_ms", json_ms(job.due)}});
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
                        timings.size() == 1 ? "" : "s", utilization(timings));
  }
  return text;
}

/// Names by partition.
Json partitions_json(const TaskSet& set, const AdmissionVerdict& verdict) {
  Json list = Json::array();
  for (const Partition& partition : verdict.partitions) {
    Json names = Json::array();
    for (const TaskId task : partition.tasks) names.push_back(set.tasks[task.index()].name);
    list.push_back(std::move(names));
  }
  return list;
}

Json scenario_json(const TaskSet& set, const AdmissionVerdict& verdict, const Scenario& scenario) {
  if (verdict.overlap) return {{"jobs", scenario.jobs.size()}, {"misses", nullptr}};
  const std::optional<Miss> miss = first_miss(verdict.timings, set.policy, scenario);
  Json misses = nullptr;
  if (miss)
    misses = {{"task", set.tasks[miss->task.index()].name},
              {"index", miss->index},
              {"finish_ms", to_ms(miss->finish)},
              {"deadline_ms", to_ms(miss->deadline)}};
  return {{"jobs", scenario.jobs.size()}, {"misses", misses}};
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
    std::vector<std::string> row{std::string(test.test), std::string(word(test.exactness)),
                                 std::string(passed ? "holds" : word(test.answer))};
    if (apart) row.push_back(test.partition ? fmt::to_string(*test.partition) : "all");
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

std::string ms(const std::optional<Duration>& time) { return time ? fmt::format("{:.3f}", to_ms(*time)) : "-"; }

Json json_ms(const std::optional<Duration>& time) { return time ? Json(to_ms(*time)) : Json(nullptr); }

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
  if (const auto within = host_sees_within(set))
    text += fmt::format("  the host sees each end within {}\n", to_string(*within));
  return text;
}

void add_conductor(Json& json, const TaskSet& set, std::optional<Duration> host_away) {
  if (set.deadline_at != DeadlineAt::Device) return;
  json["conductor"] = to_string(set.led_by_gpu ? Conductor::Gpu : Conductor::Host);
  if (host_away) json["host_may_be_away_ms"] = host_away == kNever ? Json() : json_ms(host_away);
}

std::string_view word(Answer answer) {
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

Json batch_json(const Batch& batch) {
  const auto name = [&](VertexId vertex) { return Json(batch.machine().vertex(vertex).name); };
  Json streams = Json::array();
  for (const CommandStream& stream : batch.streams()) {
    const auto& [transfer, kernel] = std::tie(stream.transfer, stream.kernel);
    streams.push_back(
        {{"name", stream.name},
         {"from", transfer ? name(transfer->from) : Json(nullptr)},
         {"to", transfer ? name(transfer->to) : Json(nullptr)},
         {"bytes", transfer ? transfer->size.count : 0},
         {"method", transfer ? Json(to_string(transfer->method)) : Json(nullptr)},
         {"rows", transfer ? Json(transfer->rows.count) : Json(nullptr)},
         {"pitch_bytes", transfer && transfer->is_strided() ? Json(transfer->rows.pitch.count) : Json(nullptr)},
         {"kernel_ms", kernel ? Json(to_ms(kernel->time)) : Json(nullptr)}});
  }
  return streams;
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

Json streams_json(const Topology& machine, const Timeline& timeline, const LatestFinish* latest) {
  Json streams = Json::array();
  for (const StreamTimeline& line : timeline.streams) {
    Json transfer = nullptr;
    Json kernel = nullptr;
    if (line.transfer) {
      transfer = {{"path", line.transfer->method.name},
                  {"start_ms", to_ms(line.transfer->start)},
                  {"end_ms", to_ms(line.transfer->end)},
                  {"rates_from", rate_sources_of(*line.transfer)}};
    }
    if (line.kernel) {
      kernel = {{"on", machine.vertex(line.kernel->on).name},
                {"start_ms", to_ms(line.kernel->start)},
                {"end_ms", to_ms(line.kernel->end)}};
    }
    Json stream{{"name", line.name}};
    if (latest != nullptr) stream["latest_ms"] = to_ms(latest->streams[streams.size()] + latest->held_up);
    stream["transfer"] = transfer;
    stream["kernel"] = kernel;
    streams.push_back(stream);
  }
  return streams;
}

Json timeline_json(const Planner& planner, const Topology& machine, const Timeline& timeline,
                   const LatestFinish& latest) {
  return {{"planner", planner.name},
          {"latency_ms", to_ms(timeline.latency)},
          {"latest_ms", to_ms(latest.alone())},
          {"streams", streams_json(machine, timeline, &latest)}};
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
Json stages_json(const TaskSet& set, const OverlapVerdict& verdict, TaskId task) {
  Json stages = Json::array();
  for (std::size_t i = 0; i < verdict.operations.operations.size(); ++i) {
    const Operation& operation = verdict.operations.operations[i];
    if (operation.task != task) continue;
    const auto& deadlines = verdict.deadlines;
    stages.push_back(
        {{"stage", stage_name(set, operation)},
         {"step", operation.parts.front().step},
         {"resource", verdict.operations.resources[operation.resource].name},
         {"worst_ms", to_ms(operation.worst())},
         {"from_ms", deadlines ? Json(to_ms(deadlines->guards[i])) : Json(nullptr)},
         {"deadline_ms", deadlines ? Json(to_ms(deadlines->guards[i] + deadlines->deadlines[i])) : Json(nullptr)}});
  }
  return stages;
}

Json resources_json(const OverlapVerdict& verdict) {
  Json resources = Json::array();
  for (std::size_t r = 0; r < verdict.utilization.size(); ++r)
    resources.push_back({{"name", verdict.operations.resources[r].name}, {"utilization", verdict.utilization[r]}});
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
Json cuts_json(const TaskSet& set, std::span<const CutSize> cuts) {
  Json list = Json::array();
  for (const CutSize& cut : cuts)
    list.push_back({{"task", cut.task ? Json(set.tasks[cut.task->index()].name) : Json()}, {"bytes", cut.size.count}});
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

Json verdict_json(const TaskSet& set, const AdmissionVerdict& verdict, const std::optional<Scenario>& misses,
                  std::optional<Duration> host_away) {
  Json tasks = Json::array();
  for (std::size_t i = 0; i < set.tasks.size(); ++i) {
    const TaskTiming& timing = verdict.timings[i];
    const auto& response = verdict.worst_responses[i];
    tasks.push_back({{"name", set.tasks[i].name},
                     {"wcet_ms", to_ms(timing.wcet)},
                     {"period_ms", to_ms(timing.period)},
                     {"deadline_ms", to_ms(timing.deadline)},
                     {"jitter_ms", to_ms(timing.jitter)},
                     {"worst_response_ms", json_ms(response)},
                     {"slack_ms", response ? Json(to_ms(timing.deadline - *response)) : Json(nullptr)}});
    if (set.led_by_gpu) tasks.back()["worst_response_at_host_ms"] = json_ms(bound_at_host(set, response));
    if (verdict.overlap) tasks.back()["stages"] = stages_json(set, *verdict.overlap, TaskId{i});
  }
  const bool apart = verdict.partitions.size() > 1;
  Json tests = Json::array();
  for (const Verdict& test : verdict.tests) {
    tests.push_back({{"name", test.test},
                     {"exactness", word(test.exactness)},
                     {"verdict", word(test.answer)},
                     {"witness", test.witness ? witness_json(set, *test.witness) : Json(nullptr)},
                     {"late_run", late_run_json(set, test.late_run)},
                     {"reason", test.reason.empty() ? Json(nullptr) : Json(test.reason)}});
    if (apart) tests.back()["partition"] = test.partition ? Json(*test.partition) : Json(nullptr);
  }
  Json json{{"schema_version", 1},
            {"schedulable", verdict.answer == Answer::Schedulable},
            {"verdict", word(verdict.answer)},
            {"planner", verdict.planner != nullptr ? Json(verdict.planner->name) : Json(nullptr)},
            {"policy", to_string(set.policy)},
            {"arrivals", to_string(set.arrivals)},
            {"preemption", to_string(set.preemption)},
            {"overlap", overlaps(set, verdict) ? "on" : "off"},
            {"utilization", verdict.utilization},
            {"resources", verdict.overlap ? resources_json(*verdict.overlap) : Json::array()},
            {"tasks", tasks},
            {"chains", chains_json(set, verdict.chain_latencies)},
            {"tests", tests},
            {"reasons", verdict.reasons},
            {"counter_example", misses ? scenario_json(set, verdict, *misses) : Json(nullptr)},
            {"assumption", assumption(set.arrivals, set.policy)}};
  if (apart) json["partitions"] = partitions_json(set, verdict);
  if (!verdict.cuts.empty()) json["cuts"] = cuts_json(set, verdict.cuts);
  add_conductor(json, set, host_away);
  return json;
}

std::string verdict_text(const TaskSet& set, const AdmissionVerdict& verdict, const std::optional<Scenario>& misses,
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
  if (misses) text += fmt::format("  {}\n", scenario_text(set, verdict, *misses));
  if (set.tasks.empty()) text += "  the task set is empty\n";
  text += fmt::format("\n{}\n{}", tasks_table(set, verdict).text(), tests_table(verdict).text());
  if (!set.chains.empty()) text += fmt::format("\n{}", chains_text(set, verdict.chain_latencies));
  if (verdict.overlap)
    text += fmt::format("\n{}\n{}", resources_text(*verdict.overlap), stages_text(set, *verdict.overlap));
  if (verdict.answer == Answer::Schedulable) text += fmt::format("\n{}\n", assumption(set.arrivals, set.policy));
  return text;
}

}  // namespace tutti::internal
