#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/api/runtime.hpp"

namespace tutti {

namespace internal {
class SlotRing;
}  // namespace internal

/// Slots of memory of the program that a producer, such as a camera's thread, fills at a rate of its own. A job takes
/// the newest complete slot when it is released, and gives it back when it has ended: behind its callbacks, where its
/// task has any. `TaskProgram::rings` gives a ring to a buffer; there the *next* slot is taken instead where the
/// program gives its slots as `TaskProgram::memory`.
///
/// The producer writes to a slot that it has begun, and to no other; neither a job nor the ring has that one, so what a
/// job reads is never torn. With two slots more than jobs of the task can be alive there is always one that is free:
/// one for each job, the newest, and one to write to. A run refuses a ring with fewer.
///
/// A job for which nothing new is complete gets the newest slot again, marked as not new (`Job::slot`): a job that
/// waited for its input would be late for a reason that no bound covers. Until the first slot is complete that is the
/// last slot of the ring, as the program left it; the others are free from the start.
///
/// Copies of a handle share the ring. One task of one run at a time has it; what is newest stays from run to run.
class TUTTI_API Ring {
 public:
  /// A slot is free again: nobody has it. Called behind the callbacks of the job that had it, or in `complete` where no
  /// job has it. An exception ends the run, or leaves `complete`, which has done its work.
  using OnFree = std::function<void(std::size_t slot)>;

  /// @param slots    3 to 4096, each at least of the size of the buffer; they outlive the ring and its runs
  /// @param on_free  may be empty
  /// @errors InvalidInput: too few slots or too many, a slot without memory.
  [[nodiscard]] static Expected<Ring> make(std::vector<std::span<std::byte>> slots, OnFree on_free = {});

  /// Number of slots; 0: an empty handle.
  [[nodiscard]] std::size_t size() const;

  // Any thread. No call waits for another thread, and nothing is allocated where it succeeds.

  /// Takes a free slot to write to; nothing: none is free.
  [[nodiscard]] std::optional<std::size_t> begin() const;
  /// Takes this one. @errors InvalidInput: there is no such slot, it is not free, an empty handle.
  Expected<void> begin(std::size_t slot) const;
  /// What the producer wrote to the slot is complete, and the newest there is. The slot is the ring's from now on.
  /// @errors InvalidInput: there is no such slot, the producer has not begun it (it is complete already, a job has it),
  ///         an empty handle. Nothing changes then.
  Expected<void> complete(std::size_t slot) const;
  /// Whether `begin` would get the slot now; false: there is no such slot.
  [[nodiscard]] bool is_free(std::size_t slot) const;

 private:
  friend struct internal::Handles;
  explicit Ring(std::shared_ptr<internal::SlotRing> state) : state_(std::move(state)) {}

  std::shared_ptr<internal::SlotRing> state_;
};

/// What a job has of a ring.
struct RingSlot {
  std::size_t slot = 0;      ///< position in the ring
  std::uint64_t number = 0;  ///< slots that were complete up to this one, it included; 0: none was yet
  bool is_new = false;       ///< no job had it before
};

}  // namespace tutti
