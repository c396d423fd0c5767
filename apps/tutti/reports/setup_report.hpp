#pragma once
#include <string>

#include "model/machine/costs.hpp"

namespace tutti::internal {

/// The costs of commands, a row each; those that are 0 are counted.
[[nodiscard]] std::string setup_text(const SetupTimes& setup);

}  // namespace tutti::internal
