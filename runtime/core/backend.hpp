#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/batch/execution_plan.hpp"
#include "runtime/core/broken_bound.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/pinned_use.hpp"

namespace tutti::internal {

/// A view of memory with the name that the task has for it.
struct NamedView {
  std::string name;
  BufferView memory;
};

/// Memory and parameters of a kernel that names its buffers.
struct CallBinding {
  std::vector<NamedView> reads, writes;
  std::vector<std::byte> parameters;
};

/// Buffers and parameters of one stream of a batch.
struct StreamBinding {
  BufferView source;        ///< of its transfer; at least its size
  BufferView destination;   ///< of its transfer; at least its size
  BufferView kernel_input;  ///< of its kernel; where empty, the transfer's destination, as far as it was filled, if the
                            ///< kernel reaches it
  BufferView kernel_output;  ///< of its kernel; may be empty. Host work (a kernel on a cpu) has both in a memory
  std::vector<std::byte> parameters;    ///< for its kernel; may be empty
  std::vector<CallBinding> calls = {};  ///< [`Kernel::calls`] in place of the three above; empty: no memory
};

/// Commands of a batch whose end hardware records. Each record delays the commands behind it.
enum class Marks : std::uint8_t {
  Needed,  ///< where the host or a lane waits, at long commands, between copies and kernels; others are interpolated
  Each,    ///< at every command, to measure it
};

/// A plan with its data: everything that a backend needs to run it.
struct BoundPlan {
  ExecutionPlan plan;
  std::string name;                     ///< in messages: "batch 1 of task 'inspect'"
  std::vector<StreamBinding> bindings;  ///< [streams]
  Marks marks = Marks::Needed;
  /// A run starts whatever else is under way: the caller sees to it that no two use one copy engine or GPU at a time.
  /// Such a plan is of one stream.
  bool overlaps = false;
};

/// How a batch ended.
struct BatchResult {
  Duration start{};            ///< on the clock of the run
  Duration finish{};           ///< of the last stream
  std::optional<Error> error;  ///< the first failure; the data is then invalid
  Duration held_up{};          ///< sum of the pauses in which the host did not poll the run: the most by which it
                               ///< saw the end late
  Duration copies_held_up{};   ///< how long threads of the host that copy stood although they had work: the most by
                               ///< which the host has made the run longer; known once the run was reviewed
  std::optional<BoundCause> cause{};  ///< of the failure, where the backend knows why the run took so long
  Duration gates_late{};              ///< largest delay with which the host opened a gate of it
  int overruns = 0;  ///< kernels, or kernels in a row, that took longer than their declared worst; known once
                     ///< the run was reviewed
};

/// The job that a run of a batch is part of.
struct JobLabel {
  std::string_view task = {};  ///< its name; empty: the run is part of no job
  std::uint64_t index = 0;     ///< of the task's jobs
};

/// A batch prepared by a backend. It can be submitted repeatedly, one run at a time. Nothing here has a default, so
/// that a wrapper that forgets a function does not compile; `PlainBatch` has those of a batch that can do nothing
/// special.
class BackendBatch {
 public:
  virtual ~BackendBatch() = default;

  /// Prepares the next run, so that `submit` only releases it: on hardware all its commands are enqueued, held at
  /// gates. The backend allocates no memory until `submit`. A run that is armed and never submitted runs to its end
  /// when the batch is destroyed. Allocates nothing.
  /// @pre its run before, if any, is finished.
  virtual void arm() = 0;
  /// The same for a run that is submitted directly behind that of another batch, which is armed or under way: where the
  /// backend links runs, it starts as that one ends.
  virtual void arm_behind(BackendBatch& before) = 0;
  /// Undoes `arm`: the enqueued commands run to their end, and the run does not count.
  virtual void disarm() = 0;
  /// Names the job of the next run, for wrappers that tell runs apart (tracing, faults).
  /// @param job  its text is there until the run is finished
  virtual void belongs_to(const JobLabel& job) = 0;
  /// Lets the runs from the next one on take these times in place of the plan's: the bytes and kernels are the same.
  /// Only a simulated machine can do that; wrappers that make it slower or faster than its model ask for it.
  /// @param times  of the shape of the plan's, but for the segments of transfers
  /// @return whether it can
  /// @pre its run before, if any, is finished.
  [[nodiscard]] virtual bool follow(const Timeline& times) = 0;
  /// Starts the batch's plan at an instant, or when all runs submitted earlier are finished, whichever is later; that
  /// of a batch that overlaps at the instant. Allocates nothing, never blocks; arms the batch if it is not armed.
  /// @pre its run before, if any, is finished.
  virtual void submit(Duration earliest) = 0;
  /// Whether its last run is finished. A poll lets the backend work: where time does not pass by itself, the backend
  /// moves on to the next event, but where batches overlap, whose time passes as the caller waits.
  [[nodiscard]] virtual bool poll() = 0;
  /// Returns when its last run is finished.
  virtual void wait() = 0;
  /// How the last run ended. @pre it is finished.
  [[nodiscard]] virtual BatchResult result() const = 0;
  /// Reads the measurements of the last run, for `result().overruns` and `measured()`. This takes some microseconds, so
  /// waiting for a run does not include it. @pre it is finished, and not armed again.
  virtual void review() = 0;
  /// Measured timeline of the last run. @pre it is finished and was reviewed.
  [[nodiscard]] virtual Timeline measured() const = 0;
  /// Writes `measured()` into a timeline that is a copy of the plan or was written here before. The dispatcher's loop
  /// calls it, so a backend should allocate nothing here; that of `PlainBatch` allocates.
  virtual void measure(Timeline& into) const = 0;
};

class Baselines;
class LedRun;
struct LedSet;

/// A machine that can really move bytes and run kernels. It may be wrapped (tracing, faults): nothing asks what it is
/// behind this interface.
///
/// Nothing here has a default either: a wrapper hands each function on, or says in its own what it does instead.
///
/// To add one, derive from `PlainBackend` and `PlainBatch` (`runtime/core/plain_backend.hpp`), write what these leave
/// open and what the machine can do, make it in `runtime/dispatch/partition_machines.cpp`, give its word a row in
/// `apps/backend_words.cpp`, and add its factory to the conformance suite
/// `tests/runtime/core/backend_conformance_test.cpp`.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether the first run of a batch takes longer than later runs: it is then run once before deadlines count.
  [[nodiscard]] virtual bool starts_cold() const = 0;
  /// Whether a run that is submitted while another one is under way starts as that one ends, without the host. The
  /// batches of a job are then submitted together.
  [[nodiscard]] virtual bool links_runs() const = 0;
  /// Whether something that was submitted is not finished.
  [[nodiscard]] virtual bool busy() const = 0;
  /// Runs of batches that overlap may come until `end_overlapping`: what they use of the machine stays, and where the
  /// caller sleeps for longer than `next_event` their ends wake it.
  /// @param caller  outlives that
  virtual void begin_overlapping(Waker& caller) = 0;
  virtual void end_overlapping() = 0;
  /// Until when a caller may wait, and then poll, for runs of batches that overlap; `kNever`: none is under way, or
  /// their ends wake the caller.
  [[nodiscard]] virtual Duration next_event() const = 0;
  /// Lets copies that overlap share the bandwidths of this machine from now on, which outlives that; null: its own.
  /// Only a simulated machine can do that.
  virtual void share_as(const Topology* machine) = 0;
  /// Notes for a report on its runs: a sentence for everything that the host refused to this backend.
  [[nodiscard]] virtual std::vector<std::string> notes() const = 0;
  /// Processor time that its own threads have taken so far.
  [[nodiscard]] virtual Duration processor_time() const = 0;
  /// Pinned memory of the program, by NUMA node; empty: this backend pins none.
  [[nodiscard]] virtual std::vector<PinnedUse> pinned_memory() const = 0;
  /// Largest lag behind a plan that does not count as a broken bound: 0, unless the host simulates the machine.
  [[nodiscard]] virtual Duration tolerated_lag() const = 0;
  /// Other users of its devices, now or since it was made: a sentence each. Slow copies are then attributed to them.
  /// Not for the real-time path; a run asks before its first job and after its last.
  [[nodiscard]] virtual std::vector<std::string> foreign_load() const = 0;
  /// GPUs of the machine on which nothing can run any more, ascending. A run asks when an error of the machine has
  /// ended it.
  [[nodiscard]] virtual std::vector<VertexId> lost_gpus() = 0;
  /// The number that CUDA gives to a GPU in this process; below 0: its memory is not CUDA's.
  [[nodiscard]] virtual int cuda_device(VertexId gpu) const = 0;
  /// What the driver does without plans, on the same devices (`runtime/core/baselines.hpp`); null: nothing to compare
  /// with.
  [[nodiscard]] virtual Baselines* baselines() = 0;
  /// A job starts, and ends, for tools that show jobs beside what GPUs do (Nsight Systems). Several may be under way.
  /// Allocates nothing, and costs nothing where no tool is attached.
  /// @return what `end_job` takes; 0: nothing is shown
  [[nodiscard]] virtual std::uint64_t begin_job(const JobLabel& job) = 0;
  virtual void end_job(std::uint64_t shown) = 0;
  /// A run of a task set starts at this instant on the clock. For wrappers that count time from there.
  virtual void begin_run(Duration at) = 0;
  /// Allocates zeroed memory in a memory module or a GPU. Like `prepare`, whatever is armed or under way.
  /// @errors InvalidInput: no memory or GPU, a size below 0. Machine: not enough of it left.
  [[nodiscard]] virtual Expected<Buffer> allocate(VertexId where, Bytes size) = 0;
  /// The same, but it may hold what an earlier buffer of the program left in it: reuse of a large one takes
  /// microseconds then, and tens of milliseconds to be zeroed.
  [[nodiscard]] virtual Expected<Buffer> allocate_unwritten(VertexId where, Bytes size) = 0;
  /// A buffer of memory that the program has, which is neither copied nor freed: pinned memory of the host and memory
  /// of GPUs as they are; other memory of the host is pinned for the time of the buffer, unless it is for a pageable
  /// place. Freeing the buffer never waits for a run: where one is armed or under way, the memory stays pinned until
  /// `unpin_given_up` finds none, or until the program ends where a GPU was lost.
  /// @param owner  may be null; it goes when the buffer has gone and the memory is not pinned any more. The memory is
  ///               there until then.
  /// @errors InvalidInput: no memory or GPU, no address, memory of another place, memory in part of which another
  ///         buffer lies that pinned it. Machine: the host refuses to pin it.
  [[nodiscard]] virtual Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                              std::shared_ptr<void> owner) = 0;
  /// Unpins wrapped memory whose buffers have gone, if nothing is armed or under way; quick where there is none.
  virtual void unpin_given_up() = 0;
  /// Prepares a batch, so that `submit` needs nothing more. May allocate.
  /// @errors InvalidInput: an unknown kernel, a buffer too small or in the wrong place. Kernel, Machine: a
  ///         kernel that does more than enqueue, the driver's refusal.
  [[nodiscard]] virtual Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) = 0;
  /// Prepares a run whose jobs the machine itself leads (`runtime/core/led_run.hpp`), so that it needs nothing more of
  /// the host but runs that are armed ahead. The kernels of its plans have run once. May allocate.
  /// @errors InvalidInput: a plan that only the host can lead, with the reason; so is every one of a backend that has
  ///         no conductor. Machine: the driver's refusal.
  [[nodiscard]] virtual Expected<std::unique_ptr<LedRun>> lead(LedSet set) = 0;
  /// Gives kernels no more of their GPUs from now on than they have beside gates of jobs that a GPU leads
  /// (`conductor_sms` of the machine, above 0): their times are measured so. @pre no batch is prepared
  /// @errors Machine: the driver's refusal.
  [[nodiscard]] virtual Expected<void> set_gates_apart() = 0;
};

/// Sets each missing kernel input to the destination of its stream's transfer, where the kernel reaches that. For
/// backends.
/// @pre the bindings passed `check_bindings`.
void fill_kernel_inputs(const Batch& batch, std::span<StreamBinding> bindings);

/// All memory that the kernels of a stream use, with its part in messages. For backends.
[[nodiscard]] std::vector<std::pair<const BufferView*, std::string>> kernel_memory(const StreamBinding& binding);

/// Checks whether a buffer of this size can lie at this vertex. For backends.
[[nodiscard]] Expected<void> check_buffer_place(const Vertex& vertex, Bytes size);

/// Checks whether this memory can be a buffer at this vertex, as far as its address tells. For backends.
[[nodiscard]] Expected<void> check_wrapped(const Vertex& vertex, std::span<const std::byte> memory);

/// The error of an allocation that does not fit. For backends.
/// @param place  "gpu0"
[[nodiscard]] tl::unexpected<Error> does_not_fit(Bytes size, std::string_view place, Bytes used, Bytes total);

/// The error of a stream whose kernel of that name failed. For backends.
[[nodiscard]] Error kernel_failed(const CommandStream& stream, std::string_view kernel, std::string_view what);

/// Checks that a batch has so many streams.
[[nodiscard]] Expected<void> check_number_of_bindings(const Batch& batch, std::size_t bindings);

/// Checks the bindings of a batch: count, places and sizes. For backends.
[[nodiscard]] Expected<void> check_bindings(const Batch& batch, std::span<const StreamBinding> bindings);

}  // namespace tutti::internal
