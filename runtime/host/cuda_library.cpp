#include "runtime/host/cuda_library.hpp"

#include <string_view>
#include <system_error>

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace tutti::internal {
namespace {

constexpr const char* kCudaLibrary = "libtutti_cuda.so";

/// The file of the library that this function is part of. Where that is the program itself, started by its bare name,
/// the path is relative and left out: it would lead to the current folder, whatever lies there.
std::filesystem::path own_file() {
  Dl_info found{};
  if (dladdr(reinterpret_cast<const void*>(&own_file), &found) == 0 || found.dli_fname == nullptr) return {};
  std::filesystem::path file = found.dli_fname;
  return file.is_absolute() ? file : std::filesystem::path{};
}

/// A path where one of the folders has the library, else its name, which the loader looks for.
std::string file_in(const std::vector<std::filesystem::path>& folders, const char* name) {
  for (const std::filesystem::path& folder : folders) {
    std::error_code unreadable;
    if (std::filesystem::exists(folder / name, unreadable)) return folder / name;
  }
  return name;
}

}  // namespace

std::vector<std::filesystem::path> cuda_library_folders() {
  std::error_code unknown;
  std::vector<std::filesystem::path> folders;
  for (const std::filesystem::path& file : {std::filesystem::read_symlink("/proc/self/exe", unknown), own_file()})
    if (!file.empty()) folders.push_back(file.parent_path());
  return folders;
}

Expected<void*> open_function(const char* library, const char* function,
                              const std::vector<std::filesystem::path>& folders, const LibraryWords& words) {
  const std::string file = file_in(folders, library);
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (opened == nullptr)
    return machine_error(fmt::format("{} does not load ({}); install {} beside the tutti library, {}", words.what,
                                     dlerror(), library, words.remedy));
  if (void* const found = dlsym(opened, function)) return found;
  return machine_error(fmt::format("{} has no function {}, so it belongs to another version; install that of tutti {}",
                                   file, function, TUTTI_VERSION));
}

Expected<std::filesystem::path> path_of_library(const char* library,
                                                const std::vector<std::filesystem::path>& folders) {
  void* const opened = dlopen(file_in(folders, library).c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (opened == nullptr)
    return machine_error(fmt::format("{} does not load ({}); install it beside the tutti library", library, dlerror()));
  link_map* loaded = nullptr;
  const bool known = dlinfo(opened, RTLD_DI_LINKMAP, &loaded) == 0 && loaded != nullptr;
  std::error_code unknown;
  const std::filesystem::path file = known ? std::filesystem::absolute(loaded->l_name, unknown) : "";
  dlclose(opened);
  return file;
}

Expected<const CudaFunctions*> open_cuda_library(const std::vector<std::filesystem::path>& folders) {
  const auto entry = open_function(kCudaLibrary, kCudaEntry, folders);
  if (!entry) return tl::unexpected(entry.error());
  const CudaFunctions* const functions = reinterpret_cast<CudaEntry>(*entry)();
  if (functions->version != std::string_view(TUTTI_VERSION))
    return machine_error(
        fmt::format("{} belongs to tutti {}, and this program to tutti {}; install both from one version",
                    file_in(folders, kCudaLibrary), functions->version, TUTTI_VERSION));
  return functions;
}

}  // namespace tutti::internal
