#pragma once
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/task_program.hpp"
#include "sched/tasks/kernel_times.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

/// What one kernel of a task set took, run by run.
struct MeasuredKernel {
  KernelPlace at;
  std::vector<double> alone{};           ///< ns
  std::vector<double> beside_copies{};   ///< to and from all GPUs; empty where there is no room for them, or no memory
  std::vector<double> beside_kernels{};  ///< of the set, on all its other GPUs and cpus; empty where it has none there

  [[nodiscard]] std::vector<double> all() const;
  /// The times to declare: the median of all runs, and the longest with a margin.
  /// @param margin  0.1: ten percent more
  /// @param day     of the measurement, for the remark: "2026-11-24"
  [[nodiscard]] DeclaredTime declared(double margin, const std::string& day) const;
};

struct ProfileOptions {
  int repeats = 100;          ///< runs of each kernel in each of the three ways
  bool give_outputs = false;  ///< an output as large as the input, to kernels that have none: some do nothing then
  const std::atomic<bool>* interrupted = nullptr;
};

/// The kernel that stands at a place. @pre there is one
[[nodiscard]] const CommandStream& stream_at(const TaskSet& set, const KernelPlace& at);

/// Runs the job of each task once, so that its data is where its kernels find it, then each kernel by itself: alone,
/// beside copies and beside other kernels, interleaved. Times are without the machine's cost of a kernel, which a plan
/// adds to them. Kernels run on what their own earlier runs left.
/// @param programs  [tasks]
/// @errors as `Executor::prepare` and `Executor::run`. InvalidInput: the set has no kernel, interrupted.
[[nodiscard]] Expected<std::vector<MeasuredKernel>> profile_kernels(Executor& executor, const TaskSet& set,
                                                                    std::span<TaskProgram* const> programs,
                                                                    const ProfileOptions& options);

}  // namespace tutti::internal
