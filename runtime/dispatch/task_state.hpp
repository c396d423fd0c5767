#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "sched/admission/admission.hpp"
#include "sched/whatif/scenario.hpp"

namespace tutti::internal {

/// How a job became ready.
struct Release {
  Duration late{};  ///< delay until the dispatcher, though free, saw that it was ready
  Duration done{};  ///< when its program had put its input into its buffer set
};

/// One task in a run: its next release, and the batches of each of its buffer sets.
struct TaskState {
  const Task* task = nullptr;
  TaskTiming timing;
  TaskProgram* program = nullptr;
  std::vector<ScenarioJob> script;                 ///< the jobs of a scenario, in place of periodic ones
  std::uint64_t jobs = 0;                          ///< to release in all
  std::uint64_t released = 0;                      ///< so far
  std::uint64_t first_index = 0;                   ///< of the job that arrives at `first_arrival`
  Duration first_arrival{};                        ///< since it runs
  Duration next_ready{};                           ///< of job `released`
  std::vector<std::vector<PreparedBatch>> chunks;  ///< [sets][chunks of all batches]
  std::vector<std::size_t> first_chunk{0};         ///< [batches + 1]
  std::vector<std::optional<Duration>> set_due;    ///< [sets] when the job that has it is due; nothing: it is free
  std::vector<Release> releases;                   ///< [sets] of the job that has it

  /// Arrival of a job, from the start of the run.
  [[nodiscard]] Duration arrival_of(std::uint64_t index) const {
    if (!script.empty()) return script[index].arrival;
    return first_arrival + timing.period * static_cast<std::int64_t>(index - first_index);
  }
  /// Whether one of its jobs has yet to be released or to end.
  [[nodiscard]] bool is_alive() const {
    return released != jobs || std::ranges::any_of(set_due, [](const auto& due) { return due.has_value(); });
  }
  /// The batches of a job, cut into chunks, in order.
  [[nodiscard]] std::vector<PreparedBatch>& chunks_of(std::uint64_t index) { return chunks[index % chunks.size()]; }
};

/// Prepares everything that the jobs of a task need: as many buffer sets as jobs of it can be alive, and every batch of
/// each set, cut as planned.
/// @param jobs  most jobs that it will release
/// @errors InvalidInput, Machine: as `TaskProgram::bind` and `Executor::prepare`.
[[nodiscard]] Expected<TaskState> prepare_task(Executor& executor, Executor::AdmittedRun& run,
                                               const PlannedTaskSet& planned, TaskId task, TaskProgram& program,
                                               std::uint64_t jobs);

}  // namespace tutti::internal
