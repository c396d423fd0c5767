#include "apps/tutti/lab/imported_machine.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "apps/tutti/lab/detected_machine.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {
namespace {

/// What one NVLink carries in one direction, since V100: 25 GB/s by its standard, less what is lost on the way.
constexpr double kRateOfNvlink = 20;

LinkBandwidth measured(GBps rate) { return LinkBandwidth(GBps{std::round(rate.value * 100) / 100}); }

/// The fastest copy from and to a GPU: what its link to the switch carries.
GBps fastest(const ImportedHost& imported, std::size_t gpu, bool from) {
  GBps most{};
  for (std::size_t other = 0; other < imported.between.size(); ++other)
    if (imported.host.devices[gpu].nvlink[other])
      most = std::max(most, from ? imported.between[gpu][other] : imported.between[other][gpu]);
  return most;
}

/// One direction of a GPU's link to a switch of NVLinks; nothing where the file has no word about it.
std::optional<LinkBandwidth> nvlink_of(const ImportedHost& imported, std::size_t gpu, bool from) {
  if (const GBps rate = fastest(imported, gpu, from); rate.value > 0) return measured(rate);
  if (gpu >= imported.nvlinks.size() || imported.nvlinks[gpu] == 0) return std::nullopt;
  return LinkBandwidth(GBps{kRateOfNvlink * imported.nvlinks[gpu]});
}

/// Sets the bandwidth of one direction of a link, where the file knows it.
void set_rate(LinkSpec& link, const ImportedHost& imported) {
  const auto is_memory = [](const std::string& name) { return name.starts_with("mem"); };
  const auto sum = [](const std::vector<GBps>& rates) {
    return std::accumulate(rates.begin(), rates.end(), GBps{}, [](GBps a, GBps b) { return GBps{a.value + b.value}; });
  };
  const bool has_rates = !imported.up.empty();
  // Nobody measured the memory: it is no narrower than all GPUs, so that nothing is slower than it was measured alone.
  if (has_rates && is_memory(link.from)) link.bandwidth = measured(std::max(link.bandwidth.nominal, sum(imported.up)));
  if (has_rates && is_memory(link.to)) link.bandwidth = measured(std::max(link.bandwidth.nominal, sum(imported.down)));
  for (std::size_t gpu = 0; gpu < imported.host.devices.size(); ++gpu) {
    const bool from = link.from == gpu_name(gpu);
    if (!from && link.to != gpu_name(gpu)) continue;
    if ((from ? link.to : link.from).starts_with("nvlink"))
      link.bandwidth = nvlink_of(imported, gpu, from).value_or(link.bandwidth);
    else if (has_rates)
      link.bandwidth = measured(from ? imported.down[gpu] : imported.up[gpu]);
  }
}

}  // namespace

Expected<Topology> imported_machine(ImportedHost imported, std::string name, PcieLink pcie) {
  for (DeviceFacts& device : imported.host.devices) {
    device.copy_engines = 2;  // one each way, as all GPUs of servers have at least
    if (!imported.up.empty()) continue;
    if (!device.link_at_best) device.link_at_best = pcie;
    for (PciBridge& bridge : device.pci_path)
      if (&bridge != &device.pci_path.front() && !bridge.link_at_best) bridge.link_at_best = pcie;
  }
  const auto detected = detected_machine(imported.host, std::move(name));
  if (!detected) return detected;
  MachineSpec spec = detected->spec();  // a link has one direction there
  for (Vertex& vertex : spec.vertices)
    if (vertex.memory == Bytes{0}) vertex.memory = {};
  for (LinkSpec& link : spec.links) set_rate(link, imported);
  return compile(std::move(spec));
}

std::string imported_yaml(const ImportedHost& imported, const Topology& machine, PcieLink pcie) {
  const bool has_rates = !imported.up.empty();
  std::string text = fmt::format("# Written by 'tutti topology import' from a file of {}.\n", imported.source);
  text += has_rates ? "# Measured there, each copy alone: the links of GPUs. Copies together may be slower: host "
                      "memory and what GPUs "
                      "share are assumed to be as\n# wide as all of them.\n"
                    : "# NOT measured: all bandwidths. PCIe links have 85 % of their standard's rate where the file "
                      "says generation and "
                      "width,\n";
  if (!has_rates)
    text += fmt::format(
        "# else those of --pcie {}x{}; NVLinks {} GB/s each, 100 GB/s a GPU where their number is not known; memories "
        "100 "
        "GB/s; between cpus 20 GB/s.\n",
        pcie.generation, pcie.width, kRateOfNvlink);
  return text +
         "# Assumed: peer access between GPUs with NVLink or below one root of PCI buses, two copy engines a GPU.\n"
         "# No ground for a guarantee until 'tutti calibrate --machine FILE --out FILE' has measured this host.\n" +
         machine_yaml(machine);
}

}  // namespace tutti::internal
