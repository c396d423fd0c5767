#include "runtime/dispatch/task_state.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/dispatch/chunk_views.hpp"
#include "runtime/dispatch/journal_plan.hpp"
#include "sched/tasks/buffer_flow.hpp"
#include "sched/tasks/cut.hpp"

namespace tutti::internal {
namespace {

/// The bindings of a chunk of a batch that was cut. Kernels, all in the last chunk, work on what all chunks bring.
std::vector<StreamBinding> chunk_of(const Batch& whole, std::span<const StreamBinding> bindings, std::size_t chunk,
                                    std::size_t chunks) {
  std::vector<StreamBinding> cut;
  for (std::size_t s = 0; s < bindings.size(); ++s) {
    const std::optional<Transfer>& transfer = whole.streams()[s].transfer;
    const bool is_last = chunk + 1 == chunks;
    if (!transfer) {  // a kernel alone
      if (is_last) cut.push_back(bindings[s]);
      continue;
    }
    StreamBinding& binding = cut.emplace_back(is_last ? bindings[s] : StreamBinding{});
    binding.source = chunk_view(bindings[s].source, *transfer, chunk, chunks);
    binding.destination = chunk_view(bindings[s].destination, *transfer, chunk, chunks);
  }
  return cut;
}

/// All chunks of a batch, bound to one buffer set.
Expected<void> prepare_batch(Executor& executor, Executor::AdmittedRun& run, TaskState& state,
                             const std::vector<ExecutionPlan>& chunks, std::size_t batch, std::size_t set) {
  const Batch& whole = *batches_of(*state.task)[batch];
  const std::string name = fmt::format("batch {} of task '{}'", batch + 1, state.task->name);
  const auto prepare = [&](std::size_t chunk, std::vector<StreamBinding> bindings, std::string chunk_name) {
    return run.prepare(chunks[chunk], std::move(bindings), std::move(chunk_name)).map([&](PreparedBatch&& prepared) {
      state.chunks.back().push_back(std::move(prepared));
    });
  };
  auto bindings = state.program->bind(executor.backend(), whole, batch, set);
  if (!bindings) return tl::unexpected(std::move(bindings.error()));
  if (chunks.size() == 1) return prepare(0, *std::move(bindings), name);
  if (auto ok = check_bindings(whole, *bindings); !ok) return ok;
  fill_kernel_inputs(whole, *bindings);
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk)
    if (auto ok = prepare(chunk, chunk_of(whole, *bindings, chunk, chunks.size()),
                          fmt::format("chunk {} of {}", chunk + 1, name));
        !ok)
      return ok;
  return {};
}

}  // namespace

TaskState unprepared_task(const PlannedTaskSet& planned, TaskId task, TaskProgram& program, std::uint64_t jobs) {
  TaskState state;
  state.task = &planned.tasks.tasks[task.index()];
  state.program = &program;
  state.writes_kept = writes_kept_buffers(*state.task);
  const auto needed = static_cast<std::uint64_t>(buffer_sets(*state.task, planned.timings[task.index()]));
  const bool takes_turns = slots_of(*state.task) > 0;  // also of jobs that another run has released
  const auto sets = static_cast<std::size_t>(takes_turns ? needed : std::min(needed, std::max<std::uint64_t>(jobs, 1)));
  state.releases.resize(sets);
  state.holds.resize(sets);
  return state;
}

Expected<TaskState> prepare_task(Executor& executor, Executor::AdmittedRun& run, const PlannedTaskSet& planned,
                                 TaskId task, TaskProgram& program, std::uint64_t jobs) {
  TaskState state = unprepared_task(planned, task, program, jobs);
  const JobBound& bound = planned.bounds[task.index()];
  for (std::uint32_t batch = 0; batch < bound.plans.size(); ++batch) {
    state.first_chunk.push_back(state.first_chunk.back() + bound.plans[batch].size());
    for (const ExecutionPlan& chunk : bound.plans[batch])
      state.places.push_back({batch, places_in(*batches_of(*state.task)[batch], chunk.batch)});
  }
  for (std::size_t set = 0; set < state.releases.size(); ++set) {
    state.chunks.emplace_back();
    if (auto ok = program.make_set(executor.backend(), set); !ok) return tl::unexpected(std::move(ok.error()));
    for (std::size_t batch = 0; batch < bound.plans.size(); ++batch)
      if (auto ok = prepare_batch(executor, run, state, bound.plans[batch], batch, set); !ok)
        return tl::unexpected(std::move(ok.error()));
  }
  return state;
}

}  // namespace tutti::internal
