#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "apps/accelerate/copy_settings.hpp"
#include "runtime/cuda/base/device_copier.hpp"

namespace tutti::internal::cuda {

/// A call of the driver that copies bytes which follow each other on the host, and on the device or in rows there.
struct CopyCall {
  void* to;
  const void* from;
  std::size_t bytes;
  bool may_go_up, may_go_down;  ///< as the call says; both where the addresses decide
  CUstream stream;              ///< the default streams by their names
  bool waits;                   ///< it returns when all is copied
  DeviceRows rows = {};
};

/// What was copied in one direction, in one way.
struct CopyCounts {
  std::uint64_t calls = 0, bytes = 0;
  std::chrono::nanoseconds time{};

  void add(std::size_t more, std::chrono::nanoseconds longer) {
    ++calls;
    bytes += more;
    time += longer;
  }
};

/// All copies of one direction.
struct DirectionCounts {
  CopyCounts fast;   ///< through buffers, but for samples
  CopyCounts plain;  ///< large ones that went the program's own way
  /// Of some copies the first part goes the program's own way, and both parts are timed while nothing else is in their
  /// stream: so the factor is that of this program's memory.
  CopyCounts sampled_fast, sampled_plain;
  std::uint64_t long_copies = 0;  ///< so far, of which samples are taken
};

/// Copies between ordinary memory and devices on behalf of a program that knows nothing of it.
///
/// Whatever is in doubt goes the program's own way, and so does a copy that has failed here: the driver then does it
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
  /// One line of JSON about all copies of this process so far; empty of one that was forked and has made none.
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
  [[nodiscard]] CopyEnd copy_all(DeviceCopier& copier, const CopyCall& call, CopyDirection direction);
  [[nodiscard]] bool is_sample(const CopyCall& call, CopyDirection direction);
  [[nodiscard]] CopyEnd copy_sample(DeviceCopier& copier, const CopyCall& call, CopyDirection direction);
  [[nodiscard]] bool copy_plainly(const CopyCall& call, CopyDirection direction) const;
  [[nodiscard]] DirectionCounts& counts_of(CopyDirection direction) {
    return counts_[static_cast<std::size_t>(direction)];
  }

  const CopySettings settings_;
  const CopyDriver driver_;
  std::atomic<bool> off_{false};
  std::mutex mutex_;  // of all below
  std::map<CUcontext, Place> places_;
  int failures_ = 0;
  std::array<DirectionCounts, 2> counts_{};  // [CopyDirection]
  bool is_child_ = false;                    // of a process that had counts of its own
};

}  // namespace tutti::internal::cuda
