#pragma once
#include <optional>
#include <vector>

#include "model/machine/topology.hpp"
#include "model/transfer/copy_method.hpp"

namespace tutti::internal {

/// Equal parts of a transfer that lie apart in its memory, as a part of an image does; at the GPU they follow each
/// other.
struct Rows {
  std::int32_t count = 1;  ///< >= 1; divides the size
  Bytes pitch{};           ///< from one row to the next; 0: they follow each other

  friend bool operator==(const Rows&, const Rows&) = default;
};

/// Bytes along a route between memories, GPUs and devices.
struct Transfer {
  VertexId from;
  VertexId to;
  Bytes size;
  std::vector<LinkId> route;    ///< the user's own; empty: the machine's
  std::optional<VertexId> via;  ///< the memory of a staged copy; absent: the nearest
  CopyMethod method = CopyMethod::Automatic;
  bool chosen = false;  ///< the method is the machine's choice, not the user's
  Rows rows = {};

  /// Length of a row.
  [[nodiscard]] Bytes row() const { return Bytes{size.count / rows.count}; }
  /// Whether its rows lie apart.
  [[nodiscard]] bool is_strided() const { return size > Bytes{0} && rows.pitch > row(); }
  /// What it reaches over in its memory, gaps between rows included.
  [[nodiscard]] Bytes extent() const {
    return is_strided() ? Bytes{rows.pitch.count * (rows.count - 1) + row().count} : size;
  }

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// What a transfer needs at one of its ends.
[[nodiscard]] inline Bytes bytes_at(const Topology& machine, const Transfer& transfer, VertexId end) {
  return machine.vertex(end).kind == VertexKind::Memory ? transfer.extent() : transfer.size;
}

/// Whether both ends are GPUs.
[[nodiscard]] inline bool is_between_gpus(const Topology& machine, const Transfer& transfer) {
  return machine.vertex(transfer.from).kind == VertexKind::Gpu && machine.vertex(transfer.to).kind == VertexKind::Gpu;
}

}  // namespace tutti::internal
