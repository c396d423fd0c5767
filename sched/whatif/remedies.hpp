#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sched/admission/admission.hpp"
#include "sched/whatif/tunable_parameter.hpp"

namespace tutti {

/// One change that makes a refused set schedulable.
struct Remedy {
  TunableParameter tunable;        ///< with the value that it has
  std::int64_t to = 0;             ///< the value with which the set was decided, and is schedulable
  std::optional<double> relative;  ///< (to - value) / value; nothing for a word, and where there was no value
};

/// What would remedy a refused set.
struct Remedies {
  /// How jobs share the machine (preemption, cut), which asks nothing of the work; then the smallest relative change
  /// first, at most `kMostRemedies`, each of another quantity or way.
  std::vector<Remedy> remedies;
  /// To what share of themselves all worst-case times together would have to shrink, as `wcet_growth` says it; nothing
  /// where it is not time that is short, or where it was not looked for.
  std::optional<std::int64_t> critical_scaling_factor;
  std::string left_out;  ///< what was not tried, one sentence; empty where everything was
};

inline constexpr std::size_t kMostRemedies = 5;
/// The search is left out for larger sets, since each question takes long.
inline constexpr std::size_t kMostTasksToRemedy = 2000;

/// The smallest single changes that make a refused set schedulable: of one parameter, one transfer's size, one period,
/// deadline or declared Wcet, or the machine's staging chunk or margins.
///
/// Found by search: every quantity is tried with changes of 1/128, 1/64, ... of it, in both directions where both may
/// help, down to 1/100 and up to 100 times of it; where one helps, the smallest that does is found by halving, to a
/// 1000th of the quantity. Each remedy was decided by the controller itself and holds; a 1000th less does not. The
/// number of questions is bounded, so in large sets what promises most goes first: quantities of the tasks that the
/// refusal names, of tasks that use much, and only such that help at all when they are changed as far as can be.
///
/// Where jobs have several batches and are not cut, the other `preemption` is tried; with `preemption: between_batches`
/// the largest `cut` that holds is looked for, as `find_cut` says.
///
/// @param refused  what the controller says of the file as it is.
/// @return  no remedies where the set is schedulable already, or where no single change makes it so.
[[nodiscard]] Remedies find_remedies(const TaskFile& file, const Planner& planner, const AdmissionVerdict& refused);

}  // namespace tutti
