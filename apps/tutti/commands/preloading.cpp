#include "apps/tutti/commands/preloading.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

std::filesystem::path file_of(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::filesystem::path file = std::filesystem::path(folder.empty() ? "." : folder) / program;
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

/// A program of 64 bits that names no loader.
bool is_static(std::ifstream& file) {
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * std::uint64_t{header.e_phentsize}));
    if (!file.read(reinterpret_cast<char*>(&part), sizeof part) || part.p_type == PT_INTERP) return false;
  }
  return header.e_phnum > 0;
}

/// Such a program takes no library by a path.
bool changes_user(const struct stat& found) {
  return ((found.st_mode & S_ISUID) != 0 && found.st_uid != getuid()) ||
         ((found.st_mode & S_ISGID) != 0 && found.st_gid != getgid());
}

}  // namespace

std::string why_not_preloaded(const std::string& program) {
  const std::filesystem::path path = file_of(program);
  struct stat found {};
  if (path.empty() || stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return "";
  std::ifstream file(path, std::ios::binary);
  if (file && is_static(file)) return "is linked statically as a whole";
  return changes_user(found) ? "runs as another user" : "";
}

}  // namespace tutti::internal
