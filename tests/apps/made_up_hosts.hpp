#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/host/host_facts.hpp"

namespace tutti::internal::test {

inline constexpr PcieLink kGen4x16{4, 16};
inline constexpr PcieLink kGen5x16{5, 16};

inline DeviceFacts made_up_gpu(std::string bus_id, const PcieLink& link, int node, std::vector<PciBridge> pci_path) {
  DeviceFacts gpu;
  gpu.name = "NVIDIA H200";
  gpu.uuid = "GPU-00000000-0000-0000-0000-00000000" + bus_id.substr(5, 2) + bus_id.substr(8, 2);
  gpu.bus_id = std::move(bus_id);
  gpu.memory = gpu.memory_free = {150'109'880'320};
  gpu.copy_engines = 3;
  gpu.memory_operations = true;
  gpu.numa_node = node;
  gpu.link = gpu.link_at_best = link;
  gpu.pci_path = std::move(pci_path);
  return gpu;
}

/// A host whose GPUs know nothing of each other yet.
inline HostFacts made_up_host(std::vector<int> nodes, std::vector<DeviceFacts> gpus) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].ordinal = static_cast<int>(i);
    gpus[i].peer_access.assign(gpus.size(), false);
    gpus[i].nvlink.assign(gpus.size(), false);
  }
  return {"13.0", "13.0", std::move(nodes), std::move(gpus)};
}

/// Gives two GPUs access to each other.
inline void join(HostFacts& host, std::size_t a, std::size_t b, bool nvlink) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    host.devices[from].peer_access[to] = true;
    host.devices[from].nvlink[to] = nvlink;
  }
}

/// A virtual machine with four H200s: one host bridge, one NUMA node, NVLink from each to each.
inline HostFacts four_h200s() {
  const std::vector<PciBridge> path{{"pci0000:00", {}}};
  std::vector<DeviceFacts> gpus;
  for (const char* bus_id : {"0000:00:06.0", "0000:00:07.0", "0000:00:08.0", "0000:00:09.0"})
    gpus.push_back(made_up_gpu(bus_id, kGen5x16, 0, path));
  HostFacts host = made_up_host({0}, std::move(gpus));
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = a + 1; b < 4; ++b) join(host, a, b, true);
  return host;
}

/// Two sockets, on each a PCIe switch with two GPUs that have access to each other and not to the others.
///
///   pci0000:16 - 16:01.0 (root port) - 17:00.0 (switch) - 18:00.0 - 19:00.0 (GPU)
///                                                       - 18:01.0 - 1a:00.0 (GPU)
///   and the same from pci0000:96 on
inline HostFacts two_sockets() {
  std::vector<DeviceFacts> gpus;
  const auto add = [&](int node, const std::string& root, const std::string& bus, const std::string& port,
                       const std::string& gpu) {
    const std::vector<PciBridge> path{{"pci0000:" + root, {}},
                                      {"0000:" + root + ":01.0", kGen5x16},
                                      {"0000:" + bus + ":00.0", kGen4x16},
                                      {"0000:" + port, kGen4x16}};
    gpus.push_back(made_up_gpu("0000:" + gpu, kGen4x16, node, path));
  };
  add(0, "16", "17", "18:00.0", "19:00.0");
  add(0, "16", "17", "18:01.0", "1a:00.0");
  add(1, "96", "97", "98:00.0", "99:00.0");
  add(1, "96", "97", "98:01.0", "9a:00.0");
  HostFacts host = made_up_host({0, 1}, std::move(gpus));
  join(host, 0, 1, false);
  join(host, 2, 3, false);
  return host;
}

/// One GPU with one copy engine, no memory operations, and a link that nobody tells.
inline HostFacts one_old_gpu() {
  DeviceFacts gpu = made_up_gpu("0000:01:00.0", {}, -1, {{"pci0000:00", {}}, {"0000:00:01.0", {}}});
  gpu.link = gpu.link_at_best = std::nullopt;
  gpu.copy_engines = 1;
  gpu.memory_operations = false;
  return made_up_host({0}, {std::move(gpu)});
}

}  // namespace tutti::internal::test
