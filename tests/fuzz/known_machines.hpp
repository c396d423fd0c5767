#pragma once
#include "model/base/document.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal::fuzz {

/// The machine of `configs/machines` whose file a document names, whatever folder it names it in; otherwise the small
/// one of the inspection example. Files are read once.
[[nodiscard]] const Topology& machine_named_in(const Node& document);

}  // namespace tutti::internal::fuzz
