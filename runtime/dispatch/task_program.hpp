#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "runtime/core/executor.hpp"
#include "runtime/dispatch/named_memory.hpp"
#include "sched/tasks/data_flow.hpp"
#include "sched/tasks/task.hpp"

namespace tutti::internal {

struct JobRecord;

/// Measured times of a job while it owned the machine.
struct JobTimes {
  std::size_t runs = 0;   ///< of batches, or chunks of them
  Duration in_batches{};  ///< from before each issue until its batch was known to be finished
  Duration batches{};     ///< of that, between start and finish of the batches
  Duration gates{};       ///< of that, delay of the gate of each batch that was opened latest
};

/// As `Job::overwritten`.
[[nodiscard]] inline bool is_overwritten(std::uint64_t* taken, std::uint64_t whole_until) {
  if (taken == nullptr) return false;
  std::atomic_thread_fence(std::memory_order_acquire);  // what was read before is not read after this
  return std::atomic_ref(*taken).load(std::memory_order_acquire) > whole_until;
}

/// One job, for the code of its task.
class Job {
 public:
  Job(Executor& executor, const Task& task) : executor_(&executor), task_(&task) {}

  std::uint64_t index = 0;     ///< of the task's jobs, from 0
  Duration arrival{};          ///< on the clock of the run
  Duration deadline{};         ///< absolute
  std::size_t buffer_set = 0;  ///< which of the task's sets of buffers it works on
  std::size_t own_choice = 0;  ///< which of `NamedMemory::own_choices`: its set and its slots of rings
  /// Which memory it works on, as `TaskProgram::bind` knows it: `own_choice`, unless it reads buffers of other tasks.
  /// Then it is known from its start on.
  std::optional<std::size_t> choice = {};
  std::span<const HeldSlot> slots = {};  ///< of its task's rings; as long as it is alive
  std::optional<Duration> takes;         ///< in a scenario: how long it has the machine
  /// In a scenario on the simulated machine: when its present region ends; host steps take no longer.
  std::optional<Duration> ends_by = {};
  JobTimes times;                  ///< of its batches so far
  std::uint64_t* taken = nullptr;  ///< `LedRun::runs_taken`, of a task that overwrites; null: of any other
  std::uint64_t whole_until = 0;   ///< its results are whole while that is no more than this

  /// Whether a later job runs into its buffers, or has: what was read of them until now is not whole. Asked behind
  /// reading. Any thread.
  [[nodiscard]] bool overwritten() const { return is_overwritten(taken, whole_until); }
  [[nodiscard]] const Task& task() const { return *task_; }
  [[nodiscard]] Executor& executor() const { return *executor_; }

 private:
  Executor* executor_;
  const Task* task_;
};

/// The user's code of one task: fills its buffers, does its work on the host, reads its results.
///
/// Steps of jobs are done by the thread that dispatches them; where jobs overlap, host steps by one of their own.
/// Everything else is a *callback*: a worker beside it calls them, for all tasks of a partition one at a time, so that
/// none holds up the jobs of others. A callback may thus run while a step of another job of its task does. No bound
/// covers callbacks: a run measures the time from when a job was ready until its input is there, and subtracts it from
/// the response. Work that a bound shall cover is a host step.
class TaskProgram {
 public:
  virtual ~TaskProgram() = default;

  /// Begins a new run with so many buffer sets. The default does nothing.
  [[nodiscard]] virtual Expected<void> make_sets(DeviceBackend&, std::size_t /*sets*/) { return {}; }
  /// The memory of the buffers that its task names, which other tasks may read. The default has none.
  [[nodiscard]] virtual NamedMemory* memory() { return nullptr; }
  /// The sets were made, and those that it reads are known. The default does nothing.
  /// @param choices  that `bind` is called for: the buffer sets, where it reads no other task's
  virtual void sets_are_made(std::size_t /*choices*/) {}
  /// Makes or finds the buffers of one batch in one choice; called for each before the run starts. They outlive the
  /// run.
  /// @param batch  position among the batches of the task's job.
  [[nodiscard]] virtual Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation,
                                                                  std::size_t batch, std::size_t choice) = 0;
  /// Does what is to be done once before the first job, when every batch has been prepared and has run where the
  /// backend starts cold. The default does nothing.
  /// @errors any; the run then does not begin.
  [[nodiscard]] virtual Expected<void> on_start(Executor&) { return {}; }
  /// Whether jobs need `on_ready`. Without, they can start a thread's wake-up sooner.
  [[nodiscard]] virtual bool fills_input() const { return true; }
  /// Callback: a job has become ready, and its input is put into its buffer set. The job starts behind it. Where a GPU
  /// leads, it is called ahead, for the job that is expected to have that input.
  virtual void on_ready(const Job&) {}
  /// Does the work of one of the job's host steps. The default waits for its declared time. On a virtual clock work
  /// takes no time, so there the declared time passes as well.
  /// @param step  position among all steps of the task
  /// @errors any; the job then counts as failed.
  [[nodiscard]] virtual Expected<void> on_host_step(Job& job, std::size_t step);
  /// Does the work of a job whose task has no steps, but declares its Wcet. The default waits for that time.
  /// @errors any; the job then counts as failed.
  [[nodiscard]] virtual Expected<void> on_work(Job& job);
  /// Whether any of the callbacks below does something. Without, buffers are free a thread's wake-up sooner.
  [[nodiscard]] virtual bool hears_of_end() const { return true; }
  /// Whether code of the user can reach the memory of jobs. Results stay then until that code has heard of their end.
  [[nodiscard]] virtual bool is_reached() const { return true; }
  /// Callback: a job has ended without an error: the results in its buffer set can be read. They stay until this
  /// returns.
  virtual void on_finished(const Job&) {}
  /// Callback: a job ended without an error, and late. It follows `on_finished`.
  virtual void on_missed(const Job&, const JobRecord&) {}
  /// Callback: a job was dropped or skipped and never ran; it has no buffers. Left out where 64 others wait already.
  virtual void on_dropped(const Job&, const JobRecord&) {}
  /// Callback: a job failed, or was aborted; its results are invalid.
  virtual void on_failed(const Job&, const JobRecord&) {}
};

/// A program for a task without code of the user. It has the buffers that the task names; of one that names none, its
/// own for both ends of every transfer, and kernels write what later batches copy, as `data_flow` says. Data sent from
/// main memory is a seeded pattern.
///
/// It takes exactly the device memory that admission counts.
class PatternProgram final : public TaskProgram {
 public:
  /// @param users  memory of the program for the buffers that the task names; it outlives this, and may be null
  /// @param rings  as of `NamedMemory`
  PatternProgram(const Topology& machine, const Task& task, std::uint64_t seed, const UsersSlots* users = nullptr,
                 UsersRings rings = {})
      : machine_(machine),
        named_(machine, task.buffers, seed, users, std::move(rings)),
        flow_(data_flow(task)),
        seed_(seed),
        is_reached_(users != nullptr) {}

  [[nodiscard]] Expected<void> make_sets(DeviceBackend& backend, std::size_t sets) override;
  [[nodiscard]] NamedMemory* memory() override { return &named_; }
  [[nodiscard]] Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation,
                                                          std::size_t batch, std::size_t choice) override;
  [[nodiscard]] Expected<void> on_start(Executor& executor) override {
    return named_.fill_kept(executor, [](std::span<const HostBytes>) { return Expected<void>{}; });
  }
  [[nodiscard]] bool fills_input() const override { return false; }
  [[nodiscard]] bool hears_of_end() const override { return false; }
  [[nodiscard]] bool is_reached() const override { return is_reached_; }
  /// Memory of the buffers that the task names.
  [[nodiscard]] NamedMemory& named() { return named_; }
  [[nodiscard]] const NamedMemory& named() const { return named_; }

 private:
  Expected<BufferView> make_buffer(DeviceBackend& backend, VertexId where, Bytes size);
  Expected<BufferView> source_of(DeviceBackend& backend, const Transfer& transfer, const StreamFlow& flow,
                                 std::size_t buffer_set);

  Topology machine_;
  NamedMemory named_;
  std::vector<std::vector<StreamFlow>> flow_;  // [batches][streams]
  std::uint64_t seed_;
  bool is_reached_;  // memory of the program
  std::vector<Buffer> buffers_;
  /// Written by kernels, not yet given to a transfer: by set of buffers, batch and stream.
  std::map<std::tuple<std::size_t, std::size_t, std::size_t>, BufferView> outputs_;
};

}  // namespace tutti::internal
