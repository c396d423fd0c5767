#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "apps/tutti/formats/imported_host.hpp"
#include "apps/tutti/formats/xml_element.hpp"
#include "model/base/document.hpp"
#include "model/base/joined.hpp"
#include "runtime/doctor/host_files.hpp"

namespace tutti::internal {
namespace {

using Element = XmlElement;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string bus_id_of(const Element& element, const char* key) {
  std::string id = lower(element.attribute(key));
  if (id.size() < 7 || id.find(':') == std::string::npos || id.find('.') == std::string::npos)
    fail(element.place(), fmt::format("'{:.80}' is no bus id of <{}>; it looks like 0000:06:00.0", id, element.name()));
  return id;
}

constexpr double kMbpsOfNvlink = 25000;  // by its standard, since V100

/// NVLinks by where they lead.
class NvlinkTable {
 public:
  explicit NvlinkTable(std::size_t gpus) : peers_(gpus, std::vector<int>(gpus, 0)), switch_(gpus, 0), cpu_(gpus, 0) {}

  void add_peer(std::size_t gpu, std::size_t peer, int links) {
    if (gpu != peer) peers_[gpu][peer] += std::max(0, links);
  }
  void add_switch(std::size_t gpu, int links) { switch_[gpu] += std::max(0, links); }
  void add_cpu(std::size_t gpu, int links) { cpu_[gpu] += std::max(0, links); }

  /// All GPUs at switches reach each other; others what their links lead to.
  void write(ImportedHost& host) {
    take_smaller_numbers(host);
    std::vector<DeviceFacts>& devices = host.host.devices;
    for (std::size_t a = 0; a < devices.size(); ++a) {
      devices[a].nvlink.assign(devices.size(), false);
      for (std::size_t b = 0; b < devices.size(); ++b)
        devices[a].nvlink[b] = a != b && (peers_[a][b] > 0 || (switch_[a] > 0 && switch_[b] > 0));
      if (switch_[a] == 0) devices[a].nvlinks = peers_[a];
      host.nvlinks.push_back(switch_[a]);
      host.to_cpu.push_back({kRateOfNvlink * cpu_[a]});
    }
  }

 private:
  /// A link has two ends. Where these differ in their number, nothing says which is right: the smaller one is safe.
  void take_smaller_numbers(ImportedHost& host) {
    std::vector<std::string> pairs;
    for (std::size_t a = 0; a < peers_.size(); ++a) {
      for (std::size_t b = a + 1; b < peers_.size(); ++b) {
        int &there = peers_[a][b], &back = peers_[b][a];
        if (there == back) continue;
        pairs.push_back(fmt::format("{} and {} ({} and {})", gpu_name(a), gpu_name(b), there, back));
        there = back = std::min(there, back);
      }
    }
    if (!pairs.empty())
      host.unknown.push_back(
          fmt::format("the number of NVLinks between {}, which is another one at each end; assumed: the smaller one",
                      joined(pairs)));
  }

  std::vector<std::vector<int>> peers_;  // [gpus][gpus]
  std::vector<int> switch_, cpu_;        // [gpus]
};

// ---- hwloc

/// The link of a data rate in GB/s: the widest one of a known generation. hwloc gives their product alone.
std::optional<PcieLink> link_of_rate(double rate) {
  constexpr double kTolerance = 0.04;
  for (const int width : {16, 8, 4, 2, 1}) {
    for (int generation = 1; generation <= 6; ++generation) {
      const PcieLink link{generation, width};
      if (rate > 0 && std::abs(link.theoretical().value / rate - 1) < kTolerance) return link;
    }
  }
  return std::nullopt;
}

class HwlocReader {
 public:
  ImportedHost read(const Element& root) {
    read_.source = "hwloc";
    for (const Element& child : root.children()) visit(child, {}, {}, 0);
    if (nodes_.empty()) nodes_.insert(0);
    read_.host.numa_nodes.assign(nodes_.begin(), nodes_.end());
    bool has_nvlinks = false;
    for (const Element& child : root.children()) {
      if (!child.name().starts_with("distances2") || child.attribute("name") != "NVLinkBandwidth") continue;
      has_nvlinks = true;
      add_nvlinks(child);
    }
    if (!has_nvlinks && !has_nvml_ && read_.host.devices.size() > 1)
      read_.unknown.emplace_back("NVLinks, which hwloc sees with NVML alone; assumed: none");
    place_gpus();
    if (!has_bridges_) share_nodes();
    note_slow_links();
    return std::move(read_);
  }

 private:
  /// The bits of a set like "0x00000002,0x1", whose lowest 32 bits are last.
  static std::set<int> bits_of(const std::string& text) {
    std::set<int> bits;
    int base = 0;
    for (std::size_t end = text.size(); end != std::string::npos; base += 32) {
      const std::size_t comma = end == 0 ? std::string::npos : text.rfind(',', end - 1);
      const std::size_t begin = comma == std::string::npos ? 0 : comma + 1;
      const auto word = std::strtoul(text.substr(begin, end - begin).c_str(), nullptr, 16);
      for (int bit = 0; bit < 32; ++bit)
        if ((word >> bit & 1U) != 0) bits.insert(base + bit);
      end = comma;
    }
    return bits;
  }

  void visit(const Element& object, std::set<int> near, std::vector<PciBridge> path, int level) {
    check_level(object, level, "any host");
    if (object.name() != "object") return;
    const std::string type = object.attribute("type");
    objects_.insert(object.attribute("gp_index"));
    if (type == "Machine" && machines_++ > 0)
      fail(object.place(), "a second machine begins here; give a file of one host");
    if (const std::string set = object.attribute("nodeset"); !set.empty()) near = bits_of(set);
    if (type == "NUMANode") add_node(object);
    if (type == "Bridge") path.push_back(bridge_of(object));
    has_bridges_ = has_bridges_ || type == "Bridge";
    if (type == "PCIDev" && is_gpu(object)) add(object, near, path);
    has_nvml_ = has_nvml_ || (type == "OSDev" && object.attribute("name").starts_with("nvml"));
    if (object.attribute("subtype") == "NVSwitch") switches_.insert(object.attribute("gp_index"));
    if (type == "Package") packages_.insert(object.attribute("gp_index"));
    for (const Element& child : object.children()) visit(child, near, path, level + 1);
  }

  /// Of the nodes of some processors the first is their memory; others are that of GPUs, HBM, or behind CXL.
  void add_node(const Element& object) {
    const std::string cpus = object.attribute("cpuset");
    const std::string subtype = object.attribute("subtype");
    const bool is_other = !subtype.empty() && subtype != "DRAM";
    if (cpus.find_first_not_of("0x,") == std::string::npos || is_other || !cpusets_.insert(cpus).second) return;
    nodes_.insert(object.whole("os_index", 0, 4095));
  }

  static PciBridge bridge_of(const Element& object) {
    if (object.attribute("bridge_type").starts_with("0")) return {"pci" + object.attribute("bridge_pci"), std::nullopt};
    return {bus_id_of(object, "pci_busid"), link_of(object)};
  }
  static std::optional<PcieLink> link_of(const Element& object) {
    return link_of_rate(std::strtod(object.attribute("pci_link_speed").c_str(), nullptr));
  }

  /// A display or 3D controller that a library of GPUs knows, or that NVIDIA made.
  static bool is_gpu(const Element& object) {
    const std::string type = object.attribute("pci_type");
    if (!type.starts_with("03")) return false;
    const auto children = object.children();
    const bool is_known = std::ranges::any_of(children, [](const Element& child) {
      const std::string name = child.attribute("name");
      return name.starts_with("cuda") || name.starts_with("nvml");
    });
    return is_known || type.find("[10de:") != std::string::npos;
  }

  void add(const Element& object, const std::set<int>& near, const std::vector<PciBridge>& path) {
    DeviceFacts device;
    device.ordinal = static_cast<int>(read_.host.devices.size());
    device.bus_id = bus_id_of(object, "pci_busid");
    near_.push_back(near);
    device.link_at_best = link_of(object);
    device.pci_path = path;
    for (const Element& child : object.children())
      for (const Element& info : child.children())
        if (info.attribute("name") == "CUDAGlobalMemorySize")  // in KiB
          device.memory = Bytes{std::max(0LL, std::min(1LL << 33, std::atoll(info.attribute("value").c_str()))) << 10};
    for (const Element& child : object.children()) gpus_[child.attribute("gp_index")] = read_.host.devices.size();
    gpus_[object.attribute("gp_index")] = read_.host.devices.size();
    read_.host.devices.push_back(std::move(device));
  }

  /// The words of all children of this name, which hwloc splits into several.
  static std::vector<std::string> words_in(const Element& distances, std::string_view child_name) {
    std::vector<std::string> words;
    for (const Element& child : distances.children()) {
      if (child.name() != child_name) continue;
      const std::string text = child.text();
      for (const std::string_view word : words_of(text)) words.emplace_back(word);
    }
    return words;
  }

  /// A matrix of MB/s between GPUs, ports of switches, and processors. Other objects than GPUs have the name of their
  /// type in it, or the matrix has it for all; their numbers are those of `gp_index`.
  void add_nvlinks(const Element& distances) {
    const std::vector<std::string> objects = words_in(distances, "indexes"), values = words_in(distances, "u64values");
    const std::size_t count = objects.size();
    if (count == 0 || values.size() != count * count)
      fail(distances.place(),
           fmt::format("the bandwidths of NVLinks are {} numbers for {} objects; write the file again", values.size(),
                       count));
    NvlinkTable links(read_.host.devices.size());
    std::vector<std::string> missing;
    for (std::size_t a = 0; a < count; ++a) {
      const auto from = gpus_.find(number_of(objects[a]));
      if (!objects_.contains(number_of(objects[a]))) missing.push_back(fmt::format("{:.80}", objects[a]));
      if (from == gpus_.end()) continue;
      for (std::size_t b = 0; b < count; ++b) {
        const std::string to = number_of(objects[b]);
        const int bandwidth =
            static_cast<int>(std::lround(std::strtod(values[a * count + b].c_str(), nullptr) / kMbpsOfNvlink));
        if (const auto peer = gpus_.find(to); peer != gpus_.end())
          links.add_peer(from->second, peer->second, bandwidth);
        else if (switches_.contains(to))
          links.add_switch(from->second, bandwidth);
        else if (packages_.contains(to))
          links.add_cpu(from->second, bandwidth);
      }
    }
    if (!missing.empty())
      read_.unknown.push_back(
          fmt::format("what {} in line {} is, to which NVLinks lead: no object of this file; assumed: no link",
                      joined(missing), distances.place().line));
    links.write(read_);
  }
  static std::string number_of(const std::string& object) { return object.substr(object.find(':') + 1); }

  /// A GPU is at the first node with processors that it is near to.
  void place_gpus() {
    std::vector<std::string> open;
    for (std::size_t gpu = 0; gpu < near_.size(); ++gpu) {
      std::vector<int> nodes;
      std::ranges::set_intersection(near_[gpu], nodes_, std::back_inserter(nodes));
      DeviceFacts& device = read_.host.devices[gpu];
      device.numa_node = nodes.empty() ? *nodes_.begin() : nodes.front();
      if (nodes.size() != 1 && nodes_.size() > 1)
        open.push_back(fmt::format("{} at {}", gpu_name(gpu), device.numa_node));
    }
    if (!open.empty()) read_.unknown.push_back(fmt::format("the NUMA node of each GPU; assumed: {}", joined(open)));
  }

  void share_nodes() {
    std::map<int, std::vector<std::size_t>> at;
    for (std::size_t gpu = 0; gpu < near_.size(); ++gpu) at[read_.host.devices[gpu].numa_node].push_back(gpu);
    for (auto& [node, gpus] : at)
      if (gpus.size() > 1) read_.may_share.push_back(std::move(gpus));
  }

  void note_slow_links() {
    constexpr int kOfIdleLinks = 2;
    std::vector<std::string> slow;
    for (std::size_t gpu = 0; gpu < near_.size(); ++gpu)
      if (const auto& link = read_.host.devices[gpu].link_at_best; link && link->generation <= kOfIdleLinks)
        slow.push_back(gpu_name(gpu));
    if (!slow.empty())
      read_.unknown.push_back(
          fmt::format("whether the PCIe links of {} are as slow as hwloc saw them, or were idle, when "
                      "they slow down; assumed: they are",
                      joined(slow)));
  }

  ImportedHost read_;
  std::set<int> nodes_;
  std::set<std::string> cpusets_;    // of nodes
  std::vector<std::set<int>> near_;  // [devices] nodes
  bool has_nvml_ = false, has_bridges_ = false;
  int machines_ = 0;
  std::map<std::string, std::size_t> gpus_;    // by gp_index, of their parts too
  std::set<std::string> switches_, packages_;  // gp_index
  std::set<std::string> objects_;              // gp_index, of all
};

// ---- NCCL

class NcclReader {
 public:
  ImportedHost read(const Element& root) {
    read_.source = "NCCL";
    has_gpu_elements_ = has_gpu_element(root, 0);
    std::set<int> nodes;
    std::string host;
    for (const Element& cpu : root.children()) {
      if (cpu.name() != "cpu") continue;
      const std::string hash = cpu.attribute("host_hash");
      if (!nodes.empty() && hash != host) fail(cpu.place(), "a second host begins here; give a file of one host");
      host = hash;
      int node = cpu.whole("numaid", -1, 4095);
      if (node < 0) {
        read_.unknown.emplace_back("the NUMA node of a cpu, which is -1 here; assumed: 0");
        node = 0;
      }
      nodes.insert(node);
      for (const Element& child : cpu.children()) visit(child, node, {{fmt::format("cpu{}", node), {}}}, 0);
    }
    if (nodes.empty()) fail(root.place(), "there is no cpu in this system; write the file again");
    read_.host.numa_nodes.assign(nodes.begin(), nodes.end());
    sort_by_ordinal();
    connect();
    return std::move(read_);
  }

 private:
  /// NVLinks, or NVLink-C2C, of one GPU.
  struct Ends {
    std::vector<Element> nvlinks, c2c;
  };

  static std::optional<PcieLink> link_of(const Element& pci) {
    constexpr std::array kSpeeds{2.5, 5.0, 8.0, 16.0, 32.0, 64.0};  // GT/s
    const double speed = std::strtod(pci.attribute("link_speed").c_str(), nullptr);
    const int width = std::atoi(pci.attribute("link_width").c_str());
    const auto found = std::ranges::find(kSpeeds, speed);
    if (found == kSpeeds.end() || width < 1 || width > 32) return std::nullopt;
    return PcieLink{static_cast<int>(found - kSpeeds.begin()) + 1, width};
  }

  static bool has_gpu_element(const Element& element, int level) {
    check_level(element, level, "any host");
    return element.name() == "gpu" || std::ranges::any_of(element.children(), [&](const Element& child) {
             return has_gpu_element(child, level + 1);
           });
  }

  /// A virtual bridge says 2.5 GT/s x1, whatever is behind it.
  static std::optional<PcieLink> link_of_bridge(const Element& pci) {
    const auto link = link_of(pci);
    return link == PcieLink{1, 1} ? std::nullopt : link;
  }

  void visit(const Element& pci, int node, const std::vector<PciBridge>& path, int level) {
    check_level(pci, level, "any host");
    if (pci.name() != "pci") return;
    const std::string id = bus_id_of(pci, "busid");
    const int element = visited_++;
    std::vector<PciBridge> below = path;
    below.push_back({id, link_of_bridge(pci)});
    // Files of cloud providers have GPUs by their class alone: 3D controllers.
    if (!has_gpu_elements_ && pci.attribute("class").starts_with("0x0302")) {
      check_is_only(pci, id, element);
      add(id, node, link_of(pci), path, static_cast<int>(read_.host.devices.size()), {});
    }
    for (const Element& child : pci.children()) {
      if (child.name() == "gpu") check_is_only(pci, id, element);
      if (child.name() == "gpu") add(id, node, link_of(pci), path, child.whole("dev", 0, 4095), child.children());
      visit(child, node, below, level + 1);
    }
  }

  /// Several ranks on one GPU, or on parts of it, are in one element.
  /// @param element  number of the element
  void check_is_only(const Element& pci, const std::string& id, int element) {
    if (elements_.try_emplace(id, element).first->second != element)
      fail(pci.place(), fmt::format("a second <pci> with a GPU has the bus id {}; write the file again", id));
  }

  void add(const std::string& id, int node, std::optional<PcieLink> link, const std::vector<PciBridge>& path,
           int ordinal, const std::vector<Element>& links) {
    auto& devices = read_.host.devices;
    if (std::ranges::count(devices, id, &DeviceFacts::bus_id) > 0) return;  // another rank, or part, of it
    DeviceFacts device;
    device.ordinal = ordinal;
    device.bus_id = id;
    device.numa_node = node;
    device.link_at_best = link;
    device.pci_path = path;
    devices.push_back(std::move(device));
    Ends& ends = ends_[id];
    for (const Element& each : links) {
      if (each.name() == "xgmi") fail(each.place(), "these are GPUs of AMD; give a file of a host with GPUs of NVIDIA");
      if (each.name() == "nvlink") ends.nvlinks.push_back(each);
      if (each.name() == "c2c") ends.c2c.push_back(each);
    }
  }

  void sort_by_ordinal() { std::ranges::stable_sort(read_.host.devices, {}, &DeviceFacts::ordinal); }

  /// Classes of PCI: 0x03 a GPU, 0x068001 a processor, other bridges a switch. Where it is missing, the bus id tells.
  void connect() {
    const auto& devices = read_.host.devices;
    NvlinkTable links(devices.size());
    std::set<std::string> missing;
    for (std::size_t gpu = 0; gpu < devices.size(); ++gpu) {
      for (const Element& end : ends_[devices[gpu].bus_id].nvlinks) {
        const int count = end.whole("count", 1, 64);
        const std::string target = lower(end.attribute("target")), device_class = end.attribute("tclass");
        const auto peer = std::ranges::find(devices, target, &DeviceFacts::bus_id);
        if (peer != devices.end())
          links.add_peer(gpu, static_cast<std::size_t>(peer - devices.begin()), count);
        else if (device_class.starts_with("0x068001"))
          links.add_cpu(gpu, count);
        else if (device_class.starts_with("0x0680"))
          links.add_switch(gpu, count);
        else
          missing.insert(fmt::format("{:.80}", target));
      }
    }
    links.write(read_);
    for (std::size_t gpu = 0; gpu < devices.size(); ++gpu)
      for (const Element& end : ends_[devices[gpu].bus_id].c2c)  // MB/s each, by their standard
        read_.to_cpu[gpu].value += kRateOfNvlink / kMbpsOfNvlink *
                                   std::clamp(std::atoi(end.attribute("bw").c_str()), 0, 1'000'000) *
                                   end.whole("count", 1, 64);
    const auto has_none = [&](const DeviceFacts& device) { return ends_[device.bus_id].nvlinks.empty(); };
    if (devices.size() > 1 && std::ranges::all_of(devices, has_none))
      read_.unknown.emplace_back("NVLinks, of which this file has none; assumed: there are none");
    if (!missing.empty())
      read_.unknown.push_back(fmt::format("what {} is, to which NVLinks lead: no GPU of this file; assumed: no link",
                                          joined(std::vector<std::string>(missing.begin(), missing.end()))));
  }

  ImportedHost read_;
  std::map<std::string, Ends> ends_;     // by bus id
  std::map<std::string, int> elements_;  // with a GPU, by bus id
  int visited_ = 0;                      // elements
  bool has_gpu_elements_ = false;        // GPUs are those that have one
};

}  // namespace

ImportedHost read_host_xml(const std::string& text, const std::string& name) {
  const XmlDocument document = parse_xml(text, name, "hwloc and NCCL do");
  const Element root(xmlDocGetRootElement(document.get()), name);
  if (root.name() == "topology") return HwlocReader().read(root);
  if (root.name() == "system") return NcclReader().read(root);
  fail(root.place(),
       fmt::format("'{:.80}' is the root of neither hwloc's XML ('topology') nor NCCL's ('system')", root.name()));
}

}  // namespace tutti::internal
