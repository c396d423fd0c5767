#include "apps/tutti/formats/imported_machine.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>

#include <fmt/format.h>

#include "apps/tutti/formats/detected_machine.hpp"
#include "model/base/joined.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {
namespace {

/// Copies together are slower than alone where they reach less than this share of the sum.
constexpr double kSumOfAlone = 0.95;

GBps rounded(GBps rate) { return {std::round(rate.value * 100) / 100}; }
LinkBandwidth measured(GBps rate) { return {rounded(rate)}; }

GBps sum_of(const std::vector<GBps>& rates) {
  return {std::accumulate(rates.begin(), rates.end(), 0.0, [](double sum, GBps rate) { return sum + rate.value; })};
}

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

/// A direction of a GPU's link to the host as it was measured: alone, and where all others copy too.
LinkBandwidth host_link_of(const std::vector<GBps>& alone, const std::vector<GBps>& together, std::size_t gpu) {
  if (together.empty()) return measured(alone[gpu]);
  return {Bandwidth{rounded(alone[gpu]), rounded(std::min(alone[gpu], together[gpu]))}};
}

std::optional<std::size_t> gpu_at(const ImportedHost& imported, const std::string& vertex) {
  for (std::size_t gpu = 0; gpu < imported.host.devices.size(); ++gpu)
    if (vertex == gpu_name(gpu)) return gpu;
  return std::nullopt;
}

/// Sets the bandwidth of one direction of a link, where the file knows it.
void set_rate(LinkSpec& link, const ImportedHost& imported) {
  const auto is_memory = [](const std::string& name) { return name.starts_with("mem"); };
  const bool has_rates = !imported.up.empty();
  // Nobody measured the memory: it is no narrower than all GPUs, so that nothing is slower than it was measured alone.
  if (has_rates && is_memory(link.from))
    link.bandwidth = measured(std::max(link.bandwidth.nominal, sum_of(imported.up)));
  if (has_rates && is_memory(link.to))
    link.bandwidth = measured(std::max(link.bandwidth.nominal, sum_of(imported.down)));
  const auto from = gpu_at(imported, link.from), to = gpu_at(imported, link.to);
  if (from && to) {
    if (!imported.between.empty()) link.bandwidth = measured(imported.between[*from][*to]);
    return;
  }
  if (!from && !to) return;
  const std::size_t gpu = from ? *from : *to;
  if ((from ? link.to : link.from).starts_with("nvlink"))
    link.bandwidth = nvlink_of(imported, gpu, from.has_value()).value_or(link.bandwidth);
  else if (has_rates)
    link.bandwidth = from ? host_link_of(imported.down, imported.down_together, gpu)
                          : host_link_of(imported.up, imported.up_together, gpu);
  else if (gpu < imported.to_cpu.size() && imported.to_cpu[gpu].value > 0)
    link.bandwidth = imported.to_cpu[gpu];
}

/// The GPU, or the hub above it, that is linked to a cpu.
std::string below_cpu(const MachineSpec& spec, std::string vertex) {
  const auto is_above = [&](const LinkSpec& link) {
    return link.to == vertex && (link.from.starts_with("cpu") || link.from.starts_with("hub"));
  };
  for (auto link = std::ranges::find_if(spec.links, is_above);
       link != spec.links.end() && !link->from.starts_with("cpu"); link = std::ranges::find_if(spec.links, is_above))
    vertex = link->from;
  return vertex;
}

/// Adds what some links may share: for a guarantee they do.
/// @param belongs   LinkSpec -> whether it is one of them
/// @param capacity  where it was measured; nothing: all that they have, and for a guarantee what the widest has
template <class Belongs>
void share(MachineSpec& spec, std::string name, Belongs belongs, std::optional<GBps> capacity = std::nullopt) {
  SharedSpec shared{.name = std::move(name)};
  std::vector<GBps> rates;
  for (const LinkSpec& link : spec.links) {
    if (!belongs(link)) continue;
    shared.members.push_back({link.from, link.to});
    rates.push_back(link.bandwidth.nominal);
  }
  shared.capacity = capacity ? Bandwidth{rounded(*capacity)}
                             : Bandwidth{rounded(sum_of(rates)), rounded(*std::ranges::max_element(rates))};
  spec.shared.push_back(std::move(shared));
}

/// What these GPUs may share between them and their cpu, in one direction.
/// @param capacity  as for `share`
void add_shared(MachineSpec& spec, const std::vector<std::size_t>& gpus, bool upwards,
                std::optional<GBps> capacity = std::nullopt) {
  std::set<std::string> tops;
  for (const std::size_t gpu : gpus) tops.insert(below_cpu(spec, gpu_name(gpu)));
  const auto belongs = [&](const LinkSpec& link) {
    return tops.contains(upwards ? link.from : link.to) && (upwards ? link.to : link.from).starts_with("cpu");
  };
  share(spec, fmt::format("uplink-{}-{}", gpu_name(gpus.front()), upwards ? "d2h" : "h2d"), belongs, capacity);
}

/// Whether copies from or to all GPUs together were measured, and are slower than each alone.
bool contend(const std::vector<GBps>& alone, const std::vector<GBps>& together) {
  return !together.empty() && sum_of(together).value < kSumOfAlone * sum_of(alone).value;
}

/// What both directions of a GPU's link have together, where the two were measured at once and are slower than alone.
void add_both_ways(MachineSpec& spec, const ImportedHost& imported) {
  for (std::size_t gpu = 0; gpu < imported.up_both_ways.size(); ++gpu) {
    const std::vector<GBps> alone{imported.up[gpu], imported.down[gpu]};
    const std::vector<GBps> at_once{imported.up_both_ways[gpu], imported.down_both_ways[gpu]};
    if (!contend(alone, at_once)) continue;
    const auto is_to_host = [](const std::string& name) { return name.starts_with("cpu") || name.starts_with("hub"); };
    const auto belongs = [&, name = gpu_name(gpu)](const LinkSpec& link) {
      return (link.from == name && is_to_host(link.to)) || (link.to == name && is_to_host(link.from));
    };
    share(spec, gpu_name(gpu) + "-both-ways", belongs, sum_of(at_once));
  }
}

void add_all_shared(MachineSpec& spec, const ImportedHost& imported) {
  add_both_ways(spec, imported);
  std::vector<std::size_t> all(imported.host.devices.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (contend(imported.up, imported.up_together)) add_shared(spec, all, false, sum_of(imported.up_together));
  if (contend(imported.down, imported.down_together)) add_shared(spec, all, true, sum_of(imported.down_together));
  for (const auto& gpus : imported.may_share) {
    if (imported.up_together.empty()) add_shared(spec, gpus, false);
    if (imported.down_together.empty()) add_shared(spec, gpus, true);
  }
}

/// NVLinks of a GPU that may be those to a switch, in one direction: then all pairs share those of one.
void add_switched(MachineSpec& spec, std::size_t gpu, bool from) {
  const auto belongs = [&](const LinkSpec& link) {
    return (from ? link.from : link.to) == gpu_name(gpu) && (from ? link.to : link.from).starts_with("gpu");
  };
  share(spec, fmt::format("nvlinks-{}-{}", gpu_name(gpu), from ? "out" : "in"), belongs);
}

std::string names_of(std::span<const std::size_t> gpus) {
  std::vector<std::string> names;
  for (const std::size_t gpu : gpus) names.push_back(gpu_name(gpu));
  return joined(names);
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
  add_all_shared(spec, imported);
  for (const std::size_t gpu : imported.may_switch)
    for (const bool from : {true, false}) add_switched(spec, gpu, from);
  return compile(std::move(spec));
}

std::vector<std::string> unknown_of(const ImportedHost& imported) {
  std::vector<std::string> unknown = imported.unknown;
  for (const auto& gpus : imported.may_share)
    if (imported.up_together.empty() || imported.down_together.empty())
      unknown.push_back(
          fmt::format("whether {} share a link to the host, such as that of a PCIe switch; assumed: they do, "
                      "for guarantees; 'tutti calibrate' measures it",
                      names_of(gpus)));
  const bool contends = contend(imported.up, imported.up_together) || contend(imported.down, imported.down_together);
  if (contends && imported.host.devices.size() > 2)
    unknown.push_back(
        "which GPUs share what all reach together; assumed: all, and each no more than its part of it in "
        "guarantees");
  if (!imported.may_switch.empty())
    unknown.push_back(
        fmt::format("whether the NVLinks of {} join pairs or lead to a switch; assumed: pairs, and for "
                    "guarantees a switch",
                    names_of(imported.may_switch)));
  return unknown;
}

std::string imported_yaml(const ImportedHost& imported, const Topology& machine, PcieLink pcie) {
  const bool has_rates = !imported.up.empty();
  std::string text;
  for (const std::string& sentence : unknown_of(imported)) text += fmt::format("# Unknown: {}.\n", sentence);
  text += fmt::format("# Written by 'tutti topology import' from a file of {}.\n", imported.source);
  text += has_rates ? "# Measured there, each copy alone: the links of GPUs. Copies together may be slower: host "
                      "memory and what GPUs "
                      "share are assumed to be as\n# wide as all of them, where they were not measured together.\n"
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
         (imported.has_peers ? "# Assumed: peer access between GPUs with NVLink or below one root of PCI buses, two "
                               "copy engines a GPU.\n"
                             : "# Assumed: two copy engines a GPU.\n") +
         "# No ground for a guarantee until 'tutti calibrate --machine FILE --out FILE' has measured this host.\n" +
         machine_yaml(machine);
}

}  // namespace tutti::internal
