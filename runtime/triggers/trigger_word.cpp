#include "runtime/triggers/trigger_word.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/base/document.hpp"

namespace tutti::internal {
namespace {

tl::unexpected<Error> lost(const std::string& path, std::string_view how) {
  return machine_error(fmt::format(
      "the trigger in {} was {} while it was in use; leave the file there, and start again what fires it and "
      "what waits for it",
      path, how));
}

Duration since_boot() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

Expected<TriggerWord> TriggerWord::open(std::string_view name) {
  if (!is_name(name))
    return invalid_input(
        fmt::format("'{:.80}' is no name of a trigger; it has 1 to 128 letters, digits, '_', '.' or '-'", name));
  const std::string path = fmt::format("/dev/shm/tutti.{}", name);
  const auto refused = [&](std::string_view what) {
    return machine_error(
        fmt::format("the trigger '{}' in shared memory ({}): {}: {}", name, path, what, std::strerror(errno)));
  };
  TriggerWord word(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0660));
  if (word.file_ < 0) return refused("it cannot be opened; is it another user's?");
  struct stat status {};
  if (fstat(word.file_, &status) != 0) return refused("it cannot be examined");
  if (!S_ISREG(status.st_mode) || (status.st_size != 0 && status.st_size < std::int64_t{sizeof(SharedTrigger)}))
    return invalid_input(fmt::format("{} is no trigger; remove it, or use another name", path));
  // A file that is just made has zeros: no trigger so far. Two processes that make it at once agree.
  if (status.st_size == 0 && ftruncate(word.file_, sizeof(SharedTrigger)) != 0)
    return refused("there is no memory for it");
  void* memory = mmap(nullptr, sizeof(SharedTrigger), PROT_READ | PROT_WRITE, MAP_SHARED, word.file_, 0);
  if (memory == MAP_FAILED) return refused("it cannot be mapped");
  word.shared_ = static_cast<SharedTrigger*>(memory);
  return word;
}

TriggerWord::TriggerWord(TriggerWord&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      shared_(std::exchange(other.shared_, nullptr)) {}

TriggerWord& TriggerWord::operator=(TriggerWord&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(shared_, other.shared_);
  return *this;
}

TriggerWord::~TriggerWord() {
  if (shared_ != nullptr) munmap(shared_, sizeof(SharedTrigger));
  if (file_ >= 0) close(file_);
}

Expected<void> TriggerWord::fire() const {
  if (auto there = check(); !there) return there;
  // A word that is shortened between these lines gets its length back, and counts from 0.
  const std::int64_t now = since_boot().count();
  const bool stored = pwrite(file_, &now, sizeof now, offsetof(SharedTrigger, last)) == sizeof now;
  if (!stored || !add_and_wake(shared_->count)) return lost(path_, "shortened");
  return {};
}

Expected<void> TriggerWord::check() const {
  struct stat own {
  }, named{};
  if (fstat(file_, &own) != 0 || own.st_size < std::int64_t{sizeof(SharedTrigger)}) return lost(path_, "shortened");
  if (stat(path_.c_str(), &named) != 0 || named.st_dev != own.st_dev || named.st_ino != own.st_ino)
    return lost(path_, "removed");
  return {};
}

/// The kernel may copy a word byte by byte while another process changes it, so it counts once it is read twice.
std::optional<std::uint32_t> TriggerWord::count() const {
  constexpr int kMostReads = 16;
  auto count = read_word(file_);
  for (int i = 0; i < kMostReads; ++i)
    if (const auto again = std::exchange(count, read_word(file_)); again == count) break;
  return count;
}

Duration TriggerWord::last() const {
  std::int64_t ns = 0;
  if (pread(file_, &ns, sizeof ns, offsetof(SharedTrigger, last)) != sizeof ns) return {};
  return Duration{ns};
}

void WordSource::begin(const Clock& /*clock*/, Duration epoch, Waker& waker) {
  seen_ = word_.count().value_or(0);
  waiting_ = 0;
  lost_ = 0;
  checked_ = epoch;
  word_.watch_by(waker);
}

/// Triggers that came between two looks count as having come with the last of them.
std::optional<Duration> WordSource::take(Duration now) {
  if (waiting_ == 0) {
    const std::uint32_t count = word_.count().value_or(seen_);
    if (count == seen_) return std::nullopt;
    constexpr std::uint32_t kBackwards = std::uint32_t{1} << 31;
    const std::uint32_t came = count - seen_ < kBackwards ? count - seen_ : 1;  // it has started again at 0
    seen_ = count;
    waiting_ = std::min(came, kMostWaiting);
    lost_ += came - waiting_;
  }
  --waiting_;
  const Duration last = word_.last();
  const Duration boot = since_boot();
  if (last <= Duration{0} || last > boot) return now;
  return now - (boot - last);
}

Expected<void> WordSource::check(Duration now) {
  if (now - checked_ < kBetweenChecks) return {};
  checked_ = now;
  return word_.check();
}

}  // namespace tutti::internal
