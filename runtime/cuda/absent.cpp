// Replacement for this folder in a build without CUDA.
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/discovery.hpp"

namespace tutti::internal {
namespace {

tl::unexpected<Error> no_cuda() {
  return machine_error("this build has no CUDA; install the CUDA toolkit (nvcc), then build again");
}

}  // namespace

Expected<HostFacts> discover_host() { return no_cuda(); }
std::optional<PcieLink> current_link(const std::string&) { return std::nullopt; }

Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Topology&, const KernelRegistry&, Clock&,
                                                           const CudaOptions&) {
  return no_cuda();
}

}  // namespace tutti::internal
