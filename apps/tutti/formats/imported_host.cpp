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
      const bool may = read.has_peers && (read.between.empty() || read.between[a][b].value > 0);
      devices[a].peer_access[b] = may && a != b && (one_root || devices[a].nvlink[b]);
    }
  }
}

/// Text with plain ends of lines and blanks, without a byte order mark.
/// @errors InvalidInput: UTF-16.
std::string plain_text(std::string text, const std::string& name) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    fail({name, 1, 1}, "this is UTF-16, as PowerShell writes it; save it as UTF-8");
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  const auto replace = [&](std::string_view what, std::string_view by) {
    std::string replaced;
    std::size_t at = 0;
    for (std::size_t found; (found = text.find(what, at)) != std::string::npos; at = found + what.size())
      replaced.append(text, at, found - at).append(by);
    text = replaced.append(text, at);
  };
  replace("\xC2\xA0", " ");  // a no-break space
  replace("\r\n", "\n");
  replace("\r", "\n");
  return text;
}

/// From the first of some words on to the last of others, with as many lines before as there were; the whole where
/// there are none.
std::string between(const std::string& text, std::string_view first, std::string_view last) {
  const std::size_t begin = text.find(first);
  const std::size_t end = text.rfind(last);
  if (begin == std::string::npos || end == std::string::npos || end < begin) return text;
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(begin), '\n');
  return std::string(static_cast<std::size_t>(lines), '\n') + text.substr(begin, end + last.size() - begin);
}

/// Reads a text by its form, also where other text stands around it.
/// @param first  of its letters that is no blank
ImportedHost read_form(const std::string& text, std::size_t first, const std::string& name) {
  const auto starts = [&](std::string_view words) { return text.compare(first, words.size(), words) == 0; };
  const auto has = [&](std::string_view words) { return text.find(words) != std::string::npos; };
  if (starts("<?xml") || starts("<!") || starts("<topology") || starts("<system")) return read_host_xml(text, name);
  if (has("</topology>")) return read_host_xml(between(text, "<topology", "</topology>"), name);
  if (has("</system>")) return read_host_xml(between(text, "<system", "</system>"), name);
  if (has("\"nvbandwidth\"")) return read_nvbandwidth(between(text, "{", "}"), name);
  if (starts("{\"") || starts("{{")) return read_nvbandwidth(text, name);
  return read_topology_matrix(text, name);
}

ImportedHost read_any(std::string text, const std::string& name) {
  text = plain_text(std::move(text), name);
  const std::size_t first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos)
    fail({name, 1, 1}, "the file is empty; 'tutti topology import --help' lists what it reads");
  ImportedHost read = read_form(text, first, name);
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
