#include "apps/output_file.hpp"

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/interrupt.hpp"
#include "apps/terminal.hpp"
#include "model/base/error.hpp"
#include "model/base/missing_path.hpp"

namespace tutti::programs {
namespace {

namespace fs = std::filesystem;
using internal::invalid_input;
using internal::machine_error;

constexpr int kMostLinks = 40;     // as many as the kernel follows
constexpr int kMostAttempts = 16;  // at a name that nobody has
constexpr auto kOwnDescriptors = "/proc/self/fd";
constexpr std::chrono::milliseconds kBetweenLooks{50};  // at a pipe that nobody reads

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// What a path means as an output.
struct Target {
  enum class Kind : std::uint8_t {
    Regular,     ///< or not there yet
    Device,      ///< or a pipe
    Descriptor,  ///< of this process
  };

  Kind kind = Kind::Regular;
  fs::path file;  ///< at the end of all links
  int descriptor = -1;
  std::optional<struct stat> old;  ///< of a file that is there
};

std::string reason_of(int error) { return std::generic_category().message(error); }

/// Why there is no folder for the file; empty where there is one.
std::string missing_folder(const std::string& path) {
  std::error_code status;
  if (const auto missing = internal::missing_name(path);
      missing.rest.empty() && (missing.folder.empty() || fs::is_directory(missing.folder, status)))
    return "";
  const std::string sentence = internal::missing_sentence(path);
  return sentence + (sentence.ends_with('?') ? "" : "; make it, or name another one");
}

tl::unexpected<Error> refused(const std::string& path, int error) {
  if (error == EISDIR) return invalid_input("this is a folder; name a file in it", {path, 0, 0});
  const std::string lacks_folder = error == ENOENT || error == ENOTDIR ? missing_folder(path) : "";
  if (!lacks_folder.empty()) return invalid_input(lacks_folder, {path, 0, 0});
  return invalid_input(fmt::format("this cannot be written ({}); name a file in a folder of yours", reason_of(error)),
                       {path, 0, 0});
}

tl::unexpected<Error> cut_short(const std::string& path, int error) {
  return machine_error(fmt::format("{}: cannot be written to its end ({}); make room for it", path, reason_of(error)));
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

/// The descriptor that a path like /dev/fd/3 names.
std::optional<int> own_descriptor(const fs::path& file) {
  std::error_code status;
  const fs::path own = fs::canonical(kOwnDescriptors, status);
  if (status || fs::canonical(folder_of(file), status) != own) return std::nullopt;
  const std::string name = file.filename().string();
  int number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc{} && end == name.data() + name.size() ? std::optional(number) : std::nullopt;
}

Expected<Target> target_of(const std::string& path) {
  struct stat there {};
  const bool exists = stat(path.c_str(), &there) == 0;
  if (!exists && errno != ENOENT) return refused(path, errno);
  Target target;
  target.file = path;
  for (int links = 0;; ++links) {
    if (const auto number = own_descriptor(target.file)) {
      target.kind = Target::Kind::Descriptor;
      target.descriptor = *number;
      return target;
    }
    std::error_code status;
    if (!fs::is_symlink(target.file, status)) break;
    const fs::path next = fs::read_symlink(target.file, status);
    if (status) return refused(path, status.value());
    if (links == kMostLinks) return refused(path, ELOOP);
    target.file = folder_of(target.file) / next;
  }
  if (!target.file.has_filename()) return refused(path, exists ? EISDIR : ENOENT);
  if (!exists) return target;
  if (S_ISDIR(there.st_mode)) return refused(path, EISDIR);
  if (S_ISREG(there.st_mode))
    target.old = there;
  else
    target.kind = Target::Kind::Device;
  return target;
}

/// Whether this process may write to the file or folder.
bool may(const fs::path& path, int access) { return faccessat(AT_FDCWD, path.c_str(), access, AT_EACCESS) == 0; }

/// Whether the target may be written; the cause is in errno.
bool may_write(const Target& target) {
  if (target.kind == Target::Kind::Device) return may(target.file, W_OK);
  if (target.kind == Target::Kind::Regular)
    return (!target.old || may(target.file, W_OK)) && may(folder_of(target.file), W_OK | X_OK);
  const int flags = fcntl(target.descriptor, F_GETFL);
  if (flags != -1 && (flags & O_ACCMODE) == O_RDONLY) errno = EBADF;
  return flags != -1 && (flags & O_ACCMODE) != O_RDONLY;
}

/// A path beside the target that nobody has.
std::string path_beside(const Target& target) {
  std::random_device random;
  return (folder_of(target.file) / fmt::format(".tutti-{:08x}{:08x}.new", random(), random())).string();
}

/// A file that gets the name of a target once it is whole. Where the file system can, it has no name until then, so
/// that nothing of it stays when its writer is killed; elsewhere it is removed unless it is renamed.
class NewFile {
 public:
  explicit NewFile(const Target& target) : target_(target) {
    // Only its owner may read a file that replaces one, until it has the mode of that one.
    const mode_t mode = target.old ? S_IRUSR | S_IWUSR : S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
    if (access(kOwnDescriptors, X_OK) == 0)
      descriptor_ = open(folder_of(target.file).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    for (int attempt = 0; descriptor_ == -1 && attempt < kMostAttempts; ++attempt) {
      path_ = path_beside(target);
      descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
      if (descriptor_ == -1) path_.clear();
      if (descriptor_ == -1 && errno != EEXIST) return;
    }
  }
  NewFile(const NewFile&) = delete;  // one owner: it is removed once
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (!path_.empty()) unlink(path_.c_str());
    if (descriptor_ != -1) close(descriptor_);
  }

  /// -1: it could not be made; the cause is in errno.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Takes the name of the target. @return whether it has it; if not, the cause is in errno
  bool replace() {
    for (int attempt = 0; path_.empty() && attempt < kMostAttempts; ++attempt) {
      std::string path = path_beside(target_);  // a link, unlike a rename, never replaces a file
      const std::string own = fmt::format("{}/{}", kOwnDescriptors, descriptor_);
      if (linkat(AT_FDCWD, own.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0)
        path_ = std::move(path);
      else if (errno != EEXIST)
        return false;
    }
    if (rename(path_.c_str(), target_.file.c_str()) != 0) return false;
    path_.clear();
    return true;
  }

 private:
  const Target& target_;
  int descriptor_ = -1;
  std::string path_;  // its name so far; empty: none
};

/// Gives a new file the owner and the mode of the one that it replaces, as far as this process may.
void keep_attributes(int descriptor, const struct stat& old) {
  const bool is_given =
      fchown(descriptor, old.st_uid, old.st_gid) == 0 || fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) == 0;
  static_cast<void>(is_given);  // who may not give a file away keeps it
  fchmod(descriptor, old.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO));
}

/// Opens a device or a pipe, as soon as somebody reads that; the user is told where nobody does.
/// @return its descriptor; -1, with the cause in errno
int open_device(const std::string& path) {
  for (bool waits = false;; waits = true) {
    const int descriptor = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (descriptor != -1) fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
    if (descriptor != -1 || errno != ENXIO || was_interrupted()) return descriptor;
    if (!waits) print_note(fmt::format("{}: nobody reads this pipe; waiting for its reader", path));
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

/// Writes through a descriptor and closes it.
/// @param to_disk  waits until the bytes are there.
Written write_through(const std::string& path, int descriptor, bool to_disk,
                      const std::function<Written(std::FILE*)>& write) {
  if (descriptor == -1) return refused(path, errno);
  File file{fdopen(descriptor, "wb")};
  if (!file) {
    const int error = errno;
    close(descriptor);
    return refused(path, error);
  }
  if (auto written = write(file.get()); !written) return written;
  if (std::fflush(file.get()) != 0) return cut_short(path, errno);
  if (std::ferror(file.get()) != 0) return cut_short(path, EIO);
  if (to_disk && fsync(descriptor) != 0 && errno != EINVAL) return cut_short(path, errno);  // EINVAL: it has no disk
  if (std::fclose(file.release()) != 0) return cut_short(path, errno);
  return {};
}

/// "999 B", "12 kB", "3.4 MB"
std::string size_text(double bytes) {
  if (bytes < 1e3) return fmt::format("{} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.0f} kB", bytes / 1e3);
  return bytes < 1e9 ? fmt::format("{:.1f} MB", bytes / 1e6) : fmt::format("{:.1f} GB", bytes / 1e9);
}

std::function<Written(std::FILE*)> writes(const std::string& path, std::string_view text) {
  return [&path, text](std::FILE* file) -> Written {
    if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) return cut_short(path, errno);
    return {};
  };
}

}  // namespace

Written write_file(const std::string& path, const std::function<Written(std::FILE*)>& write) {
  auto written = write_file_silently(path, write);
  if (written) print_written(path);
  return written;
}

Written write_file(const std::string& path, std::string_view text) { return write_file(path, writes(path, text)); }

Written write_file_silently(const std::string& path, const std::function<Written(std::FILE*)>& write) {
  const auto target = target_of(path);
  if (!target) return tl::unexpected(target.error());
  if (!may_write(*target)) return refused(path, errno);
  if (target->kind == Target::Kind::Descriptor)
    return write_through(path, fcntl(target->descriptor, F_DUPFD_CLOEXEC, 0), false, write);
  if (target->kind == Target::Kind::Device) return write_through(path, open_device(path), false, write);
  NewFile file(*target);
  if (file.descriptor() == -1) return refused(path, errno);
  if (target->old) keep_attributes(file.descriptor(), *target->old);
  if (auto written = write_through(path, fcntl(file.descriptor(), F_DUPFD_CLOEXEC, 0), true, write); !written)
    return written;
  return file.replace() ? Written{} : refused(path, errno);
}

Written write_file_silently(const std::string& path, std::string_view text) {
  return write_file_silently(path, writes(path, text));
}

void print_written(const std::string& path) {
  const auto target = target_of(path);
  if (!target || target->kind != Target::Kind::Regular || !target->old) return;
  print_remark(fmt::format("wrote {} ({})", path, size_text(static_cast<double>(target->old->st_size))));
}

bool is_same_file(const std::string& one, const std::string& other) {
  const auto a = target_of(one), b = target_of(other);
  if (!a || !b || a->kind != Target::Kind::Regular || b->kind != Target::Kind::Regular) return false;
  if (a->old && b->old) return a->old->st_dev == b->old->st_dev && a->old->st_ino == b->old->st_ino;
  const auto whole = [](const fs::path& path) {
    std::error_code status;
    return fs::weakly_canonical(fs::absolute(path, status), status);
  };
  return !a->old && !b->old && whole(a->file) == whole(b->file);
}

std::string fault_of_outputs(std::span<const NamedFile> outputs, std::span<const std::string> inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    for (auto other = output + 1; other != outputs.end(); ++other)
      if (is_same_file(output->path, other->path))
        return fmt::format("{}: {} and {} write one file; name two", output->path, output->option, other->option);
    for (const std::string& input : inputs)
      if (is_same_file(output->path, input))
        return fmt::format("{}: {} would replace a file that is read; name another one", output->path, output->option);
  }
  return "";
}

Written check_writable(const std::string& path) {
  const auto target = target_of(path);
  if (!target) return tl::unexpected(target.error());
  if (!may_write(*target)) return refused(path, errno);
  return {};
}

Written make_folder(const std::string& path) {
  std::error_code status;
  fs::create_directories(path, status);
  if (!status && fs::is_directory(path, status)) return {};
  return invalid_input(fmt::format("the folder cannot be made ({}); name one that can",
                                   status ? status.message() : "something else stands there"),
                       {path, 0, 0});
}

}  // namespace tutti::programs
