#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/exit_code.hpp"
#include "apps/tutti/reports/journal_output.hpp"
#include "apps/tutti/reports/report.hpp"
#include "runtime/trace/job_summary.hpp"
#include "runtime/trace/journal_reader.hpp"
#include "sched/chains/chain_measurement.hpp"

namespace tutti::internal {

/// What files of journals say, as `report` prints it. Tasks of the same name are one, whichever files they are in.
class JournalReport final : JournalVisitor {
 public:
  /// One file.
  struct File {
    std::string path;
    std::optional<JournalStart> start;
    JournalCondition condition;
  };
  /// One task.
  struct Row {
    std::string name;                 ///< "#7" where no readable record describes the task
    std::optional<JournalTask> task;  ///< as the first file describes it
    JobSummary summary;
    std::map<std::string, std::uint64_t> caused_by;  ///< jobs over their bound, by the task that was the cause
  };
  /// One job.
  struct Job {
    std::string task;
    std::optional<std::string> caused_by;
    RecordedJob job;
  };

  /// One chain of all runs that have it with these tasks and limits. Jobs that are missing would make reactions longer
  /// than they were, so a run without all of its jobs does not count.
  struct ChainRow {
    JournalChain chain;              ///< as the first file that has it describes it
    std::vector<std::string> tasks;  ///< their names
    ChainLatencies latencies;
    std::uint64_t not_measured = 0;  ///< runs of which jobs are missing
  };

  /// @param last_jobs  how many of the last jobs are kept
  /// @param task       only jobs of this task; none: of all
  explicit JournalReport(std::size_t last_jobs = 0, std::optional<std::string> task = {})
      : last_jobs_(last_jobs), only_(std::move(task)) {}

  /// Reads a file to its end. Files of one run are added in their order.
  void add(const std::string& path, JournalReader reader);

  [[nodiscard]] const std::vector<File>& files() const { return files_; }
  /// In the order in which the files describe them; all, or the one that is asked for.
  [[nodiscard]] std::vector<const Row*> rows() const;
  /// The names of all tasks.
  [[nodiscard]] std::vector<std::string_view> names() const;
  /// In the order in which the files describe them; none where one task is asked for.
  [[nodiscard]] std::vector<ChainRow> chains() const;
  /// In the order of the files.
  [[nodiscard]] const std::deque<Job>& last_jobs() const { return kept_; }

 private:
  /// Files of one run that follow each other, as its chains see them.
  struct Stretch {
    JournalStart last;     // of its last file
    bool goes_on = false;  // it says that another one follows
    bool whole = true;
    std::vector<JournalChain> chains;
    std::map<TaskId, std::string> names;  // of tasks of its chains
    ChainJobs jobs;                       // of these
  };

  void on_start(const JournalStart& start) override;
  void on_task(TaskId id, const JournalTask& task) override;
  void on_chain(const JournalChain& chain) override;
  void on_job(const RecordedJob& job) override;
  Row& row(const std::string& name);
  Row& row(TaskId id);

  std::size_t last_jobs_;
  std::optional<std::string> only_;
  std::vector<File> files_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::map<std::string, Row*> by_name_;
  std::map<TaskId, Row*> by_id_;  // in the file that is read
  std::vector<Stretch> stretches_;
  std::deque<Job> kept_;
};

/// 1 where a deadline was missed, a job dropped or aborted, or a chain was over its deadline; otherwise 3 where a job
/// failed or was over its bound, a chain was over its own, or a file could not be read to its end; otherwise 0.
[[nodiscard]] programs::ExitCode exit_code_of(const JournalReport& report);

[[nodiscard]] ReportOutput report_output(const JournalReport& report);
[[nodiscard]] std::string journal_text(const JournalReport& report);

}  // namespace tutti::internal
