#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/dispatch/named_memory.hpp"

namespace tutti::internal {

/// Host memory of a job: at the ends of the transfers of its batches, and of the buffers that its task names.
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

  void name(std::vector<HostBytes> buffers) { buffers_ = std::move(buffers); }
  /// Empty where there is no such buffer.
  [[nodiscard]] std::span<std::byte> buffer(std::string_view name) const {
    const auto found = std::ranges::find(buffers_, name, &HostBytes::name);
    return found == buffers_.end() ? std::span<std::byte>{} : found->bytes;
  }

 private:
  std::vector<std::vector<Ends>> batches_;
  std::vector<HostBytes> buffers_;
};

}  // namespace tutti::internal
