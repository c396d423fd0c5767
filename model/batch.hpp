#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/topology.hpp"

namespace tutti {

/// Bytes along a route between memories and GPUs.
struct Transfer {
  VertexId from;
  VertexId to;
  Bytes size;
  std::vector<LinkId> route;    ///< the user's own; empty: the machine's
  std::optional<VertexId> via;  ///< the memory of a staged copy; absent: the nearest

  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Work on one GPU (where kernels exclude each other) or on one cpu (where they overlap).
struct Kernel {
  VertexId on;
  Duration time{};            ///< what it usually takes
  Duration worst{};           ///< what it never exceeds; >= time
  std::string name = "spin";  ///< a registered kernel

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// An optional transfer, then an optional kernel; nothing overlaps inside.
struct CommandStream {
  std::string name;
  std::optional<Transfer> transfer;
  std::optional<Kernel> kernel;
  Place place = {};  ///< where the user's file declares it

  friend bool operator==(const CommandStream&, const CommandStream&) = default;
};

/// Streams that may run in parallel, with one completion. A value that fits the machine it was made for.
class BatchOperation {
 public:
  /// @param merging  whether streams that share a copy engine become one; off only for comparison.
  /// @errors InvalidInput: no stream or more than 4096, a doubled name, a stream with neither transfer nor kernel, ends
  /// that are no memory or GPU, a
  ///         GPU to itself, memory to memory, no way from one end to the other, a route that does not fit its ends, a
  ///         kernel elsewhere than on a GPU or cpu, a time below 0 or above 2^53 ns, worst below time.
  [[nodiscard]] static Expected<BatchOperation> make(const Topology& machine, std::vector<CommandStream> streams,
                                                     bool merging = true);

  [[nodiscard]] std::span<const CommandStream> streams() const { return streams_; }
  [[nodiscard]] bool merging() const { return merging_; }

  friend bool operator==(const BatchOperation&, const BatchOperation&) = default;

 private:
  BatchOperation(std::vector<CommandStream> streams, bool merging) : streams_(std::move(streams)), merging_(merging) {}

  std::vector<CommandStream> streams_;
  bool merging_;
};

}  // namespace tutti
