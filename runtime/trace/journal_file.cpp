#include "runtime/trace/journal_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/trace/journal_format.hpp"

namespace tutti::internal {
namespace {

tl::unexpected<Error> not_journal_path(const std::string& path, int error) {
  return invalid_input(
      fmt::format("no journal can be written here ({}); name a file in a folder of yours", std::strerror(error)),
      {path, 0, 0});
}

/// Whether a file begins like a journal; one that was cut off at its very beginning does, too.
bool begins_like_journal(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0) return false;
  std::array<std::byte, kJournalMarker.size()> bytes{};
  struct stat status {};
  const bool is_file = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t got = is_file ? read(file, bytes.data(), bytes.size()) : -1;
  ::close(file);
  return got >= 0 && std::equal(bytes.begin(), bytes.begin() + got, kJournalMarker.begin());
}

/// The largest number of the files NAME.1, NAME.2, ...; 0 of none.
std::uint64_t last_number(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string beginning = fs::path(path).filename().string() + ".";
  const fs::path folder = fs::path(path).parent_path();
  std::uint64_t last = 0;
  std::error_code status;
  for (fs::directory_iterator at(folder.empty() ? "." : folder, status), end; !status && at != end;
       at.increment(status)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(beginning)) continue;
    std::uint32_t number = 0;
    const auto [rest, error] = std::from_chars(name.data() + beginning.size(), name.data() + name.size(), number);
    if (error == std::errc{} && rest == name.data() + name.size()) last = std::max<std::uint64_t>(last, number);
  }
  return last;
}

}  // namespace

Expected<JournalFile> JournalFile::create(const std::string& path) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC;
  constexpr mode_t kMode = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;  // less the umask
  int descriptor = open(path.c_str(), kFlags, kMode);
  if (descriptor < 0 && errno == EEXIST) {
    if (!begins_like_journal(path))
      return invalid_input("this exists and is no journal, so no journal is written there; name a new file",
                           {path, 0, 0});
    if (const auto aside = put_aside(path); !aside) return tl::unexpected(aside.error());
    descriptor = open(path.c_str(), kFlags, kMode);
  }
  if (descriptor < 0) return not_journal_path(path, errno);
  return JournalFile(descriptor);
}

JournalFile::JournalFile(int descriptor) : descriptor_(descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return;
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

JournalFile::JournalFile(JournalFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      device_(other.device_),
      inode_(other.inode_) {}

JournalFile& JournalFile::operator=(JournalFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

JournalFile::~JournalFile() { close(); }

int JournalFile::append(std::span<const std::byte> bytes) noexcept {
  if (descriptor_ < 0) return 0;
  auto rest = bytes;
  while (!rest.empty()) {
    const ssize_t written = write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      // A reader would skip half a record, too: it is taken away so that it need not.
      if (rest.size() < bytes.size() && ftruncate(descriptor_, size_) != 0)
        size_ += std::ssize(bytes) - std::ssize(rest);
      return error;
    }
    rest = rest.subspan(static_cast<std::size_t>(written));
  }
  size_ += std::ssize(bytes);
  return 0;
}

int JournalFile::close() noexcept {
  const int descriptor = std::exchange(descriptor_, -1);
  return descriptor < 0 || ::close(descriptor) == 0 ? 0 : errno;
}

bool JournalFile::has_name(const std::string& path) const {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

Expected<std::string> put_aside(const std::string& path) {
  for (std::uint64_t number = last_number(path) + 1;; ++number) {
    std::string name = fmt::format("{}.{}", path, number);
    // A link, unlike a rename, never replaces a file.
    if (link(path.c_str(), name.c_str()) != 0) {
      if (errno == EEXIST) continue;
      return invalid_input(fmt::format("an older journal has this name and cannot get another ({}); name a new file",
                                       std::strerror(errno)),
                           {path, 0, 0});
    }
    if (unlink(path.c_str()) != 0) return not_journal_path(path, errno);
    return name;
  }
}

}  // namespace tutti::internal
