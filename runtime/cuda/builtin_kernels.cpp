#include "runtime/cuda/builtin_kernels.hpp"

#include "runtime/cuda/kernels.hpp"

namespace tutti {

DeviceKernel cuda_spin() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    cuda::launch_spin(stream, static_cast<std::uint64_t>(launch.declared.count()));
  };
}

DeviceKernel cuda_checksum() {
  return [](const KernelLaunch& launch, DeviceStream stream) {
    if (launch.output.size() < sizeof(std::uint64_t)) return;
    cuda::launch_checksum(stream, launch.input.data(), launch.input.size(), launch.output.data());
  };
}

}  // namespace tutti
