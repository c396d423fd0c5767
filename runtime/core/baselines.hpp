#pragma once
#include <array>
#include <memory>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/core/ping_pong.hpp"
#include "runtime/core/stencil.hpp"

namespace tutti::internal {

/// Measured times of a copy.
struct CopyTimes {
  Duration on_the_gpu{};   ///< from a mark before it to one behind it
  Duration on_the_host{};  ///< from the host's signal for it until the host knows of its end
};

/// A copy, and a kernel of a given length behind it; no kernel where that is 0.
struct PlainStep {
  BufferView from, to;
  Duration kernel{};
};

/// Steps as one would enqueue them by hand: ahead, in one stream of one GPU, behind one gate of the backend's kind.
/// Copies alone are one call of the driver, as far as the queue has room behind a closed gate, and the rest another one
/// when it is open.
class PlainQueue {
 public:
  virtual ~PlainQueue() = default;
  /// Two runs: one with the first start and the last end noted on the GPU, one without, from the start signal to the
  /// completion signal.
  /// @errors Machine: the driver's refusal, or it does not end.
  [[nodiscard]] virtual Expected<CopyTimes> run() = 0;
};

/// Streams of one GPU that each wait for a word of pinned memory, and set another word behind that.
///
/// @source [AGO17] wait reaction time
class WaitProbe {
 public:
  virtual ~WaitProbe() = default;
  /// Streams that can wait at the same time.
  [[nodiscard]] virtual int most_streams() const = 0;
  /// Enqueues a wait and a write in some streams, sleeps, stores the word of the first one and takes the time until its
  /// write is seen; then lets the others go on.
  /// @param sleep    >= 0
  /// @param streams  from 1 to `most_streams()`
  /// @errors Machine: the driver's refusal, or the stream does not go on within 2 s.
  [[nodiscard]] virtual Expected<Duration> react(Duration sleep, int streams) = 0;
};

/// What the driver does without plans and gates, on the devices of a backend: peers for benchmarks. Buffers are the
/// backend's, and it has no batch armed or under way meanwhile.
class Baselines {
 public:
  virtual ~Baselines() = default;
  /// A backend that runs a batch as one call a GPU with all its transfers, and its kernels behind them.
  /// @errors Machine: the driver has no such call, or refuses. Its `prepare` as that of the backend, and InvalidInput:
  ///         host work.
  [[nodiscard]] virtual Expected<std::unique_ptr<DeviceBackend>> memcpy_batch() = 0;
  /// Times a single copy on a stream of its own, between two events, and another one from the call until the driver
  /// returns from waiting for it. From any thread.
  /// @param from, to  of one size, at least one of them on a GPU.
  /// @errors Machine: the driver's refusal.
  [[nodiscard]] virtual Expected<CopyTimes> time_plain_copy(const BufferView& from, const BufferView& to) = 0;
  /// @param steps  at least one; at least one end of the first on a GPU
  /// @errors InvalidInput: no step. Machine: the driver's refusal.
  [[nodiscard]] virtual Expected<std::unique_ptr<PlainQueue>> plain_queue(std::vector<PlainStep> steps) = 0;
  /// @param gate           MemoryWait: the streams wait themselves; PollingKernel: kernels in them do
  /// @param beside_copies  large copies both ways are under way on the GPU meanwhile
  /// @errors Machine: no memory for that, or no stream is free.
  [[nodiscard]] virtual Expected<std::unique_ptr<WaitProbe>> wait_probe(VertexId gpu, GateKind gate,
                                                                        bool beside_copies) = 0;
  /// A stencil on GPUs of the backend, with streams of its own.
  /// @param spec  its `gpus` are not looked at
  /// @param gpus  [ranks]
  /// @errors InvalidInput: values outside their ranges, GPUs that do not reach each other. Machine: a call failed.
  [[nodiscard]] virtual Expected<std::unique_ptr<Stencil>> stencil(StencilSpec spec,
                                                                   const std::vector<VertexId>& gpus) = 0;
  /// A ping-pong between GPUs of the backend, with streams of its own.
  /// @param spec  its `gpus` are not looked at
  /// @param gpus  of the two ranks; both may have the same one
  /// @errors InvalidInput: GPUs that do not reach each other. Machine: a call failed.
  [[nodiscard]] virtual Expected<std::unique_ptr<PingPong>> ping_pong(PingPongSpec spec,
                                                                      const std::array<VertexId, 2>& gpus) = 0;
};

}  // namespace tutti::internal
