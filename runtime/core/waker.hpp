#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
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

  /// Watches a word that other processes change; @pre fewer than `kMostWords`, and it outlives the waker. One whose
  /// process does not wake sleepers is seen within a millisecond.
  void watch(const std::atomic<std::uint32_t>& word);
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
  [[nodiscard]] const std::atomic<std::uint32_t>& word(std::size_t i) const { return i == 0 ? calls_ : *words_[i - 1]; }

  std::atomic<std::uint32_t> calls_ = 0;
  std::atomic<bool> sleeps_ = false;
  std::vector<const std::atomic<std::uint32_t>*> words_;
  std::vector<std::uint32_t> seen_;  // [1 + words] at the last look
  bool urgent_ = false;
};

/// Wakes a process that sleeps on a word in shared memory.
void wake_sleepers_on(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace tutti::internal
