#pragma once
#include <string>

#include "apps/tutti/report.hpp"
#include "sched/mends.hpp"

namespace tutti {

/// Writes a quantity's value under a key that ends with its unit: "from_bytes", "from_ms"; shares bear the key alone.
void put_value(Json& json, QuantityKind kind, const std::string& key, std::optional<std::int64_t> value);

/// "'image'", "period of 'inspect'", "size of 'part0' in 'inspect'".
[[nodiscard]] std::string name_of(const Quantity& quantity);

/// `wcet_growth` as a factor.
[[nodiscard]] Json growth_json(const std::optional<std::int64_t>& growth);

/// `mends[]` of `check`.
[[nodiscard]] Json mends_json(const Mends& mends);
/// The same for people: a line each.
[[nodiscard]] std::string mends_text(const Mends& mends);

}  // namespace tutti
