#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tutti {

/// The order in which ready jobs are served.
enum class Policy : std::uint8_t {
  Edf,    ///< earliest absolute deadline first
  Rm,     ///< shortest period first
  Dm,     ///< shortest relative deadline first
  Given,  ///< smallest priority of the user first
  CwEdf,  ///< earliest absolute deadline first, unless the machine has to wait for a job that comes (critical-window
          ///< EDF)
};

/// Whether the earliest absolute deadline goes first.
[[nodiscard]] constexpr bool is_by_deadline(Policy policy) { return policy == Policy::Edf || policy == Policy::CwEdf; }

/// Where a more urgent job may take the machine from another one.
enum class Preemption : std::uint8_t {
  None,            ///< nowhere
  BetweenBatches,  ///< before each batch of a job but its first
};

/// "none", "between_batches".
[[nodiscard]] constexpr std::string_view to_string(Preemption preemption) {
  return preemption == Preemption::None ? "none" : "between_batches";
}

/// The preemption that `to_string` prints so; nothing for any other text.
[[nodiscard]] constexpr std::optional<Preemption> parse_preemption(std::string_view text) {
  for (const Preemption preemption : {Preemption::None, Preemption::BetweenBatches})
    if (to_string(preemption) == text) return preemption;
  return std::nullopt;
}

/// Whether stages of different jobs run side by side.
enum class Overlap : std::uint8_t {
  Off,   ///< a job has its partition for itself
  On,    ///< where they hold different engines, GPUs and cpus
  Auto,  ///< off where that is enough to admit the set, else on
};

/// "off", "on", "auto".
[[nodiscard]] constexpr std::string_view to_string(Overlap overlap) {
  switch (overlap) {
    case Overlap::Off: return "off";
    case Overlap::On: return "on";
    case Overlap::Auto: return "auto";
  }
  return "";
}

/// The overlap that `to_string` prints so; nothing for any other text.
[[nodiscard]] constexpr std::optional<Overlap> parse_overlap(std::string_view text) {
  for (const Overlap overlap : {Overlap::Off, Overlap::On, Overlap::Auto})
    if (to_string(overlap) == text) return overlap;
  return std::nullopt;
}

/// "edf", "rm", "dm", "given", "cw_edf".
[[nodiscard]] constexpr std::string_view to_string(Policy policy) {
  switch (policy) {
    case Policy::Edf: return "edf";
    case Policy::Rm: return "rm";
    case Policy::Dm: return "dm";
    case Policy::Given: return "given";
    case Policy::CwEdf: return "cw_edf";
  }
  return "";
}

/// The policy that `to_string` prints so; nothing for any other text.
[[nodiscard]] constexpr std::optional<Policy> parse_policy(std::string_view text) {
  for (const Policy policy : {Policy::Edf, Policy::Rm, Policy::Dm, Policy::Given, Policy::CwEdf})
    if (to_string(policy) == text) return policy;
  return std::nullopt;
}

}  // namespace tutti
