#pragma once
#include <optional>
#include <span>
#include <vector>

#include "runtime/core/backend_options.hpp"
#include "runtime/cuda/gates/gpu_partition.hpp"

namespace tutti::internal::cuda {

/// The streams of one device that carry gated work.
///
/// Streams that share a hardware queue wait for each other's gates, so all streams are made at once and tried, and only
/// independent ones are kept. Most are *lent*: a batch that is armed ahead has them for itself, since the order of
/// armed batches is not known yet. The others are *shared* by submitted batches, which run in order anyway; a run that
/// a GPU leads, beside which none is submitted, can have them as well. One more, of *service*, carries no gated work,
/// so that memory can be filled whatever is armed.
class LanePool {
 public:
  /// With 32 queues all of these are independent, and the one of service; 3 queues are left for the program's own
  /// streams.
  static constexpr std::size_t kMostLanes = 28;

  /// Makes the lanes; slow, since every lane is warmed up and tried.
  /// @param gate  what holds them; absent: launches wait, so none is tried
  /// @param part  that they are of, the one for kernels; null: they have all multiprocessors
  [[nodiscard]] static Expected<LanePool> make(int device, const Driver& driver, std::optional<GateKind> gate,
                                               const GpuPartition* part = nullptr);

  /// Lanes in all.
  [[nodiscard]] std::size_t size() const { return lanes_.size(); }
  /// Lanes that can be lent.
  [[nodiscard]] std::size_t free() const { return free_.size(); }
  /// @pre free() > 0
  [[nodiscard]] cudaStream_t lend();
  void take_back(cudaStream_t stream) { free_.push_back(stream); }
  /// The same for one beside whom no batch is submitted: the shared ones after all others.
  [[nodiscard]] std::size_t free_alone() const { return free_.size() + free_shared_.size(); }
  /// @pre free_alone() > 0
  [[nodiscard]] cudaStream_t lend_alone();
  void take_back_alone(cudaStream_t stream);
  /// The stream in which nothing ever waits for a gate.
  [[nodiscard]] cudaStream_t service() const { return service_.get(); }
  /// The n-th shared stream, counted round.
  [[nodiscard]] cudaStream_t shared(std::size_t n) const { return lanes_[n % shared_].get(); }

 private:
  /// @pre two at least
  explicit LanePool(std::vector<Stream> free);

  Stream service_;
  std::vector<Stream> lanes_;
  std::size_t shared_;                     // the first so many
  std::vector<cudaStream_t> free_;         // of the others; room for all
  std::vector<cudaStream_t> free_shared_;  // of the shared ones
};

/// Which streams of a device come through while the gates of all others are closed: where two share a hardware queue,
/// the first one alone. Takes some 20 ms for each that does not. @pre nothing waits in them
[[nodiscard]] Expected<std::vector<bool>> independent(int device, const Driver& driver,
                                                      std::span<const cudaStream_t> streams);

/// Whether the launch of a kernel, and that of a graph of more kernels than a queue takes, return while a gate before
/// them is closed. With CUDA_LAUNCH_BLOCKING, which debuggers set too, the one does not; under compute-sanitizer, which
/// launches each kernel of a graph by itself, the other does not. Then no gate can be closed.
[[nodiscard]] Expected<bool> launches_return(int device);

}  // namespace tutti::internal::cuda
