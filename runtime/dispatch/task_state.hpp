#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/buffer_sets.hpp"
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

/// The memory of a job that was released.
struct JobBuffers {
  std::uint64_t index = UINT64_MAX;        ///< of the job
  std::size_t own = 0;                     ///< its task's set
  std::vector<HeldSlot> slots = {};        ///< of each of the task's `rings`
  std::vector<std::size_t> others = {};    ///< numbers of those, then sets that it reads, of each of the task's `reads`
  std::size_t own_choice = 0;              ///< its set and its slots
  std::optional<std::size_t> choice = {};  ///< once it is known what it reads
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

/// One task in a run: its program, and its batches. *Places* are those of jobs that can be alive: job n has place n
/// modulo their number.
struct TaskState {
  const Task* task = nullptr;
  TaskProgram* program = nullptr;
  BufferSets sets;                                 ///< and who has them
  std::vector<SlotRing*> rings = {};               ///< whose newest slots its jobs have
  std::vector<TaskId> reads = {};                  ///< tasks whose newest output its jobs read
  std::vector<std::vector<PreparedBatch>> chunks;  ///< [choices][chunks of all batches]
  std::vector<std::size_t> first_chunk{0};         ///< [batches + 1]; where jobs overlap, none
  std::vector<std::size_t> region_ends = {};       ///< [chunks] as `region_ends`; where jobs overlap, none
  std::vector<ChunkPlace> places;                  ///< [chunks of all batches]
  std::vector<std::size_t> expected;               ///< [rings, reads] what a job to come will read, as it seems
  std::vector<JobBuffers> buffers;                 ///< [places] of the job there
  std::vector<Release> releases;                   ///< [places] of the job there
  std::vector<Hold> holds;                         ///< [places] of the last job whose callbacks had its buffers
  /// [choices][chunks of all batches] what `chunks` were made of, where it is kept: for a machine that leads the run.
  std::vector<std::vector<BoundPlan>> bound;
  bool keeps_bound = false;
  bool writes_kept = false;  ///< its jobs write buffers that are there once for all of them

  /// Whether the batches of a job are known before it is released.
  [[nodiscard]] bool knows_batches() const { return rings.empty() && reads.empty(); }
  [[nodiscard]] JobBuffers& buffers_of(std::uint64_t job) { return buffers[job % buffers.size()]; }
  [[nodiscard]] Release& release_of(std::uint64_t job) { return releases[job % releases.size()]; }
  [[nodiscard]] const Release& release_of(std::uint64_t job) const { return releases[job % releases.size()]; }
  [[nodiscard]] Hold& hold_of(std::uint64_t job) { return holds[job % holds.size()]; }
};

/// The memory that programs have for one run of their tasks, whose batches are not prepared yet: of each task as many
/// buffer sets as jobs of it can be alive, and those that others read (`sets_of_buffers`).
/// @param jobs  [tasks] most jobs that it will release
/// @errors InvalidInput, Machine: as `TaskProgram::make_sets`
[[nodiscard]] Expected<std::vector<TaskState>> make_memory(Executor& executor, const PlannedTaskSet& planned,
                                                           std::span<TaskProgram* const> programs,
                                                           std::span<const std::uint64_t> jobs);

/// Lets programs find the buffers of other tasks that theirs name. @pre all have made their sets
/// @return [tasks] the choices of each
[[nodiscard]] std::vector<std::size_t> join_memory(const TaskSet& set, std::span<TaskProgram* const> programs,
                                                   std::span<const std::size_t> sets);

/// What messages call a batch of a task's jobs.
[[nodiscard]] std::string batch_name(const Task& task, std::size_t batch);

/// Prepares every batch of a task in every choice of memory, cut as planned.
/// @errors InvalidInput, Machine: as `TaskProgram::bind` and `Executor::prepare`.
[[nodiscard]] Expected<void> prepare_task(Executor& executor, Executor::AdmittedRun& run, const PlannedTaskSet& planned,
                                          TaskId task, TaskState& state);

}  // namespace tutti::internal
