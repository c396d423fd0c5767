#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/machine/topology.hpp"
#include "model/transfer/transfer.hpp"

namespace tutti::internal {

/// How data gets from one end of a transfer to the other, as properties. Predictions and backends ask for these and for
/// the route; the name is for reports alone.
///
/// To add a method: write `std::optional<RouteView> route_x(const Topology&, const Transfer&)` in a new file of
/// `model/transfer/`, add a row in `transfer_method.cpp`, and give a new class of costs its name in
/// `model/machine/costs.hpp`; the mover is a `Command::Kind` of the runtime.
struct TransferMethod {
  std::string_view name = {};
  bool chunked = false;       ///< in chunks through a memory, over two legs: its second engine ends it, and its chunks
                              ///< follow each other by themselves, so that no plan cuts it
  bool of_device = false;     ///< by an engine of a device, beside whatever copies of the GPU at its other end
  bool pageable = false;      ///< by threads of the host, through pinned buffers; the engine's copies follow them
  bool peer_traffic = false;  ///< over links between GPUs, which sleep, and whose last one copies of others use too
  bool together = false;      ///< always by the driver's call for many copies
  bool by_kernel = false;     ///< by a kernel: it holds its GPU in place of an engine
  bool captured = false;      ///< its bytes are read when it is enqueued
  bool mapped = false;        ///< by a thread of the host through the GPU's BAR: it holds that thread, and no engine

  friend bool operator==(const TransferMethod&, const TransferMethod&) = default;
};

/// The route of one transfer through one machine, and what the transfer holds there. It refers to both, so it lives no
/// longer than they do.
struct RouteView {
  TransferMethod method = {};
  CopyKind kind = CopyKind::Up;     ///< the class of its costs
  std::span<const LinkId> first;    ///< the whole route; of a chunked one, the leg into the memory
  std::span<const LinkId> second;   ///< of a chunked one, the leg out of the memory; otherwise empty
  VertexId via;                     ///< of a chunked one, that memory
  std::array<EngineId, 2> engines;  ///< held during the copy, the issuing one first; the same one twice where there is
                                    ///< but one, as in all copies but staged ones; a `Topology::mover` where no engine
                                    ///< of a GPU or device copies
  std::array<EngineId, 2> end_engines;  ///< of both ends, all of which `Merging::Transitive` holds
  double weight = 1;                    ///< sharing weight

  [[nodiscard]] bool found() const { return !first.empty(); }
};

/// Whether a transfer between a memory and a GPU goes to the GPU; nothing where its ends are others.
[[nodiscard]] std::optional<bool> goes_up(const Topology& machine, const Transfer& transfer);
/// Whether one end is pageable memory, which no GPU reaches.
[[nodiscard]] bool has_pageable_end(const Topology& machine, const Transfer& transfer);

/// As `goes_up`, for copies of memory that GPUs reach; nothing where an end is pageable.
[[nodiscard]] std::optional<bool> goes_up_pinned(const Topology& machine, const Transfer& transfer);

/// A route with one engine, which issues the copy and is all that it holds.
/// @param up  whether its costs and weight are those of a copy up
[[nodiscard]] RouteView one_engine_route(const Topology& machine, const Transfer& transfer, bool up, EngineId engine);

/// The route between a memory and a GPU by the GPU's engine for that direction.
[[nodiscard]] RouteView gpu_engine_route(const Topology& machine, const Transfer& transfer, bool up);

/// The route of a transfer by the method it asks for, or by the first one that moves such transfers. Its links are the
/// transfer's own where it has some, otherwise the machine's.
///
/// @pre    both ends are memories, GPUs or devices; one is a GPU or a device, the other no device, and they differ.
/// @return a route that is not `found()` where there is none, or where that method does not move it: then without a
///         name (`why_not`).
[[nodiscard]] RouteView find_route(const Topology& machine, const Transfer& transfer);

/// The transfer with about this many bytes: rows keep their length, and there are more or fewer of them. A kernel moves
/// what is too long for an argument.
[[nodiscard]] Transfer resized(Transfer transfer, Bytes size);

/// Why the method that a transfer asks for does not move it: a sentence.
/// @pre `find_route` found no method
[[nodiscard]] std::string why_not(const Topology& machine, const Transfer& transfer);

}  // namespace tutti::internal
