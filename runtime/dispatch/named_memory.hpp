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

namespace tutti::internal {

/// A buffer as the host sees it.
struct HostBytes {
  std::string_view name;
  std::span<std::byte> bytes;  ///< empty where it lies in a GPU
};

/// Memory that the program has for buffers, by their names: a slot for each set, or one for a kept buffer.
using UsersSlots = std::map<std::string, std::vector<std::span<std::byte>>, std::less<>>;

/// Memory of the buffers that a task names: a set for each job that can be alive, and those that are kept. It takes
/// exactly the memory that admission counts, but for what the program has.
class NamedMemory {
 public:
  /// @param seed  of the pattern that buffers in memories hold until somebody writes them; kept ones hold zeros
  /// @param users  memory of the program, which outlives this; null: none
  NamedMemory(const Topology& machine, std::vector<NamedBuffer> buffers, std::uint64_t seed,
              const UsersSlots* users = nullptr)
      : machine_(machine), buffers_(std::move(buffers)), seed_(seed), users_(users) {}

  [[nodiscard]] bool is_used() const { return !buffers_.empty(); }
  /// Gives all memory back: a new run.
  void clear();
  /// Allocates a set, and those before it.
  /// @errors as `DeviceBackend::allocate` and `DeviceBackend::wrap`; InvalidInput: too few slots, or too small ones
  [[nodiscard]] Expected<void> make_set(DeviceBackend& backend, std::size_t set);
  /// The bindings of one batch in one set. @pre the set was made
  [[nodiscard]] std::vector<StreamBinding> bind(const Batch& operation, std::size_t set) const;
  /// The buffers of a set that was made, for the code of its job.
  [[nodiscard]] std::vector<HostBytes> of_host(std::size_t set) const;
  /// Fills the kept buffers before the first job, but those in memory that the program has: with zeros, then with what
  /// a program writes; what lies in GPUs is copied there.
  /// @param write  gets all kept buffers in memory of the host
  /// @errors as `write`, `DeviceBackend::allocate` and `DeviceBackend::prepare`
  [[nodiscard]] Expected<void> fill_kept(Executor& executor,
                                         const std::function<Expected<void>(std::span<const HostBytes>)>& write);

 private:
  Expected<void> add_set(DeviceBackend& backend);
  Expected<Buffer> make(DeviceBackend& backend, const NamedBuffer& buffer);
  /// The slot that the program has for a buffer of the next set; nothing where it has none at all.
  [[nodiscard]] Expected<std::optional<std::span<std::byte>>> users_slot(const NamedBuffer& buffer) const;
  [[nodiscard]] NamedView view_of(BufferId buffer, std::size_t set) const;

  Topology machine_;
  std::vector<NamedBuffer> buffers_;
  std::uint64_t seed_;
  const UsersSlots* users_;
  std::vector<Buffer> memory_;
  std::vector<std::vector<BufferView>> sets_;  // [sets][buffers]
};

/// Bytes that are the same for the same seed.
void fill_with_pattern(std::span<std::byte> bytes, std::uint64_t seed);

}  // namespace tutti::internal
