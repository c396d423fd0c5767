#include "runtime/cuda/discovery/examination.hpp"

#include <algorithm>
#include <chrono>

#include <unistd.h>

#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/discovery/discovery.hpp"
#include "runtime/cuda/discovery/nvml.hpp"
#include "runtime/cuda/memory/pinned_memory.hpp"
#include "runtime/host/device_users.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kLoad = 32U << 20;  // bytes of a copy
constexpr int kCopiesAtOnce = 4;
constexpr Duration kExaminationTime = std::chrono::milliseconds{300};

/// The better of two trained links, each of its properties by itself.
std::optional<PcieLink> wider(const std::optional<PcieLink>& a, const std::optional<PcieLink>& b) {
  if (!a || !b) return a ? a : b;
  return PcieLink{std::max(a->generation, b->generation), std::max(a->width, b->width)};
}

/// Notes link and clock limits at this moment.
void look(const std::optional<cuda::Nvml>& nvml, GpuCondition& condition) {
  condition.link_under_load = wider(condition.link_under_load, current_link(condition.bus_id));
  if (const auto limits = nvml ? nvml->clock_limits(condition.bus_id) : std::nullopt)
    condition.clock_limits = condition.clock_limits.value_or(0) | *limits;
}

/// Looks while copies to the GPU run.
Expected<void> look_under_load(const DeviceFacts& device, const std::optional<cuda::Nvml>& nvml,
                               GpuCondition& condition) {
  const cuda::DeviceGuard guard(device.ordinal);
  const auto host = cuda::PinnedMemory::make(kLoad, device.numa_node);
  if (!host) return tl::unexpected(host.error());
  const auto memory = cuda::make_device_memory(device.ordinal, kLoad);
  if (!memory) return tl::unexpected(memory.error());
  const auto stream = cuda::make_stream(device.ordinal);  // gone before the memory that it copies
  if (!stream) return tl::unexpected(stream.error());
  const auto end = std::chrono::steady_clock::now() + kExaminationTime;
  while (std::chrono::steady_clock::now() < end) {
    for (int copy = 0; copy < kCopiesAtOnce; ++copy)
      if (auto ok =
              cuda::check(cudaMemcpyAsync(memory->get(), host->data(), kLoad, cudaMemcpyHostToDevice, stream->get()),
                          "cudaMemcpyAsync");
          !ok)
        return ok;
    look(nvml, condition);
    if (auto ok = cuda::check(cudaStreamSynchronize(stream->get()), "cudaStreamSynchronize"); !ok) return ok;
  }
  return {};
}

}  // namespace

GpuCondition examine_gpu(const DeviceFacts& device) {
  GpuCondition condition{.bus_id = device.bus_id, .link_at_best = device.link_at_best};
  if (!device.peer_access.empty()) condition.others = device.peer_access.size() - 1;
  condition.reached = static_cast<std::size_t>(std::ranges::count(device.peer_access, true));
  if (const auto limits = cuda::device_has(device.ordinal, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT))
    condition.limits_kernels = *limits;
  condition.gate_sms = device.gate_sms;
  const auto nvml = cuda::Nvml::open();
  condition.other_run = DeviceUser::is_used(DeviceUser::kFolder, device.bus_id);
  if (condition.other_run) {
    condition.no_load = "another run of tutti uses the GPU; look again when it has ended";
  } else {
    const auto sign = DeviceUser::enter(DeviceUser::kFolder, device.bus_id);  // a run that starts now sees the copies
    if (const auto ok = look_under_load(device, nvml, condition); !ok) condition.no_load = ok.error().message;
  }
  if (!nvml) return condition;
  nvml->describe(device.bus_id, condition);
  const auto processes = nvml->processes(device.bus_id);
  condition.other_programs =
      condition.no_load.empty() ? other_processes(processes, static_cast<std::uint32_t>(::getpid())) : processes.size();
  return condition;
}

}  // namespace tutti::internal
