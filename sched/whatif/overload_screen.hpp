#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/base/wide.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/tunable_parameter.hpp"

namespace tutti::internal {

/// Changes of a refused set that leave U > 1, found without compiling the changed set.
///
/// Most changes of a large overloaded set end here, each in constant time: only one task's share of U is another.
class OverloadScreen {
 public:
  /// @param refused  the verdict on the set as it is
  OverloadScreen(const TaskStudy& study, const AdmissionVerdict& refused);

  /// Whether U > 1 is proved with this value, in some partition; false says nothing.
  ///
  /// Each share of the sum is an integer that is rounded down, so a sum above 1 is a proof.
  [[nodiscard]] bool proves_overload(const TunableParameter& tunable, std::int64_t value) const;

  /// Whether tasks with a known Wcet alone have U > 1 in some partition of the changed set, exactly.
  [[nodiscard]] bool is_overloaded(const TaskSet& changed) const;

 private:
  /// Share of U of a task with another period or Wcet; nothing where the value is of something else.
  [[nodiscard]] std::optional<UnsignedWide> changed_share(const TunableParameter& tunable, std::int64_t value) const;

  const TaskStudy& study_;
  const AdmissionVerdict& refused_;
  std::vector<bool> is_alone_;             ///< [tasks] a change of its times changes nothing of other tasks
  std::vector<std::size_t> partition_of_;  ///< [tasks]
  std::vector<UnsignedWide> lower_;        ///< [partitions] lower bounds on U, in units of 2^-64
  std::size_t overloaded_ = 0;             ///< partitions in which that is above 1
};

}  // namespace tutti::internal
