#pragma once
#include <atomic>

namespace tutti::programs {

/// From now on the first SIGINT (Ctrl-C), SIGTERM or SIGHUP sets this flag, so that a run can end in order; a later one
/// ends the program. A SIGHUP that is ignored, as under nohup, stays ignored.
///
/// `timeout` and closing terminals send a signal twice in a row: what comes within half a second belongs to the first.
[[nodiscard]] std::atomic<bool>& watch_for_interrupt();

/// Whether the flag is set; false where nobody watches, and a signal ends the program.
[[nodiscard]] bool was_interrupted();

}  // namespace tutti::programs
