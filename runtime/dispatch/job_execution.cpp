#include "runtime/dispatch/job_execution.hpp"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <span>
#include <utility>

namespace tutti::internal {

std::vector<std::size_t> region_ends(const Task& task, std::span<const std::size_t> first_chunk, bool linked) {
  std::vector<std::size_t> ends(first_chunk.back());
  std::iota(ends.begin(), ends.end(), std::size_t{1});
  if (!linked) return ends;
  std::size_t batch = first_chunk.size() - 1, end = ends.size();
  for (const JobStep& step : task.steps | std::views::reverse) {
    if (std::holds_alternative<HostStep>(step)) {
      end = first_chunk[batch];
    } else {
      --batch;
      std::ranges::fill(std::span(ends).subspan(first_chunk[batch], first_chunk[batch + 1] - first_chunk[batch]), end);
    }
  }
  return ends;
}

void arm_region(Executor& executor, std::span<PreparedBatch> region) {
  executor.arm(region.front());
  for (std::size_t i = 1; i < region.size(); ++i) executor.arm_behind(region[i - 1], region[i]);
}

Expected<void> JobExecution::do_host_steps() {
  const auto& steps = job_.task().steps;
  if (steps.empty()) {
    ended_ = true;
    return program_->on_work(job_);
  }
  for (; step_ < steps.size(); ++step_) {
    if (std::holds_alternative<HostStep>(steps[step_])) {
      if (auto ok = do_host_step(step_); !ok) return ok;
    } else if (chunk_ < first_chunk_[batch_ + 1]) {
      return {};
    } else {
      ++batch_;
    }
  }
  ended_ = true;
  return {};
}

/// On a virtual clock work takes no time, so its declared time passes as well.
Expected<void> JobExecution::do_host_step(std::size_t step) {
  Clock& clock = job_.executor().clock();
  const Duration start = clock.now();
  if (auto ok = program_->on_host_step(job_, step); !ok) return ok;
  const Duration end = start + std::get<HostStep>(job_.task().steps[step]).time;
  if (!clock.runs_by_itself()) clock.wait_until(std::min(end, job_.ends_by.value_or(end)));
  return {};
}

bool JobExecution::has_time_for_batch() const {
  const Executor& executor = job_.executor();
  return !job_.ends_by || executor.clock().now() + executor.machine().setup().dispatch.nominal <= *job_.ends_by;
}

Expected<void> JobExecution::issue_until(std::size_t end) {
  for (chunk_ = std::clamp(issued_, chunk_, end); chunk_ < end && has_time_for_batch(); ++chunk_)
    if (auto ok = job_.executor().issue(chunks_[chunk_], {job_.task().name, job_.index}); !ok) return ok;
  return {};
}

/// A linked chunk starts before the host sees the end of the one before it: no instant counts twice.
Expected<void> JobExecution::wait_for(std::span<PreparedBatch> chunks) {
  Expected<void> done;
  Duration counted = Duration::min();
  for (PreparedBatch& chunk : chunks) {
    ++job_.times.runs;
    const auto result = job_.executor().wait_for(chunk);
    if (!result) {
      if (done) done = tl::unexpected(result.error());
      continue;
    }
    job_.times.batches += std::max(result->finish - std::max(result->start, counted), Duration{0});
    job_.times.gates += result->gates_late;
    counted = result->finish;
  }
  return done;
}

}  // namespace tutti::internal
