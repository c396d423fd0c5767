#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "model/base/wide.hpp"
#include "sched/exploration/job_set.hpp"
#include "sched/tasks/executed_job.hpp"

namespace tutti::internal {

/// A job as the exploration reads it.
struct SequencedJob {
  HalfNs earliest = 0, latest = 0;  ///< release
  HalfNs least = 0, most = 0;       ///< cost
  HalfNs due = 0;
  std::int64_t priority = 0;
  std::uint32_t source = 0;  ///< position in the job set, or the task
};

/// Jobs by their earliest release: those of a job set, or of periodic tasks, which are made as they are needed.
class JobSequence {
 public:
  /// @param jobs  must outlive the sequence.
  /// @pre  fewer than 2^32 jobs, each as `JobTiming` says.
  explicit JobSequence(std::span<const JobTiming> jobs);
  /// @pre  at least one task, all in reach, with that repetition.
  JobSequence(std::span<const TaskTiming> tasks, Policy policy, const Repetition& repetition);

  /// Whether every finish is in reach in every schedule; otherwise nothing may be explored.
  [[nodiscard]] bool in_reach() const { return in_reach_; }
  /// Whether every release and cost is fixed.
  [[nodiscard]] bool fixed() const { return fixed_; }
  /// How the sequence repeats; nothing where it is finite.
  [[nodiscard]] const std::optional<Repetition>& repetition() const { return repetition_; }

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] const SequencedJob& operator[](std::size_t position) const { return jobs_[position]; }

  /// Whether there is a job at this position; for periodic tasks it is made on demand.
  [[nodiscard]] bool has(std::size_t position) { return position < jobs_.size() || extend(); }

  /// Whether job `a` runs before job `b` where both are ready.
  [[nodiscard]] bool before(std::size_t a, std::size_t b) const {
    const SequencedJob& x = jobs_[a];
    const SequencedJob& y = jobs_[b];
    return x.priority != y.priority ? x.priority < y.priority : wins_tie(a, b);
  }

 private:
  /// Tie-break of two jobs of equal priority: the smaller task first, then the smaller id.
  [[nodiscard]] bool wins_tie(std::size_t a, std::size_t b) const;
  bool extend();
  void add(const JobTiming& job, std::size_t source);
  /// Repeats the last round, a hyperperiod later.
  void repeat_last_round();
  void count(const SequencedJob& job);

  std::vector<SequencedJob> jobs_;
  std::span<const JobTiming> set_;  ///< empty for periodic tasks
  std::optional<Repetition> repetition_;
  Policy policy_ = Policy::Edf;
  Wide total_cost_ = 0;
  HalfNs last_release_ = 0;
  bool in_reach_ = true;
  bool fixed_ = true;
};

}  // namespace tutti::internal
