#include "runtime/cuda/discovery/discovery.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/cuda/base/status.hpp"
#include "runtime/cuda/discovery/nvml.hpp"
#include "runtime/cuda/discovery/pci_tree.hpp"
#include "runtime/cuda/gates/gpu_partition.hpp"

namespace tutti::internal {
namespace {

using cuda::LinkState;

/// "13.0" of 13000.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// The CUDA version of the driver.
Expected<int> driver_version() {
  int version = 0;
  if (auto ok = cuda::check(cudaDriverGetVersion(&version), "cudaDriverGetVersion"); !ok)
    return tl::unexpected(ok.error());
  if (version == 0)
    return machine_error(
        fmt::format("there is no GPU driver on this host; install NVIDIA's driver for CUDA {} or later",
                    version_text(CUDART_VERSION)));
  return version;
}

Expected<int> device_count(int driver) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());  // a later launch shall not report it
  if (status == cudaErrorInsufficientDriver)
    return machine_error(
        fmt::format("the GPU driver serves CUDA {} at most, and this program is built with CUDA {}; install a newer "
                    "driver, or build with an older CUDA toolkit",
                    version_text(driver), version_text(CUDART_VERSION)));
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    return machine_error(
        "the GPU driver finds no GPU; look at nvidia-smi, and at CUDA_VISIBLE_DEVICES, which may hide them");
  if (status != cudaSuccess)
    return machine_error(fmt::format("the GPU driver does not start ({}: {}); look at nvidia-smi and the kernel's log",
                                     cudaGetErrorName(status), cudaGetErrorString(status)));
  return count;
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// Properties of a GPU that CUDA reports.
Expected<DeviceFacts> device_facts(int ordinal) {
  cudaDeviceProp found{};
  if (auto ok = cuda::check(cudaGetDeviceProperties(&found, ordinal), "cudaGetDeviceProperties"); !ok)
    return tl::unexpected(ok.error());
  // CUDA says it of 64-bit values alone; where these work, our signals of 32 bits do.
  const auto memory_operations = cuda::device_has(ordinal, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS);
  if (!memory_operations) return tl::unexpected(memory_operations.error());
  DeviceFacts facts;
  facts.ordinal = ordinal;
  facts.name = found.name;
  facts.bus_id = fmt::format("{:04x}:{:02x}:{:02x}.0", found.pciDomainID, found.pciBusID, found.pciDeviceID);
  facts.uuid = uuid_text(found.uuid);
  facts.memory = facts.memory_free = {static_cast<std::int64_t>(found.totalGlobalMem)};
  facts.copy_engines = found.asyncEngineCount;
  facts.memory_operations = *memory_operations;
  facts.gate_sms = cuda::GpuPartition::fewest(ordinal).value_or(0);
  facts.numa_node = found.hostNumaId;
  return facts;
}

/// All GPUs, by bus id.
Expected<std::vector<DeviceFacts>> all_devices(int count) {
  std::vector<DeviceFacts> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto facts = device_facts(ordinal);
    if (!facts) return tl::unexpected(facts.error());
    devices.push_back(*std::move(facts));
  }
  std::sort(devices.begin(), devices.end(),
            [](const DeviceFacts& a, const DeviceFacts& b) { return a.bus_id < b.bus_id; });
  return devices;
}

Expected<void> find_peers(std::vector<DeviceFacts>& devices, const std::optional<cuda::Nvml>& nvml) {
  for (DeviceFacts& from : devices) {
    for (const DeviceFacts& to : devices) {
      int access = 0;
      if (from.ordinal != to.ordinal)
        if (auto ok =
                cuda::check(cudaDeviceCanAccessPeer(&access, from.ordinal, to.ordinal), "cudaDeviceCanAccessPeer");
            !ok)
          return ok;
      from.peer_access.push_back(access != 0);
      from.nvlink.push_back(access != 0 && nvml && nvml->nvlink(from.bus_id, to.bus_id));
    }
  }
  return {};
}

std::optional<PcieLink> link_of(const std::string& bus_id, LinkState state, const std::optional<cuda::Nvml>& nvml) {
  if (const auto link = cuda::sysfs_link(cuda::sysfs_folder(bus_id), state)) return link;
  return nvml ? nvml->link(bus_id, state) : std::nullopt;
}

void find_links(DeviceFacts& device, const std::optional<cuda::Nvml>& nvml) {
  for (PciBridge& bridge : device.pci_path)
    bridge.link_at_best = cuda::sysfs_link(cuda::sysfs_folder(bridge.id), LinkState::AtBest);
  device.link = link_of(device.bus_id, LinkState::Now, nvml);
  const auto slot = device.pci_path.empty() ? std::nullopt : device.pci_path.back().link_at_best;
  device.link_at_best = narrower(link_of(device.bus_id, LinkState::AtBest, nvml), slot);
  if (!device.link) return;
  // The ports of virtual machines are invented, and may claim less than what runs through them.
  if (narrower(device.link, device.link_at_best) != device.link) device.link_at_best = device.link;
}

}  // namespace

Expected<HostFacts> discover_host() {
  cuda::set_environment();
  const auto driver = driver_version();
  if (!driver) return tl::unexpected(driver.error());
  auto devices = device_count(*driver).and_then(all_devices);
  if (!devices) return tl::unexpected(devices.error());
  const auto tree = cuda::PciTree::read();
  if (!tree) return tl::unexpected(tree.error());
  const auto nvml = cuda::Nvml::open();
  if (auto ok = find_peers(*devices, nvml); !ok) return tl::unexpected(ok.error());
  for (DeviceFacts& device : *devices) {
    device.pci_path = tree->bridges_above(device.bus_id);
    if (device.numa_node < 0) device.numa_node = tree->numa_node(device.bus_id);
    if (nvml) device.memory_free = nvml->free_memory(device.bus_id).value_or(device.memory);
    find_links(device, nvml);
  }
  return HostFacts{version_text(*driver), version_text(CUDART_VERSION), tree->numa_nodes(), *std::move(devices)};
}

std::optional<PcieLink> current_link(const std::string& bus_id) {
  if (const auto link = cuda::sysfs_link(cuda::sysfs_folder(bus_id), LinkState::Now)) return link;
  const auto nvml = cuda::Nvml::open();
  return nvml ? nvml->link(bus_id, LinkState::Now) : std::nullopt;
}

}  // namespace tutti::internal
