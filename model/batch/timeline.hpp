#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/batch/batch.hpp"
#include "model/batch/batch_simulation.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {

/// A stretch of constant rate of one transfer. Set-up and the pipeline fill of a staged copy are segments of 0 bytes.
struct Segment {
  Duration start{};
  Duration end{};
  Bytes bytes;                            ///< that arrive in it
  RateSource source = RateSource::Graph;  ///< of its rate, where it is predicted

  friend bool operator==(const Segment&, const Segment&) = default;
};

struct TransferInterval {
  TransferMethod method;
  Duration start{};  ///< of its set-up
  Duration end{};
  std::vector<Segment> segments;  ///< abut from start to end; their bytes add up to the transfer's size

  friend bool operator==(const TransferInterval&, const TransferInterval&) = default;
};

struct KernelInterval {
  VertexId on;
  Duration start{};
  Duration end{};

  friend bool operator==(const KernelInterval&, const KernelInterval&) = default;
};

/// When one stream's transfer and kernel run.
struct StreamTimeline {
  std::string name;
  std::optional<TransferInterval> transfer;
  std::optional<KernelInterval> kernel;
  Duration gate{};  ///< earliest start; it starts later where it waits for a GPU or for the stream it is merged to

  /// Start of the transfer, or of the kernel where there is no transfer.
  [[nodiscard]] Duration start() const { return transfer ? transfer->start : kernel->start; }
  [[nodiscard]] Duration end() const { return kernel ? kernel->end : transfer->end; }
  friend bool operator==(const StreamTimeline&, const StreamTimeline&) = default;
};

/// The times of all transfers and kernels of one batch, planned or measured, from the batch's start.
struct Timeline {
  Duration latency{};                   ///< to the last completion, set-up of the batch included
  std::vector<StreamTimeline> streams;  ///< in the order of the batch
  Duration setup{};                     ///< of the batch, at its start: gates open behind it

  friend bool operator==(const Timeline&, const Timeline&) = default;
};

/// The simulation's last run in whole nanoseconds: starts rounded down, ends and the latency up.
/// @pre the simulation was loaded with this machine and batch, and has run.
[[nodiscard]] Timeline make_timeline(const Topology& machine, const Batch& batch, const BatchSimulation& simulation);

/// The first rule that a timeline breaks, as a sentence: segments abut and add up to the sizes, a kernel follows its
/// transfer, kernels on a GPU and copies on an engine exclude each other (up to 1 ns of rounding), nothing ends after
/// `latency`.
/// @return nothing where all is well.
[[nodiscard]] std::optional<std::string> find_violation(const Topology& machine, const Batch& batch,
                                                        const Timeline& timeline);

/// [queues] When the gates of a plan open, ns, without the set-up of the batch.
/// @pre the plan was made for the loaded batch.
[[nodiscard]] std::vector<double> gates_of(const BatchSimulation& loaded, const Timeline& plan);

}  // namespace tutti::internal
