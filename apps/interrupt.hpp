#pragma once
#include <atomic>

namespace tutti::programs {

/// From now on the first Ctrl-C sets this flag, so that a run can end in order; the second one ends the program.
[[nodiscard]] std::atomic<bool>& watch_for_interrupt();

}  // namespace tutti::programs
