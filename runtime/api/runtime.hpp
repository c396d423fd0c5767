#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/api/batch.hpp"
#include "runtime/api/kernels.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/core/pinned_use.hpp"

/// A tensor as libraries share it; of <dlpack/dlpack.h>, version 1.
struct DLManagedTensorVersioned;

namespace tutti {

namespace internal {
struct BufferState;
struct RunsOfBatch;
struct RuntimeState;
}  // namespace internal

/// Memory of the machine. Copies of a handle share it, and so do parts and prepared batches; it is freed with the last
/// of them.
class TUTTI_API Buffer {
 public:
  Buffer() = default;  ///< no memory

  [[nodiscard]] Bytes size() const { return size_; }
  /// Memory or GPU that it lies in; empty without memory.
  [[nodiscard]] std::string place() const;
  /// Address in its place, which the host may access only in a memory.
  [[nodiscard]] std::byte* data() const;
  /// Its bytes; empty where it lies in a GPU.
  [[nodiscard]] std::span<std::byte> bytes() const;
  /// `size` bytes from `offset` on.
  /// @errors InvalidInput: there are fewer.
  [[nodiscard]] Expected<Buffer> part(Bytes offset, Bytes size) const;

 private:
  friend struct internal::Handles;
  Buffer(std::shared_ptr<internal::BufferState> state, Bytes size) : state_(std::move(state)), size_(size) {}

  std::shared_ptr<internal::BufferState> state_;
  Bytes offset_;
  Bytes size_;
};

/// Memory and parameters of one of several kernels of a stream.
struct KernelBinding {
  std::vector<Buffer> reads = {}, writes = {};  ///< what is in both is changed in place
  std::vector<std::byte> parameters = {};
};

/// Buffers and parameters of one stream.
struct StreamBinding {
  Buffer source;                            ///< of its transfer; at least its size
  Buffer destination;                       ///< of its transfer; at least its size
  Buffer kernel_input = {};                 ///< of its kernel; empty: the transfer's destination
  Buffer kernel_output = {};                ///< of its kernel; may be empty
  std::vector<std::byte> parameters = {};   ///< for its kernel; may be empty
  std::vector<KernelBinding> kernels = {};  ///< [`StreamSpec::kernels`] in place of the three above; empty: no memory
};

/// How a run of a batch ended; times on the clock of the runtime.
struct BatchResult {
  Duration start{};
  Duration finish{};  ///< of the last stream
  int overruns = 0;   ///< kernels, or kernels in a row, that took longer than their declared worst

  [[nodiscard]] Duration latency() const { return finish - start; }
};

/// A batch that is ready to run repeatedly. Move-only; its memory and its runs outlive it as long as they are needed.
class TUTTI_API PreparedBatch {
 public:
  PreparedBatch(PreparedBatch&&) noexcept = default;
  PreparedBatch& operator=(PreparedBatch&&) noexcept = default;
  PreparedBatch(const PreparedBatch&) = delete;  // its runs in flight are counted in one place
  PreparedBatch& operator=(const PreparedBatch&) = delete;

 private:
  friend struct internal::Handles;
  using State = internal::RunsOfBatch;
  explicit PreparedBatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// One run of a batch, from its issue to its synchronization. Move-only. A run that is dropped runs to its end; the
/// last handle of a batch waits for that.
class TUTTI_API BatchRun {
 public:
  BatchRun(BatchRun&& other) noexcept;
  BatchRun& operator=(BatchRun&& other) noexcept;
  BatchRun(const BatchRun&) = delete;  // a run is synchronized once
  BatchRun& operator=(const BatchRun&) = delete;
  ~BatchRun();

 private:
  friend struct internal::Handles;
  BatchRun(std::shared_ptr<internal::RunsOfBatch> state, std::size_t place) : state_(std::move(state)), place_(place) {}

  std::shared_ptr<internal::RunsOfBatch> state_;
  std::size_t place_ = 0;
};

/// A machine that runs batches, one after the other in the order of issue, each atomically. Move-only.
///
/// One call at a time uses a runtime and what was made from it: a second thread, and a kernel of it, are refused
/// (InvalidInput). It lives on until the last buffer and the last batch of it is gone. With GPUs a thread of it takes a
/// core, which the calling thread then stays off.
class TUTTI_API Runtime {
 public:
  /// Opens a machine.
  /// @param planner  name of the planner of its batches; empty: the default
  /// @errors InvalidInput: no such planner, a virtual clock for GPUs, GPUs that are bound twice or not at all, an empty
  ///         handle. Machine: no CUDA backend, driver or GPU as the machine needs it.
  [[nodiscard]] static Expected<Runtime> open(const Machine& machine, const Kernels& kernels = {},
                                              const BackendOptions& options = {}, std::string_view planner = {});
  Runtime(Runtime&&) noexcept = default;
  Runtime& operator=(Runtime&&) noexcept = default;
  Runtime(const Runtime&) = delete;  // it owns devices
  Runtime& operator=(const Runtime&) = delete;

  /// Allocates zeroed memory in a memory or a GPU. Memory for GPUs is pinned.
  /// @errors InvalidInput: no such memory or GPU, a size below 0. Machine: not enough of it left.
  [[nodiscard]] Expected<Buffer> allocate(std::string_view place, Bytes size);
  /// The same, but it may hold what an earlier buffer left in it. Memory that is reused then takes no time to zero.
  [[nodiscard]] Expected<Buffer> allocate_unwritten(std::string_view place, Bytes size);
  /// A buffer of memory that the program has: an image, a camera's ring, a tensor of a library. Nothing is copied, and
  /// it is never freed here. Pinned memory of the host and memory of GPUs are taken as they are, and stay so; other
  /// memory of the host is pinned, which takes some 0.2 ms a MiB, unless the machine calls its place pageable. What
  /// reaches over the end of pinned memory is refused: wrap the whole once, and then what lies in it. On the simulated
  /// machine memory of the host stands for that of any place.
  ///
  /// Memory is unpinned when its buffers have gone and no run of the program is armed or under way, at the end of a
  /// call of a runtime; the driver then waits for what other streams of the program run. So wrap what is used again
  /// once, and keep its buffer. What a lost GPU may use stays pinned.
  /// @param memory  stays until `owner` goes; without an owner let its buffers go while no run is armed or under way
  /// @param owner   goes when the memory is not used any more, in a call of any runtime; may be null
  /// @errors InvalidInput: no such memory or GPU, no address, memory of a GPU that is not the place, memory of the host
  ///         for a GPU, managed memory, memory that is pinned in part. Machine: the host refuses to pin it.
  ///
  ///     std::vector<std::byte> image(1 << 20);
  ///     auto buffer = runtime.wrap("mem0", image);
  [[nodiscard]] Expected<Buffer> wrap(std::string_view place, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner = nullptr);
  /// A buffer of a tensor's memory, as `wrap`. No batch writes that of a tensor which is read-only; the program is not
  /// kept from it.
  /// @param tensor  contiguous, of this process. It is the runtime's where this succeeds: its deleter is called in a
  ///                call of any runtime, when the memory is not used any more
  /// @errors as `wrap`; InvalidInput: no tensor, another version, elements that do not follow each other, a tensor that
  ///         lies on another device. It stays the caller's then.
  ///
  ///     // `tensor`: of the capsule that Python's x.__dlpack__(max_version=(1, 0)) gives
  ///     auto frame = runtime.wrap_tensor("gpu0", tensor);
  [[nodiscard]] Expected<Buffer> wrap_tensor(std::string_view place, DLManagedTensorVersioned* tensor);
  /// Its memory as a tensor of bytes, one dimension, at the same address, for another library. It holds the buffer
  /// until its deleter is called, and outlives the runtime. No batch may use the buffer while the library writes there:
  /// this orders nothing.
  /// @errors InvalidInput: a buffer without memory, or of another runtime.
  [[nodiscard]] Expected<DLManagedTensorVersioned*> lend_tensor(const Buffer& buffer);
  /// Allocates a source and a destination for the transfer of every stream.
  /// @errors as `allocate`; InvalidInput: a batch of another machine.
  [[nodiscard]] Expected<std::vector<StreamBinding>> allocate_for(const Batch& batch);
  /// Plans a batch and makes everything ready for its runs.
  /// @param bindings   [streams]
  /// @param in_flight  most runs of it at once, 1 to 64
  /// @errors InvalidInput: a batch of another machine, an unknown kernel, a buffer too small, in the wrong place or of
  ///         another runtime. Kernel, Machine: a kernel that does more than enqueue, the driver's refusal.
  [[nodiscard]] Expected<PreparedBatch> prepare(const Batch& batch, std::vector<StreamBinding> bindings,
                                                int in_flight = 1);
  /// What the host refused to this runtime, and other users of its devices: a sentence each.
  [[nodiscard]] std::vector<std::string> notes() const;
  /// Pinned memory of the program, by NUMA node: in use, kept for reuse, and how often it was reused. Empty on the
  /// simulated machine.
  [[nodiscard]] std::vector<PinnedUse> pinned_memory() const;

 private:
  friend struct internal::Handles;
  using State = internal::RuntimeState;
  explicit Runtime(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

/// The published interface: `batchOp`, `batchOpAsync`, `batchOpQuery`, `batchOpSynchronize`, `predictBatchLatency`.
///
/// Functions that take a prepared batch allocate nothing. The others prepare the batch first.
/// @source [VMS14] section 3

/// Runs a batch and returns when all its streams are finished.
/// @errors as `batchOpAsync` and `batchOpSynchronize`.
[[nodiscard]] TUTTI_API Expected<BatchResult> batchOp(PreparedBatch& batch);
/// @errors as `Runtime::prepare` and above.
[[nodiscard]] TUTTI_API Expected<BatchResult> batchOp(Runtime& runtime, const Batch& batch,
                                                      std::vector<StreamBinding> bindings);

/// Issues a batch and returns at once; it starts when everything issued before is finished.
/// @errors InvalidInput: as many runs as `in_flight` are under way or not synchronized, an empty handle.
[[nodiscard]] TUTTI_API Expected<BatchRun> batchOpAsync(PreparedBatch& batch);
/// @errors as `Runtime::prepare` and above.
[[nodiscard]] TUTTI_API Expected<BatchRun> batchOpAsync(Runtime& runtime, const Batch& batch,
                                                        std::vector<StreamBinding> bindings);

/// Whether a run is finished. On a virtual clock each call lets the next event happen.
/// @errors InvalidInput: the run was synchronized or moved from.
[[nodiscard]] TUTTI_API Expected<bool> batchOpQuery(BatchRun& run);

/// Waits until a run is finished, and ends its handle.
/// @errors InvalidInput: the run was synchronized or moved from. Kernel: a kernel of it failed. Machine: the machine or
///         the host did.
[[nodiscard]] TUTTI_API Expected<BatchResult> batchOpSynchronize(BatchRun& run);

}  // namespace tutti
