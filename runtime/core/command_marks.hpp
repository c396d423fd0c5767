#pragma once
#include <span>

#include "runtime/core/command_list.hpp"

namespace tutti::internal {

/// Planned length from which a command is long: it has a mark of its own, and its start is known too.
inline constexpr Duration kLongCommand = std::chrono::microseconds{500};
/// Most copies of one call: two such calls and their marks have room in a queue ahead of its gate.
inline constexpr std::uint32_t kMostCopies = 440;

// The steps of `make_commands` behind the commands themselves, in this order.

/// Puts a signal where a lane ends and where another lane waits. Puts a time at and before long commands, between
/// copies and kernels, and before a command that a gate or a wait releases.
void place_marks(Marks marks, CommandList& list);

/// Groups copies that go in one call: consecutive in a lane, with the same ends, only the first released, only the last
/// marked. With `Marks::Each` every command is alone.
void form_runs(const Batch& batch, Marks marks, CommandList& list);

void find_kernel_runs(const Batch& batch, CommandList& list);

/// How many runs, in order, all hardware queues together take ahead of their gates.
/// @param room        operations that a queue takes
/// @param chunk       of a staged copy; 0: it is one
/// @param of_kernels  [commands] operations that the kernel of a command consists of
[[nodiscard]] std::size_t runs_that_fit(const CommandList& list, std::size_t room, Bytes chunk,
                                        std::span<const std::size_t> of_kernels);

/// When a command started and ended, ns on some clock.
struct CommandTimes {
  double start = 0, end = 0;
};

/// Estimates the starts and ends that were not recorded: the time between two known instants of a lane is divided in
/// proportion to the planned lengths of the commands in between.
/// @param times  [commands] with the starts that are noted and the ends of those that are marked
void share_out(const CommandList& list, std::span<CommandTimes> times);

}  // namespace tutti::internal
