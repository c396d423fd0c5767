#include "runtime/core/waker.hpp"

#include <algorithm>
#include <array>
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

void wake_all(const std::atomic<std::uint32_t>& word, int flags) {
  syscall(SYS_futex, &word, FUTEX_WAKE | flags, INT_MAX, nullptr, nullptr, 0);
}

timespec to_timespec(TimePoint instant) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = std::max<std::int64_t>(std::chrono::nanoseconds{instant.time_since_epoch()}.count(), 0);
  return {ns / kSecond, ns % kSecond};
}

}  // namespace

void Waker::wake() noexcept {
  calls_.fetch_add(1);
  if (sleeps_.load()) wake_all(calls_, FUTEX_PRIVATE_FLAG);
}

void Waker::watch(const std::atomic<std::uint32_t>& word) {
  TUTTI_EXPECTS(words_.size() < kMostWords, "a thread watches a bounded number of words");
  words_.push_back(&word);
  seen_.push_back(word.load());
}

void Waker::look() noexcept {
  for (std::size_t i = 0; i < seen_.size(); ++i) seen_[i] = word(i).load();
}

bool Waker::changed() const noexcept {
  for (std::size_t i = 0; i < seen_.size(); ++i)
    if (word(i).load() != seen_[i]) return true;
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
      words[i].uaddr = reinterpret_cast<std::uintptr_t>(&word(i));
      words[i].flags = i == 0 ? FUTEX_32 | FUTEX_PRIVATE_FLAG : FUTEX_32;
    }
    // Kernels before 5.16 know no wait for several words; then the words are looked at, once in a while.
    const bool waited = syscall(SYS_futex_waitv, words.data(), seen_.size(), 0, &until, CLOCK_MONOTONIC) >= 0;
    if (!waited && errno == ENOSYS && !changed()) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  sleeps_.store(false);
}

void wake_sleepers_on(std::atomic<std::uint32_t>& word) noexcept { wake_all(word, 0); }

}  // namespace tutti::internal
