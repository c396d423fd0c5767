#pragma once
#include <atomic>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

namespace tutti::internal {

/// A bounded queue from one thread to another. Neither waits nor allocates.
template <class T>
class SpscRing {
 public:
  /// @param capacity  at least; > 0
  explicit SpscRing(std::size_t capacity) : places_(std::bit_ceil(capacity)) {}
  SpscRing(const SpscRing&) = delete;  // two threads hold references to it
  SpscRing& operator=(const SpscRing&) = delete;

  /// @return false: it is full, and `value` as it was
  [[nodiscard]] bool push(T&& value) {
    const std::size_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == places_.size()) return false;
    places_[end & (places_.size() - 1)] = std::move(value);
    end_.store(end + 1, std::memory_order_release);
    return true;
  }
  /// @return false: it is empty, and `value` as it was
  [[nodiscard]] bool pop(T& value) {
    const std::size_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_.load(std::memory_order_acquire)) return false;
    value = std::move(places_[begin & (places_.size() - 1)]);
    begin_.store(begin + 1, std::memory_order_release);
    return true;
  }
  /// Of any thread; the answer may be old.
  [[nodiscard]] bool empty() const {
    return begin_.load(std::memory_order_acquire) == end_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t kCacheLine = 64;

  std::vector<T> places_;
  alignas(kCacheLine) std::atomic<std::size_t> end_ = 0;    // pushed so far
  alignas(kCacheLine) std::atomic<std::size_t> begin_ = 0;  // popped so far
};

}  // namespace tutti::internal
