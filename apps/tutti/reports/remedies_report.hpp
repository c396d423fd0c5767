#pragma once
#include <string>

#include "apps/tutti/reports/report.hpp"
#include "sched/whatif/remedies.hpp"

namespace tutti::internal {

/// "'image'", "period of 'inspect'", "size of 'part0' in 'inspect'".
[[nodiscard]] std::string name_of(const TunableParameter& tunable);

/// `wcet_growth` as a factor.
[[nodiscard]] std::optional<double> scaling_factor(const std::optional<std::int64_t>& scaling);

[[nodiscard]] std::vector<RemedyOutput> remedies_output(const Remedies& remedies);
/// The remedies as text: a line each.
[[nodiscard]] std::string remedies_text(const Remedies& remedies);

}  // namespace tutti::internal
