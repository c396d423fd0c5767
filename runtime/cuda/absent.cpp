// Replacement for this folder in a build without CUDA.
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/discovery.hpp"
#include "runtime/cuda/memcpy_batch.hpp"
#include "runtime/cuda/plain_copy.hpp"

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

Expected<std::unique_ptr<DeviceBackend>> make_memcpy_batch_backend(DeviceBackend&) { return no_cuda(); }

Expected<CopyTimes> time_plain_copy(const BufferView&, const BufferView&) { return no_cuda(); }
Expected<std::unique_ptr<PlainChain>> make_plain_chain(DeviceBackend&, std::vector<PlainStep>) { return no_cuda(); }

}  // namespace tutti::internal
