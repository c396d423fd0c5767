#include "apps/tutti/reports/host_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "apps/tutti/formats/detected_machine.hpp"
#include "model/base/joined.hpp"

namespace tutti::internal {
namespace {

std::string link_text(const std::optional<PcieLink>& link) {
  return link ? fmt::format("{}.0 x{}", link->generation, link->width) : "-";
}

std::string gpus_text(const HostFacts& host) {
  programs::Table table({"GPU", "bus id", "name", "memory GB", "free GB", "copy engines", "memory operations",
                         "NUMA node", "PCIe now", "at best", "UUID"});
  for (const std::size_t column : {1U, 2U, 6U, 8U, 9U, 10U}) table.align_left(column);
  const auto gigabytes = [](Bytes size) { return fmt::format("{:.1f}", static_cast<double>(size.count) / 1e9); };
  for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu) {
    const DeviceFacts& device = host.devices[gpu];
    table.add({gpu_name(gpu), device.bus_id, device.name, gigabytes(device.memory), gigabytes(device.memory_free),
               fmt::to_string(device.copy_engines), device.memory_operations ? "yes" : "no",
               device.numa_node < 0 ? "-" : fmt::to_string(device.numa_node), link_text(device.link),
               link_text(device.link_at_best), device.uuid});
  }
  return table.text();
}

std::string access_text(const DeviceFacts& from, std::size_t to) {
  if (!from.peer_access[to]) return "no";
  return from.nvlink[to] ? "NVLink" : "yes";
}

/// A row for each GPU: the GPUs whose memory it can read and write.
std::string peers_text(const HostFacts& host) {
  std::vector<std::string> header{"access from \\ to"};
  for (const DeviceFacts& device : host.devices) header.push_back(device.bus_id);
  programs::Table table(std::move(header));
  for (std::size_t from = 0; from < host.devices.size(); ++from) {
    std::vector<std::string> row{host.devices[from].bus_id};
    for (std::size_t to = 0; to < host.devices.size(); ++to)
      row.push_back(from == to ? "-" : access_text(host.devices[from], to));
    table.add(std::move(row));
  }
  return table.text();
}

/// The bridges above a GPU, from the host bridge down, and the GPU itself; a line each.
std::vector<std::string> tree_lines(const HostFacts& host, std::size_t gpu) {
  const DeviceFacts& device = host.devices[gpu];
  const auto link = [](const std::optional<PcieLink>& at_best) {
    return at_best ? ", PCIe " + link_text(at_best) : std::string();
  };
  std::vector<std::string> lines;
  for (const PciBridge& bridge : device.pci_path) lines.push_back(bridge.id + link(bridge.link_at_best));
  lines.push_back(fmt::format("{} {}, {}{}", device.bus_id, gpu_name(gpu), device.name, link(device.link_at_best)));
  return lines;
}

/// Every bridge once, with the devices below it indented.
std::string tree_text(const HostFacts& host) {
  std::vector<std::vector<std::string>> paths;
  for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu) paths.push_back(tree_lines(host, gpu));
  std::sort(paths.begin(), paths.end());
  std::string text;
  std::vector<std::string> before;
  for (auto& path : paths) {
    const auto same = std::mismatch(path.begin(), path.end(), before.begin(), before.end()).first - path.begin();
    for (std::size_t depth = static_cast<std::size_t>(same); depth < path.size(); ++depth)
      text += fmt::format("{:{}}{}\n", "", 2 * depth, path[depth]);
    before = std::move(path);
  }
  return text;
}

Json link_json(const std::optional<PcieLink>& link) {
  if (!link) return nullptr;
  return {{"generation", link->generation}, {"width", link->width}, {"theoretical_gbps", link->theoretical().value}};
}

Json peers_json(const HostFacts& host, const std::vector<bool>& holds) {
  Json list = Json::array();
  for (std::size_t gpu = 0; gpu < host.devices.size(); ++gpu)
    if (holds[gpu]) list.push_back(host.devices[gpu].bus_id);
  return list;
}

Json device_json(const HostFacts& host, const DeviceFacts& device) {
  Json path = Json::array();
  for (const PciBridge& bridge : device.pci_path)
    path.push_back({{"id", bridge.id}, {"link_at_best", link_json(bridge.link_at_best)}});
  return {{"bus_id", device.bus_id},
          {"uuid", device.uuid},
          {"name", device.name},
          {"memory_bytes", device.memory.count},
          {"memory_free_bytes", device.memory_free.count},
          {"copy_engines", device.copy_engines},
          {"memory_operations", device.memory_operations},
          {"numa_node", device.numa_node < 0 ? Json(nullptr) : Json(device.numa_node)},
          {"link", link_json(device.link)},
          {"link_at_best", link_json(device.link_at_best)},
          {"peer_access", peers_json(host, device.peer_access)},
          {"nvlink", peers_json(host, device.nvlink)},
          {"pci_path", path}};
}

}  // namespace

std::string host_text(const HostFacts& host) {
  std::vector<std::string> nodes;
  for (const int node : host.numa_nodes) nodes.push_back(fmt::to_string(node));
  return fmt::format("driver for CUDA {}, built with CUDA {}, NUMA nodes {}\n\n{}\n{}\n{}", host.driver, host.runtime,
                     joined(nodes), gpus_text(host), peers_text(host), tree_text(host));
}

Json host_json(const HostFacts& host) {
  Json gpus = Json::array();
  for (const DeviceFacts& device : host.devices) gpus.push_back(device_json(host, device));
  return {{"schema_version", 1},
          {"driver", host.driver},
          {"runtime", host.runtime},
          {"numa_nodes", host.numa_nodes},
          {"gpus", gpus}};
}

}  // namespace tutti::internal
