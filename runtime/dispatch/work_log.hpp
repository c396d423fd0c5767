#pragma once
#include <array>
#include <cstdint>

#include "model/base/units.hpp"

namespace tutti::internal {

/// Log of the host time that the programs of a run took beside what their tasks declare.
///
/// The log has a fixed size: stretches too far back are dropped, and then count as no work.
class WorkLog {
 public:
  static constexpr std::size_t kMost = 1024;

  /// @pre not before the end of what was added last.
  void add(Duration from, Duration to);
  /// Work in [instant, now).
  [[nodiscard]] Duration since(Duration instant) const;
  /// Sum of all work added.
  [[nodiscard]] Duration total() const { return total_; }

 private:
  struct Stretch {
    Duration from{}, to{};
  };
  std::array<Stretch, kMost> ring_{};
  std::uint64_t added_ = 0;
  Duration total_{};
};

}  // namespace tutti::internal
