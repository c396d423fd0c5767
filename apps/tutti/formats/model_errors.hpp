#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/trace/job_entry.hpp"

namespace tutti::internal {

/// How much longer the jobs of a task took than their plan says, as a share of the planned length: 0.02 is 2 % longer,
/// and below 0 is shorter. Lengths are from start to finish.
class ModelError {
 public:
  /// @param predicted  length of each job; absent: no plan has one, and there is no error either
  explicit ModelError(std::optional<Duration> predicted = {});

  void add(Duration length);
  /// Absent without a plan, or without jobs.
  [[nodiscard]] std::optional<double> mean() const;
  /// The error of the job whose length was furthest from the planned one, longer or shorter; absent as `mean`.
  [[nodiscard]] std::optional<double> worst() const;

 private:
  std::optional<Duration> predicted_;
  std::uint64_t jobs_ = 0;
  double sum_ = 0;  // of errors
  double worst_ = 0;
};

/// The model errors of all tasks of a run, from its jobs one by one.
///
/// Only jobs that completed and had the machine for themselves count: one between whose start and finish another job of
/// its partition ran is longer than its plan for that reason.
class ModelErrors {
 public:
  /// @param predicted  [tasks] as `ModelError`
  explicit ModelErrors(const std::vector<std::optional<Duration>>& predicted);

  /// Adds a job. @pre jobs of a partition come in the order in which they ended
  void see(const RecordedJob& job);
  /// [tasks]
  [[nodiscard]] const std::vector<ModelError>& of_tasks() const { return tasks_; }

 private:
  std::vector<ModelError> tasks_;
  std::vector<Duration> last_finish_;  // [partitions] of the jobs that have ended
};

}  // namespace tutti::internal
