#include "runtime/cuda/batches/suspects.hpp"

#include <algorithm>
#include <utility>

namespace tutti::internal::cuda {
namespace {

Reached reached(bool yes) { return yes ? Reached::Yes : Reached::No; }

/// @param recorded  whether the event was recorded in this run
Reached state_of(const Point& point, std::span<const Count> seen, bool recorded) {
  if (point.step != 0) return reached(seen[point.lane] >= point.step);
  if (!point.event || !recorded) return Reached::Unknown;
  const cudaError_t status = answer(cudaEventQuery(point.event.get()));
  return status == cudaSuccess || status == cudaErrorNotReady ? reached(status == cudaSuccess) : Reached::Unknown;
}

/// All before the last command that was enqueued have ended.
RunProgress progress_in_series(const BoundBatch& batch, std::uint32_t enqueued) {
  RunProgress progress(batch.list);
  progress.enqueued = enqueued == 0 ? 0 : batch.list.runs[enqueued - 1].end;
  if (enqueued > 0) std::fill_n(progress.ends.begin(), batch.list.runs[enqueued - 1].begin, Reached::Yes);
  return progress;
}

}  // namespace

/// The thread that enqueues may be at its work meanwhile, or a call of it has failed: what it has not recorded yet
/// still has the event of the run before.
RunProgress progress_of(const BoundBatch& batch, const Enqueuer& enqueuer, std::span<const Count> seen,
                        std::vector<bool> opened) {
  const std::uint32_t next = enqueuer.enqueued();
  if (batch.backend.serialize) return progress_in_series(batch, next);
  RunProgress progress(batch.list);
  const auto& runs = batch.list.runs;
  if (next < runs.size()) progress.enqueued = runs[next].end;
  progress.opened = std::move(opened);
  for (std::uint32_t i = 0; i < batch.points.size(); ++i) {
    const bool recorded = !batch.is_broken() && (next == runs.size() || i < runs[next].begin);
    progress.ends[i] = state_of(batch.points[i].end, seen, recorded);
    progress.leg_ends[i] = state_of(batch.points[i].leg_end, seen, recorded);
    progress.seen_early[i] = !batch.points[i].end.watchers.empty();
  }
  return progress;
}

std::vector<std::uint32_t> suspects_of_fault(const BoundBatch& batch, std::vector<std::uint32_t> in_flight) {
  std::erase_if(in_flight, [&](std::uint32_t i) {
    const Command& command = batch.list.commands[i];
    return !is_broken(batch.lanes[command.lane]) && !is_broken(batch.lanes[command.last_lane]);
  });
  const auto is_copy = [&](std::uint32_t i) { return batch.list.commands[i].kind != Command::Kind::Kernel; };
  if (!std::ranges::all_of(in_flight, is_copy)) std::erase_if(in_flight, is_copy);
  return in_flight;
}

}  // namespace tutti::internal::cuda
