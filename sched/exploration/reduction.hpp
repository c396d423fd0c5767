#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/step_budget.hpp"
#include "sched/exploration/job_sequence.hpp"
#include "sched/exploration/next_jobs.hpp"
#include "sched/exploration/state_level.hpp"

namespace tutti::internal {

/// Finds, in a state of the graph, a set of jobs that run next in every schedule, in whatever order.
///
/// Where none of them can be late, one edge leads to the state behind all of them, instead of one for each order. The
/// machine becomes free there in [`first_end`, `last_end`]: the end of jobs that run without others does not depend on
/// their order, only on releases and costs, and grows with each.
///
/// Proof. Let S be the set and x the first other job that starts before all of S have, at t: until then the machine ran
/// S alone. At least one job of S has not started, so (1) t <= `last_end` less the shortest of the longest costs, for
/// had S gone on alone, that job would still have ended by `last_end`. x has been released and the machine is free,
/// so (2) t >= max(x's earliest release, `from`). No job of S that goes before x is ready, so (3) all of those that are
/// surely released by t are over: t is at least `from` and their shortest costs, and at least the end of each. Where
/// all jobs of S go before x, (4) one of them has not been released: t is before the latest of their latest releases.
/// A job for which some t passes all four is added, until there is none.
/// @source [RGNN23] sections 4 and 5: reduction sets and interfering jobs
class Reduction {
 public:
  enum class Result : std::uint8_t { Closed, TooLarge, OutOfBudget };

  Reduction(JobSequence& jobs, StepBudget& budget) : jobs_(jobs), budget_(budget) {}

  /// @param seeds  the jobs that can be next, at least one.
  /// @param most   most jobs of the set.
  [[nodiscard]] Result find(const GraphState& state, const FinishedJobs& finished, std::span<const NextJob> seeds,
                            std::size_t most);

  /// With Closed: in ascending order.
  [[nodiscard]] const std::vector<std::uint32_t>& positions() const { return positions_; }
  [[nodiscard]] HalfNs first_end() const;
  [[nodiscard]] HalfNs last_end() const { return ends_.back(); }

 private:
  void add(std::uint32_t position);
  [[nodiscard]] bool has(std::size_t position) const;
  [[nodiscard]] HalfNs last_start() const { return last_end() - shortest_; }
  [[nodiscard]] bool interferes(std::uint32_t position);

  JobSequence& jobs_;
  StepBudget& budget_;
  std::int64_t visits_ = 0;
  HalfNs from_ = 0;
  std::size_t first_ = 0;
  std::vector<std::uint32_t> by_release_;  ///< by latest release
  std::vector<HalfNs> ends_;               ///< [by_release_ + 1] latest end of the jobs before; the first: of none
  std::vector<bool> in_set_;               ///< from `first_` on
  std::uint32_t least_urgent_ = 0;
  HalfNs shortest_ = 0;  ///< of the longest costs
  std::vector<std::uint32_t> positions_;
};

}  // namespace tutti::internal
