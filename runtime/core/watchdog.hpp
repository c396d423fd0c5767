#pragma once
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "model/base/error.hpp"
#include "model/base/units.hpp"
#include "runtime/core/backend_options.hpp"

namespace tutti::internal {

/// A watchdog as the command line takes it: "10x+2s".
[[nodiscard]] inline std::string to_string(const Watchdog& watchdog) {
  std::string beyond = to_string(watchdog.beyond);
  std::erase(beyond, ' ');
  return fmt::format("{}x+{}", watchdog.times, beyond);
}

/// @errors InvalidInput: runs that go as planned would be given up, or times that are no number.
[[nodiscard]] inline Expected<void> check_watchdog(const Watchdog& watchdog) {
  if (std::isfinite(watchdog.times) && watchdog.times >= 1 && watchdog.beyond >= Duration{0}) return {};
  return invalid_input(fmt::format(
      "a watchdog of {} would give up runs that go as planned; give at least once the planned length, and a "
      "time of 0 or more beyond it",
      to_string(watchdog)));
}

/// The error of a run that its watchdog gave up. For backends.
/// @param batch    its name
/// @param what     that has not returned: "kernel 'spin' of stream 's'"
/// @param planned  length of the run
[[nodiscard]] inline Error not_returned(const Watchdog& watchdog, std::string_view batch, std::string_view what,
                                        Duration planned) {
  return {ErrorCode::Machine,
          fmt::format("{}: {} has not returned within {}, the limit of --watchdog {} where {} were planned; the run "
                      "cannot go on",
                      batch, what, to_string(watchdog.limit(planned)), to_string(watchdog), to_string(planned)),
          {}};
}

}  // namespace tutti::internal
