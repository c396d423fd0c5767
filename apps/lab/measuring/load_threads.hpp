#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace tutti::internal {

/// What disturbs a thread that measures.
enum class LoadKind : std::uint8_t {
  None,
  Cpu,        ///< threads that compute on all cores
  Memory,     ///< threads on all cores that copy in host memory
  Hackbench,  ///< many threads that send each other messages
};
inline constexpr std::array kLoadKinds{LoadKind::None, LoadKind::Cpu, LoadKind::Memory, LoadKind::Hackbench};

/// "none", "cpu", "memory", "hackbench".
[[nodiscard]] std::string_view to_string(LoadKind kind);

/// Threads of this program that are such a load while it lives, on the cores that the thread that makes it may use.
class LoadThreads {
 public:
  explicit LoadThreads(LoadKind kind);
  LoadThreads(const LoadThreads&) = delete;  // its threads know it by its address
  LoadThreads& operator=(const LoadThreads&) = delete;
  ~LoadThreads();

  /// As many as the host allows.
  [[nodiscard]] std::size_t count() const { return threads_.size(); }
  /// Bytes that threads of `Memory` have copied until now.
  [[nodiscard]] std::uint64_t copied() const { return copied_.load(std::memory_order_relaxed); }

 private:
  bool add(std::function<void()> work);
  void add_copiers();
  bool add_messengers();

  std::atomic<bool> leaving_{false};
  std::atomic<std::uint64_t> copied_{0};
  std::vector<std::vector<std::byte>> memory_;
  std::vector<int> sockets_;  // two a pair
  std::vector<std::thread> threads_;
};

/// The number of cores that the calling thread may use; at least 1.
[[nodiscard]] std::size_t usable_cores();

}  // namespace tutti::internal
