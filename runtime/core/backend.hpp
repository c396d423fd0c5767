#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/batch.hpp"
#include "model/timeline.hpp"
#include "runtime/core/buffer.hpp"

namespace tutti {

/// What one stream of a batch works on.
struct StreamBinding {
  BufferView source;        ///< of its transfer; at least its size
  BufferView destination;   ///< of its transfer; at least its size
  BufferView kernel_input;  ///< of its kernel; where empty, the transfer's destination, as far as it was filled, if the
                            ///< kernel reaches it
  BufferView kernel_output;  ///< of its kernel; may be empty. Host work (a kernel on a cpu) has both in a memory
  std::vector<std::byte> parameters;  ///< for its kernel; may be empty
};

/// At which commands of a batch it is noted when they end, on hardware: each note delays what comes behind it.
enum class Marks : std::uint8_t {
  Needed,  ///< where somebody waits, at long commands, between copies and kernels; the times of others are interpolated
  Each,    ///< at every command, to measure it
};

/// A batch with all that running it takes: what, when and on which data.
struct ExecutableBatch {
  Batch batch;
  Timeline plan;     ///< whose start offsets the streams keep
  std::string name;  ///< in messages: "batch 1 of task 'inspect'"
  Bytes pace;        ///< transfers are cut into chunks of this size, each at its planned instant; 0:
                     ///< only the start of a stream is timed. A simulated machine keeps to its plan anyway
  std::vector<StreamBinding> bindings;  ///< [streams]
  Marks marks = Marks::Needed;
};

/// How a batch ended.
struct BatchResult {
  Duration start{};            ///< on the clock of the run
  Duration finish{};           ///< of the last stream
  std::optional<Error> error;  ///< what failed first; the data is then invalid
  Duration held_up{};          ///< in all, in pauses in which the host did not look at the run: it saw the end so much
                               ///< later, or less
  int overruns = 0;            ///< kernels, or kernels in a row, that took longer than their declared worst; known once
                               ///< the run was reviewed
};

/// A batch as a backend has prepared it: it can be submitted again and again, one run at a time.
class BackendBatch {
 public:
  virtual ~BackendBatch() = default;

  /// Gets the next run ready, so that `submit` only releases it: on hardware all its commands are enqueued, held at
  /// gates. Until then the backend gives no memory. What is armed and never submitted runs through when the batch goes.
  /// Allocates nothing.
  /// @pre its run before, if any, is finished.
  virtual void arm() {}
  /// Undoes `arm`: what was enqueued runs through, and counts for nothing. Who has armed several batches disarms all
  /// before one goes, since its memory could not be given back while the others' gates are closed.
  virtual void disarm() {}
  /// Starts the batch's plan at an instant, or when what was submitted earlier is finished, whichever is later.
  /// Allocates nothing, never blocks; arms what is not armed.
  /// @pre its run before, if any, is finished.
  virtual void submit(Duration earliest) = 0;
  /// Whether its last run is finished. A poll lets the backend work: where time does not pass by itself, it moves on to
  /// the next event.
  [[nodiscard]] virtual bool poll() = 0;
  /// Returns when its last run is finished.
  virtual void wait() = 0;
  /// How the last run ended. @pre it is finished.
  [[nodiscard]] virtual BatchResult result() const = 0;
  /// Reads what the last run measured, for `result().overruns` and `measured()`: some microseconds that nobody needs
  /// who only waits for the run. @pre it is finished, and not armed again.
  virtual void review() {}
  /// What happened when in the last run, measured. @pre it is finished and was reviewed.
  [[nodiscard]] virtual Timeline measured() const = 0;
  /// The same into a timeline that is a copy of the plan, or was written here before. The dispatcher's loop asks, so
  /// what can be written without taking memory is; the default takes some.
  virtual void measure(Timeline& into) const { into = measured(); }
};

/// A machine that can really move bytes and run kernels.
///
/// To add one, write the functions below and those of `BackendBatch`, give it a row in `apps/backends.cpp`, and
/// add its factory to the conformance suite `tests/runtime/core/backend_conformance_test.cpp`.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Whether the first run of a batch takes longer than those after it: before deadlines count it is run once.
  [[nodiscard]] virtual bool starts_cold() const { return false; }
  /// Whether something that was submitted is not finished.
  [[nodiscard]] virtual bool busy() const = 0;
  /// What a report on its runs must say: a sentence for everything that this host refused to it.
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
  /// So far behind its plans this backend may fall before that counts as a broken bound: nothing, unless the host only
  /// plays the machine.
  [[nodiscard]] virtual Duration tolerated_lag() const { return {}; }
  /// Who else uses its devices now, or did since it was made: a sentence each. Slow copies are then put down to them.
  /// Not for the real-time path; a run asks before its first job and after its last.
  [[nodiscard]] virtual std::vector<std::string> foreign_load() const { return {}; }
  /// Memory in a memory module or a GPU, zeroed.
  /// @errors InvalidInput: no memory or GPU, a size below 0. Machine: not enough of it left, or a batch is armed.
  [[nodiscard]] virtual Expected<Buffer> allocate(VertexId where, Bytes size) = 0;
  /// Takes a batch in, so that `submit` needs nothing more. May allocate.
  /// @errors InvalidInput: an unknown kernel, a buffer too small or in the wrong place. Kernel, Machine: a
  ///         kernel that does more than enqueue, the driver's refusal.
  [[nodiscard]] virtual Expected<std::unique_ptr<BackendBatch>> prepare(ExecutableBatch batch) = 0;
};

/// Gives every kernel without an input what its stream's transfer brings to where it runs. For backends.
void fill_kernel_inputs(const Topology& machine, ExecutableBatch& batch);

/// Whether a buffer of that size can lie there. For backends.
[[nodiscard]] Expected<void> check_buffer_place(const Vertex& vertex, Bytes size);

/// The sentence of memory that is not there. For backends.
/// @param place  "gpu0"
[[nodiscard]] tl::unexpected<Error> does_not_fit(Bytes size, std::string_view place, Bytes used, Bytes total);

/// The sentence of a stream whose kernel failed. For backends.
[[nodiscard]] Error kernel_failed(const CommandStream& stream, std::string_view what);

/// What is wrong with the bindings of a batch: count, places and sizes; nothing where all fit. For backends.
[[nodiscard]] Expected<void> check_bindings(const Topology& machine, const ExecutableBatch& batch);

}  // namespace tutti
