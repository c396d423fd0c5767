#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "apps/tutti/formats/imported_host.hpp"
#include "model/base/document.hpp"
#include "model/base/joined.hpp"
#include "model/base/suggestion.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMostDevices = 1024;
constexpr int kMostNvlinks = 18;  // of a GPU, up to the generation of H200 and B200

/// A cell of the matrix with its place.
struct Cell {
  std::string text;
  Place place;
};

/// Text without the colours and underlines of a terminal, also where their escape byte was lost, and without the marks
/// of a quotation.
std::string plain(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t bracket = at + (text[at] == '\x1b' ? 1 : 0);
    const std::size_t end = bracket < text.size() && text[bracket] == '['
                                ? text.find_first_not_of("0123456789;", bracket + 1)
                                : std::string_view::npos;
    if (end != std::string_view::npos && text[end] == 'm')
      at = end;
    else if (text[at] != '\x1b')
      kept += text[at];
  }
  while (kept.starts_with('>')) kept.erase(0, kept.starts_with("> ") ? 2 : 1);
  return kept;
}

/// The cells of a line: between tabs as nvidia-smi writes them, or between blanks where those were lost.
std::vector<Cell> cells_of(std::string_view line, const std::string& name, int number) {
  const bool has_tabs = line.find('\t') != std::string_view::npos;
  std::vector<Cell> cells;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(has_tabs ? line.find('\t', at) : line.find_first_of(" \r", at), line.size());
    std::string text(line.substr(at, end - at));
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

/// How two devices meet, the nearest first.
enum class Meeting : std::uint8_t { Itself, Switch, Switches, HostBridge, Node, Nodes, Hidden };

struct Word {
  std::string_view text;
  Meeting meeting;
};
constexpr std::array kWords{Word{"X", Meeting::Itself},     Word{"PIX", Meeting::Switch},
                            Word{"PXB", Meeting::Switches}, Word{"PHB", Meeting::HostBridge},
                            Word{"NODE", Meeting::Node},    Word{"SYS", Meeting::Nodes},
                            Word{"SOC", Meeting::Nodes}};  // SOC: SYS in old drivers

/// The NVLinks of a cell like NV12, behind which the way over PCIe is hidden; 0: another one.
int nvlinks_of(const std::string& text) {
  int links = 0;
  if (text.starts_with("NV")) std::from_chars(text.data() + 2, text.data() + text.size(), links);
  return std::clamp(links, 0, 1024);
}

std::optional<Meeting> meeting_of(const std::string& text) {
  const auto word = std::ranges::find(kWords, text, &Word::text);
  if (word != kWords.end()) return word->meeting;
  return nvlinks_of(text) > 0 ? std::optional(Meeting::Hidden) : std::nullopt;
}

/// The numbers of a set like "0-15,32"; empty: not known.
std::set<int> numbers_of(std::string_view text) {
  constexpr int kMost = 8191;
  std::set<int> numbers;
  while (!text.empty()) {
    const std::string_view range = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), range.size() + 1));
    const std::size_t dash = range.find('-');
    const auto number = [](std::string_view digits) {
      int value = -1;
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return error == std::errc{} && end == digits.data() + digits.size() && value <= kMost ? value : -1;
    };
    const int first = number(range.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : number(range.substr(dash + 1));
    if (first < 0 || last < first) return {};
    for (int each = first; each <= last; ++each) numbers.insert(numbers.end(), each);
  }
  return numbers;
}

bool intersect(const std::set<int>& a, const std::set<int>& b) {
  return std::ranges::any_of(a, [&](int each) { return b.contains(each); });
}

/// Devices in groups, some of which are known to be apart.
class Groups {
 public:
  explicit Groups(std::size_t count) : above_(count), apart_(count, std::vector<bool>(count, false)) {
    std::iota(above_.begin(), above_.end(), std::size_t{0});
  }

  /// The first device of the group of one.
  [[nodiscard]] std::size_t first(std::size_t one) const {
    while (above_[one] != one) one = above_[one];
    return one;
  }
  void join(std::size_t one, std::size_t other) {
    const auto [low, high] = std::minmax({first(one), first(other)});
    if (low == high) return;
    above_[high] = low;
    for (std::size_t each = 0; each < above_.size(); ++each)
      if (apart_[high][each]) part(low, each);
  }
  void part(std::size_t one, std::size_t other) {
    apart_[first(one)][first(other)] = true;
    apart_[first(other)][first(one)] = true;
  }
  [[nodiscard]] bool are_apart(std::size_t one, std::size_t other) const { return apart_[first(one)][first(other)]; }

 private:
  std::vector<std::size_t> above_;
  std::vector<std::vector<bool>> apart_;  // [first][first] of groups
};

class MatrixReader {
 public:
  explicit MatrixReader(const std::string& name) : name_(name) {}

  ImportedHost read(std::string_view text) {
    read_.source = "nvidia-smi topo -m";
    int number = 0;
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      add_line(plain(line), ++number);
    }
    if (gpus_ == 0)
      fail({name_, 1, 1},
           "this is neither XML of hwloc or NCCL, nor JSON of nvbandwidth, nor a matrix of 'nvidia-smi topo -m', whose "
           "first line has the GPUs");
    if (rows_.size() < gpus_)
      fail({name_, number, 1}, fmt::format("the row of {} is missing; the matrix is cut off", devices_[rows_.size()]));
    check_both_ways();
    make_devices();
    add_nodes();
    add_bridges();
    add_nvlinks();
    return std::move(read_);
  }

 private:
  /// The devices that the first line of a matrix names, before the columns of affinities; none: another line.
  [[nodiscard]] std::vector<std::string> devices_of(const std::string& line) const {
    std::string names = line.substr(
        0, std::min({line.find("CPU Affinity"), line.find("NUMA Affinity"), line.find("GPU NUMA ID"), line.size()}));
    std::ranges::replace(names, '\t', ' ');
    std::vector<std::string> devices;
    for (Cell& cell : cells_of(names, name_, 0)) devices.push_back(std::move(cell.text));
    const bool has_words = std::ranges::any_of(devices, [](auto& text) { return meeting_of(text).has_value(); });
    return devices.empty() || has_words || !is_gpu(devices.front()) ? std::vector<std::string>{} : devices;
  }

  void add_line(const std::string& line, int number) {
    if (auto devices = devices_of(line); !devices.empty()) {
      if (gpus_ > 0) fail({name_, number, 1}, "a second matrix begins here; give a file of one host");
      if (devices.size() > kMostDevices)
        fail({name_, number, 1},
             fmt::format("{} devices are more than the {} that are read", devices.size(), kMostDevices));
      gpus_ = static_cast<std::size_t>(std::ranges::find_if_not(devices, is_gpu) - devices.begin());
      devices_ = std::move(devices);
      has_cpus_ = line.find("CPU Affinity") < line.find("NUMA Affinity");
      has_nodes_ = line.find("NUMA Affinity") != std::string::npos;
      return;
    }
    const std::vector<Cell> cells = cells_of(line, name_, number);
    if (gpus_ > 0 && rows_.size() < gpus_ && !cells.empty() && is_gpu(cells.front().text)) add_row(cells);
  }

  void add_row(const std::vector<Cell>& cells) {
    const std::string& name = cells.front().text;
    if (name != devices_[rows_.size()])
      fail(cells.front().place,
           fmt::format("the row of {} stands where that of {} belongs", name, devices_[rows_.size()]));
    if (cells.size() <= devices_.size())
      fail(cells.back().place, fmt::format("the row of {} has {} of {} cells; the matrix is cut off", name,
                                           cells.size() - 1, devices_.size()));
    std::vector<Meeting>& meetings = meetings_.emplace_back();
    for (std::size_t other = 0; other < devices_.size(); ++other)
      meetings.push_back(read_meeting(cells[other + 1], rows_.size() == other));
    rows_.push_back(cells);
  }

  static Meeting read_meeting(const Cell& cell, bool is_itself) {
    const auto meeting = meeting_of(cell.text);
    if (meeting && (*meeting == Meeting::Itself) == is_itself) return *meeting;
    if (meeting)
      fail(cell.place,
           fmt::format("'{}' does not belong here: X marks a device beside itself, and no other", cell.text));
    std::vector<std::string_view> words;
    for (const Word& word : kWords) words.push_back(word.text);
    fail(cell.place, fmt::format("'{:.80}' is no connection of two devices;{} it is X, NV and a number, PIX, PXB, PHB, "
                                 "NODE or SYS",
                                 cell.text, suggestion(cell.text, words)));
  }

  [[nodiscard]] const Cell& cell(std::size_t gpu, std::size_t other) const { return rows_[gpu][other + 1]; }
  [[nodiscard]] Meeting meeting(std::size_t gpu, std::size_t other) const { return meetings_[gpu][other]; }

  void check_both_ways() const {
    for (std::size_t a = 0; a < gpus_; ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (meeting(a, b) != meeting(b, a) || nvlinks_of(cell(a, b).text) != nvlinks_of(cell(b, a).text))
          fail(cell(a, b).place,
               fmt::format("{} and {} are '{}' here and '{}' in the other row; write the matrix again", devices_[b],
                           devices_[a], cell(a, b).text, cell(b, a).text));
  }

  void make_devices() {
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      DeviceFacts device;
      device.ordinal = static_cast<int>(gpu);
      read_.host.devices.push_back(std::move(device));
    }
  }

  /// The numbers that a row has behind its devices.
  [[nodiscard]] std::set<int> affinity(std::size_t gpu, std::size_t column) const {
    const std::size_t at = devices_.size() + 1 + column;
    return at < rows_[gpu].size() ? numbers_of(rows_[gpu][at].text) : std::set<int>{};
  }

  /// GPUs by NUMA node: SYS parts them, what is nearer joins them, and of those between which NVLinks hide that the
  /// affinities tell.
  void add_nodes() {
    std::vector<std::set<int>> cpus(gpus_), near(gpus_);
    Groups nodes(devices_.size());
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      if (has_cpus_ || !has_nodes_) cpus[gpu] = affinity(gpu, 0);
      if (has_nodes_) near[gpu] = affinity(gpu, has_cpus_ ? 1 : 0);
      for (std::size_t other = 0; other < devices_.size(); ++other)
        if (meeting(gpu, other) <= Meeting::Node) nodes.join(gpu, other);
    }
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
      for (std::size_t other = 0; other < devices_.size(); ++other)
        if (meeting(gpu, other) == Meeting::Nodes) nodes.part(gpu, other);
    const auto may_be_one = [](const std::set<int>& a, const std::set<int>& b) {
      return a.empty() || b.empty() || intersect(a, b);
    };
    for (std::size_t a = 0; a < gpus_; ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (meeting(a, b) == Meeting::Hidden && !nodes.are_apart(a, b) && may_be_one(near[a], near[b]) &&
            may_be_one(cpus[a], cpus[b]))
          nodes.join(a, b);
    number_nodes(nodes, near, cpus);
  }

  /// Each group gets a number that its GPUs are near to, or the next one that is free.
  /// @param near  [gpus] numbers of NUMA nodes, as the matrix has them
  /// @param cpus  [gpus] where it has none, groups are in the order of their first one
  void number_nodes(const Groups& nodes, const std::vector<std::set<int>>& near,
                    const std::vector<std::set<int>>& cpus) {
    std::map<std::size_t, std::set<int>> wanted;  // by the first of each group
    std::map<std::pair<int, std::size_t>, std::size_t> order;
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      const std::size_t first = nodes.first(gpu);
      wanted[first].insert(near[gpu].begin(), near[gpu].end());
      if (first == gpu) order[{cpus[gpu].empty() ? 0 : *cpus[gpu].begin(), gpu}] = first;
    }
    std::map<std::size_t, int> number_of;
    std::set<int> numbers;
    bool is_told = true;
    for (const auto& [key, first] : order) {
      const std::set<int>& set = wanted[first];
      const auto is_free = [&](int number) { return !numbers.contains(number); };
      const auto free = std::ranges::find_if(set, is_free);
      int number = 0;
      while (free == set.end() && !is_free(number)) ++number;
      if (free != set.end()) number = *free;
      is_told = is_told && set.size() == 1 && free != set.end();
      numbers.insert(number);
      number_of.emplace(first, number);
    }
    std::map<int, std::vector<std::string>> gpus_at;
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      const int number = number_of.at(nodes.first(gpu));
      read_.host.devices[gpu].numa_node = number;
      gpus_at[number].push_back(fmt::format("gpu{}", gpu));
    }
    read_.host.numa_nodes.assign(numbers.begin(), numbers.end());
    if (is_told || (wanted.size() == 1 && wanted.begin()->second.empty())) return;
    std::vector<std::string> taken;
    for (const auto& [number, gpus] : gpus_at) taken.push_back(fmt::format("{} at {}", joined(gpus), number));
    read_.unknown.push_back(fmt::format("the NUMA node of each GPU; assumed: {}", joined(taken)));
  }

  /// Host bridges, switches, one switch: what PHB, PXB and PIX are inside of, network cards included.
  void add_bridges() {
    const auto within = [&](Meeting farthest) {
      Groups groups(devices_.size());
      for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
        for (std::size_t other = 0; other < devices_.size(); ++other)
          if (meeting(gpu, other) <= farthest) groups.join(gpu, other);
      return groups;
    };
    const Groups bridges = within(Meeting::HostBridge), one = within(Meeting::Switch);
    Groups switches = within(Meeting::Switches);
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      read_.host.devices[gpu].pci_path = {{fmt::format("pci{}", bridges.first(gpu)), {}},
                                          {fmt::format("switches{}", switches.first(gpu)), {}},
                                          {fmt::format("switch{}", one.first(gpu)), {}}};
      for (std::size_t other = 0; other < devices_.size(); ++other)
        if (meeting(gpu, other) > Meeting::Switches && meeting(gpu, other) < Meeting::Hidden) switches.part(gpu, other);
    }
    add_hidden(switches);
  }

  /// Groups of GPUs of a node that may share a switch: NVLinks hide how they meet, and nothing tells that they do not.
  void add_hidden(const Groups& switches) {
    Groups hidden(gpus_);
    for (std::size_t a = 0; a < gpus_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool is_one_node = read_.host.devices[a].numa_node == read_.host.devices[b].numa_node;
        const bool is_open = meeting(a, b) == Meeting::Hidden && is_one_node && !switches.are_apart(a, b);
        if (is_open || switches.first(a) == switches.first(b)) hidden.join(a, b);
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> groups;
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) groups[hidden.first(gpu)].push_back(gpu);
    for (auto& [first, group] : groups) {
      const auto is_elsewhere = [&, at = first](std::size_t gpu) { return switches.first(gpu) != switches.first(at); };
      if (std::ranges::any_of(group, is_elsewhere)) read_.may_share.push_back(std::move(group));
    }
  }

  /// As many NVLinks to all others as no GPU has lead to a switch.
  void add_nvlinks() {
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      DeviceFacts& device = read_.host.devices[gpu];
      std::vector<int> links;
      for (std::size_t other = 0; other < gpus_; ++other) links.push_back(nvlinks_of(cell(gpu, other).text));
      for (const int each : links) device.nvlink.push_back(each > 0);
      read_.nvlinks.push_back(*std::ranges::max_element(links));
      if (std::accumulate(links.begin(), links.end(), 0) <= kMostNvlinks) device.nvlinks = std::move(links);
    }
  }

  std::string name_;
  ImportedHost read_;
  std::vector<std::string> devices_;  // GPUs first
  std::size_t gpus_ = 0;
  std::vector<std::vector<Cell>> rows_;         // [gpus]
  std::vector<std::vector<Meeting>> meetings_;  // [gpus][devices]
  bool has_cpus_ = false, has_nodes_ = false;   // columns behind the devices, in this order
};

}  // namespace

ImportedHost read_topology_matrix(std::string_view text, const std::string& name) {
  return MatrixReader(name).read(text);
}

}  // namespace tutti::internal
