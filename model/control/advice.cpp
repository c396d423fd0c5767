#include "model/control/advice.hpp"

#include <algorithm>

#include "model/base/expects.hpp"

namespace tutti::internal {
namespace {

/// The conditions of an exchange, with their numbers.
class ConditionCheck {
 public:
  ConditionCheck(const ExchangeSpec& spec, const ExchangeTimes& times)
      : spec_(spec),
        times_(times),
        host_(sums_of(spec, ControlMode::Host)),
        stream_(sums_of(spec, ControlMode::Stream)) {}

  [[nodiscard]] Condition check(ConditionKind kind) const {
    switch (kind) {
      case ConditionKind::C1: {  // [AGO17] C1
        const double enqueued = stream_.launch_ns + stream_.enqueue_ns;
        const double run = stream_.run_ns + stream_.message_ns;
        return {kind, enqueued, run, enqueued < run};
      }
      case ConditionKind::C2: {  // [AGO17] C2
        const double messages = spec_.iterations * stream_.message_ns;
        return {kind, messages, times_.host.idle_ns, messages <= times_.host.idle_ns};
      }
      case ConditionKind::Compute: return {kind, stream_.run_ns, host_.run_ns, stream_.run_ns <= host_.run_ns};
      case ConditionKind::C3: return above_zero(kind, std::max(stream_.sends, stream_.receives));
      case ConditionKind::Known: {
        const int known = int{spec_.known.sizes} + int{spec_.known.peers} + int{spec_.known.pointers};
        return {kind, static_cast<double>(known), 3, known == 3};
      }
      case ConditionKind::NoHostSynchronization: return none_of(kind, spec_.host_synchronization);
      case ConditionKind::AsynchronousCalls: return none_of(kind, !spec_.asynchronous_calls);
    }
    TUTTI_EXPECTS(false, "every kind of condition has a case");
    return {};
  }

 private:
  static Condition above_zero(ConditionKind kind, int count) {
    return {kind, static_cast<double>(count), 0, count > 0};
  }
  static Condition none_of(ConditionKind kind, bool there_is_one) {
    return {kind, there_is_one ? 1.0 : 0.0, 0, !there_is_one};
  }

  const ExchangeSpec& spec_;
  const ExchangeTimes& times_;
  ExchangeSums host_;
  ExchangeSums stream_;
};

/// The mode with the shortest time; a later one must be `kLeastModeGain` shorter than the one chosen before it.
ControlMode shortest_mode(const ExchangeTimes& times) {
  ControlMode chosen = ControlMode::Host;
  for (const ControlMode mode : kControlModes) {
    const auto time = times.of(mode);
    if (time && time->total_ns() < (1 - kLeastModeGain) * times.of(chosen)->total_ns()) chosen = mode;
  }
  return chosen;
}

}  // namespace

std::string_view to_string(ConditionKind kind) {
  switch (kind) {
    case ConditionKind::C1: return "C1";
    case ConditionKind::C2: return "C2";
    case ConditionKind::Compute: return "compute";
    case ConditionKind::C3: return "C3";
    case ConditionKind::Known: return "known";
    case ConditionKind::NoHostSynchronization: return "no_host_synchronization";
    default: return "asynchronous_calls";
  }
}

bool is_required(ConditionKind kind) { return !compares_times(kind); }

bool compares_times(ConditionKind kind) {
  return kind == ConditionKind::C1 || kind == ConditionKind::C2 || kind == ConditionKind::Compute;
}

const Condition& Advice::condition(ConditionKind kind) const {
  const auto found = std::ranges::find(conditions, kind, &Condition::kind);
  TUTTI_EXPECTS(found != conditions.end(), "an advice has all conditions");
  return *found;
}

std::optional<double> Advice::gain(ControlMode other) const {
  const auto time = times.of(other);
  if (!time) return std::nullopt;
  const double host = times.host.time.total_ns();
  return host > 0 ? 1 - time->total_ns() / host : 0;
}

std::optional<double> Advice::program_gain(ControlMode other) const {
  auto whole = gain(other);
  if (whole) *whole *= share;
  return whole;
}

Advice advise(const ExchangeSpec& spec) {
  Advice advice;
  advice.times = exchange_times(spec);
  advice.share = spec.share;
  const ConditionCheck check(spec, advice.times);
  bool possible = true;
  for (const ConditionKind kind : kConditionKinds) {
    advice.conditions.push_back(check.check(kind));
    possible = possible && (advice.conditions.back().holds || !is_required(kind));
  }
  if (possible) advice.mode = shortest_mode(advice.times);
  if (advice.mode == ControlMode::Host) {
    const auto failing = std::ranges::find(advice.conditions, false, &Condition::holds);
    if (failing != advice.conditions.end()) advice.reason = failing->kind;
  }
  return advice;
}

}  // namespace tutti::internal
