#pragma once
#include <array>
#include <cstdint>

#include "model/units.hpp"

namespace tutti {

/// When the programs of a run worked on the host beside what their tasks declare: how much of a stretch of time.
///
/// Of fixed size: what lies too many stretches back is forgotten, and then counts as no work.
class WorkLog {
 public:
  static constexpr std::size_t kMost = 1024;

  /// @pre not before the end of what was added last.
  void add(Duration from, Duration to);
  /// Work in [instant, now).
  [[nodiscard]] Duration since(Duration instant) const;
  /// Of all that was added.
  [[nodiscard]] Duration total() const { return total_; }

 private:
  struct Stretch {
    Duration from{}, to{};
  };
  std::array<Stretch, kMost> ring_{};
  std::uint64_t added_ = 0;
  Duration total_{};
};

}  // namespace tutti
