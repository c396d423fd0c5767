#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/fused/fused_block.hpp"

namespace tutti::internal::cuda {

/// Checks a value of what fused kernels are asked for.
/// @errors InvalidInput: it is below `least` or above `most`
[[nodiscard]] Expected<void> check_limits(std::string_view what, std::uint64_t value, std::uint64_t least,
                                          std::uint64_t most);
/// Checks that blocks can have so many threads.
/// @errors InvalidInput: not from 32 to 1024, or no multiple of 32
[[nodiscard]] Expected<void> check_threads_of_block(std::uint32_t threads);

/// The host's side of kernels and streams of several GPUs that wait for each other: access to each other's memory, the
/// word that stops them, their reports, and a watchdog over them. It outlives the kernels and what they use.
class FusedGroup {
 public:
  /// When kernels are told to give up, and when they are left behind.
  struct Limits {
    Duration limit{};      ///< from the beginning of a run
    Duration last_wait{};  ///< for kernels that were told to give up
  };
  /// A stream that has the kernel of a rank.
  struct Kernel {
    int gpu = 0;
    cudaStream_t stream = nullptr;
  };

  explicit FusedGroup(const Limits& limits) : limits_(limits) {}
  FusedGroup(const FusedGroup&) = delete;  // kernels know its words by their address
  FusedGroup& operator=(const FusedGroup&) = delete;
  /// Takes back the access that it has given. @pre no kernel runs, or it was abandoned
  ~FusedGroup();

  /// Makes the words.
  Expected<void> prepare(std::size_t ranks);
  /// Lets each GPU reach the memory of all others.
  /// @param purpose  of a GPU there: "where it puts layers"
  /// @errors InvalidInput: one does not reach another one; Machine
  Expected<void> reach_each_other(std::span<const int> gpus, std::string_view purpose);

  /// How streams are waited for.
  struct Watch {
    Duration nap{};                          ///< between two looks; 0: the thread lets others go first
    std::string_view what = "fused kernel";  ///< that a stream has, for the error
  };
  /// Waits for all kernels, and tells them to give up at the limit. Where they do not, they are left behind.
  /// @errors Machine: a GPU has failed, of whichever rank; kernels are left behind
  Expected<void> wait(std::span<const Kernel> kernels, std::chrono::steady_clock::time_point begin, const Watch& watch);
  /// Tells the kernels to give up.
  void stop();
  /// Whether kernels were left behind: what they use must never be freed, and no call may wait for them.
  [[nodiscard]] bool is_abandoned() const { return abandoned_; }

  [[nodiscard]] const std::uint64_t* stop_word() const { return &words_->stop; }
  [[nodiscard]] FusedReport* report(std::size_t rank) const { return reports().data() + rank; }
  /// [ranks]
  [[nodiscard]] std::span<FusedReport> reports() const { return {words_->reports, ranks_}; }
  /// Whether the report of some kernel says that it gave up.
  [[nodiscard]] bool has_given_up() const;

 private:
  static constexpr std::size_t kMostReports = 64;
  /// In pinned memory.
  struct Words {
    alignas(kCacheLine) std::uint64_t stop;
    alignas(kCacheLine) FusedReport reports[kMostReports];
  };
  Expected<void> reach(int gpu, int peer, std::string_view purpose);
  [[nodiscard]] static Expected<const Kernel*> find_running(std::span<const Kernel> kernels);

  Limits limits_;
  std::size_t ranks_ = 0;
  std::unique_ptr<Words, Destroy<cudaFreeHost>> words_;
  std::vector<std::pair<int, int>> enabled_;  // GPU, and one that it did not reach before
  bool abandoned_ = false;
};

}  // namespace tutti::internal::cuda
