#include "runtime/dispatch/task_state.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "runtime/dispatch/chunk_views.hpp"
#include "runtime/dispatch/journal_plan.hpp"
#include "sched/tasks/buffer_flow.hpp"
#include "sched/tasks/cut.hpp"
#include "sched/tasks/shared_buffers.hpp"

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

/// All chunks of a batch, bound to one choice of memory.
Expected<void> prepare_batch(Executor& executor, Executor::AdmittedRun& run, TaskState& state,
                             const std::vector<ExecutionPlan>& chunks, std::size_t batch, std::size_t choice) {
  const Batch& whole = *batches_of(*state.task)[batch];
  const std::string name = batch_name(*state.task, batch);
  const auto prepare = [&](std::size_t chunk, std::vector<StreamBinding> bindings, std::string chunk_name) {
    if (state.keeps_bound) state.bound[choice].push_back({chunks[chunk], chunk_name, bindings});
    return run.prepare(chunks[chunk], std::move(bindings), std::move(chunk_name)).map([&](PreparedBatch&& prepared) {
      state.chunks[choice].push_back(std::move(prepared));
    });
  };
  auto bindings = state.program->bind(executor.backend(), whole, batch, choice);
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

/// A task gets the rings of its program. @pre its program has made its sets
void give_rings(TaskState& state) {
  if (const NamedMemory* const memory = state.program->memory())
    for (const auto& [name, ring] : memory->rings()) state.rings.push_back(ring.get());
  const std::size_t others = state.rings.size() + state.reads.size();
  state.expected.resize(others);
  for (JobBuffers& buffers : state.buffers) {
    buffers.slots.resize(state.rings.size());
    buffers.others.resize(others);
  }
}

}  // namespace

std::string batch_name(const Task& task, std::size_t batch) {
  return fmt::format("batch {} of task '{}'", batch + 1, task.name);
}

std::vector<std::size_t> join_memory(const TaskSet& set, std::span<TaskProgram* const> programs,
                                     std::span<const std::size_t> sets) {
  std::vector<std::size_t> choices;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    std::set<std::string_view> owners;
    for (const NamedBuffer& buffer : set.tasks[i].buffers) {
      const auto owner = owner_of(set, buffer);
      if (!owner || !owners.insert(buffer.owner()).second) continue;
      NamedMemory *const own = programs[i]->memory(), *const other = programs[owner->index()]->memory();
      TUTTI_EXPECTS(own != nullptr && other != nullptr, "programs whose tasks share buffers have named memory");
      own->read(buffer.owner(), *other);
    }
    NamedMemory* const memory = programs[i]->memory();
    choices.push_back(memory != nullptr && memory->is_used() ? memory->choices() : sets[i]);
    programs[i]->sets_are_made(choices.back());
  }
  return choices;
}

Expected<std::vector<TaskState>> make_memory(Executor& executor, const PlannedTaskSet& planned,
                                             std::span<TaskProgram* const> programs,
                                             std::span<const std::uint64_t> jobs) {
  const TaskSet& set = planned.tasks;
  std::vector<TaskState> states;
  std::vector<std::int64_t> alive;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Task& task = set.tasks[i];
    const std::int64_t needed = buffer_sets(task, planned.timings[i]);
    const bool takes_turns = slots_of(task) > 0;  // also of jobs that another run has released
    const auto most = static_cast<std::int64_t>(std::min<std::uint64_t>(jobs[i], INT64_MAX));
    alive.push_back(takes_turns ? needed : std::min(needed, std::max<std::int64_t>(most, 1)));
  }
  std::vector<std::size_t> sets;
  for (const std::int64_t count : sets_of_buffers(set, alive)) sets.push_back(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < programs.size(); ++i) {
    TaskState& state = states.emplace_back();
    state.task = &set.tasks[i];
    state.program = programs[i];
    state.writes_kept = writes_kept_buffers(*state.task);
    state.reads = owners_read_by(set, TaskId{i});
    const auto places = static_cast<std::size_t>(alive[i]);
    state.sets = BufferSets(places, sets[i]);
    state.buffers.resize(places);
    state.releases.resize(places);
    state.holds.resize(places);
    if (auto ok = programs[i]->make_sets(executor.backend(), sets[i]); !ok)
      return tl::unexpected(std::move(ok.error()));
    give_rings(state);
  }
  const std::vector<std::size_t> choices = join_memory(set, programs, sets);
  for (std::size_t i = 0; i < states.size(); ++i) states[i].chunks.resize(choices[i]);
  return states;
}

Expected<void> prepare_task(Executor& executor, Executor::AdmittedRun& run, const PlannedTaskSet& planned, TaskId task,
                            TaskState& state) {
  const JobBound& bound = planned.bounds[task.index()];
  for (std::uint32_t batch = 0; batch < bound.plans.size(); ++batch) {
    state.first_chunk.push_back(state.first_chunk.back() + bound.plans[batch].size());
    for (const ExecutionPlan& chunk : bound.plans[batch])
      state.places.push_back({batch, places_in(*batches_of(*state.task)[batch], chunk.batch)});
  }
  if (state.keeps_bound) state.bound.resize(state.chunks.size());
  for (std::size_t choice = 0; choice < state.chunks.size(); ++choice)
    for (std::size_t batch = 0; batch < bound.plans.size(); ++batch)
      if (auto ok = prepare_batch(executor, run, state, bound.plans[batch], batch, choice); !ok) return ok;
  return {};
}

}  // namespace tutti::internal
