#pragma once
#include <cstdint>
#include <vector>

#include "model/batch/engine_queues.hpp"
#include "model/batch/timeline.hpp"

namespace tutti::internal {

/// Commands by their first steps, in the order in which GPUs and copy engines serve them: by start, then end, ties in
/// the order of the queues; commands of one engine queue keep theirs. A plan fixes this order, first come, first
/// served; whatever runs later, a replay or hardware, serves in it.
///
/// @pre the queues have been run, forward.
void service_order(const EngineQueues& queues, std::vector<std::uint32_t>& order);

/// The order that a plan fixes, as `runtime/core/command_list` enqueues it.
/// @pre the plan was made for the batch of these queues.
void service_order(const EngineQueues& queues, const Timeline& plan, std::vector<std::uint32_t>& order);

/// The planned start of a transfer: rounded down; without any length, 1 ns before its end.
[[nodiscard]] Duration planned_start(const TransferInterval& transfer);

}  // namespace tutti::internal
