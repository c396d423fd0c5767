#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string_view>

#include "runtime/comm/fabric.hpp"
#include "runtime/comm/ring_writer.hpp"
#include "runtime/comm/transport.hpp"

namespace tutti::internal::comm {

/// Lanes that the soft transport needs: messages and puts in one, acknowledgements in the other, so that no
/// acknowledgement stands behind a message that waits for one.
inline constexpr int kSoftLanes = 2;

/// Where the buffers of a rank whose streams are a GPU's lie.
enum class BufferPlace : std::uint8_t { Pinned, Device };

/// Where the buffers of a rank are, for the NIC and for itself.
class SoftMemory {
 public:
  virtual ~SoftMemory() = default;
  /// New memory, until this object ends.
  /// @errors Machine: there is not so much
  [[nodiscard]] virtual Expected<std::span<std::byte>> allocate(std::size_t bytes) = 0;
  /// What the NIC must know of it.
  /// @errors InvalidInput: the NIC does not reach it
  [[nodiscard]] virtual Expected<Region> region_of(std::span<std::byte> memory) = 0;
};

/// Memory of one process, which the NIC shares.
class ProcessMemory final : public SoftMemory {
 public:
  [[nodiscard]] Expected<std::span<std::byte>> allocate(std::size_t bytes) override;
  [[nodiscard]] Expected<Region> region_of(std::span<std::byte> memory) override;

 private:
  std::deque<std::vector<std::byte>> blocks_;
};

/// Messages through the rings of a soft NIC: streams ring doorbells, and wait for completions and words.
/// @param fabric  with `kSoftLanes`; served by a NIC, or by what stands for one; outlives the transport, or is owned by
///                `memory`
/// @param name    of the transport, a literal
[[nodiscard]] std::unique_ptr<Transport> make_soft_transport(Fabric fabric, int rank,
                                                             std::unique_ptr<SoftMemory> memory,
                                                             std::string_view name = "soft");

}  // namespace tutti::internal::comm
