#include "model/base/input_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "model/base/missing_path.hpp"

namespace tutti::internal {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

using File = std::unique_ptr<std::FILE, CloseFile>;

/// errno of looking at a path; 0 where it may be read. A pipe is not opened: that would wait for its writer.
int reason_against(const std::string& path) {
  std::error_code status;
  const auto kind = std::filesystem::status(path, status).type();
  if (kind == std::filesystem::file_type::not_found) return ENOENT;
  if (kind == std::filesystem::file_type::none) return status.value();
  if (kind == std::filesystem::file_type::directory) return EISDIR;
  if (kind != std::filesystem::file_type::regular) return 0;
  return File(std::fopen(path.c_str(), "rbe")) ? 0 : errno;
}

}  // namespace

Error unreadable(const std::string& path, std::string_view what, int reason, std::span<const std::string> also) {
  const std::string words = std::generic_category().message(reason);
  std::string text;
  switch (reason) {
    case ENOENT:
    case ENOTDIR:
      text = missing_sentence(path, also);
      if (!text.ends_with('?')) text += fmt::format("; name {} that is there", what);
      break;
    case EISDIR: text = fmt::format("this is a folder; name {} in it", what); break;
    case EACCES:
    case EPERM: text = fmt::format("this may not be read ({}); allow it, or name {} that may be", words, what); break;
    default: text = fmt::format("this cannot be read ({}); name {} that can be", words, what);
  }
  return {ErrorCode::InvalidInput, std::move(text), {path, 0, 0}};
}

std::optional<Error> fault_of_input(const std::string& path, std::string_view what, std::span<const std::string> also) {
  const int reason = reason_against(path);
  return reason == 0 ? std::nullopt : std::optional(unreadable(path, what, reason, also));
}

Expected<std::string> read_bytes_of(const std::string& path, std::string_view what, std::size_t most) {
  constexpr std::size_t kStep = 1 << 16;
  const File file(std::fopen(path.c_str(), "rbe"));
  std::string text;
  bool ends = false;
  errno = file ? 0 : errno;
  while (file && !ends && text.size() <= most) {
    const std::size_t before = text.size();
    text.resize(before + std::min(kStep, most + 1 - before));
    text.resize(before + std::fread(text.data() + before, 1, text.size() - before, file.get()));
    ends = std::feof(file.get()) != 0 || std::ferror(file.get()) != 0;
  }
  if (!file || std::ferror(file.get()) != 0) return tl::unexpected(unreadable(path, what, errno));
  return text;
}

}  // namespace tutti::internal
