#pragma once
#include <map>
#include <utility>
#include <vector>

#include "runtime/cuda/lanes/bound_devices.hpp"

namespace tutti::internal::cuda {

/// A place for streams of a led run: a GPU, and the part of it where its multiprocessors are divided.
struct LanePlace {
  int device = 0;
  GpuPart part = GpuPart::Gates;

  friend auto operator<=>(const LanePlace&, const LanePlace&) = default;
};

/// The streams of a run that a GPU leads, none of which waits for another's gate: lanes of its GPUs, which are lent to
/// it alone, or streams of its own on the two parts of each GPU. These may share hardware queues with the lanes, in
/// which nothing waits meanwhile.
class LedStreams {
 public:
  /// @param wanted  streams by their places
  /// @param apart   they are its own; otherwise all places are of `GpuPart::Gates`
  /// @errors InvalidInput: more than a GPU has. Machine: as `GpuPartition::make`, and where streams wait for each
  /// other.
  [[nodiscard]] static Expected<LedStreams> make(BoundDevices& backend, const std::map<LanePlace, std::size_t>& wanted,
                                                 bool apart);
  LedStreams(LedStreams&&) noexcept = default;
  LedStreams& operator=(LedStreams&&) = delete;
  LedStreams(const LedStreams&) = delete;  // lanes are lent to one
  LedStreams& operator=(const LedStreams&) = delete;
  ~LedStreams();

  /// Another stream. @pre `wanted` had so many of the place
  [[nodiscard]] cudaStream_t take(LanePlace place) {
    auto& free = free_.at(place);
    const cudaStream_t stream = free.back();
    free.pop_back();
    return stream;
  }
  /// All of them, with their devices.
  [[nodiscard]] const std::vector<std::pair<int, cudaStream_t>>& all() const { return all_; }

 private:
  explicit LedStreams(BoundDevices& backend) : backend_(&backend) {}

  void lend(LanePlace place, std::size_t count);
  /// @param wanted  of one device
  Expected<void> make_own(int device, const std::map<GpuPart, std::size_t>& wanted);
  void add(LanePlace place, cudaStream_t stream) {
    free_[place].push_back(stream);
    all_.emplace_back(place.device, stream);
  }

  BoundDevices* backend_;
  std::vector<Stream> own_;
  std::map<LanePlace, std::vector<cudaStream_t>> free_;
  std::vector<std::pair<int, cudaStream_t>> all_;
};

}  // namespace tutti::internal::cuda
