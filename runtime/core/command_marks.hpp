#pragma once
#include <span>

#include "runtime/core/command_list.hpp"

namespace tutti {

/// From this planned length on a command is long: it has a mark of its own, and its start is known too.
inline constexpr Duration kLongCommand = std::chrono::microseconds{500};
/// Copies of one call at most: two such calls and their marks have room in a queue ahead of its gate.
inline constexpr std::uint32_t kMostCopies = 440;

// The steps of `make_commands` behind the commands themselves, in this order.

/// Puts a signal where a lane ends and where another lane waits; a time at long commands, before them, where copies
/// change to kernels or back, and before what is released at an instant of its own.
void place_marks(Marks marks, CommandList& list);

/// Brings copies together that go in one call: behind each other in a lane, with the same ends, none but the first
/// released, none but the last marked. With `Marks::Each` every command is alone.
void form_runs(const Batch& batch, Marks marks, CommandList& list);

void find_kernel_runs(const Batch& batch, CommandList& list);

/// How many runs, in order, all hardware queues together take ahead of their gates.
/// @param room   operations that a queue takes
/// @param chunk  of a staged copy; 0: it is one
[[nodiscard]] std::size_t runs_that_fit(const CommandList& list, std::size_t room, Bytes chunk);

/// When a command started and ended, ns on some clock.
struct CommandTimes {
  double start = 0, end = 0;
};

/// Finds the starts and ends that were not noted: what lies between two known instants of a lane is shared out by the
/// planned lengths of the commands in between.
/// @param times  [commands] with the starts that are noted and the ends of those that are marked
void share_out(const CommandList& list, std::span<CommandTimes> times);

}  // namespace tutti
