#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "apps/tutti/formats/imported_host.hpp"
#include "model/base/document.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::internal {
namespace {

/// A cell of the matrix with its place.
struct Cell {
  std::string text;
  Place place;
};

/// Text without the colours and underlines of a terminal.
std::string plain(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b')
      at = std::min(text.size(), text.find('m', at));
    else
      kept += text[at];
  }
  return kept;
}

/// The cells of a line: between tabs as nvidia-smi writes them, or between blanks where those were lost.
std::vector<Cell> cells_of(const std::string& line, const std::string& name, int number) {
  const bool has_tabs = line.find('\t') != std::string::npos;
  std::vector<Cell> cells;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end =
        has_tabs ? std::min(line.find('\t', at), line.size()) : std::min(line.find_first_of(" \r", at), line.size());
    std::string text = line.substr(at, end - at);
    const std::size_t from = std::min(text.size(), text.find_first_not_of(" \r"));
    text.erase(text.find_last_not_of(" \r") + 1);
    if (has_tabs || !text.empty())
      cells.push_back({text.substr(std::min(from, text.size())), {name, number, static_cast<int>(at + from) + 1}});
    at = end + 1;
  }
  return cells;
}

bool is_gpu(const std::string& text) {
  return text.starts_with("GPU") && text.size() > 3 &&
         std::ranges::all_of(text.substr(3), [](char c) { return c >= '0' && c <= '9'; });
}

class MatrixReader {
 public:
  explicit MatrixReader(const std::string& name) : name_(name) {}

  ImportedHost read(std::string_view text) {
    read_.source = "nvidia-smi topo -m";
    int number = 0;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      add_line(cells_of(plain(line), name_, ++number));
      if (!gpus_.empty() && rows_.size() == gpus_.size()) break;  // NICs and the legend follow
    }
    if (gpus_.empty())
      fail({name_, 1, 1},
           "this is neither XML of hwloc or NCCL, nor JSON of nvbandwidth, nor a matrix of 'nvidia-smi topo -m', whose "
           "first line has the GPUs");
    if (rows_.size() < gpus_.size())
      fail({name_, number, 1}, fmt::format("the row of {} is missing; the matrix is cut off", gpus_[rows_.size()]));
    make_devices();
    return std::move(read_);
  }

 private:
  void add_line(const std::vector<Cell>& cells) {
    if (gpus_.empty()) {
      for (const Cell& cell : cells)
        if (is_gpu(cell.text)) gpus_.push_back(cell.text);
      const auto node = std::ranges::find(cells, "NUMA Affinity", &Cell::text);
      if (node != cells.end()) node_column_ = node - cells.begin();
      return;
    }
    if (cells.empty() || !is_gpu(cells.front().text)) return;
    if (cells.front().text != gpus_[rows_.size()])
      fail(cells.front().place,
           fmt::format("the row of {} stands where that of {} belongs", cells.front().text, gpus_[rows_.size()]));
    if (cells.size() <= gpus_.size())
      fail(cells.back().place, fmt::format("the row of {} has {} of {} cells; the matrix is cut off",
                                           cells.front().text, cells.size() - 1, gpus_.size()));
    for (std::size_t b = 0; b < gpus_.size(); ++b) check(cells[b + 1], rows_.size() == b);
    rows_.push_back(cells);
  }

  static void check(const Cell& cell, bool is_itself) {
    constexpr std::array<std::string_view, 6> words{"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
    const bool is_nvlink = cell.text.starts_with("NV") && links_of(cell) > 0;
    const bool is_known = is_nvlink || std::ranges::count(words, cell.text) > 0;
    if (is_known && (cell.text == "X") == is_itself) return;
    if (is_known)
      fail(cell.place, fmt::format("'{}' does not belong here: X marks a GPU beside itself, and no other", cell.text));
    fail(cell.place, fmt::format("'{:.80}' is no connection of two GPUs;{} it is X, NV and a number, PIX, PXB, PHB, "
                                 "NODE or SYS",
                                 cell.text, suggestion(cell.text, words)));
  }

  static int links_of(const Cell& cell) {
    int links = 0;
    if (cell.text.starts_with("NV")) std::from_chars(cell.text.data() + 2, cell.text.data() + cell.text.size(), links);
    return std::clamp(links, 0, 1024);
  }

  /// The NUMA node of a row; -1 where the matrix says none, or several.
  [[nodiscard]] int node_of(const std::vector<Cell>& row) const {
    if (node_column_ < 0 || static_cast<std::size_t>(node_column_) >= row.size()) return -1;
    const std::string& text = row[static_cast<std::size_t>(node_column_)].text;
    int node = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), node);
    return error == std::errc{} && end == text.data() + text.size() && node >= 0 && node < 4096 ? node : -1;
  }

  /// The first GPU of those that a GPU is connected to by one of these words.
  [[nodiscard]] std::size_t first_at(std::size_t gpu, std::initializer_list<std::string_view> words) const {
    for (std::size_t other = 0; other < gpu; ++other)
      if (std::ranges::count(words, rows_[gpu][other + 1].text) > 0) return first_at(other, words);
    return gpu;
  }

  void make_devices() {
    std::set<int> nodes;
    for (std::size_t a = 0; a < gpus_.size(); ++a) {
      DeviceFacts device;
      device.ordinal = static_cast<int>(a);
      device.numa_node = node_of(rows_[a]);
      if (device.numa_node >= 0) nodes.insert(device.numa_node);
      int links = 0;
      for (std::size_t b = 0; b < gpus_.size(); ++b) {
        device.nvlink.push_back(links_of(rows_[a][b + 1]) > 0);
        links = std::max(links, links_of(rows_[a][b + 1]));
      }
      // Host bridge, switches, one switch: what PHB, PXB and PIX are inside of.
      device.pci_path = {{fmt::format("pci{}", first_at(a, {"PHB", "PXB", "PIX"})), {}},
                         {fmt::format("switches{}", first_at(a, {"PXB", "PIX"})), {}},
                         {fmt::format("switch{}", first_at(a, {"PIX"})), {}}};
      read_.host.devices.push_back(std::move(device));
      read_.nvlinks.push_back(links);
    }
    if (nodes.empty()) nodes.insert(0);
    read_.host.numa_nodes.assign(nodes.begin(), nodes.end());
  }

  std::string name_;
  ImportedHost read_;
  std::vector<std::string> gpus_;
  std::vector<std::vector<Cell>> rows_;
  std::ptrdiff_t node_column_ = -1;
};

}  // namespace

ImportedHost read_topology_matrix(std::string_view text, const std::string& name) {
  return MatrixReader(name).read(text);
}

}  // namespace tutti::internal
