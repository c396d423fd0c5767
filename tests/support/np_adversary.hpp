#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sched/analyses/analysis.hpp"

namespace tutti::internal::oracle {

/// How an adversary plays.
struct AdversaryRules {
  bool stop_at_miss = true;           ///< false: look for the worst responses, beyond misses
  bool may_finish_early = false;      ///< jobs may take any time up to C
  std::size_t most_states = 400'000;  ///< gives up beyond
  /// [tasks] regions > 0 of each job, between which more urgent ones go first; empty: one region of C.
  std::vector<std::vector<Duration>> regions = {};
};

struct AdversaryOutcome {
  bool missed = false;
  bool complete = false;  ///< every pattern was tried (or a miss found); otherwise nothing is known but `missed`
  /// [n] the longest time from arrival to finish, in halves of a ns; -1 where no job finished.
  std::vector<std::int64_t> worst_half_ns;
};

/// Plays all patterns of a small set against a scheduler that preempts nobody, or only between regions: sporadic
/// arrivals at least T apart, each job ready up to J after its arrival, jobs of one task in order.
///
/// The oracle beside the analyses, and slow: it visits every state that the scheduler can be brought into. Time goes
/// in halves of a ns, so that with whole parameters a blocker can start just before the others become ready; dense time
/// can do no worse than come half a ns nearer to the supremum of responses, so a supremum is the next whole number.
///
/// @pre  at most 4 tasks; every number below 60 ns.
[[nodiscard]] AdversaryOutcome play_adversary(std::span<const TaskTiming> tasks, Policy policy,
                                              const AdversaryRules& rules = {});

}  // namespace tutti::internal::oracle
