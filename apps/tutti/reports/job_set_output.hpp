#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/reports/verdict_output.hpp"
#include "sched/tasks/executed_job.hpp"

/// The outputs of `check --jobs`, `tasks expand` and `tasks import`. Ids are those of the file.
namespace tutti::internal {

/// A time in halves of a nanosecond: a whole number where it is one.
struct HalfTime {
  HalfNs time = 0;
};
template <>
struct JsonForm<HalfTime> {
  static Json json(HalfTime value, const FieldRules&) {
    return value.time % 2 == 0 ? Json(value.time / 2) : Json(static_cast<double>(value.time) / 2);
  }
  static Json schema(const FieldRules& rules) { return schema_of_result_number(rules, false); }
};

struct JobTaskOutput {
  std::int64_t task = 0;
  std::size_t jobs = 0;
  std::optional<Duration> best = {}, worst = {}, slack = {};
};
template <>
struct Record<JobTaskOutput> {
  static constexpr std::tuple fields{
      Field{"task", &JobTaskOutput::task}.means("id of the task"),
      Field{"jobs", &JobTaskOutput::jobs}.means("number of its jobs"),
      Field{"best_response_ns", &JobTaskOutput::best}.means("shortest response of its jobs; null: not schedulable"),
      Field{"worst_response_ns", &JobTaskOutput::worst}.means("longest response of its jobs; null: not schedulable"),
      Field{"slack_ns", &JobTaskOutput::slack}.means(
          "least time from the latest end of a job until it is due; null: not schedulable")};
};

struct JobResponseOutput {
  std::int64_t task = 0, job = 0;
  Duration best{}, worst{};
};
template <>
struct Record<JobResponseOutput> {
  static constexpr std::tuple fields{
      Field{"task", &JobResponseOutput::task}.means("id of the task"),
      Field{"job", &JobResponseOutput::job}.means("id of the job"),
      Field{"best_response_ns", &JobResponseOutput::best}.means("shortest response, from the earliest arrival"),
      Field{"worst_response_ns", &JobResponseOutput::worst}.means("longest response, from the earliest arrival")};
};

struct LateJobOutput {
  std::int64_t task = 0, job = 0;
  HalfTime release = {}, start = {};
  std::optional<HalfTime> finish = {};
  HalfTime deadline = {};
};
template <>
struct Record<LateJobOutput> {
  static constexpr std::tuple fields{
      Field{"task", &LateJobOutput::task}.means("id of the task"),
      Field{"job", &LateJobOutput::job}.means("id of the job"),
      Field{"release_ns", &LateJobOutput::release}.means("arrival"),
      Field{"start_ns", &LateJobOutput::start}.means("start, or until when it was seen waiting"),
      Field{"finish_ns", &LateJobOutput::finish}.means("end; null: it still waits when it is due"),
      Field{"deadline_ns", &LateJobOutput::deadline}.means("when it is due")};
};

struct CheckJobsOutput {
  SchemaVersion schema_version = {};
  bool schedulable = false;
  Answer verdict = Answer::Unknown;
  std::uint64_t states = 0;
  bool exact = true;
  std::vector<JobTaskOutput> tasks = {};
  std::vector<JobResponseOutput> jobs = {};
  std::optional<std::vector<LateJobOutput>> late_run = {};
  std::optional<std::string> reason = {};
};
template <>
struct Record<CheckJobsOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &CheckJobsOutput::schema_version}.means("version of these keys"),
      Field{"schedulable", &CheckJobsOutput::schedulable}.means("true only for a proof"),
      Field{"verdict", &CheckJobsOutput::verdict}.means("the answer"),
      Field{"states", &CheckJobsOutput::states}.means("states of the machine that were looked at"),
      Field{"exact", &CheckJobsOutput::exact}.means("whether responses occur; if not, they are bounds"),
      Field{"tasks", &CheckJobsOutput::tasks}.means("tasks by rising id"),
      Field{"jobs", &CheckJobsOutput::jobs}.means("in the order of the file; empty where not schedulable"),
      Field{"late_run", &CheckJobsOutput::late_run}.means(
          "jobs in the order of their execution, the last one late; null: there is no such run"),
      Field{"reason", &CheckJobsOutput::reason}.means("why, in a sentence; null: schedulable")};
};

struct ExpandedJobOutput {
  std::int64_t task = 0, job = 0;
  Duration earliest{}, latest{}, least{}, most{}, deadline{};
  std::int64_t priority = 0;
};
template <>
struct Record<ExpandedJobOutput> {
  static constexpr std::tuple fields{
      Field{"task", &ExpandedJobOutput::task}.means("number of the task in its partition, from 0"),
      Field{"job", &ExpandedJobOutput::job}.means("number among the jobs of the task, from 0"),
      Field{"arrival_min_ns", &ExpandedJobOutput::earliest}.means("its earliest arrival"),
      Field{"arrival_max_ns", &ExpandedJobOutput::latest}.means("its latest arrival"),
      Field{"cost_min_ns", &ExpandedJobOutput::least}.means("its shortest execution time"),
      Field{"cost_max_ns", &ExpandedJobOutput::most}.means("its longest execution time"),
      Field{"deadline_ns", &ExpandedJobOutput::deadline}.means("when it is due"),
      Field{"priority", &ExpandedJobOutput::priority}.means("its priority; the smallest first")};
};

struct TasksExpandOutput {
  SchemaVersion schema_version = {};
  std::size_t count = 0;
  std::optional<std::string> out = {};
  std::optional<std::vector<ExpandedJobOutput>> jobs = {};
};
template <>
struct Record<TasksExpandOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &TasksExpandOutput::schema_version}.means("version of these keys"),
      Field{"count", &TasksExpandOutput::count}.means("number of jobs"),
      Field{"out", &TasksExpandOutput::out}.means("file that has the jobs; null: the next key has them"),
      Field{"jobs", &TasksExpandOutput::jobs}.means("the jobs; null: a file has them")};
};

struct TasksImportOutput {
  SchemaVersion schema_version = {};
  std::string source = {};
  std::size_t tasks = 0;
  int cores = 0, gpus = 0;
  std::vector<std::string> notes = {};
  std::optional<std::string> out = {};
};
template <>
struct Record<TasksImportOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &TasksImportOutput::schema_version}.means("version of these keys"),
      Field{"source", &TasksImportOutput::source}.means("format of the model"),
      Field{"tasks", &TasksImportOutput::tasks}.means("number of tasks"),
      Field{"cores", &TasksImportOutput::cores}.means("number of cores of the model"),
      Field{"gpus", &TasksImportOutput::gpus}.means("number of GPUs of the model"),
      Field{"notes", &TasksImportOutput::notes}.means(
          "what a task set has no place for, or looks like a mistake, a sentence each"),
      Field{"out", &TasksImportOutput::out}.means("task set that was written; null: none")};
};

}  // namespace tutti::internal
