#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/lab/measuring/samples.hpp"
#include "runtime/core/ping_pong.hpp"

namespace tutti::internal {

/// What ping-pong is measured for.
struct PingPongPlan {
  std::vector<Bytes> sizes;                      ///< of messages, in this order
  std::vector<Duration> kernels = {Duration{}};  ///< in front of each send; 0: none
  std::uint64_t rounds = 1000;                   ///< round trips of a run
  int samples = 31;                              ///< runs of each mode, behind one for warm-up
  std::uint64_t checked = 100;                   ///< rounds in fresh memory before, at most
};

/// One size with one kernel, in all modes.
struct PingPongCase {
  Bytes bytes;
  Duration kernel{};
  std::array<SampleSummary, kPingPongModes.size()> times = {};  ///< us a round trip, of the modes in their order

  [[nodiscard]] const SampleSummary& of(PingPongMode mode) const { return times[static_cast<std::size_t>(mode)]; }
  /// Median time over that of another mode.
  [[nodiscard]] double ratio(PingPongMode mode, PingPongMode to) const { return of(mode).median / of(to).median; }
  /// The mode with the least median, of those that the project has; the earlier one where two are equal.
  [[nodiscard]] PingPongMode best() const;
};

/// Sizes one behind the other that have the same best mode.
struct PingPongWinner {
  PingPongMode mode = PingPongMode::Host;
  Duration kernel{};
  Bytes from, to;

  friend bool operator==(const PingPongWinner&, const PingPongWinner&) = default;
};

/// Sizes from `from` on, each four times the one before, up to `to`.
/// @pre 0 < from <= to
[[nodiscard]] std::vector<Bytes> ping_pong_sizes(Bytes from, Bytes to);

/// Measures every size with every kernel: first a run of each mode in fresh memory, then runs of all modes in turn, of
/// which the first of each is left out.
/// @errors as `PingPong::run`; InvalidInput: interrupted
[[nodiscard]] Expected<std::vector<PingPongCase>> measure_ping_pong(PingPong& ping_pong, const PingPongPlan& plan);

/// The best modes of neighbouring cases with the same kernel, in their order.
[[nodiscard]] std::vector<PingPongWinner> winners_of(const std::vector<PingPongCase>& cases);

/// The case whose streams take longest beside those by hand. Null: no case.
[[nodiscard]] const PingPongCase* worst_beside_by_hand(const std::vector<PingPongCase>& cases);

}  // namespace tutti::internal
