#include "runtime/core/waker.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

/// A word whose process stores and wakes nobody is looked at so often.
constexpr std::chrono::milliseconds kBetweenLooks{1};

timespec to_timespec(TimePoint instant) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = std::max<std::int64_t>(std::chrono::nanoseconds{instant.time_since_epoch()}.count(), 0);
  return {ns / kSecond, ns % kSecond};
}

}  // namespace

void Waker::wake() noexcept {
  calls_.fetch_add(1);
  if (sleeps_.load()) syscall(SYS_futex, &calls_, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
}

void Waker::watch(const std::atomic<std::uint32_t>& word, int file) {
  TUTTI_EXPECTS(words_.size() < kMostWords, "a thread watches a bounded number of words");
  words_.push_back({&word, file});
  seen_.push_back(value(words_.size()));
}

std::uint32_t Waker::value(std::size_t i) const noexcept {
  return i == 0 ? calls_.load() : read_word(words_[i - 1].file).value_or(0);
}

void Waker::look() noexcept {
  for (std::size_t i = 0; i < seen_.size(); ++i) seen_[i] = value(i);
}

bool Waker::changed() const noexcept {
  for (std::size_t i = 0; i < seen_.size(); ++i)
    if (value(i) != seen_[i]) return true;
  return false;
}

void Waker::sleep_until(TimePoint instant) noexcept {
  sleeps_.store(true);
  if (words_.empty()) {
    const timespec until = to_timespec(instant);
    syscall(SYS_futex, &calls_, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen_[0], &until, nullptr,
            FUTEX_BITSET_MATCH_ANY);
  } else {
    const timespec until = to_timespec(std::min(instant, std::chrono::steady_clock::now() + kBetweenLooks));
    std::array<futex_waitv, kMostWords + 1> words{};
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      words[i].val = seen_[i];
      words[i].uaddr = reinterpret_cast<std::uintptr_t>(i == 0 ? &calls_ : words_[i - 1].mapped);
      words[i].flags = i == 0 ? FUTEX_32 | FUTEX_PRIVATE_FLAG : FUTEX_32;
    }
    // Kernels before 5.16 know no wait for several words; then the words are looked at, once in a while.
    const bool waited = syscall(SYS_futex_waitv, words.data(), seen_.size(), 0, &until, CLOCK_MONOTONIC) >= 0;
    if (!waited && errno == ENOSYS && !changed()) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  sleeps_.store(false);
}

std::optional<std::uint32_t> read_word(int file) noexcept {
  std::uint32_t word = 0;
  if (pread(file, &word, sizeof word, 0) != sizeof word) return std::nullopt;
  std::atomic_thread_fence(std::memory_order_acquire);
  return word;
}

bool add_and_wake(const std::atomic<std::uint32_t>& word) noexcept {
  constexpr std::uint32_t kAddOne = FUTEX_OP_ADD << 28 | FUTEX_OP_CMP_LT << 24 | 1 << 12;
  return syscall(SYS_futex, &word, FUTEX_WAKE_OP, INT_MAX, 0, &word, kAddOne) >= 0;
}

}  // namespace tutti::internal
