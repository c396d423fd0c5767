#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "model/base/quantities.hpp"

namespace tutti {

/// What happens to a task whose job has had the machine for longer than its budget. A batch that is under way runs to
/// its end in any case: the job is looked at between two batches, or two chunks of one.
enum class OverrunPolicy : std::uint8_t {
  Continue,  ///< the job goes on
  SkipNext,  ///< the job goes on, and the next job of its task is dropped: others get that time back
  Abort,     ///< the job ends at the next boundary; its results are invalid
};

/// "continue", "skip_next", "abort".
[[nodiscard]] constexpr std::string_view to_string(OverrunPolicy policy) {
  switch (policy) {
    case OverrunPolicy::Continue: return "continue";
    case OverrunPolicy::SkipNext: return "skip_next";
    case OverrunPolicy::Abort: return "abort";
  }
  return "";
}

/// What a run does where jobs of a task take longer than they may.
struct OverrunRule {
  OverrunPolicy policy = OverrunPolicy::Continue;
  std::optional<Duration> budget = {};  ///< >= 0, time that a job may have the machine; absent: its Wcet
  int suspend_after = 0;                ///< so many jobs over the budget in a row suspend the task; 0: never

  friend bool operator==(const OverrunRule&, const OverrunRule&) = default;
};

}  // namespace tutti
