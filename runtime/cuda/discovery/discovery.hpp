#pragma once
#include <optional>
#include <string>

#include "model/base/error.hpp"
#include "runtime/host/host_facts.hpp"

namespace tutti::internal {

/// Looks at the host. Leaves the GPUs alone: no context is made on them.
/// @errors Machine: this build has no CUDA, no driver, a driver that is too old, no GPU.
[[nodiscard]] Expected<HostFacts> discover_host();

/// How the link of a GPU is trained at this moment; an idle one may be slower than it is under load.
/// @param bus_id  as in `DeviceFacts`
/// @return  nothing where the host does not say.
[[nodiscard]] std::optional<PcieLink> current_link(const std::string& bus_id);

}  // namespace tutti::internal
