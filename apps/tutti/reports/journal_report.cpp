#include "apps/tutti/reports/journal_report.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <set>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "apps/table.hpp"
#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

using Row = JournalReport::Row;
using File = JournalReport::File;

struct Quantile {
  std::uint64_t permille;
  Duration QuantilesOutput::*output;
  const char* title;  // in a table
};
constexpr std::array kQuantiles{
    Quantile{500, &QuantilesOutput::median, "50 %"}, Quantile{900, &QuantilesOutput::p90, "90 %"},
    Quantile{990, &QuantilesOutput::p99, "99 %"}, Quantile{999, &QuantilesOutput::p999, "99.9 %"}};

std::tm utc(std::chrono::sys_time<std::chrono::nanoseconds> time) {
  return fmt::gmtime(
      static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count()));
}

std::string_view state_of(const JournalCondition& condition) {
  if (!condition.closed) return "cut_off";
  return condition.continued ? "continued" : "ended";
}

JournalCondition sum_of(const std::vector<File>& files) {
  JournalCondition sum;
  for (const File& file : files) {
    sum.jobs += file.condition.jobs;
    sum.lost_jobs += file.condition.lost_jobs;
    sum.damaged_jobs += file.condition.damaged_jobs;
    sum.damaged_bytes += file.condition.damaged_bytes;
    sum.torn_bytes += file.condition.torn_bytes;
  }
  return sum;
}

// ---- JSON

std::optional<QuantilesOutput> quantiles_output(const DurationHistogram& times) {
  if (times.count() == 0) return std::nullopt;
  QuantilesOutput output;
  for (const Quantile& quantile : kQuantiles) output.*quantile.output = times.quantile(quantile.permille);
  output.worst = times.largest();
  return output;
}

JournalFileOutput file_output(const File& file) {
  JournalFileOutput output{file.path, std::string(state_of(file.condition))};
  if (const auto& start = file.start) {
    output.tutti = start->tutti;
    output.machine = start->machine;
    output.policy = start->policy;
    output.backend = start->backend;
    output.clock = start->clock;
    output.started = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc(start->started));
    output.overlap = start->overlap ? Overlap::On : Overlap::Off;
    output.number = start->file;
  }
  output.jobs = file.condition.jobs;
  output.lost_jobs = file.condition.lost_jobs;
  output.damaged_jobs = file.condition.damaged_jobs;
  output.damaged_bytes = file.condition.damaged_bytes;
  output.torn_bytes = file.condition.torn_bytes;
  output.fault = file.condition.fault;
  return output;
}

/// Whether a GPU led its jobs: then the host has the record of each later than it ended.
bool is_led(const Row& row) { return row.summary.worst_at_host().has_value(); }

JournalTaskOutput task_output(const Row& row) {
  const JobSummary& summary = row.summary;
  JournalTaskOutput output{row.name};
  if (row.task) {
    output.period = row.task->period;
    output.deadline = row.task->deadline;
    output.bound = row.task->bound;
    output.wcet = row.task->wcet;
  }
  output.jobs = summary.jobs();
  output.met = summary.with(JobVerdict::Met);
  output.missed = summary.with(JobVerdict::Missed);
  output.dropped = summary.with(JobVerdict::Dropped);
  output.failed = summary.with(JobVerdict::Failed);
  output.aborted = summary.with(JobVerdict::Aborted);
  output.never_run = summary.with(JobVerdict::NeverRun);
  output.skipped = summary.with(JobVerdict::Skipped);
  output.over_bound = summary.over_bound();
  for (const BoundCause cause : Words<BoundCause>::values)
    if (summary.over_bound(cause) > 0) output.causes.emplace_back(to_string(cause), summary.over_bound(cause));
  output.caused_by.assign(row.caused_by.begin(), row.caused_by.end());
  if (summary.over_bound() > 0) output.worst_over_by = summary.worst_excess();
  output.overruns = summary.overruns();
  output.response = quantiles_output(summary.responses());
  output.lateness = quantiles_output(summary.lateness());
  if (output.response) output.worst_end_to_end = summary.worst_end_to_end();
  if (!is_led(row)) return output;
  output.worst_at_host = summary.worst_at_host();
  output.bound_at_host.emplace(row.task ? row.task->bound_at_host : std::nullopt);
  output.overwritten = summary.overwritten();
  output.reused_input = summary.reused_input();
  return output;
}

JournalJobOutput job_output(const JournalReport::Job& row) {
  const JobEntry& job = row.job.entry;
  JournalJobOutput output{row.task,  job.index, row.job.partition, job.verdict, job.arrival,
                          job.ready, job.start, job.finish,        job.deadline};
  if (job.completed()) {
    output.response = job.response();
    output.end_to_end = job.end_to_end();
  }
  if (job.start) output.late = job.late;
  output.overruns = job.overruns;
  if (job.broken) {
    output.cause = job.broken->cause;
    output.over_by = job.broken->excess;
  }
  output.caused_by = row.caused_by;
  for (const StreamTime& time : row.job.streams)
    output.streams.push_back({time.batch, time.stream, time.start, time.end});
  if (!job.seen) return output;
  output.seen = job.seen;
  output.overwritten = job.overwritten;
  output.reused_input = job.reused_input;
  return output;
}

JournalChainOutput chain_output(const JournalReport::ChainRow& row) {
  const ChainLatencies& measured = row.latencies;
  return {row.chain.name,  row.tasks,           measured.reactions, measured.worst_reaction, measured.worst_data_age,
          row.chain.bound, measured.over_bound, row.chain.deadline, measured.over_deadline,  row.not_measured};
}

// ---- text

/// The runs that the files are of: a line each.
std::string runs_text(const std::vector<File>& files) {
  std::set<std::string> lines;
  for (const File& file : files) {
    if (!file.start) continue;
    const JournalStart& start = *file.start;
    lines.insert(fmt::format("run of {:%Y-%m-%d %H:%M:%S} UTC: {}, {} backend, {} clock, {}{}, tutti {}\n",
                             utc(start.started), start.machine, start.backend, start.clock, start.policy,
                             start.overlap ? ", jobs overlapped" : "", start.tutti));
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

std::string verdicts_text(const std::vector<const Row*>& rows) {
  programs::Table table({"task", "jobs", "met", "missed", "dropped", "failed", "aborted", "never run", "skipped",
                         "over bound", "kernel overruns"});
  for (const Row* row : rows) {
    std::vector<std::string> cells{row->name, fmt::to_string(row->summary.jobs())};
    for (std::size_t i = 0; i < kJobVerdicts; ++i)
      cells.push_back(fmt::to_string(row->summary.with(static_cast<JobVerdict>(i))));
    cells.push_back(fmt::to_string(row->summary.over_bound()));
    cells.push_back(fmt::to_string(row->summary.overruns()));
    table.add(std::move(cells));
  }
  return table.text();
}

std::vector<std::string> quantile_titles(std::vector<std::string> header) {
  for (const Quantile& quantile : kQuantiles) header.emplace_back(quantile.title);
  header.emplace_back("worst");
  return header;
}

/// @param unit  ns
void add_quantiles(std::vector<std::string>& cells, const DurationHistogram& times, double unit) {
  const auto cell = [&](Duration time) {
    return times.count() == 0 ? "-" : fmt::format("{:.3f}", static_cast<double>(time.count()) / unit);
  };
  for (const Quantile& quantile : kQuantiles) cells.push_back(cell(times.quantile(quantile.permille)));
  cells.push_back(cell(times.largest()));
}

std::string responses_text(const std::vector<const Row*>& rows) {
  programs::Table table = [] {
    std::vector<std::string> header = quantile_titles({"response, ms"});
    for (const char* title : {"bound", "deadline", "end to end"}) header.emplace_back(title);
    return programs::Table(std::move(header));
  }();
  for (const Row* row : rows) {
    std::vector<std::string> cells{row->name};
    add_quantiles(cells, row->summary.responses(), 1e6);
    cells.push_back(row->task ? ms(row->task->bound) : "-");
    cells.push_back(row->task ? ms(row->task->deadline) : "-");
    cells.push_back(row->summary.responses().count() > 0 ? ms(row->summary.worst_end_to_end()) : "-");
    table.add(std::move(cells));
  }
  return table.text();
}

/// A line for each task that a GPU led.
std::string at_host_text(const std::vector<const Row*>& rows) {
  std::string text;
  for (const Row* row : rows) {
    if (!is_led(*row)) continue;
    const auto bound = row->task ? row->task->bound_at_host : std::nullopt;
    text += fmt::format("the host had each record of '{}' within {} of its arrival{}", row->name,
                        to_string(*row->summary.worst_at_host()),
                        bound ? fmt::format(", {} at most", to_string(*bound)) : "");
    if (row->summary.overwritten() > 0)
      text += fmt::format("; of {} its program did not have the results whole", row->summary.overwritten());
    if (row->summary.reused_input() > 0)
      text += fmt::format("; {} had the input of an earlier one", row->summary.reused_input());
    text += "\n";
  }
  return text;
}

std::string lateness_text(const std::vector<const Row*>& rows) {
  programs::Table table(quantile_titles({"release lateness, us"}));
  for (const Row* row : rows) {
    std::vector<std::string> cells{row->name};
    add_quantiles(cells, row->summary.lateness(), 1e3);
    table.add(std::move(cells));
  }
  return table.text();
}

/// A sentence for each task with jobs over their bound.
std::string causes_text(const std::vector<const Row*>& rows) {
  std::string text;
  for (const Row* row : rows) {
    if (row->summary.over_bound() == 0) continue;
    std::vector<std::string> causes, tasks;
    for (std::size_t i = 0; i < kBoundCauses; ++i)
      if (const auto cause = static_cast<BoundCause>(i); row->summary.over_bound(cause) > 0)
        causes.push_back(fmt::format("{} {}", to_string(cause), row->summary.over_bound(cause)));
    for (const auto& [name, jobs] : row->caused_by) tasks.push_back(fmt::format("'{}' {}", name, jobs));
    text += fmt::format("{} of {} jobs of '{}' over their bound, by up to {}: {}{}\n", row->summary.over_bound(),
                        row->summary.jobs(), row->name, to_string(row->summary.worst_excess()), joined(causes),
                        tasks.empty() ? "" : fmt::format("; caused by task {}", joined(tasks)));
  }
  return text;
}

std::string chains_text(const std::vector<JournalReport::ChainRow>& chains) {
  if (chains.empty()) return "";
  programs::Table table({"chain", "reactions", "worst reaction ms", "worst data age ms", "bound ms", "over bound",
                         "deadline ms", "over deadline"});
  std::string notes;
  for (const JournalReport::ChainRow& row : chains) {
    table.add({row.chain.name, fmt::to_string(row.latencies.reactions), ms(row.latencies.worst_reaction),
               ms(row.latencies.worst_data_age), ms(row.chain.bound), fmt::to_string(row.latencies.over_bound),
               ms(row.chain.deadline), fmt::to_string(row.latencies.over_deadline)});
    if (row.not_measured > 0)
      notes += fmt::format("chain '{}' was not measured in {} run{}, of which jobs are missing\n", row.chain.name,
                           row.not_measured, row.not_measured == 1 ? "" : "s");
  }
  return fmt::format("\n{}{}", table.text(), notes);
}

std::string jobs_text(const std::deque<JournalReport::Job>& jobs) {
  programs::Table table({"task", "job", "verdict", "release ms", "start ms", "finish ms", "deadline ms", "late us",
                         "cause", "caused by"});
  for (const std::size_t column : {2U, 8U, 9U}) table.align_left(column);
  for (const auto& [task, caused_by, recorded] : jobs) {
    const JobEntry& job = recorded.entry;
    table.add({task, fmt::to_string(job.index), std::string(to_string(job.verdict)), ms(job.arrival), ms(job.start),
               ms(job.finish), ms(job.deadline),
               job.start ? fmt::format("{:.1f}", static_cast<double>(job.late.count()) / 1e3) : "-",
               job.broken ? std::string(to_string(job.broken->cause)) : "-", caused_by.value_or("-")});
  }
  return table.text();
}

/// What is missing of a file, and whether it ended: a line each.
std::string condition_text(const File& file) {
  const JournalCondition& condition = file.condition;
  std::string text;
  const auto line = [&](const std::string& sentence) { text += fmt::format("{}: {}\n", file.path, sentence); };
  if (!condition.closed) line("cut off: it has no end, so its run was killed or still writes");
  if (condition.continued) line("the run goes on in another file");
  if (condition.torn_bytes > 0) line(fmt::format("{} bytes at its end are unreadable", condition.torn_bytes));
  if (condition.lost_jobs > 0) line(fmt::format("{} jobs lost when it was written", condition.lost_jobs));
  if (condition.damaged_bytes > 0 || condition.damaged_jobs > 0)
    line(fmt::format("{} bytes damaged, {} jobs in them", condition.damaged_bytes, condition.damaged_jobs));
  if (condition.fault) line(fmt::format("it cannot be read to its end ({})", *condition.fault));
  return text;
}

std::string conditions_text(const std::vector<File>& files) {
  std::string text;
  for (const File& file : files) text += condition_text(file);
  return text.empty() ? "complete: nothing is lost, damaged or cut off\n" : text;
}

}  // namespace

// ---- reading

void JournalReport::add(const std::string& path, JournalReader reader) {
  by_id_.clear();
  File file{path, reader.start(), {}};
  const bool follows = !stretches_.empty() && stretches_.back().goes_on && file.start &&
                       file.start->started == stretches_.back().last.started &&
                       file.start->file == stretches_.back().last.file + 1;
  if (!follows) stretches_.emplace_back();
  Stretch& stretch = stretches_.back();
  if (file.start) stretch.last = *file.start;
  file.condition = read_journal(std::move(reader), *this);
  stretch.goes_on = file.condition.closed && file.condition.continued;
  stretch.whole = stretch.whole && file.condition.lost_jobs == 0 && file.condition.damaged_jobs == 0;
  files_.push_back(std::move(file));
}

void JournalReport::on_start(const JournalStart&) {
  by_id_.clear();
  stretches_.back().chains.clear();
}

void JournalReport::on_chain(const JournalChain& chain) {
  if (only_) return;
  Stretch& stretch = stretches_.back();
  stretch.chains.push_back(chain);
  for (const std::uint64_t task : chain.tasks) {
    if (task >= kMostPositions) continue;
    const TaskId id{static_cast<std::size_t>(task)};
    stretch.names[id] = row(id).name;
  }
}

void JournalReport::on_task(TaskId id, const JournalTask& task) {
  Row& its = row(task.name);
  if (!its.task) its.task = task;
  by_id_[id] = &its;
}

void JournalReport::on_job(const RecordedJob& job) {
  Stretch& stretch = stretches_.back();
  if (job.entry.start && stretch.names.contains(job.entry.task))
    stretch.jobs.add(job.entry.task,
                     {*job.entry.start, job.entry.completed() ? job.entry.finish : std::nullopt, job.entry.programs});
  Row& its = row(job.entry.task);
  if (only_ && its.name != *only_) return;
  its.summary.add(job.entry);
  std::optional<std::string> caused_by;
  if (const auto by = job.entry.caused_by()) ++its.caused_by[caused_by.emplace(row(*by).name)];
  if (last_jobs_ == 0) return;
  if (kept_.size() == last_jobs_) kept_.pop_front();
  kept_.push_back({its.name, std::move(caused_by), job});
}

Row& JournalReport::row(const std::string& name) {
  Row*& its = by_name_[name];
  if (its == nullptr) its = rows_.emplace_back(std::make_unique<Row>(Row{name, {}, {}, {}})).get();
  return *its;
}

Row& JournalReport::row(TaskId id) {
  Row*& its = by_id_[id];
  if (its == nullptr) its = &row(fmt::format("#{}", id.value));
  return *its;
}

std::vector<const Row*> JournalReport::rows() const {
  std::vector<const Row*> rows;
  for (const auto& each : rows_)
    if (!only_ || each->name == *only_) rows.push_back(each.get());
  return rows;
}

std::vector<std::string_view> JournalReport::names() const {
  std::vector<std::string_view> names;
  for (const auto& each : rows_) names.push_back(each->name);
  return names;
}

namespace {

/// The row of a chain of these tasks.
JournalReport::ChainRow& row_of(std::vector<JournalReport::ChainRow>& rows, const JournalChain& chain,
                                std::vector<std::string> tasks) {
  const auto is_same = [&](const JournalReport::ChainRow& row) {
    return row.chain.name == chain.name && row.tasks == tasks && row.chain.bound == chain.bound &&
           row.chain.deadline == chain.deadline;
  };
  const auto known = std::ranges::find_if(rows, is_same);
  if (known != rows.end()) return *known;
  return rows.emplace_back(JournalReport::ChainRow{chain, std::move(tasks), {}, 0});
}

void merge(ChainLatencies& sum, const ChainLatencies& more) {
  sum.reactions += more.reactions;
  sum.over_bound += more.over_bound;
  sum.over_deadline += more.over_deadline;
  sum.worst_reaction = std::max(sum.worst_reaction, more.worst_reaction);
  sum.worst_data_age = std::max(sum.worst_data_age, more.worst_data_age);
}

}  // namespace

std::vector<JournalReport::ChainRow> JournalReport::chains() const {
  std::vector<ChainRow> rows;
  for (const Stretch& stretch : stretches_) {
    for (const JournalChain& chain : stretch.chains) {
      if (chain.tasks.empty()) continue;
      std::vector<TaskId> tasks;
      std::vector<std::string> names;
      for (const std::uint64_t position : chain.tasks) {
        const auto task = stretch.names.find(TaskId{static_cast<std::size_t>(position)});
        if (task == stretch.names.end()) continue;  // a position that no task can have
        tasks.push_back(task->first);
        names.push_back(task->second);
      }
      ChainRow& row = row_of(rows, chain, std::move(names));
      if (stretch.whole && tasks.size() == chain.tasks.size()) {
        merge(row.latencies, stretch.jobs.measure(tasks, {chain.bound, chain.deadline}));
      } else {
        ++row.not_measured;
      }
    }
  }
  return rows;
}

// ---- reporting

programs::ExitCode exit_code_of(const JournalReport& report) {
  const auto rows = report.rows();
  const auto any = [&](auto test) { return std::ranges::any_of(rows, test); };
  std::uint64_t over_deadline = 0, over_bound = 0;
  for (const JournalReport::ChainRow& chain : report.chains()) {
    over_deadline += chain.latencies.over_deadline;
    over_bound += chain.latencies.over_bound;
  }
  if (over_deadline > 0 || any([](const Row* row) { return row->summary.without_deadline_met() > 0; }))
    return programs::kRefused;
  if (over_bound > 0) return programs::kMachineError;
  if (any([](const Row* row) { return row->summary.over_bound() + row->summary.with(JobVerdict::Failed) > 0; }))
    return programs::kMachineError;
  const bool faulty =
      std::ranges::any_of(report.files(), [](const File& file) { return file.condition.fault.has_value(); });
  return faulty ? programs::kMachineError : programs::kOk;
}

ReportOutput report_output(const JournalReport& report) {
  const JournalCondition sum = sum_of(report.files());
  ReportOutput output;
  for (const File& file : report.files()) output.files.push_back(file_output(file));
  output.recorded_jobs = sum.jobs;
  output.lost_jobs = sum.lost_jobs;
  output.damaged_jobs = sum.damaged_jobs;
  output.torn_bytes = sum.torn_bytes;
  output.quantile_error = 1.0 / 64;
  for (const Row* row : report.rows()) output.summary.push_back(task_output(*row));
  for (const JournalReport::ChainRow& chain : report.chains()) output.chains.push_back(chain_output(chain));
  for (const JournalReport::Job& job : report.last_jobs()) output.jobs.push_back(job_output(job));
  return output;
}

std::string journal_text(const JournalReport& report) {
  const auto rows = report.rows();
  std::string text = fmt::format("{}{} jobs in {} file{}\n\n", runs_text(report.files()), sum_of(report.files()).jobs,
                                 report.files().size(), report.files().size() == 1 ? "" : "s");
  text += fmt::format("{}\n{}\n{}\nQuantiles are rounded up by less than 1.6 %.\n", verdicts_text(rows),
                      responses_text(rows), lateness_text(rows));
  text += at_host_text(rows) + causes_text(rows) + chains_text(report.chains());
  if (!report.last_jobs().empty()) text += fmt::format("\n{}\n", jobs_text(report.last_jobs()));
  return text + conditions_text(report.files());
}

}  // namespace tutti::internal
