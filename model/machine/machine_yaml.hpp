#pragma once
#include <string>

#include "model/base/document.hpp"
#include "model/machine/machine_spec.hpp"

namespace tutti::internal {

/// The spec in a machine file.
/// @errors InvalidInput with file, line and column: all keys that are unknown or missing, all values that are none.
[[nodiscard]] Expected<MachineSpec> read_machine_spec(const Node& document);
/// The error of a spec that was read from a document, with the places of its faults.
[[nodiscard]] Error at_machine_places(Error error, const Node& document);

/// A machine file that reads back as the same spec.
[[nodiscard]] std::string machine_text(const MachineSpec& spec);

}  // namespace tutti::internal
