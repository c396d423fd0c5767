#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
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
  /// Empty where there is no such stream, as below.
  [[nodiscard]] std::span<std::byte> source(std::size_t batch, std::size_t stream) const {
    return ends(batch, stream).source;
  }
  [[nodiscard]] std::span<std::byte> destination(std::size_t batch, std::size_t stream) const {
    return ends(batch, stream).destination;
  }

  void name(std::vector<HostBytes> buffers) { buffers_ = std::move(buffers); }
  /// @param rings  outlives this
  void lie_in(const UsersRings& rings) { rings_ = &rings; }
  /// Position of a buffer's ring among those of the task; nothing where it has none.
  [[nodiscard]] std::optional<std::size_t> ring(std::string_view buffer) const {
    const auto found = rings_ != nullptr ? rings_->find(buffer) : UsersRings::const_iterator{};
    if (rings_ == nullptr || found == rings_->end()) return std::nullopt;
    return static_cast<std::size_t>(std::distance(rings_->begin(), found));
  }
  /// Empty where there is no such buffer.
  [[nodiscard]] std::span<std::byte> buffer(std::string_view name) const {
    const auto found = std::ranges::find(buffers_, name, &HostBytes::name);
    return found == buffers_.end() ? std::span<std::byte>{} : found->bytes;
  }

 private:
  [[nodiscard]] Ends ends(std::size_t batch, std::size_t stream) const {
    if (batch >= batches_.size() || stream >= batches_[batch].size()) return {};
    return batches_[batch][stream];
  }

  std::vector<std::vector<Ends>> batches_;
  std::vector<HostBytes> buffers_;
  const UsersRings* rings_ = nullptr;
};

}  // namespace tutti::internal
