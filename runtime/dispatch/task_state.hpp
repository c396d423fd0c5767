#pragma once
#include <cstdint>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "sched/admission/admission.hpp"

namespace tutti::internal {

/// How a job became ready.
struct Release {
  Duration ready{};  ///< since when, with its jitter
  Duration late{};   ///< delay until the dispatcher, though free, saw that it was ready
  Duration seen{};   ///< when it did
  Duration done{};   ///< when its program had put its input into its buffer set
  Duration held{};   ///< of that, waited for the callbacks of the job that had the buffer set before
};

/// A buffer set in the hands of callbacks, behind the job that had it.
struct Hold {
  Duration from{};
  Duration until{};  ///< `kNever`: they have it still
};

/// Which part of a job a prepared batch is.
struct ChunkPlace {
  std::uint32_t batch = 0;                  ///< of the job
  std::vector<std::uint32_t> streams = {};  ///< [streams of the chunk] positions in the batch
};

/// One task in a run: its program, and the batches of each of its buffer sets.
struct TaskState {
  const Task* task = nullptr;
  TaskProgram* program = nullptr;
  std::vector<std::vector<PreparedBatch>> chunks;  ///< [sets][chunks of all batches]
  std::vector<std::size_t> first_chunk{0};         ///< [batches + 1]; where jobs overlap, none
  std::vector<std::size_t> region_ends = {};       ///< [chunks] as `region_ends`; where jobs overlap, none
  std::vector<ChunkPlace> places;                  ///< [chunks of all batches]
  std::vector<Release> releases;                   ///< [sets] of the job that has it
  std::vector<Hold> holds;                         ///< [sets] of the last job whose callbacks had it
  bool writes_kept = false;                        ///< its jobs write buffers that are there once for all of them

  /// The batches of a job, cut into chunks, in order.
  [[nodiscard]] std::vector<PreparedBatch>& chunks_of(std::uint64_t index) { return chunks[index % chunks.size()]; }
};

/// A task with as many buffer sets as jobs of it can be alive, none of them prepared.
/// @param jobs  most jobs that it will release
[[nodiscard]] TaskState unprepared_task(const PlannedTaskSet& planned, TaskId task, TaskProgram& program,
                                        std::uint64_t jobs);

/// Prepares everything that the jobs of a task need: as many buffer sets as jobs of it can be alive, and every batch of
/// each set, cut as planned.
/// @param jobs  most jobs that it will release
/// @errors InvalidInput, Machine: as `TaskProgram::bind` and `Executor::prepare`.
[[nodiscard]] Expected<TaskState> prepare_task(Executor& executor, Executor::AdmittedRun& run,
                                               const PlannedTaskSet& planned, TaskId task, TaskProgram& program,
                                               std::uint64_t jobs);

}  // namespace tutti::internal
