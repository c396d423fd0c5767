#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tutti::internal {

/// Ends the wait of one thread before its instant: other threads call it, and words in shared memory change.
///
/// The thread that waits looks, then asks its sources for news, and sleeps only if nothing has changed since it looked:
/// no call is lost.
class Waker {
 public:
  /// Most words of other processes that one thread watches.
  static constexpr std::size_t kMostWords = 64;

  Waker() : seen_(1) {}
  Waker(const Waker&) = delete;  // others know it by its address
  Waker& operator=(const Waker&) = delete;

  /// Wakes the thread. Any thread may call; it calls the system only where the thread sleeps.
  void wake() noexcept;

  // ---- of the thread that waits

  /// Watches a word that other processes change. One whose process does not wake sleepers is seen within a millisecond.
  /// @param word  where it is mapped: the kernel sleeps on it
  /// @param file  which it is the first of: it is read from there (`read_word`)
  /// @pre fewer than `kMostWords`, and word and file outlive the waker.
  void watch(const std::atomic<std::uint32_t>& word, int file);
  /// Whether a wait should stay awake where the way of waiting allows it, since calls are urgent.
  void be_urgent() { urgent_ = true; }
  [[nodiscard]] bool is_urgent() const { return urgent_; }

  /// Remembers the state. Allocates nothing, as all below.
  void look() noexcept;
  /// Whether something has changed since the last look.
  [[nodiscard]] bool changed() const noexcept;
  /// Sleeps until something changes, the instant, or sooner.
  void sleep_until(std::chrono::steady_clock::time_point instant) noexcept;

 private:
  struct Word {
    const std::atomic<std::uint32_t>* mapped;
    int file;
  };

  [[nodiscard]] std::uint32_t value(std::size_t i) const noexcept;

  std::atomic<std::uint32_t> calls_ = 0;
  std::atomic<bool> sleeps_ = false;
  std::vector<Word> words_;
  std::vector<std::uint32_t> seen_;  // [1 + words] at the last look
  bool urgent_ = false;
};

/// The word that a file in shared memory begins with. Allocates nothing and does not wait.
///
/// Another process may shorten the file at any time, and whoever touches memory that a file no longer has is killed
/// (SIGBUS). So nothing that other processes may shorten is read or written through its mapping: the kernel does it,
/// which returns an error instead.
/// @return nothing: the file is too short
[[nodiscard]] std::optional<std::uint32_t> read_word(int file) noexcept;
/// Adds 1 to a mapped word and wakes the processes that sleep on it. @return whether the memory is still there
[[nodiscard]] bool add_and_wake(const std::atomic<std::uint32_t>& word) noexcept;

}  // namespace tutti::internal
