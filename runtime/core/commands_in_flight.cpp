#include "runtime/core/commands_in_flight.hpp"

#include <algorithm>

namespace tutti::internal {
namespace {

/// [commands] whether it may have begun.
std::vector<bool> may_have_begun(const CommandList& list, const RunProgress& progress) {
  std::vector<bool> begun(list.commands.size(), false);
  std::vector<bool> held(list.lanes.size(), false);  // lanes whose next command has not begun
  for (std::uint32_t i = 0; i < progress.enqueued; ++i) {
    const Command& command = list.commands[i];
    const bool gated = command.gate && !progress.opened[*command.gate];
    const bool waits = std::ranges::any_of(command.waits, [&](std::uint32_t before) {
      return !begun[before] || (progress.ends[before] == Reached::No && !progress.seen_early[before]);
    });
    begun[i] = !held[command.lane] && !gated && !waits;
    const bool staged = command.lane != command.last_lane;
    if (!begun[i] || (staged ? progress.leg_ends[i] : progress.ends[i]) == Reached::No) held[command.lane] = true;
    if (!begun[i] || progress.ends[i] == Reached::No) held[command.last_lane] = true;
  }
  return begun;
}

/// [commands] whether it has ended: a mark behind it in its lane was reached.
std::vector<bool> have_ended(const CommandList& list, const RunProgress& progress) {
  std::vector<bool> ended(list.commands.size(), false);
  std::vector<bool> passed(list.lanes.size(), false);
  for (std::size_t i = list.commands.size(); i-- > 0;) {
    const Command& command = list.commands[i];
    if (progress.ends[i] == Reached::Yes) passed[command.last_lane] = true;
    ended[i] = passed[command.last_lane];
    if (progress.leg_ends[i] == Reached::Yes) passed[command.lane] = true;
  }
  return ended;
}

}  // namespace

std::vector<std::uint32_t> commands_in_flight(const CommandList& list, const RunProgress& progress) {
  const std::vector<bool> begun = may_have_begun(list, progress), ended = have_ended(list, progress);
  std::vector<std::uint32_t> in_flight;
  for (std::uint32_t i = 0; i < list.commands.size(); ++i)
    if (begun[i] && !ended[i]) in_flight.push_back(i);
  return in_flight;
}

}  // namespace tutti::internal
