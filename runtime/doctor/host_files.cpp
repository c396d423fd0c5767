#include "runtime/doctor/host_files.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

constexpr std::string_view kWhite(" \t\r\n\v\f\0", 7);
constexpr int kMostReads = 1'000'000;  // the kernel's log gives one record a read

std::string_view without_white_ends(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhite);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kWhite) - first + 1);
}

/// A file that is open for reading; closed when it goes.
struct OpenedFile {
  explicit OpenedFile(const std::filesystem::path& path)
      : number(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)) {}
  OpenedFile(const OpenedFile&) = delete;  // it is closed once
  OpenedFile& operator=(const OpenedFile&) = delete;
  ~OpenedFile() {
    if (number >= 0) ::close(number);
  }
  int number;
};

/// The two ends of "3" or "0-3".
std::optional<std::pair<int, int>> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = whole_number(text.substr(0, dash));
  const auto last = dash == text.npos ? first : whole_number(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first || *last >= kMostCores) return std::nullopt;
  return std::pair(static_cast<int>(*first), static_cast<int>(*last));
}

}  // namespace

std::optional<std::string> HostFiles::bytes(const std::string& path) const {
  const OpenedFile file(root_ / path);
  if (file.number < 0) return std::nullopt;
  std::string contents;
  std::array<char, 16384> chunk;
  for (int reads = 0; reads < kMostReads && contents.size() < kLargest; ++reads) {
    const ssize_t got = ::read(file.number, chunk.data(), chunk.size());
    if (got > 0) contents.append(chunk.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno == EAGAIN)) return contents;
    // EPIPE: records of the kernel's log were overwritten; the next read gives the oldest that is left.
    if (got < 0 && errno != EPIPE && errno != EINTR) return std::nullopt;
  }
  contents.resize(std::min(contents.size(), kLargest));
  return contents;
}

std::optional<std::string> HostFiles::text(const std::string& path) const {
  const auto contents = bytes(path);
  if (!contents) return std::nullopt;
  return std::string(without_white_ends(*contents));
}

std::optional<std::int64_t> HostFiles::number(const std::string& path) const {
  const auto contents = bytes(path);
  return contents ? whole_number(*contents) : std::nullopt;
}

std::optional<std::vector<int>> HostFiles::cores(const std::string& path) const {
  const auto list = text(path);
  if (!list) return std::nullopt;
  return *list == "(null)" ? std::vector<int>{} : cores_of_list(*list);  // as older kernels write an empty list
}

std::vector<std::string> HostFiles::entries(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code fault;
  for (std::filesystem::directory_iterator at(root_ / folder, fault), end; !fault && at != end; at.increment(fault))
    names.push_back(at->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool HostFiles::has_folder(const std::string& folder) const {
  std::error_code fault;
  return std::filesystem::is_directory(root_ / folder, fault);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  text = without_white_ends(text);
  std::int64_t value = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || fault != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<int>> cores_of_list(std::string_view list) {
  std::vector<int> cores;
  for (std::string_view rest = without_white_ends(list); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto range = range_of(rest.substr(0, comma));
    if (!range || comma + 1 == rest.size() || cores.size() > kMostCores) return std::nullopt;
    for (int core = range->first; core <= range->second; ++core) cores.push_back(core);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::string list_of_cores(std::span<const int> cores) {
  std::string list;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    list += (list.empty() ? "" : ",") + std::to_string(cores[i]);
    if (last > i) list += (last == i + 1 ? "," : "-") + std::to_string(cores[last]);
    i = last + 1;
  }
  return list;
}

std::optional<std::string_view> rest_of_line(std::string_view text, std::string_view beginning) {
  for (std::size_t at = text.find(beginning); at != text.npos; at = text.find(beginning, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    const std::size_t from = at + beginning.size();
    return without_white_ends(text.substr(from, text.find('\n', from) - from));
  }
  return std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const std::size_t first = text.find_first_not_of(kWhite);
    if (first == text.npos) return words;
    const std::size_t end = std::min(text.find_first_of(kWhite, first), text.size());
    words.push_back(text.substr(first, end - first));
    text.remove_prefix(end);
  }
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 160;
  std::string clean(text.substr(0, kLongest));
  for (char& c : clean)
    if (c < ' ' || c > '~') c = '?';
  return clean;
}

}  // namespace tutti::internal
