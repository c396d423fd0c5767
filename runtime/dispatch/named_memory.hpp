#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "model/batch/named_buffer.hpp"
#include "runtime/core/executor.hpp"

namespace tutti::internal {

/// A buffer as the host sees it.
struct HostBytes {
  std::string_view name;
  std::span<std::byte> bytes;  ///< empty where it lies in a GPU
};

/// Memory of the buffers that a task names: a set for each job that can be alive, and those that are kept. It takes
/// exactly the memory that admission counts.
class NamedMemory {
 public:
  /// @param seed  of the pattern that buffers in memories hold until somebody writes them; kept ones hold zeros
  NamedMemory(const Topology& machine, std::vector<NamedBuffer> buffers, std::uint64_t seed)
      : machine_(machine), buffers_(std::move(buffers)), seed_(seed) {}

  [[nodiscard]] bool is_used() const { return !buffers_.empty(); }
  /// Gives all memory back: a new run.
  void clear();
  /// The bindings of one batch in one set, which is allocated when it is first asked for.
  /// @errors as `DeviceBackend::allocate`
  [[nodiscard]] Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation,
                                                          std::size_t set);
  /// The buffers of a set that was bound, for the code of its job.
  [[nodiscard]] std::vector<HostBytes> of_host(std::size_t set) const;
  /// Fills the kept buffers before the first job: with zeros, then with what a program writes; what lies in GPUs is
  /// copied there.
  /// @param write  gets all kept buffers in memory of the host
  /// @errors as `write`, `DeviceBackend::allocate` and `DeviceBackend::prepare`
  [[nodiscard]] Expected<void> fill_kept(Executor& executor,
                                         const std::function<Expected<void>(std::span<const HostBytes>)>& write);

 private:
  Expected<void> add_set(DeviceBackend& backend);
  [[nodiscard]] NamedView view_of(BufferId buffer, std::size_t set) const;

  Topology machine_;
  std::vector<NamedBuffer> buffers_;
  std::uint64_t seed_;
  std::vector<Buffer> memory_;
  std::vector<std::vector<BufferView>> sets_;  // [sets][buffers]
};

/// Bytes that are the same for the same seed.
void fill_with_pattern(std::span<std::byte> bytes, std::uint64_t seed);

}  // namespace tutti::internal
