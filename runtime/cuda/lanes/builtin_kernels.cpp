#include "runtime/cuda/lanes/builtin_kernels.hpp"

#include <fmt/format.h>

#include "runtime/cuda/base/kernels.hpp"

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

Expected<std::vector<DeviceCall>> device_calls_of(const CommandStream& stream, const std::vector<BoundCall>& calls) {
  std::vector<DeviceCall> made;
  for (const BoundCall& call : calls) {
    const DeviceKernel* const form = device_form(call.name, *call.forms);
    if (form == nullptr)
      return invalid_input(fmt::format("kernel '{}' of stream '{}' has no form for GPUs; add one to the kernel, or let "
                                       "it run on a cpu",
                                       call.name, stream.name),
                           stream.place);
    made.push_back({call, *form});
  }
  return made;
}

}  // namespace tutti::internal::cuda
