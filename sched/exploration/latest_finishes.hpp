#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "model/base/step_budget.hpp"
#include "sched/exploration/job_sequence.hpp"

namespace tutti::internal {

/// When the machine becomes free for jobs; absent: it was free before all of them.
using FreeInterval = std::optional<std::pair<HalfNs, HalfNs>>;

/// Why a job may be late: the busy interval with the latest end.
struct LateSuspect {
  std::uint32_t position = 0;  ///< the job
  HalfNs busy_from = 0;        ///< the more urgent jobs arrive together then; at the start: that of the whole run
};

/// Bounds the finishes of jobs that run in any order that their priorities allow, with no other job in between.
///
/// Proof. Let job j start at s, let "more urgent" include j, and let t0 be the start of the interval up to s in which a
/// more urgent job is waiting or running. (1) Every more urgent job that was released before t0 is over at t0, or t0 is
/// where the machine became free first. So those that run from t0 to s are released in [t0, s]: their earliest release
/// is at most s, their latest at least t0. (2) One less urgent job may run at t0; it started before t0, in whole ns and
/// the open intervals between them at t0 - 1 at the latest. (3) From its end, or t0, to s the machine never idles. With
/// every cost at its longest, s is thus at most the first w at which all of that is done: were j still waiting at w,
/// one of the jobs counted would have to be unfinished. (4) Between two latest releases of more urgent jobs the set of
/// (1) stays the same and w only grows with t0, and t0 is the release of a more urgent job, no later than that of j: it
/// is enough to try the latest releases up to j's own. (5) The interval must last until j can be released. The whole
/// machine's busy intervals, the same for a job less urgent than all, bound every finish too, hence also that of the
/// job in (2).
class LatestFinishes {
 public:
  enum class Result : std::uint8_t {
    AllInTime,
    MaybeLate,
    Endless,  ///< jobs after the last position count too
    OutOfBudget,
  };

  LatestFinishes(const JobSequence& jobs, StepBudget& budget) : jobs_(jobs), budget_(budget) {}

  /// Bounds the finishes of `positions` from index `from` up to index `to`.
  /// @param positions  in ascending order
  /// @param followed   whether more jobs follow, released at the last position's earliest release or later; all jobs
  ///                   that the bounds need must lie before that.
  [[nodiscard]] Result find(std::span<const std::uint32_t> positions, FreeInterval free, std::size_t from,
                            std::size_t to, bool followed = false);

  /// [positions] with AllInTime: the bounds, where they were asked for.
  [[nodiscard]] const std::vector<HalfNs>& latest() const { return latest_; }
  /// With MaybeLate.
  [[nodiscard]] const LateSuspect& suspect() const { return suspect_; }
  /// Busy intervals that start up to this instant, so far as jobs of `positions` are in them, end before the first job
  /// that was asked for can be released; absent: some may not.
  [[nodiscard]] std::optional<HalfNs> over_before() const { return over_before_; }

 private:
  struct Arrival {
    HalfNs latest;  ///< release
    std::uint32_t index;
  };

  [[nodiscard]] const SequencedJob& job(std::uint32_t index) const { return jobs_[positions_[index]]; }
  [[nodiscard]] bool find_busy_ends();
  [[nodiscard]] Result bound(std::uint32_t index);
  /// Gathers the jobs that can run between a busy interval's start and the end of this job.
  void gather(std::uint32_t index, HalfNs end);
  /// The first instant from `start` on at which the more urgent jobs that can be released by then are done.
  [[nodiscard]] HalfNs done_from(HalfNs start);
  [[nodiscard]] HalfNs blocked_until(HalfNs start) const;

  const JobSequence& jobs_;
  StepBudget& budget_;
  std::span<const std::uint32_t> positions_;
  FreeInterval free_;
  std::int64_t visits_ = 0;
  std::vector<Arrival> arrivals_;      ///< by latest release
  std::vector<HalfNs> busy_end_;       ///< [arrivals] latest end of a busy interval that starts up to then
  HalfNs first_busy_end_ = 0;          ///< of the one in which the machine became free
  std::vector<HalfNs> any_finish_;     ///< [positions] whatever the priorities
  std::vector<std::uint32_t> active_;  ///< indices by earliest release
  std::vector<std::uint32_t> more_urgent_, less_urgent_;
  std::size_t next_ = 0, low_ = 0;
  std::vector<HalfNs> latest_;
  LateSuspect suspect_;
  std::optional<HalfNs> over_before_;
};

}  // namespace tutti::internal
