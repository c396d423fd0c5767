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
#include "runtime/doctor/host_files.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kMostDevices = 1024;
constexpr int kMostNvlinks = 18;  // of a GPU, up to the generation of H200 and B200

/// A cell of the matrix with its place.
struct Cell {
  std::string text;
  Place place;
};

/// Text without the colours and underlines of a terminal, also where their escape byte was lost or spelt, with tabs for
/// those that were spelt, and with blanks for the bars of a table.
std::string plain(std::string_view text) {
  std::string kept;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t bracket = at + (text[at] == '\x1b' ? 1 : text.compare(at, 2, "^[") == 0 ? 2 : 0);
    const std::size_t end = bracket < text.size() && text[bracket] == '['
                                ? text.find_first_not_of("0123456789;", bracket + 1)
                                : std::string_view::npos;
    if (end != std::string_view::npos && text[end] == 'm')
      at = end;
    else if (text.compare(at, 2, "^I") == 0)
      kept += '\t', ++at;
    else if (text[at] != '\x1b')
      kept += text[at] == '|' ? ' ' : text[at];
  }
  return kept;
}

/// The cells of a line: between tabs as nvidia-smi writes them, or between blanks where those were lost.
std::vector<Cell> cells_of(std::string_view line, const std::string& name, int number) {
  const bool has_tabs = line.find('\t') != std::string_view::npos;
  std::vector<Cell> cells;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(has_tabs ? line.find('\t', at) : line.find(' ', at), line.size());
    std::string text(line.substr(at, end - at));
    const std::size_t from = std::min(text.size(), text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(' ') + 1);
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
  const std::vector<int> numbers = cores_of_list(text).value_or(std::vector<int>{});
  return {numbers.begin(), numbers.end()};
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
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(rest.size(), line.size() + 1));
      lines_.push_back(plain(line));
    }
    for (std::size_t at = 0; at < lines_.size(); ++at) add_line(at);
    if (gpus_ == 0)
      fail({name_, 1, 1},
           "this is neither XML of hwloc or NCCL, nor JSON of nvbandwidth, nor a matrix of 'nvidia-smi topo -m', whose "
           "first line has the GPUs");
    if (rows_.size() < gpus_)
      fail({name_, static_cast<int>(lines_.size()), 1},
           fmt::format("the row of {} is missing; the matrix is cut off", devices_[rows_.size()]));
    check_both_ways();
    make_devices();
    add_nodes();
    add_bridges();
    add_nvlinks();
    return std::move(read_);
  }

 private:
  /// The cells of a line from its first GPU on, whatever stands before it: marks of a quotation, a number, a time.
  [[nodiscard]] std::vector<Cell> cells_from_gpu(std::size_t at) const {
    const std::string& line = lines_[at];
    std::size_t gpu = line.find("GPU");
    while (gpu != std::string::npos && (gpu + 3 >= line.size() || line[gpu + 3] < '0' || line[gpu + 3] > '9'))
      gpu = line.find("GPU", gpu + 1);
    if (gpu == std::string::npos) return {};
    std::vector<Cell> cells = cells_of(std::string_view(line).substr(gpu), name_, static_cast<int>(at) + 1);
    for (Cell& cell : cells) cell.place.column += static_cast<int>(gpu);
    return is_gpu(cells.front().text) ? cells : std::vector<Cell>{};
  }

  /// The devices that the first line of a matrix names, before the columns of affinities; none: another line.
  [[nodiscard]] std::vector<std::string> devices_of(std::size_t at) const {
    const std::string& line = lines_[at];
    std::vector<std::string> devices;
    const std::size_t end = std::min({line.find("CPU Affinity"), line.find("NUMA Affinity"), line.find("GPU NUMA ID")});
    for (const Cell& cell : cells_from_gpu(at)) {
      if (static_cast<std::size_t>(cell.place.column) > end) break;
      std::string words =
          cell.text.substr(0, std::min(cell.text.size(), end + 1 - static_cast<std::size_t>(cell.place.column)));
      for (const Cell& word : cells_of(words, name_, 0)) devices.push_back(word.text);
    }
    const bool has_words = std::ranges::any_of(devices, [](auto& text) { return meeting_of(text).has_value(); });
    return has_words ? std::vector<std::string>{} : devices;
  }

  /// The first row behind a line, where it is that of the GPU.
  [[nodiscard]] std::vector<Cell> row_behind(std::size_t at, const std::string& gpu) const {
    while (++at < lines_.size() && lines_[at].find_first_not_of(" \t-:") == std::string::npos) {
    }
    std::vector<Cell> cells = at < lines_.size() ? cells_from_gpu(at) : std::vector<Cell>{};
    if (cells.empty() || cells.front().text != gpu) cells.clear();
    return cells;
  }

  void add_line(std::size_t at) {
    if (auto devices = devices_of(at); !devices.empty()) {
      begin_matrix(at, std::move(devices));
      return;
    }
    const std::vector<Cell> cells = cells_from_gpu(at);
    if (gpus_ > 0 && rows_.size() < gpus_ && !cells.empty()) add_row(cells);
  }

  void begin_matrix(std::size_t at, std::vector<std::string> devices) {
    const Place place{name_, static_cast<int>(at) + 1, 1};
    const std::vector<Cell> row = row_behind(at, devices.front());
    const auto says = [&](const auto& is) {
      return std::ranges::any_of(row, [&](auto& cell) { return is(cell.text); });
    };
    if (says([](auto& text) { return std::ranges::count(kPeerWords, text) > 0; })) return;  // of topo -p2p
    if (!says([](auto& text) { return meeting_of(text).has_value(); })) {
      if (gpus_ == 0 && at + 1 < lines_.size() && lines_[at].find("Affinity") == std::string::npos &&
          lines_[at + 1].find("Affinity") != std::string::npos)
        fail(place, "the heading goes on in the next line; give the matrix with a line a row");
      return;
    }
    if (gpus_ > 0) fail(place, "a second matrix begins here; give a file of one host");
    if (devices.size() > kMostDevices)
      fail(place, fmt::format("{} devices are more than the {} that are read", devices.size(), kMostDevices));
    gpus_ = static_cast<std::size_t>(std::ranges::find_if_not(devices, is_gpu) - devices.begin());
    devices_ = std::move(devices);
    const std::string& line = lines_[at];
    const auto has = [&](const char* column) { return line.find(column) != std::string::npos; };
    has_cpus_ = has("CPU Affinity") && line.find("CPU Affinity") < line.find("NUMA Affinity");
    has_nodes_ = has("NUMA Affinity");
    columns_ = static_cast<std::size_t>(has("CPU Affinity")) + has("NUMA Affinity") + has("GPU NUMA ID");
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

  /// The words of a row of GPUs between which `nvidia-smi topo -p2p` finds access, or none.
  static constexpr std::array<std::string_view, 7> kPeerWords{"OK", "NS", "CNS", "GNS", "TNS", "DR", "U"};

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

  /// Whether cells behind the devices cannot be told apart: blanks stand for tabs, and some are empty.
  [[nodiscard]] bool lacks_cells(std::size_t gpu) const {
    const std::size_t at = static_cast<std::size_t>(rows_[gpu].front().place.line) - 1;
    const bool has_tabs = lines_[at].find('\t') != std::string::npos;
    return !has_tabs && rows_[gpu].size() < devices_.size() + 1 + columns_;
  }
  /// The numbers that a row has behind its devices.
  [[nodiscard]] std::set<int> affinity(std::size_t gpu, std::size_t column) const {
    const std::size_t at = devices_.size() + 1 + column;
    return at < rows_[gpu].size() && !lacks_cells(gpu) ? numbers_of(rows_[gpu][at].text) : std::set<int>{};
  }

  /// Devices that meet within some distance, and those that are known not to.
  [[nodiscard]] Groups within(Meeting farthest) const {
    Groups groups(devices_.size());
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      for (std::size_t other = 0; other < devices_.size(); ++other) {
        if (meeting(gpu, other) <= farthest)
          groups.join(gpu, other);
        else if (meeting(gpu, other) != Meeting::Hidden)
          groups.part(gpu, other);
      }
    }
    return groups;
  }

  /// GPUs by NUMA node: by its number where each has one. Else SYS parts them, what is nearer joins them, and of those
  /// between which NVLinks hide that the affinities tell.
  void add_nodes() {
    std::vector<std::set<int>> cpus(gpus_), near(gpus_);
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      if (has_cpus_ || !has_nodes_) cpus[gpu] = affinity(gpu, 0);
      if (has_nodes_) near[gpu] = affinity(gpu, has_cpus_ ? 1 : 0);
      guesses_ = guesses_ || lacks_cells(gpu);
    }
    if (std::ranges::all_of(near, [](const std::set<int>& set) { return set.size() == 1; })) {
      take_numbers(near);
      return;
    }
    Groups nodes = within(Meeting::Node);
    for (std::size_t a = 0; a < gpus_; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        if (meeting(a, b) != Meeting::Hidden || nodes.are_apart(a, b)) continue;
        const bool has_nodes = !near[a].empty() && !near[b].empty(), has_cpus = !cpus[a].empty() && !cpus[b].empty();
        if ((has_nodes && !intersect(near[a], near[b])) || (has_cpus && !intersect(cpus[a], cpus[b]))) continue;
        nodes.join(a, b);
        guesses_ = guesses_ || (!has_nodes && !has_cpus);
      }
    }
    number_nodes(nodes, near, cpus);
  }

  void take_numbers(const std::vector<std::set<int>>& near) {
    std::set<int> numbers;
    std::vector<std::string> odd;
    for (std::size_t a = 0; a < gpus_; ++a) {
      read_.host.devices[a].numa_node = *near[a].begin();
      numbers.insert(*near[a].begin());
      for (std::size_t b = 0; b < a; ++b) {
        const bool is_one = near[a] == near[b];
        if (is_one ? meeting(a, b) == Meeting::Nodes : meeting(a, b) < Meeting::Nodes)
          odd.push_back(gpu_name(b) + " and " + gpu_name(a));
      }
    }
    read_.host.numa_nodes.assign(numbers.begin(), numbers.end());
    constexpr std::size_t kMostNamed = 4;
    if (odd.empty()) return;
    const std::size_t more = odd.size() - std::min(odd.size(), kMostNamed);
    odd.resize(odd.size() - more);
    read_.unknown.push_back(
        fmt::format("the NUMA nodes of {}{}, whose connection contradicts them; assumed: their numbers", joined(odd),
                    more > 0 ? fmt::format(" and {} more pairs", more) : ""));
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
    for (const auto& [key, first] : order) {
      const std::set<int>& set = wanted[first];
      const auto is_free = [&](int number) { return !numbers.contains(number); };
      const auto free = std::ranges::find_if(set, is_free);
      int number = 0;
      while (free == set.end() && !is_free(number)) ++number;
      if (free != set.end()) number = *free;
      numbers.insert(number);
      number_of.emplace(first, number);
    }
    std::map<int, std::vector<std::string>> gpus_at;
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      const int number = number_of.at(nodes.first(gpu));
      read_.host.devices[gpu].numa_node = number;
      gpus_at[number].push_back(gpu_name(gpu));
    }
    read_.host.numa_nodes.assign(numbers.begin(), numbers.end());
    if (wanted.size() == 1 && wanted.begin()->second.empty() && !guesses_) return;
    std::vector<std::string> taken;
    for (const auto& [number, gpus] : gpus_at) taken.push_back(fmt::format("{} at {}", joined(gpus), number));
    read_.unknown.push_back(fmt::format("the NUMA node of each GPU; assumed: {}", joined(taken)));
  }

  /// Host bridges, switches, one switch: what PHB, PXB and PIX are inside of, network cards included.
  void add_bridges() {
    const Groups bridges = within(Meeting::HostBridge), switches = within(Meeting::Switches),
                 one = within(Meeting::Switch);
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
      read_.host.devices[gpu].pci_path = {{fmt::format("pci{}", bridges.first(gpu)), {}},
                                          {fmt::format("switches{}", switches.first(gpu)), {}},
                                          {fmt::format("switch{}", one.first(gpu)), {}}};
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

  /// As many NVLinks to all others as no GPU has lead to a switch. As many as a whole GPU has, to each of two or three
  /// others, may do so too.
  void add_nvlinks() {
    constexpr std::array kOfOneGpu{6, 8, 12, 18};
    for (std::size_t gpu = 0; gpu < gpus_; ++gpu) {
      DeviceFacts& device = read_.host.devices[gpu];
      std::vector<int> links;
      for (std::size_t other = 0; other < gpus_; ++other) links.push_back(nvlinks_of(cell(gpu, other).text));
      for (const int each : links) device.nvlink.push_back(each > 0);
      const int most = *std::ranges::max_element(links), sum = std::accumulate(links.begin(), links.end(), 0);
      read_.nvlinks.push_back(most);
      if (sum > kMostNvlinks) continue;
      const auto peers = std::ranges::count(links, most);
      if (most > 0 && peers > 1 && sum == most * peers && std::ranges::count(kOfOneGpu, most) > 0)
        read_.may_switch.push_back(gpu);
      device.nvlinks = std::move(links);
    }
  }

  std::string name_;
  ImportedHost read_;
  std::vector<std::string> lines_;
  std::vector<std::string> devices_;  // GPUs first
  std::size_t gpus_ = 0;
  std::vector<std::vector<Cell>> rows_;         // [gpus]
  std::vector<std::vector<Meeting>> meetings_;  // [gpus][devices]
  std::size_t columns_ = 0;                     // behind the devices
  bool guesses_ = false;                        // nothing tells whether some GPUs are near one node
  bool has_cpus_ = false, has_nodes_ = false;   // columns behind the devices, in this order
};

}  // namespace

ImportedHost read_topology_matrix(std::string_view text, const std::string& name) {
  return MatrixReader(name).read(text);
}

}  // namespace tutti::internal
