#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sched/admission/admission.hpp"
#include "sched/whatif/tunable_parameter.hpp"

namespace tutti::internal {

/// One change that makes a refused set schedulable.
struct Remedy {
  TunableParameter tunable;        ///< with its present value
  std::int64_t to = 0;             ///< the value with which the set was decided, and is schedulable
  std::optional<double> relative;  ///< (to - value) / value; nothing for a word, and where there was no value
};

/// Remedies of a refused set.
struct Remedies {
  /// Changes of overlap, GPU, preemption or cut first, since they leave the work as it is; then the smallest relative
  /// changes, at most `kMostRemedies`, each of another quantity or direction.
  std::vector<Remedy> remedies;
  /// Critical scaling factor below one, in ten-thousandths: all Wcets together would have to shrink to this share;
  /// nothing where time is not short, or where it was not computed.
  std::optional<std::int64_t> critical_scaling_factor;
  std::string left_out;  ///< what was not tried, one sentence; empty where everything was
};

inline constexpr std::size_t kMostRemedies = 5;
/// Most tasks of a set for which remedies are searched; in larger sets each question takes long.
inline constexpr std::size_t kMostTasksToRemedy = 2000;

/// The smallest single changes that make a refused set schedulable: of one parameter, one transfer's size, one period,
/// deadline or declared Wcet, or the machine's staging chunk or margins.
///
/// Found by search: every quantity is tried with changes of 1/128, 1/64, ... of it, in both directions where both may
/// help, down to 1/100 and up to 100 times of it; where one helps, the smallest that does is found by halving, to a
/// 1000th of the quantity. Each remedy was decided by the controller itself and holds; a 1000th less does not. The
/// number of questions is bounded, so in large sets the most promising quantities go first: those of tasks that the
/// refusal names, then of tasks with a large utilisation, and only those that help at all when changed to their
/// extreme.
///
/// Where jobs have several batches and are not cut, the other `preemption` is tried. With `preemption: between_batches`
/// the largest `cut` that holds is looked for, as `find_cut` says; without preemption and where that alone does not
/// help, too, together with `preemption: between_batches`.
///
/// Where jobs run one at a time, it is tried whether they may overlap; for each task, whether another GPU may do what
/// it does on one; under EDF with strictly periodic arrivals, whether `cw_edf` would do. With `overlap: auto` both ways
/// are searched, each by itself.
///
/// @param refused  the verdict of the controller on the set as it is.
/// @return  no remedies where the set is schedulable already, or where no single change makes it so.
[[nodiscard]] Remedies find_remedies(const TaskStudy& study, const Planner& planner, const AdmissionVerdict& refused);

}  // namespace tutti::internal
