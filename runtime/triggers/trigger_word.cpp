#include "runtime/triggers/trigger_word.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
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

/// A file that is closed at the end.
struct WordFile {
  int number;
  ~WordFile() {
    if (number >= 0) close(number);
  }
};

Duration since_boot() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace

Expected<TriggerWord> TriggerWord::open(std::string_view name) {
  if (!is_name(name))
    return invalid_input(
        fmt::format("'{:.80}' is no name of a trigger; it has 1 to 128 letters, digits, '_', '.' or '-'", name));
  const std::string path = fmt::format("/tutti.{}", name);
  const auto refused = [&](std::string_view what) {
    return machine_error(
        fmt::format("the trigger '{}' in shared memory (/dev/shm{}): {}: {}", name, path, what, std::strerror(errno)));
  };
  const WordFile file{shm_open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0660)};
  if (file.number < 0) return refused("it cannot be opened; is it another user's?");
  struct stat status {};
  if (fstat(file.number, &status) != 0) return refused("it cannot be examined");
  if (!S_ISREG(status.st_mode) || (status.st_size != 0 && status.st_size < std::int64_t{sizeof(SharedTrigger)}))
    return invalid_input(fmt::format("/dev/shm{} is no trigger; remove it, or use another name", path));
  // A file that is just made has zeros: no trigger so far. Two processes that make it at once agree.
  if (status.st_size == 0 && ftruncate(file.number, sizeof(SharedTrigger)) != 0)
    return refused("there is no memory for it");
  void* memory = mmap(nullptr, sizeof(SharedTrigger), PROT_READ | PROT_WRITE, MAP_SHARED, file.number, 0);
  if (memory == MAP_FAILED) return refused("it cannot be mapped");
  return TriggerWord(static_cast<SharedTrigger*>(memory));
}

TriggerWord::TriggerWord(TriggerWord&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}

TriggerWord& TriggerWord::operator=(TriggerWord&& other) noexcept {
  std::swap(shared_, other.shared_);
  return *this;
}

TriggerWord::~TriggerWord() {
  if (shared_ != nullptr) munmap(shared_, sizeof(SharedTrigger));
}

void TriggerWord::fire() const {
  shared_->last.store(since_boot().count());
  shared_->count.fetch_add(1);
  wake_sleepers_on(shared_->count);
}

void WordSource::begin(const Clock& /*clock*/, Duration /*epoch*/, Waker& waker) {
  seen_ = word_.shared().count.load();
  waiting_ = 0;
  lost_ = 0;
  waker.watch(word_.shared().count);
}

/// Triggers that came between two looks count as having come with the last of them.
std::optional<Duration> WordSource::take(Duration now) {
  if (waiting_ == 0) {
    const std::uint32_t count = word_.shared().count.load();
    if (count == seen_) return std::nullopt;
    constexpr std::uint32_t kBackwards = std::uint32_t{1} << 31;
    const std::uint32_t came = count - seen_ < kBackwards ? count - seen_ : 1;  // it has started again at 0
    seen_ = count;
    waiting_ = std::min(came, kMostWaiting);
    lost_ += came - waiting_;
  }
  --waiting_;
  const Duration last{word_.shared().last.load()};
  const Duration boot = since_boot();
  if (last <= Duration{0} || last > boot) return now;
  return now - (boot - last);
}

}  // namespace tutti::internal
