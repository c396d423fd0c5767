#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/base/quantities.hpp"

namespace tutti {

/// What releases the jobs of a task.
enum class ReleaseSource : std::uint8_t {
  Periodic,  ///< the clock: one every period
  External,  ///< triggers: a frame has come. The period is their minimal distance
};

/// "periodic", "external".
[[nodiscard]] constexpr std::string_view to_string(ReleaseSource source) {
  return source == ReleaseSource::External ? "external" : "periodic";
}

/// What a run does with a trigger that comes before the task's period allows it. One that is early by a period or more
/// is a double, and dropped in any case.
enum class EarlyTriggers : std::uint8_t {
  Defer,  ///< its job arrives as soon as the period allows
  Drop,   ///< it releases no job
};

/// "defer", "drop".
[[nodiscard]] constexpr std::string_view to_string(EarlyTriggers early) {
  return early == EarlyTriggers::Drop ? "drop" : "defer";
}

/// How the jobs of a task are released.
struct ReleaseRule {
  ReleaseSource source = ReleaseSource::Periodic;
  std::string trigger = {};  ///< external: a word in shared memory by its name; empty: the program that runs the set
  EarlyTriggers early = EarlyTriggers::Defer;
  Duration missing_after{};  ///< external: so long without a trigger, one is missing; > 0

  [[nodiscard]] bool is_external() const { return source == ReleaseSource::External; }

  friend bool operator==(const ReleaseRule&, const ReleaseRule&) = default;
};

}  // namespace tutti
