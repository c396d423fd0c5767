#pragma once
#include <chrono>
#include <memory>
#include <string_view>

#include "runtime/api/runtime.hpp"

namespace tutti {

namespace internal {
class TriggerHandle;
class TriggerWord;
}  // namespace internal

/// Releases the jobs of a task with `release: external`: a frame has come. Copies of a handle share it; any thread may
/// fire. While no run has it, triggers are ignored.
class TUTTI_API Trigger {
 public:
  Trigger();

  /// A trigger comes now.
  /// @return whether a run has taken it; false: none has the handle, or too many wait.
  bool fire() const;
  /// A trigger came. @param at  not in the future
  bool fire(std::chrono::steady_clock::time_point at) const;

 private:
  friend struct internal::Handles;
  std::shared_ptr<internal::TriggerHandle> state_;
};

/// The word in shared memory that tasks name as `trigger: NAME`, for the process that fires it.
///
/// A program without this library fires it so: it maps `/dev/shm/tutti.NAME` (16 bytes), stores CLOCK_MONOTONIC in
/// nanoseconds as int64 at byte 8, or 0 where it does not know it, adds 1 to the uint32 at byte 0, and wakes sleepers
/// on that by FUTEX_WAKE. Without the call a run that sleeps (`WaitKind::Block`) sees the trigger within a millisecond.
class TUTTI_API SharedTrigger {
 public:
  /// Opens the word, and makes it where there is none.
  /// @param name  1 to 128 letters, digits, '_', '.' or '-'
  /// @errors InvalidInput: a name that is none, a file there that is no such word. Machine: shared memory is refused.
  [[nodiscard]] static Expected<SharedTrigger> open(std::string_view name);

  /// A trigger comes now. Any thread; it allocates nothing where it succeeds, and never waits.
  /// @errors Machine: another process has removed or shortened the word; no run sees its triggers any more.
  Expected<void> fire() const;

 private:
  explicit SharedTrigger(std::shared_ptr<const internal::TriggerWord> word) : word_(std::move(word)) {}

  std::shared_ptr<const internal::TriggerWord> word_;
};

}  // namespace tutti
