#include "apps/tutti/backends.hpp"

#include <array>

#include <fmt/format.h>

#include "runtime/sim/sim_backend.hpp"

namespace tutti {
namespace {

using Made = Expected<std::unique_ptr<DeviceBackend>>;

Made make_sim(const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
  return std::make_unique<SimBackend>(machine, kernels, clock);
}

Made make_cuda(const Topology&, const KernelRegistry&, Clock&) {
  return machine_trouble("--backend: there is no CUDA backend yet; give sim");
}

struct Row {
  std::string_view name;
  Made (*make)(const Topology&, const KernelRegistry&, Clock&);
};

constexpr std::array kBackends{Row{"sim", make_sim}, Row{"cuda", make_cuda}};

}  // namespace

Expected<std::unique_ptr<DeviceBackend>> make_backend(std::string_view name, const Topology& machine,
                                                      const KernelRegistry& kernels, Clock& clock) {
  for (const Row& row : kBackends)
    if (row.name == name) return row.make(machine, kernels, clock);
  return invalid_input(fmt::format("--backend: there is no backend '{}'; give sim", name));
}

}  // namespace tutti
