#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/base/error.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/waker.hpp"

namespace tutti::internal {

/// Where the triggers of a task come from, for the one run that has it.
///
/// To add one, write these functions and a row in `trigger_sources.cpp`.
class TriggerSource {
 public:
  virtual ~TriggerSource() = default;

  /// A run starts: earlier triggers are none of it. Each trigger wakes the waker from now on. @param epoch  its start
  virtual void begin(const Clock& clock, Duration epoch, Waker& waker) = 0;
  /// The run goes on after a pause: triggers that came in between are none of it. @param now  on the clock
  virtual void resume(const Clock& clock, Duration now, Waker& waker) { begin(clock, now, waker); }
  /// The run has ended: nothing is woken any more.
  virtual void end() noexcept {}
  /// Takes the next trigger that has come. Allocates nothing, and does not wait.
  /// @return when it came, on the run's clock; not after `now`
  [[nodiscard]] virtual std::optional<Duration> take(Duration now) = 0;
  /// When the next trigger comes, where that is known ahead; `kNever` where it is not, and where none comes.
  [[nodiscard]] virtual Duration next() const { return kNever; }
  /// Why no trigger can come any more; nothing: one may. Costs little where it is asked often.
  /// @param now  on the run's clock
  [[nodiscard]] virtual Expected<void> check(Duration /*now*/) { return {}; }
  /// Triggers that came while too many waited to be taken.
  [[nodiscard]] virtual std::uint64_t lost() const { return 0; }
};

}  // namespace tutti::internal
