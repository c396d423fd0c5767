#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/task_state.hpp"
#include "runtime/trace/journal.hpp"

namespace tutti::internal {

/// A job that has ended, until its batches are reviewed.
struct EndedJob {
  JobRecord record;
  std::size_t place = 0;                         ///< of its record, from `JobLedger::claim`
  std::vector<PreparedBatch>* chunks = nullptr;  ///< of its batches; null: it never ran
  bool late = false;                             ///< over its bound, or its deadline
  Duration over{};                               ///< excess over the bound
  Excesses excesses;
  std::optional<TaskId> blocker;  ///< whose jobs took the most from it, beyond their Wcet
  // Of the review.
  std::size_t reviewed = 0;             ///< of its batches
  std::optional<BrokenBound> broken{};  ///< of the batch that was furthest over its latest finish
};

/// The records of a run: compares jobs with their bounds, names causes, keeps records, summaries and the journal.
///
/// The measured times of a job's batches are read while another job runs, or the run is idle: `review`.
class JobLedger {
 public:
  /// What is passed in outlives the ledger.
  JobLedger(Executor& executor, RunRecord& record, const std::vector<TaskState>& tasks)
      : executor_(executor), record_(record), tasks_(tasks) {}

  /// Who gets the records.
  void report_to(const RunOptions& options);
  /// Compares jobs and batches with their bounds.
  /// @param bounds  [tasks] of responses, where there are any; empty: batches alone have bounds
  void hold_to(std::span<const std::optional<Duration>> bounds);
  /// Allocates the memory of the records and touches its pages. @param jobs  most jobs of the run; @pre `report_to`
  void make_room(std::uint64_t jobs, std::size_t alive);
  /// The run starts. @param epoch  the clock's reading
  void begin(Duration epoch) { epoch_ = epoch; }

  /// The place of the record of a job that ends now: records are in this order.
  [[nodiscard]] std::size_t claim();
  /// By how much a job that ran is over the bound of its response; 0 or less: it is not, or has none.
  [[nodiscard]] Duration over_bound(const JobRecord& record) const;
  /// Takes a job whose buffers are free; the next `review` reads the times of its batches.
  void add(EndedJob&& ended);
  /// Completes and keeps the records of all jobs that were added.
  void review();
  /// Reviews one batch, or what follows the last one of a job. @return whether more is left
  bool review_next();
  /// Reviews jobs until none is left that had these batches.
  void review_those_of(const std::vector<PreparedBatch>& chunks);
  /// Keeps the record of a job that needs no review.
  void keep(JobRecord&& record, std::size_t place);
  /// The run has ended: attributes slow copies to other users of the devices, where there were any.
  void finish();

 private:
  [[nodiscard]] bool takes_streams() const { return recorder_ != nullptr && recorder_->takes_streams(); }
  void review_batch(EndedJob& ended);
  void judge(EndedJob& ended) const;
  void note_streams(TaskId task, std::size_t chunk, Duration start, const Timeline& measured);
  void keep(JobRecord&& record, std::size_t place, std::span<const StreamTime> streams);

  Executor& executor_;
  RunRecord& record_;
  const std::vector<TaskState>& tasks_;
  JobRecorder* recorder_ = nullptr;
  std::span<const TaskId> names_;  // [tasks] in the journal; empty: as here
  bool keeps_jobs_ = true;
  bool promised_ = false;                        // jobs are held against their bounds
  std::vector<std::optional<Duration>> bounds_;  // [tasks] of responses; empty: none are known
  Duration epoch_{};
  bool foreign_ = false;             // others used the devices when the run was prepared
  std::vector<EndedJob> ended_;      // not reviewed, the oldest first
  std::vector<StreamTime> streams_;  // of the oldest
};

}  // namespace tutti::internal
