#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/api/ring.hpp"
#include "runtime/api/runtime.hpp"
#include "runtime/api/tasks.hpp"
#include "runtime/api/trigger.hpp"

namespace tutti {

namespace internal {
struct ChangeRequestsState;
class HeldSlot;
class JobMemory;
}  // namespace internal

/// A job, for the code of its task: valid during the call alone.
class TUTTI_API Job {
 public:
  std::size_t task = 0;     ///< position in the task set
  std::uint64_t index = 0;  ///< of the task's jobs, from 0
  Duration arrival{};       ///< on the clock of the run
  Duration deadline{};      ///< absolute

  /// Host memory that a stream's transfer starts from; empty where that lies in a GPU, and where there is no such
  /// stream. Where the task names its buffers this is deprecated, as `destination` is: the run gets a note, and the
  /// next version has `buffer` alone for them.
  /// @param batch   position among the batches of the task's job
  /// @param stream  position in the batch
  [[nodiscard]] std::span<std::byte> source(std::size_t batch, std::size_t stream) const;
  /// Host memory that a stream's transfer ends in; empty as above.
  [[nodiscard]] std::span<std::byte> destination(std::size_t batch, std::size_t stream) const;
  /// A buffer that the task names, of this job or kept; empty where it lies in a GPU, and where there is none of that
  /// name. That of another task, "TASK.BUFFER", is what its newest complete job left when this job started, zeros
  /// before the first one; it is to be read alone, and is empty in `on_ready`, before the start.
  [[nodiscard]] std::span<std::byte> buffer(std::string_view name) const;
  /// The slot that the job has for a buffer, where that lies in a ring of the program (`TaskProgram::rings`); nothing
  /// where it does not, and for a job that was dropped.
  [[nodiscard]] std::optional<RingSlot> slot(std::string_view buffer) const;
  /// Whether a later job runs into the buffers of this one, or has, since its task says `LateConsumer::Overwrite`: then
  /// what was read of them is not whole. To be asked in `on_finished`, behind reading.
  [[nodiscard]] bool overwritten() const;

 private:
  friend struct internal::Handles;
  const internal::JobMemory* memory_ = nullptr;
  std::span<const internal::HeldSlot> slots_ = {};
  std::uint64_t* taken_ = nullptr;
  std::uint64_t whole_until_ = 0;
};

/// The buffers of a task that are kept, before its first job: valid during the call alone.
class TUTTI_API KeptBuffers {
 public:
  /// Host memory for what a kept buffer is to hold, zeroed. That of a GPU's buffer is copied there behind the call.
  /// Empty where no buffer of that name is kept.
  [[nodiscard]] std::span<std::byte> buffer(std::string_view name) const;

 private:
  friend struct internal::Handles;
  const internal::JobMemory* memory_ = nullptr;
};

/// Which of a job's host steps it is. Code may take the one or the other as its parameter.
struct HostStepName {
  std::size_t position = 0;    ///< among all steps of the job
  std::string_view name = {};  ///< that the task set has for it; empty: none

  operator std::size_t() const { return position; }   // NOLINT: a parameter `std::size_t step` is enough
  operator std::string_view() const { return name; }  // NOLINT: so is a parameter `std::string_view step`
};

struct JobRecord;

/// User's code of one task. Members may be empty. Host steps are done by the thread that dispatches jobs, or where jobs
/// overlap by one of their own. All other members but `parameters` are callbacks: a thread beside it calls them, for
/// tasks that share parts of the machine one at a time, so that none holds up the jobs of others. A callback may run
/// while a step of another job of its task does.
///
/// No bound covers callbacks: a run measures the time until a job's input is there and subtracts it from its response.
/// Work that a bound shall cover is a host step.
///
/// A run allocates the buffers of all its jobs: those that the task names, or else one for each end of a transfer.
/// Without names, memory of GPUs that a kernel's stream filled and that a later batch of the job copies back, as large,
/// is that kernel's output.
struct TaskProgram {
  /// A job is ready: its input is put into its buffers. It starts behind this. Where a GPU leads, this is called ahead
  /// of jobs, as soon as buffers are free, and for the first ones before the run, where arrivals count from its start.
  /// The job has the index of the one that is expected to have this input: a later one has it where one before is
  /// dropped.
  std::function<void(const Job&)> on_ready = {};
  /// Does the work of a host step; empty: its declared time passes. An error or an exception fails the job.
  std::function<Expected<void>(const Job&, HostStepName step)> on_host_step = {};
  /// A job has ended without an error: its results can be read. They stay until this returns, unless the task says
  /// `LateConsumer::Overwrite`: see `Job::overwritten`. Then it is not called where they are overwritten already, or
  /// it is still called for the job before in these buffers; the record says so.
  std::function<void(const Job&)> on_finished = {};
  /// A job ended without an error, and late; it follows `on_finished`. Here and below overruns and broken bounds are
  /// not known yet.
  std::function<void(const Job&, const JobRecord&)> on_missed = {};
  /// A job never ran: its task had no buffers free, or skips it. It has no memory. Of more than 64 at once some are
  /// left out here, and stand in the record of the run.
  std::function<void(const Job&, const JobRecord&)> on_dropped = {};
  /// A job failed or was aborted: its results are invalid.
  std::function<void(const Job&, const JobRecord&)> on_failed = {};
  /// Memory of the program's own for buffers that the task names, of the host or of a GPU, which is neither copied nor
  /// freed: a slot for each of its 'slots', or for each job that can be alive, which jobs take in turn (job i has slot
  /// i modulo their number), unless other tasks read it: then any that is free, of one more and one for each of their
  /// jobs; of a kept buffer one. Slots of a buffer that jobs write have no bytes in common. It outlives
  /// the run. What jobs write of it may be written before the first job, too. See `Runtime::wrap`.
  std::map<std::string, std::vector<std::span<std::byte>>, std::less<>> memory = {};
  /// Rings of the program for buffers that the task names: a job has the newest complete slot, where `memory` gives it
  /// the next. What jobs read and do not write, in a buffer without `slots` and `keep` that no other task reads. Each
  /// job that can be alive is prepared with each slot: 1024 combinations at most. See `Ring`.
  std::map<std::string, Ring, std::less<>> rings = {};
  /// Fills the kept buffers, before the first job, but those in `memory`; and once more where the run goes on behind a
  /// lost GPU.
  std::function<void(const KeptBuffers&)> on_start = {};
  /// Parameters of a stream's kernel, or of each of them; asked before the run starts.
  std::function<std::vector<std::byte>(std::size_t batch, std::size_t stream)> parameters = {};
};

/// Programs by the names of their tasks. A task without one has random input.
using TaskPrograms = std::map<std::string, TaskProgram>;

/// Why a job took longer than its bound, or one of its batches longer than its latest finish.
struct BrokenBound {
  std::string_view cause;  ///< trigger, release, gate, blocking, transfer, kernel, host, dispatch, foreign or unknown
  Duration excess{};       ///< beyond the bound
  std::optional<std::size_t> by = {};  ///< of "blocking": the task whose jobs took the most beyond their worst
};

/// Record of one job. Times are from the start of the run.
struct JobRecord {
  std::size_t task = 0;     ///< position in the task set
  std::uint64_t index = 0;  ///< of the task's jobs, from 0
  Duration arrival{};
  Duration start{};
  std::optional<Duration> finish = {};  ///< absent: it was never run
  Duration deadline{};                  ///< absolute
  std::optional<Error> error = {};      ///< its results are invalid
  int overruns = 0;                     ///< kernels that took longer than their declared worst
  Duration programs{};                  ///< from when it was ready until its program had filled its buffers
  std::optional<BrokenBound> broken = {};
  std::string_view verdict = "met";  ///< met, missed, failed, aborted, dropped, skipped or never_run
  std::string task_name = {};
  bool overwritten = false;   ///< its program did not have its results whole, or not at all: see `Job::overwritten`
  bool reused_input = false;  ///< its input was that of an earlier job, since its task says `LateInput::Reuse`
  std::optional<Duration> seen = {};  ///< when the host had its record; absent: the host led it, or it never ran

  /// Whether it met no deadline although it was released.
  [[nodiscard]] bool missed() const {
    return verdict == "missed" || verdict == "dropped" || verdict == "skipped" || verdict == "aborted";
  }
  /// Whether something broke: the machine, a kernel or a program, or no buffers were left for it.
  [[nodiscard]] bool has_failed() const { return verdict == "failed" || verdict == "dropped"; }
  /// Response time that a bound limits: from the arrival to the finish, without `programs`; absent: it was never run.
  [[nodiscard]] std::optional<Duration> response() const {
    return finish ? std::optional(*finish - arrival - programs) : std::nullopt;
  }
};

/// A request to a task set that runs: one task leaves, one comes, or one takes the place of another.
struct TaskChange {
  Duration at{};            ///< from the start of the run; it is answered then or soon after
  std::string leaves = {};  ///< name of a task; empty: none
  std::string comes = {};   ///< name of a task; empty: none
};

/// A request and its answer.
struct ChangeRecord {
  TaskChange change;
  Duration answered{};              ///< when
  Answer answer = Answer::Unknown;  ///< only `Schedulable` changed something
  std::string reason = {};          ///< why not, in a sentence
};

/// What became of the triggers of a task.
struct TriggerCounts {
  std::uint64_t seen = 0;      ///< in all
  std::uint64_t deferred = 0;  ///< early: their jobs arrived as soon as the period allowed
  std::uint64_t dropped = 0;   ///< early, by policy or by a period and more: they released no job
  std::uint64_t missing = 0;   ///< so often none came for the time after which one is missing
  std::uint64_t lost = 0;      ///< more came than could be kept until they were seen
  Duration most_early{};       ///< before the period allowed it
};

/// The jobs of one task in a run, in bounded memory.
struct TaskSummary {
  std::uint64_t jobs = 0;  ///< that were released
  std::uint64_t met = 0, missed = 0, aborted = 0, failed = 0;
  std::uint64_t dropped = 0;    ///< never run, since the task had no buffers free
  std::uint64_t skipped = 0;    ///< never run, by `OverrunPolicy::SkipNext`
  std::uint64_t never_run = 0;  ///< ready when the run ended
  std::uint64_t over_bound = 0;
  Duration worst_response{};       ///< of the jobs that ended without an error; 0 of none
  Duration worst_lateness{};       ///< from when a job was ready, and the dispatcher free, until that was seen
  TriggerCounts triggers = {};     ///< of a task whose release is external
  std::uint64_t overwritten = 0;   ///< jobs whose program did not have their results whole
  std::uint64_t reused_input = 0;  ///< jobs that had the input of an earlier one
  std::optional<Duration> worst_response_at_host = {};  ///< until the host had the record, where a GPU led
};

/// What came of tasks that share a part of the machine, when GPUs of it were lost: those that need none of them were
/// admitted anew and went on. Other tasks were not disturbed. Times are from the start of the run.
struct Replanning {
  Duration at{};                            ///< when the jobs had ended that were under way
  std::vector<std::string> gpus;            ///< that were lost
  std::vector<std::string> ended;           ///< tasks that need one of them
  std::vector<std::string> resumed;         ///< tasks that went on
  std::optional<Duration> resumed_at = {};  ///< when; absent: none did
  std::vector<std::string> refused = {};    ///< tasks that need none of them and did not go on
  std::string reason = {};                  ///< why not
};

/// What a run kept of the latency of a cause-effect chain: the time from an event that its first task can observe to
/// the end of the first job of its last task whose output depends on it.
struct ChainSummary {
  std::string chain;
  std::uint64_t reactions = 0;  ///< events whose effect the run has
  std::optional<Duration> worst_reaction = {};
  std::optional<Duration> worst_data_age = {};      ///< of what the last task puts out, until the next takes its place
  std::optional<Duration> bound = {};               ///< of both
  std::uint64_t over_bound = 0, over_deadline = 0;  ///< reactions
};

/// Record of a run.
struct RunRecord {
  std::vector<JobRecord> jobs;         ///< in the order in which they ended; none of an endless run
  std::vector<TaskSummary> summaries;  ///< [tasks]
  bool interrupted = false;            ///< by `RunOptions::stop`
  std::optional<Error> fatal = {};     ///< failure of the machine, the host or a program that ended the run early
  std::vector<ChangeRecord> changes;   ///< in the order of the answers
  std::vector<std::string>
      notes;  ///< what the host refused, other users of the devices, deprecated calls: a sentence each
  /// In order of time. `fatal` is the error of the first loss, and tasks that went on have jobs behind it.
  std::vector<Replanning> replanned = {};
  std::vector<ChainSummary> chains = {};  ///< [chains] of the set; of an endless run none
  /// How long the host could be away while a GPU led the jobs; `Duration::max()`: until the end. Absent: the host led.
  std::optional<Duration> host_away = {};
  /// The start of the run on the timer of the GPU that led it (`%globaltimer`), ns, from which arrivals count: for
  /// kernels that read it. Absent: the host led, or several GPUs.
  std::optional<std::uint64_t> start_on_gpu = {};
};

struct RunOptions {
  BackendOptions backend = {};
  std::optional<std::uint64_t> jobs = {};        ///< number of arrivals, all tasks together
  std::optional<Duration> arrivals_before = {};  ///< arrivals before this instant; neither: one hyperperiod
  bool endless = false;           ///< until `stop` is set, in bounded memory; neither of the above is given then
  std::string journal = {};       ///< a file into which each job is written while the set runs; `tutti report` reads it
  Bytes journal_size{};           ///< a file of that size is followed by another; 0: never
  std::size_t journal_files = 0;  ///< with `journal_size`: the newest so many files are kept; 0: all
  std::uint64_t seed = 1;         ///< of release jitter and random input
  /// By tasks whose release is external. Those without one have the word in shared memory that the set names; on the
  /// virtual clock a simulated device fires them once a period.
  std::map<std::string, Trigger> triggers = {};
  /// Called when a job has ended, as the callbacks of programs; overruns and broken bounds are known behind the run.
  std::function<void(const JobRecord&)> on_job_end = {};
  std::atomic<bool>* stop = nullptr;  ///< set by the user, and by a callback that throws: the job under way is the last
};

/// Runs an admitted task set. Deadlines are guaranteed where the machine is as its file says.
///
/// Parts of the set that share nothing of the machine run side by side, each in a thread of its own where time is real.
/// @errors InvalidInput: a program for a task that the set has not, a ring that another run or buffer has, that has
/// fewer
///         slots than jobs can be alive and two, or lies where jobs write, more than 10 million jobs, an endless run
///         with a number of jobs or a time, a journal that may not be written, an empty handle; and as `Runtime::open`
///         and `Runtime::prepare`. Kernel: a callback threw; its message is in the error.
[[nodiscard]] TUTTI_API Expected<RunRecord> run(const AdmittedTaskSet& set, const Kernels& kernels = {},
                                                const TaskPrograms& programs = {}, const RunOptions& options = {});

/// Requests to change a task set while it runs. Copies of a handle share them; any thread may post.
class TUTTI_API ChangeRequests {
 public:
  /// @errors InvalidInput: an empty handle.
  [[nodiscard]] static Expected<ChangeRequests> make(const TaskSet& set);

  /// Posts a request. The run answers it behind the job that has the machine, or within 50 ms if no job has it.
  /// @errors InvalidInput: no such task, neither task is named, both are the same, an empty handle.
  [[nodiscard]] Expected<void> post(const TaskChange& change);

 private:
  friend struct internal::Handles;
  using State = internal::ChangeRequestsState;
  explicit ChangeRequests(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// Runs the set of these requests, whose tasks come and go. Every deadline is guaranteed at every moment: a request
/// that would endanger one is refused. All tasks of the set are prepared before the run.
/// @param running  names of the tasks that run from the start; they must be schedulable
/// @param options  `arrivals_before` must be given, and `jobs` not
/// @errors as `run`; InvalidInput: no such task, tasks that are not schedulable, strictly periodic arrivals, requests
///         that a run has.
[[nodiscard]] TUTTI_API Expected<RunRecord> run_changing(const ChangeRequests& requests,
                                                         const std::vector<std::string>& running,
                                                         const Kernels& kernels, const TaskPrograms& programs,
                                                         const RunOptions& options, std::string_view planner = {});

}  // namespace tutti
