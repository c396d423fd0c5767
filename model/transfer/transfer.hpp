#pragma once
#include <optional>
#include <vector>

#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Bytes along a route between memories, GPUs and devices.
struct Transfer {
  VertexId from;
  VertexId to;
  Bytes size;
  std::vector<LinkId> route;    ///< the user's own; empty: the machine's
  std::optional<VertexId> via;  ///< the memory of a staged copy; absent: the nearest

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Whether both ends are GPUs.
[[nodiscard]] inline bool is_between_gpus(const Topology& machine, const Transfer& transfer) {
  return machine.vertex(transfer.from).kind == VertexKind::Gpu && machine.vertex(transfer.to).kind == VertexKind::Gpu;
}

}  // namespace tutti::internal
