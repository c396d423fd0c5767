#include "apps/configs_folder.hpp"

#include <system_error>

namespace tutti::programs {
namespace {

constexpr const char* kConfigs = "configs";

bool is_there(const std::filesystem::path& file) {
  std::error_code unreadable;
  return std::filesystem::exists(file, unreadable);
}

}  // namespace

std::filesystem::path configs_folder() {
  std::error_code unknown;
  // PREFIX/bin/tutti; a build folder has a link at the same place from its programs.
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::filesystem::path prefix = program.parent_path().parent_path();
  for (const std::filesystem::path& folder :
       {prefix / "share/tutti" / kConfigs, std::filesystem::path(TUTTI_DATA_FOLDER) / kConfigs})
    if (is_there(folder)) return folder;
  return {};
}

std::string file_of_name(const std::string& name) {
  const std::filesystem::path path(name);
  if (path.empty() || *path.begin() != kConfigs || is_there(path)) return name;
  const std::filesystem::path file = configs_folder().parent_path() / path;
  return file.is_absolute() && is_there(file) ? file.string() : name;
}

}  // namespace tutti::programs
