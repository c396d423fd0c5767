#pragma once
#include <string>

#include "apps/tutti/reports/report.hpp"
#include "model/control/advice.hpp"

namespace tutti::internal {

/// What `advise` prints: the mode to use with its reason, the times of all modes, every condition with its numbers.
[[nodiscard]] std::string advice_text(const ExchangeSpec& spec, const Advice& advice);
[[nodiscard]] Json advice_json(const ExchangeSpec& spec, const Advice& advice);

}  // namespace tutti::internal
