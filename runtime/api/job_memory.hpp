#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/dispatch/named_memory.hpp"

namespace tutti::internal {

/// The first call of a task's code that asks for memory by the position of a stream. Any thread may note one.
class PositionUse {
 public:
  struct Call {
    bool is_source;
    std::size_t batch, stream;
  };

  void note(const Call& call) {
    std::uint64_t none = 0;
    const std::uint64_t word = kNoted | (call.is_source ? kSource : 0) | std::uint64_t{call.batch} << 31U | call.stream;
    first_.compare_exchange_strong(none, word, std::memory_order_relaxed);
  }
  [[nodiscard]] std::optional<Call> first() const {
    const std::uint64_t word = first_.load(std::memory_order_relaxed);
    if (word == 0) return std::nullopt;
    return Call{(word & kSource) != 0, static_cast<std::size_t>(word >> 31U & kMost),
                static_cast<std::size_t>(word & kMost)};
  }

 private:
  static constexpr std::uint64_t kNoted = 1ULL << 63U, kSource = 1ULL << 62U, kMost = (1ULL << 31U) - 1;

  std::atomic<std::uint64_t> first_ = 0;
};

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
    return ends(batch, stream, true).source;
  }
  [[nodiscard]] std::span<std::byte> destination(std::size_t batch, std::size_t stream) const {
    return ends(batch, stream, false).destination;
  }
  /// Calls of these two are noted. @param use  outlives this
  void watch(PositionUse& use) { use_ = &use; }

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
  [[nodiscard]] Ends ends(std::size_t batch, std::size_t stream, bool is_source) const {
    if (batch >= batches_.size() || stream >= batches_[batch].size()) return {};
    if (use_ != nullptr) use_->note({is_source, batch, stream});
    return batches_[batch][stream];
  }

  std::vector<std::vector<Ends>> batches_;
  std::vector<HostBytes> buffers_;
  const UsersRings* rings_ = nullptr;
  PositionUse* use_ = nullptr;
};

}  // namespace tutti::internal
