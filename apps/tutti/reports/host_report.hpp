#pragma once
#include <string>

#include "apps/tutti/reports/report.hpp"
#include "runtime/host/host_facts.hpp"

namespace tutti::internal {

/// A host as `topology detect` prints it: its GPUs, the peer access between them, the PCI tree above them.
[[nodiscard]] std::string host_text(const HostFacts& host);
/// The report of `topology detect --json`; GPUs refer to each other by bus id.
[[nodiscard]] Json host_json(const HostFacts& host);

}  // namespace tutti::internal
