#include "runtime/cuda/builtin_kernels.hpp"

#include "runtime/cuda/kernels.hpp"

namespace tutti::internal::cuda {
namespace {

void spin(const KernelLaunch& launch, DeviceStream stream) {
  launch_spin(stream, static_cast<std::uint64_t>(launch.declared.count()));
}

void checksum(const KernelLaunch& launch, DeviceStream stream) {
  if (launch.output.size() < sizeof(std::uint64_t)) return;
  launch_checksum(stream, launch.input.data(), launch.input.size(), launch.output.data());
}

}  // namespace

const DeviceKernel* device_form(std::string_view name, const KernelForms& forms) {
  static const DeviceKernel on_gpu_spin = spin, on_gpu_checksum = checksum;
  if (forms.device) return &forms.device;
  if (!forms.builtin) return nullptr;
  return name == kSpinKernel ? &on_gpu_spin : name == kChecksumKernel ? &on_gpu_checksum : nullptr;
}

}  // namespace tutti::internal::cuda
