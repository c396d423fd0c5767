#include "runtime/host/device_users.hpp"

#include <algorithm>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

/// One byte of the file stands for the device, the next for its counter. Locks belong to an open file, not to a
/// process, so that two users in one program see each other as well.
struct flock lock_of(short kind, off_t byte) {
  struct flock lock {};
  lock.l_type = kind;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

constexpr off_t kDevice = 0;
constexpr off_t kCounter = 1;

std::string file_of(const std::string& folder, const std::string& device) {
  return fmt::format("{}/tutti-{}.users", folder, device);
}

/// Whether another open file has a lock on the device.
bool is_locked(int file) {
  struct flock lock = lock_of(F_WRLCK, kDevice);
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/// A file made by another user must not be opened with O_CREAT in a folder that all users may write to.
int open_shared(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  if (const int file = ::open(path.c_str(), kFlags); file >= 0) return file;
  const int file = ::open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0666);
  if (file < 0) return ::open(path.c_str(), kFlags);  // made in between
  static_cast<void>(::fchmod(file, 0666));            // whatever the umask says
  return file;
}

std::uint64_t read_counter(int file) {
  std::uint64_t count = 0;
  return ::pread(file, &count, sizeof count, 0) == sizeof count ? count : 0;
}

/// @return the count, this one included; nothing where the file cannot be locked or written.
std::optional<std::uint64_t> count_one_more(int file) {
  struct flock lock = lock_of(F_WRLCK, kCounter);
  for (int tries = 0; ::fcntl(file, F_OFD_SETLK, &lock) != 0; ++tries) {
    if (tries == 100) return std::nullopt;  // a program of this project never holds it longer
    ::usleep(1000);
  }
  const std::uint64_t count = read_counter(file) + 1;
  const bool written = ::pwrite(file, &count, sizeof count, 0) == sizeof count;
  lock = lock_of(F_UNLCK, kCounter);
  static_cast<void>(::fcntl(file, F_OFD_SETLK, &lock));
  return written ? std::optional(count) : std::nullopt;
}

}  // namespace

DeviceUser::Close::~Close() {
  if (file >= 0) ::close(file);
}

std::optional<DeviceUser> DeviceUser::enter(const std::string& folder, const std::string& device) {
  const int file = open_shared(file_of(folder, device));
  if (file < 0) return std::nullopt;
  std::unique_ptr<Close> open(new Close{file});
  struct stat facts {};
  if (::fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  struct flock lock = lock_of(F_RDLCK, kDevice);
  if (::fcntl(file, F_OFD_SETLK, &lock) != 0) return std::nullopt;
  const auto came = count_one_more(file);
  if (!came) return std::nullopt;
  return DeviceUser(std::move(open), *came);
}

bool DeviceUser::is_used(const std::string& folder, const std::string& device) {
  const Close file{::open(file_of(folder, device).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  return file.file >= 0 && is_locked(file.file);
}

bool DeviceUser::is_not_alone() const { return is_locked(file_->file) || read_counter(file_->file) != came_; }

std::size_t other_processes(std::span<const std::uint32_t> processes, std::uint32_t own) {
  if (processes.empty()) return 0;
  const auto mine = static_cast<std::size_t>(std::ranges::count(processes, own));
  return processes.size() - std::max<std::size_t>(mine, 1);
}

}  // namespace tutti::internal
