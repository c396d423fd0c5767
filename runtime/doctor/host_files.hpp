#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::internal {

/// The files in which Linux describes a host, below a root folder: "/", or a copy of another host's files. They are
/// only ever read. Paths are relative to the root: "proc/meminfo".
class HostFiles {
 public:
  static constexpr std::size_t kLargest = 16U << 20;  ///< bytes of a file that are read; the rest is left out

  explicit HostFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}

  [[nodiscard]] const std::filesystem::path& root() const { return root_; }

  /// The contents; nothing where there is no such file, or it cannot be read. Never waits: the kernel's log ends where
  /// its newest record ends.
  [[nodiscard]] std::optional<std::string> bytes(const std::string& path) const;
  /// The contents without white space at either end.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
  /// A whole number; nothing where the file holds anything else.
  [[nodiscard]] std::optional<std::int64_t> number(const std::string& path) const;
  /// A list of cores like "0-3,8", ascending; an empty file lists none.
  [[nodiscard]] std::optional<std::vector<int>> cores(const std::string& path) const;
  /// The names in a folder, sorted; none where there is no such folder.
  [[nodiscard]] std::vector<std::string> entries(const std::string& folder) const;
  [[nodiscard]] bool has_folder(const std::string& folder) const;

 private:
  std::filesystem::path root_;
};

/// "12" as a whole number, white space around it aside; nothing where the text is anything else.
[[nodiscard]] std::optional<std::int64_t> whole_number(std::string_view text);

/// The cores of a list like "0-3,8", ascending, each once; nothing where it is no such list, or names a core beyond
/// `kMostCores`.
[[nodiscard]] std::optional<std::vector<int>> cores_of_list(std::string_view list);
inline constexpr int kMostCores = 1 << 16;
/// The list of cores: "0-3,8". @pre ascending
[[nodiscard]] std::string list_of_cores(std::span<const int> cores);

/// What follows the beginning of the first line that begins so, without white space at either end.
[[nodiscard]] std::optional<std::string_view> rest_of_line(std::string_view text, std::string_view beginning);

/// The words of a text, which white space divides.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view text);

/// A text of whatever contents for a report: in place of each byte that is no printable ASCII a '?', and at most 160.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace tutti::internal
