#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/dispatch/dispatcher.hpp"
#include "tests/runtime/small_machine.hpp"

namespace tutti::internal::test {

/// A task in whole ns whose Wcet is declared; the deadline is its period.
inline Task task(std::string name, std::int64_t wcet, std::int64_t period) {
  Task task;
  task.name = std::move(name);
  task.period = task.deadline = Duration{period};
  task.declared_wcet = Duration{wcet};
  return task;
}

inline Task with_deadline(Task task, std::int64_t deadline) { return task.deadline = Duration{deadline}, task; }
inline Task with_jitter(Task task, std::int64_t jitter) { return task.jitter = Duration{jitter}, task; }
inline Task with_offset(Task task, std::int64_t offset) { return task.offset = Duration{offset}, task; }

/// A set that must be schedulable.
inline AdmittedTaskSet admit(const TaskSet& set) {
  AdmissionVerdict verdict = AdmissionController(planners().front()).decide(set);
  if (!verdict.admitted)
    ADD_FAILURE() << "refused: " << (verdict.reasons.empty() ? "no reason" : verdict.reasons.front());
  return *std::move(verdict.admitted);
}

/// One job of a schedule in whole ns.
struct Row {
  std::string task;
  std::uint64_t index;
  std::int64_t arrival, start, finish, deadline;

  friend bool operator==(const Row&, const Row&) = default;
};

/// Shown by GoogleTest beside a failed expectation.
inline void PrintTo(const Row& row, std::ostream* out) {
  *out << row.task << row.index << " arrives " << row.arrival << ", runs " << row.start << " to " << row.finish
       << ", due " << row.deadline;
}

inline std::vector<Row> rows_of(const TaskSet& set, const RunRecord& record) {
  std::vector<Row> rows;
  for (const JobRecord& job : record.jobs) {
    EXPECT_TRUE(job.finish.has_value());
    rows.push_back({set.tasks[job.task.index()].name, job.index, job.arrival.count(), job.start.count(),
                    job.finish.value_or(Duration{-1}).count(), job.deadline.count()});
  }
  return rows;
}

/// A program that keeps to the declared Wcet and lets a test look on.
class WatchedProgram : public TaskProgram {
 public:
  Expected<std::vector<StreamBinding>> bind(DeviceBackend&, const Batch&, std::size_t, std::size_t) override {
    return std::vector<StreamBinding>{};
  }
  void on_ready(const Job& job) override {
    if (when_ready) when_ready(job);
  }
  Expected<void> on_work(Job& job) override {
    const auto own = instead ? instead(job) : TaskProgram::on_work(job);
    if (after) after(job);
    return own;
  }

  std::function<void(const Job&)> when_ready;
  std::function<Expected<void>(Job&)> instead;  ///< in place of the default
  std::function<void(const Job&)> after;
};

/// Runs an admitted set on the virtual clock, each task with a program of its own.
struct VirtualRun {
  explicit VirtualRun(TaskSet the_set) : set(std::move(the_set)), admitted(admit(set)), programs(set.tasks.size()) {
    for (WatchedProgram& program : programs) table.push_back(&program);
  }

  Expected<RunRecord> try_run(const RunOptions& options) {
    return run_tasks(station.executor, admitted, table, options);
  }
  RunRecord run(const RunOptions& options = {}) { return try_run(options).value(); }
  std::vector<Row> rows(const RunOptions& options = {}) { return rows_of(set, run(options)); }

  TaskSet set;
  AdmittedTaskSet admitted;
  Station station;
  std::vector<WatchedProgram> programs;  ///< [tasks]
  std::vector<TaskProgram*> table;
};

/// Whether the host lagged behind the machine that it played in real time, which ends a run.
inline bool was_too_slow(const RunRecord& record) {
  const auto lagged = [](const std::optional<Error>& error) {
    return error && error->message.starts_with("the host is too slow");
  };
  return lagged(record.fatal) || std::ranges::any_of(record.jobs, lagged, &JobRecord::error);
}

inline RunOptions first_jobs(std::uint64_t jobs, std::uint64_t seed = 1) {
  RunOptions options;
  options.jobs = jobs;
  options.seed = seed;
  return options;
}

}  // namespace tutti::internal::test
