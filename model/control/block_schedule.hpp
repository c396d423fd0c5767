#pragma once
#include <vector>

namespace tutti::internal {

/// The blocks of one task of a fused kernel.
struct TaskBlocks {
  int count = 1;       ///< >= 1
  double each_ns = 0;  ///< time of one block, >= 0

  friend bool operator==(const TaskBlocks&, const TaskBlocks&) = default;
};

/// A compute-and-send task: its last block to finish sends the message.
struct SendBlocks {
  TaskBlocks compute;
  double send_ns = 0;  ///< S, for which that block keeps its slot, >= 0

  friend bool operator==(const SendBlocks&, const SendBlocks&) = default;
};

/// A receive-and-compute task: its blocks keep their slots while they wait for the message.
struct ReceiveBlocks {
  TaskBlocks compute;
  double wait_ns = 0;  ///< W, from the send of the peer until the receiver block has seen the message, >= 0

  friend bool operator==(const ReceiveBlocks&, const ReceiveBlocks&) = default;
};

/// All blocks of a fused kernel but its receiver, in the order of their ids: sends, inner, receives.
struct FusedBlocks {
  std::vector<SendBlocks> sends = {};
  std::vector<TaskBlocks> inner = {};
  std::vector<ReceiveBlocks> receives = {};

  friend bool operator==(const FusedBlocks&, const FusedBlocks&) = default;
};

/// When what happens in a fused kernel, ns from its start.
struct BlockSchedule {
  double length_ns = 0;            ///< until the last block has finished
  std::vector<double> sent_ns;     ///< [X] the message of a compute-and-send task has left
  std::vector<double> arrived_ns;  ///< [Z] the message of a receive-and-compute task was seen by the receiver

  friend bool operator==(const BlockSchedule&, const BlockSchedule&) = default;
};

/// List scheduling of a fused kernel's blocks on the slots of a GPU: how long the kernel takes.
///
/// A block takes the next id when it gets a slot, so blocks run in the order of ids, whichever order the hardware has.
/// Id 0 is the receiver, which keeps its slot until the last message is there; a kernel that receives nothing has none.
/// Peers run the same program in step: the message of receive k leaves with this kernel's own send k (with the last
/// send where there are fewer), or at the start where nothing is sent.
///
/// One id order makes this free of Graham's anomalies: a block's start is the least of the times at which slots become
/// free, its end max(start, message) + time, and a message depends on blocks with smaller ids alone. All of these are
/// monotone, so more slots, shorter blocks or shorter messages never make the kernel longer. Another order of ids may
/// be shorter: without messages by a factor of at most 2 - 1 / slots.
/// @param slots  SMs times resident blocks
/// @pre   slots >= 1; slots >= 2 where something is received
/// @exact
/// @source [AGO17] kernel-initiated communication: the dispatcher of blocks; [Gra69] list scheduling and its bound
[[nodiscard]] BlockSchedule schedule_blocks(const FusedBlocks& blocks, int slots);

}  // namespace tutti::internal
