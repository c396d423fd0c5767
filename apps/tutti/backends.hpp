#pragma once
#include <memory>
#include <string_view>

#include "runtime/backend.hpp"
#include "runtime/clock.hpp"
#include "runtime/kernel_registry.hpp"

namespace tutti {

/// The backend of that name on a machine; what is passed in outlives it.
/// @errors InvalidInput: there is no such backend. Machine: this build or this host has it not.
[[nodiscard]] Expected<std::unique_ptr<DeviceBackend>> make_backend(std::string_view name, const Topology& machine,
                                                                    const KernelRegistry& kernels, Clock& clock);

}  // namespace tutti
