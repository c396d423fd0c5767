#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/base/error.hpp"
#include "runtime/triggers/trigger_source.hpp"

namespace tutti::internal {

/// A trigger in shared memory, as all processes see it: `/dev/shm/tutti.NAME`, little-endian.
struct SharedTrigger {
  /// Triggers so far, modulo 2^32. Whoever fires adds one; a futex call on it wakes those that sleep.
  std::atomic<std::uint32_t> count;
  std::uint32_t unused;
  /// CLOCK_MONOTONIC of the last trigger in ns, stored before the count; 0: unknown, then the time at which it is seen.
  std::atomic<std::int64_t> last;
};
static_assert(sizeof(SharedTrigger) == 16 && std::atomic<std::int64_t>::is_always_lock_free);

/// A trigger in shared memory, mapped. It stays there when all processes have ended: they may start in any order.
class TriggerWord {
 public:
  /// Opens the word, and makes it where there is none, for this user and group. Its file stays open.
  /// @errors InvalidInput: a name that is none, a file there that is no such word. Machine: shared memory is refused.
  [[nodiscard]] static Expected<TriggerWord> open(std::string_view name);
  TriggerWord(TriggerWord&& other) noexcept;
  TriggerWord& operator=(TriggerWord&& other) noexcept;
  TriggerWord(const TriggerWord&) = delete;  // it unmaps the memory and closes the file once
  TriggerWord& operator=(const TriggerWord&) = delete;
  ~TriggerWord();

  /// A trigger comes now. Any thread of any process; allocates nothing where it succeeds, and never waits.
  /// @errors as `check`
  Expected<void> fire() const;
  /// Whether other processes that open the word by its name still get this one.
  /// @errors Machine: it was removed or shortened.
  [[nodiscard]] Expected<void> check() const;

  /// Triggers so far; nothing: the word was shortened.
  [[nodiscard]] std::optional<std::uint32_t> count() const;
  /// CLOCK_MONOTONIC of the last one; 0: unknown.
  [[nodiscard]] Duration last() const;
  /// Wakes the waker with each trigger.
  void watch_by(Waker& waker) const { waker.watch(shared_->count, file_); }

 private:
  TriggerWord(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  int file_;                         // -1: none
  SharedTrigger* shared_ = nullptr;  // an address for the kernel alone: `read_word`
};

/// Triggers of a word in shared memory.
class WordSource final : public TriggerSource {
 public:
  /// A word that was removed is found so much later at most, where the run looks as often.
  static constexpr Duration kBetweenChecks = std::chrono::milliseconds{10};
  /// More triggers between two looks are lost.
  static constexpr std::uint32_t kMostWaiting = 1024;

  explicit WordSource(TriggerWord word) : word_(std::move(word)) {}

  void begin(const Clock& clock, Duration epoch, Waker& waker) override;
  [[nodiscard]] std::optional<Duration> take(Duration now) override;
  [[nodiscard]] Expected<void> check(Duration now) override;
  [[nodiscard]] std::uint64_t lost() const override { return lost_; }

 private:
  TriggerWord word_;
  std::uint32_t seen_ = 0;     // count at the last look
  std::uint32_t waiting_ = 0;  // triggers of that look that are not taken yet
  std::uint64_t lost_ = 0;
  Duration checked_{};  // when it was last
};

}  // namespace tutti::internal
