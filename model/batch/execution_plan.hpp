#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/batch/batch.hpp"
#include "model/batch/engine_queues.hpp"
#include "model/batch/timeline.hpp"

namespace tutti::internal {

/// When each stream, and the whole batch, is over at the latest.
struct LatestFinish {
  std::vector<Duration> streams;  ///< in the order of the batch, from its start
  Duration batch{};
  Duration held_up{};  ///< once per job: the guaranteed cost `job` of the machine

  /// Latest finish of a batch that runs by itself.
  [[nodiscard]] Duration alone() const { return add_saturating(batch, held_up); }
  friend bool operator==(const LatestFinish&, const LatestFinish&) = default;
};

/// A kernel, a transfer or a chunk of a transfer (`pieces_of`).
struct PlannedCommand {
  std::uint32_t stream = 0;
  std::uint32_t queue = 0;
  bool kernel = false;
  std::array<std::uint32_t, 2> locks{kNone, kNone};  ///< engines, GPU or last hop that it holds while it runs
  Bytes offset{};                                    ///< of its bytes in the transfer
  Bytes bytes{};                                     ///< of a transfer
  Duration start{};                                  ///< with its set-up
  Duration end{};
  std::optional<Duration> gate;  ///< when its gate opens, from the end of the batch's set-up; none: it follows the
                                 ///< command before it in its queue

  friend bool operator==(const PlannedCommand&, const PlannedCommand&) = default;
};

/// Size of the chunks that hold a transfer to its fixed share of the bandwidth (any rule but `RateRule::MaxMin`): that
/// of staged copies, or 8 MiB where these are not cut. 0 under any other rule: transfers are whole.
[[nodiscard]] Bytes pacing_chunk(RateRule rates, const Topology& machine);

/// What is executed, and why it holds. Planners write it (`plan`), admission adds the latest finish, the executor
/// obeys.
struct ExecutionPlan {
  Batch batch;
  Timeline timeline;  ///< as predicted
  RateRule rates = RateRule::MaxMin;
  Basis basis = Basis::Nominal;  ///< of bandwidths, costs and kernel times in the timeline
  std::vector<PlannedCommand>
      commands;   ///< queue by queue; those of an engine queue in their order. Transfers are whole
  Bytes chunk{};  ///< largest piece of a transfer, each with a gate at its planned instant; 0: none is cut
  std::optional<LatestFinish> latest = {};  ///< where it was admitted: a longer run breaks the guarantee

  [[nodiscard]] const Topology& machine() const { return batch.machine(); }
  friend bool operator==(const ExecutionPlan&, const ExecutionPlan&) = default;
};

/// The commands of a timeline. An engine queue opens with a gate.
/// @pre the timeline was made for the batch of these queues.
[[nodiscard]] std::vector<PlannedCommand> commands_of(const EngineQueues& queues, const Batch& batch,
                                                      const Timeline& timeline);

/// The commands of a plan with its transfers cut into chunks; staged copies and those of rows stay whole.
[[nodiscard]] std::vector<PlannedCommand> pieces_of(const ExecutionPlan& plan);

}  // namespace tutti::internal
