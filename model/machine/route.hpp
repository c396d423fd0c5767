#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Bytes along a route between memories and GPUs.
struct Transfer {
  VertexId from;
  VertexId to;
  Bytes size;
  std::vector<LinkId> route;    ///< the user's own; empty: the machine's
  std::optional<VertexId> via;  ///< the memory of a staged copy; absent: the nearest

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// How data gets from one end of a transfer to the other.
enum class CopyPath : std::uint8_t {
  Direct,  ///< between a memory and a GPU
  Peer,    ///< from GPU to GPU, no memory between
  Staged,  ///< from GPU to GPU through a memory, in chunks
};

/// "direct", "peer", "staged".
[[nodiscard]] std::string_view to_string(CopyPath path);

/// The route of one transfer through one machine. It refers to both, so it lives no longer than they do.
struct RouteView {
  CopyPath path = CopyPath::Direct;
  std::span<const LinkId> first;    ///< the whole route; of a staged copy, the leg into the memory
  std::span<const LinkId> second;   ///< of a staged copy, the leg out of the memory; otherwise empty
  VertexId via;                     ///< of a staged copy, that memory
  std::array<EngineId, 2> engines;  ///< held during the copy, the issuing one first; the same one twice where there is
                                    ///< but one, as in all copies but staged ones
  double weight = 1;                ///< sharing weight

  [[nodiscard]] bool found() const { return !first.empty(); }
};

/// The route of a transfer: its own where it has one, otherwise the machine's.
///
/// A copy from GPU to GPU without peer access goes through the memory with the fewest links in all, ties by the order
/// of the file, or through `via`.
///
/// @pre    both ends are memories or GPUs, at least one of them a GPU, and they differ.
/// @return a route that is not `found()` where there is none.
[[nodiscard]] RouteView find_route(const Topology& machine, const Transfer& transfer);

/// The class of a transfer's costs. @param path  of its route
[[nodiscard]] CopyKind class_of(const Topology& machine, const Transfer& transfer, CopyPath path);

/// Whether two GPUs lie in one PCIe domain.
[[nodiscard]] inline bool same_domain(const Topology& machine, VertexId a, VertexId b) {
  return machine.domain(a) == machine.domain(b);
}

}  // namespace tutti::internal
