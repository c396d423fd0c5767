#pragma once
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/task_program.hpp"

namespace tutti::internal {

/// The regions of a task: the chunk behind the last one of the region that each chunk is in.
/// @param first_chunk  [batches + 1] of each batch, and the end
/// @param linked      chunks with no host step between them are submitted together, and are one region; else each is
[[nodiscard]] std::vector<std::size_t> region_ends(const Task& task, std::span<const std::size_t> first_chunk,
                                                   bool linked);

/// Arms the chunks of a region, each behind the one before it.
void arm_region(Executor& executor, std::span<PreparedBatch> region);

/// A job on its way through its steps, region by region. A region is a chunk of a batch, or several, with the host
/// steps behind it; the first one has those before it as well.
class JobExecution {
 public:
  /// What is passed in outlives the execution.
  /// @param chunks       of its batches, in order, bound to its buffer set
  /// @param first_chunk  [batches + 1] of each batch, and the end
  /// @param region_ends  [chunks] as `region_ends`
  /// @param issued       so many chunks were issued ahead
  JobExecution(const Job& job, TaskProgram& program, std::span<PreparedBatch> chunks,
               std::span<const std::size_t> first_chunk, std::span<const std::size_t> region_ends, std::size_t issued)
      : job_(job),
        program_(&program),
        chunks_(chunks),
        first_chunk_(first_chunk),
        region_ends_(region_ends),
        issued_(issued) {}

  [[nodiscard]] const Job& job() const { return job_; }
  /// Whether no region is left.
  [[nodiscard]] bool has_ended() const { return ended_; }

  /// In a scenario: the next region ends by this instant. Its batches and host steps are shortened, and batches for
  /// whose dispatch no time is left are left out.
  void end_region_by(Duration instant) { job_.ends_by = instant; }

  /// Does the next region. While it is under way, the job's next chunk is armed.
  /// @param on_last_chunk  () called while the last chunk is under way
  /// @errors as `Executor::run` and the program's
  template <class OnLastChunk>
  [[nodiscard]] Expected<void> do_region(const OnLastChunk& on_last_chunk) {
    if (auto ok = do_host_steps(); !ok || ended_) return ok;
    return do_chunks(on_last_chunk).and_then([&] { return do_host_steps(); });
  }

 private:
  /// Does the host steps until the next batch, or the end; none where the batch has chunks left.
  Expected<void> do_host_steps();
  Expected<void> do_host_step(std::size_t step);

  template <class OnLastChunk>
  Expected<void> do_chunks(const OnLastChunk& on_last_chunk) {
    Executor& executor = job_.executor();
    const Duration before = executor.clock().now();
    const Duration in_batches = job_.times.batches;
    const std::size_t first = chunk_;
    const std::size_t end = region_ends_[chunk_];
    Expected<void> done = issue_until(end);
    const std::size_t issued = std::exchange(chunk_, done ? end : chunk_);
    if (chunk_ < chunks_.size()) {
      arm_region(executor, chunks_.subspan(chunk_, region_ends_[chunk_] - chunk_));
    } else {
      on_last_chunk();
    }
    if (auto ended = wait_for(chunks_.subspan(first, issued - first)); done) done = std::move(ended);
    const Duration passed = executor.clock().now() - before;
    job_.times.in_batches += passed;
    // How long a batch that failed took is not known: none of it is the dispatcher's.
    if (!done) job_.times.batches = in_batches + passed;
    return done;
  }
  [[nodiscard]] bool has_time_for_batch() const;
  Expected<void> issue_until(std::size_t end);
  Expected<void> wait_for(std::span<PreparedBatch> chunks);

  Job job_;
  TaskProgram* program_;
  std::span<PreparedBatch> chunks_;
  std::span<const std::size_t> first_chunk_;
  std::span<const std::size_t> region_ends_;
  std::size_t step_ = 0;   // next
  std::size_t batch_ = 0;  // that `step_` is, where it is a batch
  std::size_t chunk_ = 0;  // next
  std::size_t issued_;     // chunks, ahead of the job
  bool ended_ = false;
};

}  // namespace tutti::internal
