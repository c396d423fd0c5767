#include "apps/tutti/formats/imported_host.hpp"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "model/base/document.hpp"
#include "model/base/input_file.hpp"

namespace tutti::internal {
namespace {

constexpr std::uintmax_t kLargestImport = 64U << 20;
constexpr std::size_t kMostGpus = 512;

/// GPUs reach each other over NVLink, or below one root of PCI buses; others are not assumed to.
void assume_peer_access(ImportedHost& read) {
  std::vector<DeviceFacts>& devices = read.host.devices;
  for (DeviceFacts& device : devices) {
    device.nvlink.resize(devices.size());
    device.peer_access.assign(devices.size(), false);
  }
  for (std::size_t a = 0; a < devices.size(); ++a) {
    for (std::size_t b = 0; b < devices.size(); ++b) {
      const bool one_root = !devices[a].pci_path.empty() && !devices[b].pci_path.empty() &&
                            devices[a].pci_path.front().id == devices[b].pci_path.front().id;
      devices[a].peer_access[b] = read.has_peers && a != b && (one_root || devices[a].nvlink[b]);
    }
  }
}

ImportedHost read_any(const std::string& text, const std::string& name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    fail({name, 1, 1}, "the file is empty; 'tutti topology import --help' lists what it reads");
  ImportedHost read = text[first] == '<'   ? read_host_xml(text, name)
                      : text[first] == '{' ? read_nvbandwidth(text, name)
                                           : read_topology_matrix(text, name);
  if (read.host.devices.empty()) fail({name, 1, 1}, "there is no GPU in this file; give one of a host with GPUs");
  if (read.host.devices.size() > kMostGpus)
    fail({name, 1, 1}, fmt::format("{} GPUs are more than the {} that are read", read.host.devices.size(), kMostGpus));
  assume_peer_access(read);
  return read;
}

}  // namespace

Expected<ImportedHost> parse_imported_host(const std::string& text, const std::string& name) {
  return reading([&] { return read_any(text, name); });
}

Expected<ImportedHost> load_imported_host(const std::string& path) {
  const auto text = read_bytes_of(path, "a description of a host", kLargestImport);
  if (!text) return tl::unexpected(text.error());
  if (text->size() > kLargestImport) return invalid_input("above 64 MiB; no description of a host is", {path, 0, 0});
  return parse_imported_host(*text, path);
}

}  // namespace tutti::internal
