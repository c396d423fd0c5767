#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/batch/named_buffer.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/dispatch/slot_ring.hpp"

namespace tutti::internal {

/// A buffer as the host sees it.
struct HostBytes {
  std::string_view name;
  std::span<std::byte> bytes;  ///< empty where it lies in a GPU
};

/// Memory that the program has for buffers, by their names: a slot for each set, or one for a kept buffer.
using UsersSlots = std::map<std::string, std::vector<std::span<std::byte>>, std::less<>>;

/// Memory of the buffers that a task names: so many sets, and those that are kept. It takes exactly the memory that
/// admission counts, but for what the program has.
///
/// A job has a *choice*: a number for its own set, the slot that it has of each ring, and the set that it reads of each
/// other task whose buffers it names. Where there are no rings and no such tasks, that is its set.
class NamedMemory {
 public:
  /// @param seed  of the pattern that buffers in memories hold until somebody writes them; kept ones hold zeros
  /// @param users  memory of the program, which outlives this; null: none
  /// @param rings  of the program, of whose slots each job has the newest, by the names of buffers
  NamedMemory(const Topology& machine, std::vector<NamedBuffer> buffers, std::uint64_t seed,
              const UsersSlots* users = nullptr, UsersRings rings = {})
      : machine_(machine), buffers_(std::move(buffers)), seed_(seed), users_(users), rings_(std::move(rings)) {}

  [[nodiscard]] bool is_used() const { return !buffers_.empty(); }
  /// Gives all memory back and allocates so many sets: a new run.
  /// @errors as `DeviceBackend::allocate` and `DeviceBackend::wrap`; InvalidInput: too few slots, or too small ones
  [[nodiscard]] Expected<void> make_sets(DeviceBackend& backend, std::size_t sets);
  /// Finds the buffers of another task among those that this one names. @pre the sets of both were made
  /// @param owner  its name
  /// @param other  its memory, which outlives this
  void read(std::string_view owner, NamedMemory& other);
  /// The rings whose slots its jobs have.
  [[nodiscard]] const UsersRings& rings() const { return rings_; }
  /// The choices that jobs have. @pre all others are known
  [[nodiscard]] std::size_t choices() const;
  /// The first of them: those that differ in what is the task's own, its sets and the slots of its rings.
  [[nodiscard]] std::size_t own_choices() const;
  /// The choice of a set of its own and, of each ring in the order of `rings`, a slot; then a set of each other task,
  /// in the order in which they were made known, but for those of which it reads kept buffers alone. Without the latter
  /// it is one of `own_choices`.
  [[nodiscard]] std::size_t choice(std::size_t own, std::span<const std::size_t> others) const;
  /// The bindings of one batch in one choice.
  [[nodiscard]] std::vector<StreamBinding> bind(const Batch& operation, std::size_t choice) const;
  /// The buffers of a choice, for the code of its job.
  [[nodiscard]] std::vector<HostBytes> of_host(std::size_t choice) const;
  /// The task's own buffers in one of `own_choices`, for code that is called before it is known what the job will read.
  [[nodiscard]] std::vector<HostBytes> own_of_host(std::size_t choice) const;
  /// Fills the kept buffers before the first job, but those in memory that the program has: with zeros, then with what
  /// a program writes; what lies in GPUs is copied there. So is what others read before the first job is complete,
  /// which stays zeros.
  /// @param write  gets all kept buffers in memory of the host
  /// @errors as `write`, `DeviceBackend::allocate` and `DeviceBackend::prepare`
  [[nodiscard]] Expected<void> fill_kept(Executor& executor,
                                         const std::function<Expected<void>(std::span<const HostBytes>)>& write);

 private:
  /// A ring, or another task whose buffers this one names.
  struct Other {
    const NamedMemory* memory;           // null: a ring
    bool varies = false;                 // it is read as a job or the producer has left it
    std::vector<BufferView> slots = {};  // of a ring

    [[nodiscard]] std::size_t count() const { return memory == nullptr ? slots.size() : memory->sets_.size(); }
    [[nodiscard]] BufferView view(std::size_t at, std::size_t buffer) const {
      return memory == nullptr ? slots[at] : memory->sets_[at][buffer];
    }
  };
  /// Where a buffer is that lies in a ring, or that another task has.
  struct Borrowed {
    std::size_t other, buffer;
  };

  Expected<void> add_set(DeviceBackend& backend);
  Expected<void> add_ring(DeviceBackend& backend, std::size_t buffer, const SlotRing& ring);
  Expected<Buffer> wrap(DeviceBackend& backend, const NamedBuffer& buffer, std::size_t slot,
                        std::span<std::byte> memory) const;
  [[nodiscard]] bool is_own(std::size_t buffer) const {
    return buffers_[buffer].owner().empty() && !rings_.contains(buffers_[buffer].name);
  }
  Expected<Buffer> make(DeviceBackend& backend, const NamedBuffer& buffer);
  /// The slot that the program has for a buffer of the next set; nothing where it has none at all.
  [[nodiscard]] Expected<std::optional<std::span<std::byte>>> users_slot(const NamedBuffer& buffer) const;
  [[nodiscard]] BufferView memory_of(std::size_t buffer, std::size_t choice) const;
  [[nodiscard]] HostBytes host_bytes(std::size_t buffer, const BufferView& memory) const;
  [[nodiscard]] bool is_of_host(std::size_t buffer) const {
    return machine_.vertex(buffers_[buffer].in).kind == VertexKind::Memory;
  }
  [[nodiscard]] bool is_users(std::size_t buffer) const {
    return users_ != nullptr && users_->contains(buffers_[buffer].name);
  }

  Topology machine_;
  std::vector<NamedBuffer> buffers_;
  std::uint64_t seed_;
  const UsersSlots* users_;
  UsersRings rings_;
  std::vector<Buffer> memory_;
  std::vector<std::vector<BufferView>> sets_;      // [sets][buffers] empty views of what others and rings have
  std::vector<Other> others_;                      // rings, then tasks
  std::vector<std::optional<Borrowed>> borrowed_;  // [buffers]
  std::vector<bool> is_lent_;                      // [buffers] other tasks read it
};

/// Bytes that are the same for the same seed.
void fill_with_pattern(std::span<std::byte> bytes, std::uint64_t seed);

}  // namespace tutti::internal
