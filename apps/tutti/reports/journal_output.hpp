#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/tutti/reports/run_output.hpp"

/// The output of `report`. Times may be negative: they are what files say.
namespace tutti::internal {

inline constexpr std::array<std::string_view, 3> kJournalStateWords{"cut_off", "continued", "ended"};

struct JournalFileOutput {
  std::string file, state;
  std::optional<std::string> tutti = {}, machine = {}, policy = {}, backend = {}, clock = {}, started = {};
  std::optional<Overlap> overlap = {};
  std::optional<std::uint64_t> number = {};
  std::uint64_t jobs = 0, lost_jobs = 0, damaged_jobs = 0, damaged_bytes = 0, torn_bytes = 0;
  std::optional<std::string> fault = {};
};
template <>
struct Record<JournalFileOutput> {
  static constexpr std::tuple fields{
      Field{"file", &JournalFileOutput::file}.means("path of the journal"),
      Field{"state", &JournalFileOutput::state}
          .one_of(kJournalStateWords)
          .means("whether the run ended with it, goes on in another file, or has no end in it"),
      Field{"tutti", &JournalFileOutput::tutti}.means("version that wrote it; null: its head cannot be read"),
      Field{"machine", &JournalFileOutput::machine}.means("name of the machine; null: its head cannot be read"),
      Field{"policy", &JournalFileOutput::policy}.means("order of ready jobs; null: its head cannot be read"),
      Field{"backend", &JournalFileOutput::backend}.means("what ran the jobs; null: its head cannot be read"),
      Field{"clock", &JournalFileOutput::clock}.means("'virtual' or 'real'; null: its head cannot be read"),
      Field{"started", &JournalFileOutput::started}.means(
          "start of the run by the wall clock, in UTC; null: its head cannot be read"),
      Field{"overlap", &JournalFileOutput::overlap}
          .one_of(kOffOnWords)
          .means("whether jobs overlapped; null: its head cannot be read"),
      Field{"number", &JournalFileOutput::number}.means(
          "number among the files of its run, from 0; null: its head cannot be read"),
      Field{"jobs", &JournalFileOutput::jobs}.means("jobs that were read"),
      Field{"lost_jobs", &JournalFileOutput::lost_jobs}.means("jobs that its writer lost, and noted"),
      Field{"damaged_jobs", &JournalFileOutput::damaged_jobs}.means("jobs that are missing between those"),
      Field{"damaged_bytes", &JournalFileOutput::damaged_bytes}.means("unreadable, with a readable record behind them"),
      Field{"torn_bytes", &JournalFileOutput::torn_bytes}.means("unreadable at the end"),
      Field{"fault", &JournalFileOutput::fault}.means("why the file system gave no more of it; null: it gave all")};
};

struct QuantilesOutput {
  Duration median{}, p90{}, p99{}, p999{}, worst{};
};
template <>
struct Record<QuantilesOutput> {
  static constexpr std::tuple fields{Field{"median_ms", &QuantilesOutput::median}.means("in the median"),
                                     Field{"p90_ms", &QuantilesOutput::p90}.means("at 90 %"),
                                     Field{"p99_ms", &QuantilesOutput::p99}.means("at 99 %"),
                                     Field{"p999_ms", &QuantilesOutput::p999}.means("at 99.9 %"),
                                     Field{"worst_ms", &QuantilesOutput::worst}.means("at worst, exact")};
};

/// The jobs of one task in all journals.
struct JournalTaskOutput {
  std::string task;
  std::optional<Duration> period = {}, deadline = {}, bound = {}, wcet = {};
  std::uint64_t jobs = 0;
  std::uint64_t met = 0, missed = 0, dropped = 0, failed = 0, aborted = 0, never_run = 0, skipped = 0;
  std::uint64_t over_bound = 0;
  std::vector<std::pair<std::string, std::uint64_t>> causes = {}, caused_by = {};
  std::optional<Duration> worst_over_by = {};
  std::uint64_t overruns = 0;
  std::optional<QuantilesOutput> response = {}, lateness = {};
  std::optional<Duration> worst_end_to_end = {};
  std::optional<Duration> worst_at_host = {};
  std::optional<std::optional<Duration>> bound_at_host = {};
  std::optional<std::uint64_t> overwritten = {};
  std::optional<std::uint64_t> reused_input = {};
};
template <>
struct Record<JournalTaskOutput> {
  static constexpr std::tuple fields{
      Field{"task", &JournalTaskOutput::task}.means("name of the task; '#7' where no readable record has it"),
      Field{"period_ms", &JournalTaskOutput::period}.may_be_negative().means("its period; null: not known"),
      Field{"deadline_ms", &JournalTaskOutput::deadline}.may_be_negative().means(
          "its relative deadline; null: not known"),
      Field{"bound_ms", &JournalTaskOutput::bound}.may_be_negative().means(
          "bound on the response; null: not known, or none is guaranteed"),
      Field{"wcet_ms", &JournalTaskOutput::wcet}.may_be_negative().means(
          "longest time of a job alone; null: not known"),
      Field{"jobs", &JournalTaskOutput::jobs}.means("all jobs"),
      Field{"met", &JournalTaskOutput::met}.means("jobs that ended by their deadline"),
      Field{"missed", &JournalTaskOutput::missed}.means("jobs that ended after their deadline"),
      Field{"dropped", &JournalTaskOutput::dropped}.means("jobs that never ran: no buffers were free"),
      Field{"failed", &JournalTaskOutput::failed}.means("jobs that ended with an error"),
      Field{"aborted", &JournalTaskOutput::aborted}.means("jobs that a policy ended early"),
      Field{"never_run", &JournalTaskOutput::never_run}.means("jobs that the end of the run kept from starting"),
      Field{"skipped", &JournalTaskOutput::skipped}.means("jobs left out after one over its budget"),
      Field{"over_bound", &JournalTaskOutput::over_bound}.means(
          "jobs over their bound, or with a batch over its latest finish"),
      Field{"causes", &JournalTaskOutput::causes}.means("these, by cause; causes of none are left out"),
      Field{"caused_by", &JournalTaskOutput::caused_by}.means("these, by the other task that was the cause"),
      Field{"worst_over_by_ms", &JournalTaskOutput::worst_over_by}.may_be_negative().means(
          "longest time beyond a bound; null: no job was over it"),
      Field{"overruns", &JournalTaskOutput::overruns}.means("kernels that took longer than their declared worst"),
      Field{"response", &JournalTaskOutput::response}.means("responses of completed jobs; null: there is none"),
      Field{"lateness", &JournalTaskOutput::lateness}.means(
          "how late the dispatcher saw that jobs were ready; null: none started"),
      Field{"worst_end_to_end_ms", &JournalTaskOutput::worst_end_to_end}.may_be_negative().means(
          "longest time from an arrival until the result was read; null: no job completed"),
      Field{"worst_response_at_host_ms", &JournalTaskOutput::worst_at_host}
          .if_any()
          .may_be_negative()
          .since("0.2.0")
          .means("longest time from an arrival until the host had the record; where a GPU led"),
      Field{"bound_at_host_ms", &JournalTaskOutput::bound_at_host}.if_any().may_be_negative().since("0.2.0").means(
          "bound on that; null: none is guaranteed; where a GPU led"),
      Field{"overwritten", &JournalTaskOutput::overwritten}.if_any().since("0.2.0").means(
          "jobs whose consumer did not have their results whole; where a GPU led"),
      Field{"reused_input", &JournalTaskOutput::reused_input}.if_any().since("0.2.0").means(
          "jobs that had the input of an earlier one; where a GPU led")};
};

struct StreamTimeOutput {
  std::uint32_t batch = 0, stream = 0;
  Duration start{}, end{};
};
template <>
struct Record<StreamTimeOutput> {
  static constexpr std::tuple fields{
      Field{"batch", &StreamTimeOutput::batch}.means("batch of the job, from 0"),
      Field{"stream", &StreamTimeOutput::stream}.means("stream of the batch, from 0"),
      Field{"start_ms", &StreamTimeOutput::start}.may_be_negative().means("start, from that of the run"),
      Field{"end_ms", &StreamTimeOutput::end}.may_be_negative().means("end, from the start of the run")};
};

struct JournalJobOutput {
  std::string task;
  std::uint64_t index = 0;
  std::uint32_t partition = 0;
  JobVerdict verdict = JobVerdict::Met;
  Duration release{}, ready{};
  std::optional<Duration> start = {}, finish = {};
  Duration deadline{};
  std::optional<Duration> response = {}, end_to_end = {}, late = {};
  std::uint32_t overruns = 0;
  std::optional<BoundCause> cause = {};
  std::optional<std::string> caused_by = {};
  std::optional<Duration> over_by = {};
  std::vector<StreamTimeOutput> streams = {};
  std::optional<Duration> seen = {};
  std::optional<bool> overwritten = {};
  std::optional<bool> reused_input = {};
};
template <>
struct Record<JournalJobOutput> {
  static constexpr std::tuple fields{
      Field{"task", &JournalJobOutput::task}.means("task of the job"),
      Field{"index", &JournalJobOutput::index}.means("number among the jobs of the task, from 0"),
      Field{"partition", &JournalJobOutput::partition}.means("partition that ran it, from 0"),
      Field{"verdict", &JournalJobOutput::verdict}.means("what became of it"),
      Field{"release_ms", &JournalJobOutput::release}.may_be_negative().means("arrival, from the start of the run"),
      Field{"ready_ms", &JournalJobOutput::ready}.may_be_negative().means("arrival and jitter"),
      Field{"start_ms", &JournalJobOutput::start}.may_be_negative().means("start; null: it did not start"),
      Field{"finish_ms", &JournalJobOutput::finish}.may_be_negative().means("end; null: it did not run to its end"),
      Field{"deadline_ms", &JournalJobOutput::deadline}.may_be_negative().means("when it is due"),
      Field{"response_ms", &JournalJobOutput::response}.may_be_negative().means(
          "from the arrival to the end, without what programs did beside their steps; null: no valid results"),
      Field{"end_to_end_ms", &JournalJobOutput::end_to_end}.may_be_negative().means(
          "from the arrival until its program had read its result; null: no valid results"),
      Field{"late_ms", &JournalJobOutput::late}.may_be_negative().means(
          "from when it was ready and the dispatcher free until the dispatcher saw it; null: it did not start"),
      Field{"overruns", &JournalJobOutput::overruns}.means("kernels that took longer than their declared worst"),
      Field{"cause", &JournalJobOutput::cause}.means(
          "why it was over its bound, missed its deadline, or had a batch over its latest finish; null: it was none"),
      Field{"caused_by", &JournalJobOutput::caused_by}.means("task whose jobs were the cause; null: no other task's"),
      Field{"over_by_ms", &JournalJobOutput::over_by}.may_be_negative().means(
          "time beyond the bound; null: it has no cause"),
      Field{"streams", &JournalJobOutput::streams}.means("measured times of its streams"),
      Field{"seen_ms", &JournalJobOutput::seen}.if_any().may_be_negative().since("0.2.0").means(
          "when the host had its record; where a GPU led"),
      Field{"overwritten", &JournalJobOutput::overwritten}.if_any().since("0.2.0").means(
          "whether its consumer did not have its results whole; where a GPU led"),
      Field{"reused_input", &JournalJobOutput::reused_input}.if_any().since("0.2.0").means(
          "whether it had the input of an earlier job; where a GPU led")};
};

struct JournalChainOutput {
  std::string name;
  std::vector<std::string> tasks = {};
  std::uint64_t reactions = 0;
  std::optional<Duration> worst_reaction = {}, worst_data_age = {}, bound = {};
  std::uint64_t over_bound = 0;
  std::optional<Duration> deadline = {};
  std::uint64_t over_deadline = 0, not_measured = 0;
};
template <>
struct Record<JournalChainOutput> {
  static constexpr std::tuple fields{
      Field{"name", &JournalChainOutput::name}.means("name of the chain"),
      Field{"tasks", &JournalChainOutput::tasks}.means("its tasks, from cause to effect"),
      Field{"reactions", &JournalChainOutput::reactions}.means("events whose effect the runs have"),
      Field{"worst_reaction_ms", &JournalChainOutput::worst_reaction}.may_be_negative().means(
          "longest time from an event to its effect; null: there is none"),
      Field{"worst_data_age_ms", &JournalChainOutput::worst_data_age}.may_be_negative().means(
          "longest time from a cause until its effect is replaced; null: there is none"),
      Field{"bound_ms", &JournalChainOutput::bound}.may_be_negative().means("bound on both; null: none is guaranteed"),
      Field{"over_bound", &JournalChainOutput::over_bound}.means("reactions longer than the bound"),
      Field{"deadline_ms", &JournalChainOutput::deadline}.may_be_negative().means(
          "deadline of reactions; null: it has none"),
      Field{"over_deadline", &JournalChainOutput::over_deadline}.means("reactions longer than the deadline"),
      Field{"runs_not_measured", &JournalChainOutput::not_measured}.means("runs that are left out: jobs are missing")};
};

struct ReportOutput {
  SchemaVersion schema_version = {};
  std::vector<JournalFileOutput> files = {};
  std::uint64_t recorded_jobs = 0, lost_jobs = 0, damaged_jobs = 0, torn_bytes = 0;
  double quantile_error = 0;
  std::vector<JournalTaskOutput> summary = {};
  std::vector<JournalChainOutput> chains = {};
  std::vector<JournalJobOutput> jobs = {};
};
template <>
struct Record<ReportOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &ReportOutput::schema_version}.means("version of these keys"),
      Field{"files", &ReportOutput::files}.means("by the start of their run, then by number"),
      Field{"recorded_jobs", &ReportOutput::recorded_jobs}.means("jobs that were read, in all files"),
      Field{"lost_jobs", &ReportOutput::lost_jobs}.means("jobs that writers lost, and noted, in all files"),
      Field{"damaged_jobs", &ReportOutput::damaged_jobs}.means("jobs missing between those, in all files"),
      Field{"torn_bytes", &ReportOutput::torn_bytes}.means("unreadable at the ends of all files"),
      Field{"quantile_error", &ReportOutput::quantile_error}.means("share by which quantiles are rounded up at most"),
      Field{"summary", &ReportOutput::summary}.means("the jobs of each task; with --task those of one"),
      Field{"chains", &ReportOutput::chains}.means("in the order of the files; none with --task"),
      Field{"jobs", &ReportOutput::jobs}.means("the last jobs, as many as --jobs says; otherwise none")};
};

}  // namespace tutti::internal
