#pragma once
#include <string>

#include "model/machine/machine_spec.hpp"

namespace tutti::internal {

/// A machine file that reads back as the same spec.
[[nodiscard]] std::string machine_text(const MachineSpec& spec);

/// The JSON Schema of a machine file.
[[nodiscard]] std::string machine_schema();

}  // namespace tutti::internal
