#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <cuda_runtime_api.h>

#include "runtime/cuda/device_copier.hpp"
#include "runtime/cuda/preload/copy_settings.hpp"

namespace tutti::internal::cuda {

/// A call of cudaMemcpy or cudaMemcpyAsync.
struct CopyCall {
  void* to;
  const void* from;
  std::size_t bytes;
  cudaMemcpyKind kind;
  CUstream stream;  ///< as the driver knows it: the default streams by their names there
  bool waits;       ///< cudaMemcpy
};

/// What was copied in one direction, by one of the two ways.
struct CopyCounts {
  std::uint64_t calls = 0, bytes = 0;
  std::chrono::nanoseconds time{};
};

/// Copies between ordinary memory and devices on behalf of a program that knows nothing of it.
///
/// Whatever is in doubt goes the program's own way, and so does a copy that has failed here: the runtime then does it
/// again and reports in its own words, since what was copied by then is what it will copy.
class PageableCopies {
 public:
  PageableCopies(const CopySettings& settings, const CopyDriver& driver) : settings_(settings), driver_(driver) {}

  /// @param direction  as `direction_of` says
  /// @return whether it is done
  [[nodiscard]] bool copy(const CopyCall& call, CopyDirection direction);
  /// Counts a copy that went the program's own way.
  void count_plain(CopyDirection direction, std::size_t bytes, std::chrono::nanoseconds time);
  /// The direction of a copy of ordinary memory to or from the device of the current context that is large enough; none
  /// of any other.
  [[nodiscard]] std::optional<CopyDirection> direction_of(const CopyCall& call) const;

  /// The process has forked: a child has none of the threads, and no use of the parent's contexts.
  void before_fork() { mutex_.lock(); }
  void after_fork(bool is_child);

  [[nodiscard]] const CopySettings& settings() const { return settings_; }
  /// One line of JSON about all copies so far.
  [[nodiscard]] std::string report();

 private:
  /// The copier of a context.
  struct Place {
    std::uint64_t seen = 0;                ///< bytes that came before it was made
    std::unique_ptr<DeviceCopier> copier;  ///< null: not made yet, or not possible
    bool given_up = false;
  };

  [[nodiscard]] DeviceCopier* copier_of(CUcontext context, std::size_t bytes);
  void give_up(CUcontext context);
  void count(CopyCounts& into, std::size_t bytes, std::chrono::nanoseconds time);

  const CopySettings settings_;
  const CopyDriver driver_;
  std::atomic<bool> off_{false};
  std::mutex mutex_;  // of all below
  std::map<CUcontext, Place> places_;
  int failures_ = 0;
  std::array<CopyCounts, 2> fast_{}, plain_{};  // [CopyDirection]
};

}  // namespace tutti::internal::cuda
