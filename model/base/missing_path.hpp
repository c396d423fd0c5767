#pragma once
#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "model/base/suggestion.hpp"

/// Paths at which there is nothing: what is missing, and what is near. Headers alone, for programs without this
/// library.
namespace tutti::internal {

/// Where a path ends: the first of its names that is not there, and the folder that lacks it.
struct MissingName {
  std::filesystem::path folder;  ///< as the path says it; empty: the current one
  std::string name;
  std::filesystem::path rest;  ///< behind the name; empty: the name is the last one
};

inline MissingName missing_name(const std::filesystem::path& path) {
  MissingName missing{path.parent_path(), path.filename().string(), {}};
  std::error_code status;
  while (!missing.folder.empty() && !std::filesystem::exists(missing.folder, status)) {
    if (missing.folder == missing.folder.parent_path()) break;
    missing.rest = missing.rest.empty() ? std::filesystem::path(missing.name) : missing.name / missing.rest;
    missing.name = missing.folder.filename().string();
    missing.folder = missing.folder.parent_path();
  }
  return missing;
}

/// A folder as it is found from anywhere.
inline std::string absolute_folder(const std::filesystem::path& folder) {
  std::error_code status;
  const auto absolute = std::filesystem::absolute(folder.empty() ? "." : folder, status).lexically_normal();
  const std::string text = status ? folder.string() : absolute.string();
  return text.size() > 1 && text.ends_with('/') ? text.substr(0, text.size() - 1) : text;
}

/// The name in a folder that is nearest to one: the same with an ending, or one that is spelt like it.
/// @param is_folder  of folders alone
inline std::optional<std::string> nearest_file(const std::filesystem::path& folder, const std::string& name,
                                               bool is_folder) {
  constexpr std::size_t kMostNames = 10'000;  // a folder of pictures has more, and no misspelt one
  std::vector<std::string> names;
  std::error_code status;
  std::filesystem::directory_iterator entry(folder.empty() ? "." : folder, status);
  for (; !status && entry != std::filesystem::directory_iterator() && names.size() < kMostNames;
       entry.increment(status))
    if (std::error_code unknown; !is_folder || entry->is_directory(unknown))
      names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  const auto longer = std::ranges::find(
      names, name, [](const std::string& text) { return std::filesystem::path(text).stem().string(); });
  if (longer != names.end() && *longer != name) return *longer;
  const auto nearest = nearest_word(name, std::vector<std::string_view>(names.begin(), names.end()));
  return nearest ? std::optional<std::string>(*nearest) : std::nullopt;
}

/// The path that is nearest to one at which there is nothing.
inline std::optional<std::filesystem::path> nearest_path(const MissingName& missing) {
  const auto near = nearest_file(missing.folder, missing.name, !missing.rest.empty());
  if (!near) return std::nullopt;
  const std::filesystem::path meant = missing.folder / *near;
  return missing.rest.empty() ? meant : meant / missing.rest;
}

/// "there is no such file in /here; did you mean 'b.yaml'?", without an end where nothing is near.
/// @param also  further folders in which the name was looked for
inline std::string missing_sentence(const std::string& path, std::span<const std::string> also = {}) {
  namespace fs = std::filesystem;
  if (path.empty()) return "the name of the file is empty";
  std::error_code status;
  if (fs::is_symlink(path, status))
    return fmt::format("this is a link to '{}', which is not there", fs::read_symlink(path, status).string());
  const MissingName missing = missing_name(path);
  const std::string folder = absolute_folder(missing.folder);
  if (!missing.folder.empty() && !fs::is_directory(missing.folder, status))
    return fmt::format("'{}' is no folder", folder);
  std::string text = missing.rest.empty() ? fmt::format("there is no such file in {}", folder)
                                          : fmt::format("there is no folder '{}' in {}", missing.name, folder);
  for (const std::string& place : also) text += ", nor in " + place;
  if (const auto near = nearest_path(missing)) return text + fmt::format("; did you mean '{}'?", near->string());
  for (const std::string& place : also)
    if (const auto near = nearest_path(missing_name(fs::path(place) / path)))
      return text + fmt::format("; did you mean '{}'?", near->lexically_relative(place).string());
  return text;
}

}  // namespace tutti::internal
