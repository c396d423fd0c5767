#pragma once
#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/api/job_memory.hpp"
#include "runtime/api/run.hpp"
#include "runtime/dispatch/dispatcher.hpp"
#include "runtime/dispatch/task_program.hpp"

namespace tutti::internal {

/// Calls the user's callbacks and catches what they throw: the first exception ends the run and becomes its error. Any
/// thread of the run may call it.
class CallbackGuard {
 public:
  /// @param stop  set where a callback throws
  explicit CallbackGuard(std::atomic<bool>& stop) : stop_(&stop) {}

  /// @return the exception as an error.
  /// @param name  of the callback
  template <class Call>
  Expected<void> call(std::string_view name, std::string_view task, const Call& callback) noexcept {
    try {
      callback();
      return {};
    } catch (const std::exception& exception) {
      return failed(name, task, exception.what());
    } catch (...) {
      return failed(name, task, "it threw something that is no std::exception");
    }
  }
  /// As `call`, and the exception ends the run.
  template <class Call>
  void call_or_stop(std::string_view name, std::string_view task, const Call& callback) noexcept {
    if (auto ok = call(name, task, callback); !ok) end_run(std::move(ok.error()));
  }
  /// First exception that ended the run. @pre the run is over
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  [[nodiscard]] static tl::unexpected<Error> failed(std::string_view name, std::string_view task,
                                                    std::string_view what) {
    return tl::unexpected(Error{
        ErrorCode::Kernel, fmt::format("{} of task '{}' threw: {}; catch it in the callback", name, task, what), {}});
  }
  void end_run(Error error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    stop_->store(true, std::memory_order_relaxed);
  }

  std::atomic<bool>* stop_;
  std::mutex mutex_;
  std::optional<Error> error_;
};

/// A record as users see it.
/// @param task  its task
[[nodiscard]] tutti::JobRecord record_of(const JobRecord& job, const Task& task);

/// A task's callbacks, with buffers for its jobs.
class UserProgram final : public TaskProgram {
 public:
  /// What is passed in outlives the program.
  /// @param position  of the task in its set
  /// @param users     null: the task has no code of the user
  UserProgram(const Topology& machine, const Task& task, std::size_t position, std::uint64_t seed,
              const tutti::TaskProgram* users, CallbackGuard& guard);

  [[nodiscard]] Expected<void> make_sets(DeviceBackend& backend, std::size_t sets) override;
  [[nodiscard]] NamedMemory* memory() override { return buffers_.memory(); }
  void sets_are_made(std::size_t choices) override;
  [[nodiscard]] Expected<std::vector<StreamBinding>> bind(DeviceBackend& backend, const Batch& operation,
                                                          std::size_t batch, std::size_t choice) override;
  [[nodiscard]] Expected<void> on_start(Executor& executor) override;
  [[nodiscard]] bool fills_input() const override;
  void on_ready(const Job& job) override;
  [[nodiscard]] Expected<void> on_host_step(Job& job, std::size_t step) override;
  [[nodiscard]] bool hears_of_end() const override;
  [[nodiscard]] bool is_reached() const override;
  void on_finished(const Job& job) override;
  void on_missed(const Job& job, const JobRecord& record) override;
  void on_dropped(const Job& job, const JobRecord& record) override;
  void on_failed(const Job& job, const JobRecord& record) override;

  /// A note where its code asks for memory by the positions of streams, though the task names its buffers.
  [[nodiscard]] std::optional<std::string> note_on_positions() const;

 private:
  [[nodiscard]] tutti::Job job_of(const Job& job) const;
  [[nodiscard]] tutti::JobRecord users_record(const JobRecord& record) const;
  [[nodiscard]] std::span<std::byte> host_bytes(const BufferView& buffer) const;
  [[nodiscard]] std::vector<JobMemory::Ends> own_ends(const Batch& operation, std::vector<JobMemory::Ends> ends) const;

  const Topology* machine_;
  const Task* task_;
  std::size_t position_;
  const tutti::TaskProgram* users_;
  CallbackGuard* guard_;
  PatternProgram buffers_;
  PositionUse positions_;
  std::size_t sets_ = 0;           // of buffers
  std::deque<JobMemory> choices_;  // of jobs that have started
  std::deque<JobMemory> own_;      // [sets] of jobs that have not, where they read others' buffers
};

/// @errors InvalidInput: a program for a task that the set has not, memory or a ring for a buffer that it has not, a
/// ring
///         that does not fit the buffer or the jobs that can be alive.
[[nodiscard]] Expected<void> check_programs(const TaskSet& set, const TaskPrograms& programs);

/// The rings of the programs of a run, which no other run has meanwhile.
class TakenRings {
 public:
  TakenRings() = default;
  TakenRings(const TakenRings&) = delete;  // it gives them back once
  TakenRings& operator=(const TakenRings&) = delete;
  ~TakenRings();

  /// @errors InvalidInput: another run or buffer has one.
  [[nodiscard]] Expected<void> take(const TaskPrograms& programs);

 private:
  std::vector<std::shared_ptr<SlotRing>> rings_;
};

/// A program for each task of a set.
class UserPrograms {
 public:
  /// What is passed in outlives them.
  UserPrograms(const TaskSet& set, const TaskPrograms& programs, std::uint64_t seed, CallbackGuard& guard);

  /// [tasks]
  [[nodiscard]] std::span<TaskProgram* const> table() const { return table_; }
  /// Of each task, what its program should do otherwise.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  std::vector<std::unique_ptr<UserProgram>> programs_;
  std::vector<TaskProgram*> table_;
};

}  // namespace tutti::internal
