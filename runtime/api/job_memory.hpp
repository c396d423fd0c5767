#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace tutti::internal {

/// Host memory at the ends of the transfers of a job's batches.
class JobMemory {
 public:
  struct Ends {
    std::span<std::byte> source, destination;  ///< empty where they lie in a GPU
  };

  /// Adds the next batch. @param streams  [streams]
  void add(std::vector<Ends> streams) { batches_.push_back(std::move(streams)); }
  /// Both empty where there is no such stream.
  [[nodiscard]] Ends ends(std::size_t batch, std::size_t stream) const {
    return batch < batches_.size() && stream < batches_[batch].size() ? batches_[batch][stream] : Ends{};
  }

 private:
  std::vector<std::vector<Ends>> batches_;
};

}  // namespace tutti::internal
