#pragma once
#include <array>
#include <cstdint>
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

/// A stream as a prediction asks for it: figures and positions alone, its way found.
struct StreamWork {
  double bytes = 0;
  std::uint32_t way = kNone;          ///< kind of its way: the machine's, then the batch's own; kNone: no transfer
  std::uint32_t lead = kNone;         ///< the same of a staged copy's first leg; otherwise kNone
  std::array<EngineId, 2> engines{};  ///< held during the copy; the same one twice where there is but one
  double kernel = 0;                  ///< ns, what it usually takes
  double kernel_worst = 0;            ///< ns
  bool has_kernel = false;
  std::uint32_t gpu = kNone;  ///< vertex of the kernel's GPU; kNone on a cpu

  friend bool operator==(const StreamWork&, const StreamWork&) = default;
};

/// Streams that may run in parallel, with one completion. A value that fits the machine it was made for.
class BatchOperation {
 public:
  static constexpr std::size_t kMostStreams = 4096;

  /// @param merging  whether streams that share a copy engine become one; off only for comparison.
  /// @errors InvalidInput: no stream or more than 4096, a doubled name, a stream with neither transfer nor kernel; ends
  ///         that are no memory or GPU, a GPU to itself, memory to memory, no way from one end to the other, a route
  ///         that does not fit its ends or comes to one place twice; a kernel elsewhere than on a GPU or cpu, a time
  ///         below 0 or above 2^53 ns, worst below time.
  [[nodiscard]] static Expected<BatchOperation> make(const Topology& machine, std::vector<CommandStream> streams,
                                                     bool merging = true);

  /// The machine it was made for.
  [[nodiscard]] const Topology& machine() const { return machine_; }
  [[nodiscard]] std::span<const CommandStream> streams() const { return streams_; }
  [[nodiscard]] bool merging() const { return merging_; }
  /// [streams]
  [[nodiscard]] std::span<const StreamWork> work() const { return work_; }
  /// Kinds of ways that are not among the machine's own: between GPUs, and those of the user.
  [[nodiscard]] std::span<const WayKind> own_ways() const { return own_ways_; }

  friend bool operator==(const BatchOperation&, const BatchOperation&) = default;

 private:
  BatchOperation(const Topology& machine, std::vector<CommandStream> streams, bool merging);
  StreamWork make_work(const CommandStream& stream);

  Topology machine_;
  std::vector<CommandStream> streams_;
  bool merging_;
  std::vector<StreamWork> work_;
  std::vector<WayKind> own_ways_;
};

}  // namespace tutti
