#pragma once
#include <string>

#include "apps/tutti/reports/report.hpp"
#include "sched/whatif/remedies.hpp"

namespace tutti::internal {

/// Writes a quantity's value under a key that ends with its unit: "from_bytes", "from_ms"; for shares the key alone.
void put_value(Json& json, const TunableParameter& tunable, const std::string& key, std::optional<std::int64_t> value);

/// "'image'", "period of 'inspect'", "size of 'part0' in 'inspect'".
[[nodiscard]] std::string name_of(const TunableParameter& tunable);

/// `wcet_growth` as a factor.
[[nodiscard]] Json scaling_json(const std::optional<std::int64_t>& scaling);

/// `remedies[]` of `check`.
[[nodiscard]] Json remedies_json(const Remedies& remedies);
/// The remedies as text: a line each.
[[nodiscard]] std::string remedies_text(const Remedies& remedies);

}  // namespace tutti::internal
