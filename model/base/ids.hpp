#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>

namespace tutti::internal {

/// A dense index with a kind of its own: ids of two kinds do not compile together.
template <class Tag>
struct Id {
  std::uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::size_t index) : value(static_cast<std::uint32_t>(index)) {}
  [[nodiscard]] constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// A position that is none, where positions are plain numbers.
inline constexpr std::uint32_t kNone = ~std::uint32_t{0};

using VertexId = Id<struct VertexTag>;      ///< position in `Topology::vertices()`
using LinkId = Id<struct LinkTag>;          ///< position in `Topology::links()`; one direction of a physical link
using CapacityId = Id<struct CapacityTag>;  ///< position in `Topology::capacities()`: all links, then all shared ones
using DomainId = Id<struct DomainTag>;      ///< one PCIe domain
using EngineId = Id<struct EngineTag>;      ///< one copy engine of one GPU
using PortId = Id<struct PortTag>;          ///< one copy port of a machine (`machine/ports.hpp`)
using TaskId = Id<struct TaskTag>;          ///< position in a `TaskSet`
using BufferId = Id<struct BufferTag>;      ///< position among the buffers of a `Task`

}  // namespace tutti::internal
