#pragma once
#include <cstdint>
#include <functional>

#include "runtime/triggers/trigger_source.hpp"

namespace tutti::internal {

/// What goes wrong with one trigger.
struct TriggerFault {
  Duration by{};         ///< so much later than it should come; below 0: earlier
  bool missing = false;  ///< it does not come
  bool doubled = false;  ///< it comes twice
};

/// Triggers of a simulated device: one each period, delayed within the jitter as the seed says.
class SimulatedTriggers final : public TriggerSource {
 public:
  /// (number of the trigger from 0, when it should come, on the clock) -> what is wrong with it; empty: nothing ever.
  using Faults = std::function<TriggerFault(std::uint64_t, Duration)>;

  SimulatedTriggers(Duration period, Duration jitter, std::uint64_t seed, Faults faults = {})
      : period_(period), jitter_(jitter), seed_(seed), faults_(std::move(faults)) {}

  void begin(const Clock& clock, Duration epoch, Waker& waker) override;
  void resume(const Clock& clock, Duration now, Waker& waker) override;
  [[nodiscard]] std::optional<Duration> take(Duration now) override;
  /// Of one that is missing, when it should have come.
  [[nodiscard]] Duration next() const override { return next_; }

 private:
  void find_next();

  Duration period_, jitter_;
  std::uint64_t seed_;
  Faults faults_;
  Duration regular_{};        // when trigger `number_` should come, without jitter
  std::uint64_t number_ = 0;  // of the trigger behind the next one
  Duration next_ = kNever;
  TriggerFault fault_;  // of the next one
};

}  // namespace tutti::internal
