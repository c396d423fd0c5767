#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/control/time_models.hpp"

namespace tutti::internal {

/// What must hold so that a GPU that sends and waits by itself pays.
enum class ConditionKind : std::uint8_t {
  C1,       ///< sum (LA + LS + LB + LW + LC) < sum (A + S + B + W + C): enqueueing is hidden behind running
  C2,       ///< R (sum S + sum W) on the stream <= T_idle of the host-driven run: messages fit into what was idle
  Compute,  ///< sum (A + B + C) on the stream <= the same host-driven: the premise of C2
  C3,       ///< max(X, Z) > 0: there are messages (R > 0 and Y >= 0 always hold)
  Known,    ///< sizes, peers and pointers are known when a message is posted
  NoHostSynchronization,  ///< no iteration needs the host to wait for the GPU
  AsynchronousCalls,      ///< all calls of an iteration are asynchronous
};
inline constexpr std::array kConditionKinds{ConditionKind::C3,
                                            ConditionKind::Known,
                                            ConditionKind::NoHostSynchronization,
                                            ConditionKind::AsynchronousCalls,
                                            ConditionKind::C1,
                                            ConditionKind::Compute,
                                            ConditionKind::C2};

/// "C1", "C2", "compute", "C3", "known", "no_host_synchronization", "asynchronous_calls".
[[nodiscard]] std::string_view to_string(ConditionKind kind);
/// Whether no mode but the host-driven one is possible without it. The others explain the times.
[[nodiscard]] bool is_required(ConditionKind kind);
/// Whether its two numbers are times in ns; else they are counts.
[[nodiscard]] bool compares_times(ConditionKind kind);

/// A condition with its numbers.
struct Condition {
  ConditionKind kind = ConditionKind::C1;
  double left = 0;   ///< ns, of C1 and Compute for one iteration, of C2 for all; a count otherwise
  double right = 0;  ///< what it is compared with
  bool holds = false;

  friend bool operator==(const Condition&, const Condition&) = default;
};

/// Which mode an exchange should use, and why.
struct Advice {
  ControlMode mode = ControlMode::Host;
  ExchangeTimes times;
  std::vector<Condition> conditions;    ///< all, in the order of `kConditionKinds`
  std::optional<ConditionKind> reason;  ///< with `Host`: the condition that fails; absent where all hold and no mode is
                                        ///< `kLeastModeGain` shorter
  double share = 1;                     ///< of the program, as in the spec

  [[nodiscard]] const Condition& condition(ConditionKind kind) const;
  /// 1 - T_mode / T_host of the exchange; negative where the mode takes longer; absent where it was not considered.
  [[nodiscard]] std::optional<double> gain(ControlMode mode) const;
  /// The same of the whole program, by Amdahl's law: the share of the exchange times its gain.
  [[nodiscard]] std::optional<double> program_gain(ControlMode mode) const;
  friend bool operator==(const Advice&, const Advice&) = default;
};

/// A mode that asks more of the program is advised only where it is shorter by this share of the time of the other one:
/// measured times repeat no better.
inline constexpr double kLeastModeGain = 0.02;

/// The mode with the shortest predicted time among those whose required conditions hold.
///
/// C1, Compute and C2 together imply T_SA <= T_S: T_SA is T_GPU by C1, and by the other two
/// R [A+B+C]_SA + R [S+W] <= R [A+B+C]_S + T_idle <= T_S. So where they hold and there is a gain, it is advised, and
/// where the answer is `Host`, one of them fails or the times are as good as equal. They are not necessary: an exchange
/// may gain by fewer waits of the host although its CPU is the longer side. The times decide, then, and the failing
/// conditions are listed beside.
/// @pre `checked` takes the spec
/// @source [AGO17] conditions C1 to C3 and what they presuppose
[[nodiscard]] Advice advise(const ExchangeSpec& spec);

}  // namespace tutti::internal
