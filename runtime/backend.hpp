#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/batch.hpp"
#include "model/timeline.hpp"
#include "runtime/buffer.hpp"

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

/// A batch with all that running it takes: what, when and on which data.
struct ExecutableBatch {
  BatchOperation batch;
  Timeline plan;                        ///< whose start offsets the streams keep
  std::vector<StreamBinding> bindings;  ///< [streams]
};

/// How a batch ended.
struct BatchResult {
  Duration start{};            ///< on the clock of the run
  Duration finish{};           ///< of the last stream
  std::optional<Error> error;  ///< what failed first; the data is then invalid
};

/// A batch as a backend has prepared it: it can be submitted again and again, one run at a time.
class BackendBatch {
 public:
  virtual ~BackendBatch() = default;

  /// Starts the batch's plan at an instant, which is not before the end of what was submitted earlier. Allocates
  /// nothing, never blocks.
  /// @pre its run before, if any, is finished.
  virtual void submit(Duration start) = 0;
  /// Whether its last run is finished. A poll lets the backend work: where time does not pass by itself, it moves on to
  /// the next event.
  [[nodiscard]] virtual bool poll() = 0;
  /// Returns when its last run is finished.
  virtual void wait() = 0;
  /// How the last run ended. @pre it is finished.
  [[nodiscard]] virtual BatchResult result() const = 0;
  /// What happened when in the last run, measured. @pre it is finished.
  [[nodiscard]] virtual Timeline measured() const = 0;
};

/// A machine that can really move bytes and run kernels.
///
/// To add one, write the functions below and those of `BackendBatch`, give it a row in `apps/tutti/backends.cpp`, and
/// add its factory to the conformance suite `tests/runtime/backend_conformance_test.cpp`.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// Memory in a memory module or a GPU, zeroed.
  /// @errors InvalidInput: no memory or GPU, a size below 0. Machine: not enough of it left.
  [[nodiscard]] virtual Expected<Buffer> allocate(VertexId where, Bytes size) = 0;
  /// Takes a batch in, so that `submit` needs nothing more. May allocate.
  /// @errors InvalidInput: an unknown kernel, a buffer too small or in the wrong place.
  [[nodiscard]] virtual Expected<std::unique_ptr<BackendBatch>> prepare(ExecutableBatch batch) = 0;
};

/// What is wrong with the bindings of a batch: count, places and sizes; nothing where all fit. For backends.
[[nodiscard]] Expected<void> check_bindings(const Topology& machine, const ExecutableBatch& batch);

}  // namespace tutti
