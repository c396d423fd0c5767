#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/core/backend.hpp"

namespace tutti::internal {

/// Commands that go into a hardware queue ahead of their gate; at 1020 the driver blocks (H100, H200).
inline constexpr std::size_t kQueueCapacity = 900;

/// Record made where a command ends. A mark delays the commands behind it, so it is set only where it is needed.
enum class Mark : std::uint8_t {
  None,
  Time,    ///< when it ended: an event
  Signal,  ///< and a signal that the host (at the end of a lane) or another lane waits for
};

/// A piece of work that hardware does without a break: one entry of a hardware queue.
struct Command {
  enum class Kind : std::uint8_t {
    Copy,      ///< `bytes` from `offset` on, by an engine
    Rows,      ///< a whole transfer of rows that lie apart, by an engine
    SmCopy,    ///< `bytes` from `offset` on, by a kernel
    Inline,    ///< as `SmCopy`, but the bytes are read when it is enqueued
    Staged,    ///< a whole transfer through host memory, over two lanes
    Pageable,  ///< a piece of a transfer of pageable memory, by threads of the host and the lane's engine
    Mapped,    ///< `bytes` from `offset` on, by a thread of the host through the GPU's BAR
    Kernel,    ///< on a GPU
    HostWork,
    Nothing,  ///< a transfer of 0 bytes
  };

  Kind kind = Kind::Nothing;
  std::uint32_t stream = 0;
  std::uint32_t lane = 0;             ///< where it runs; of a staged copy, its first leg
  std::uint32_t last_lane = 0;        ///< where it ends: another one of a staged copy
  std::optional<std::uint32_t> gate;  ///< that holds it
  std::vector<std::uint32_t> waits;   ///< commands in other lanes whose end it waits for
  std::size_t offset = 0;             ///< of a copy's bytes in its transfer
  std::size_t bytes = 0;
  bool opens = true;   ///< the first of its transfer or kernel
  bool closes = true;  ///< the last of it
  Duration planned{};  ///< how long it takes, as planned
  Mark mark = Mark::None;
  Mark leg_mark = Mark::None;  ///< of a staged copy, at the end of its first leg

  [[nodiscard]] bool is_kernel() const { return kind == Kind::Kernel || kind == Kind::HostWork; }
  /// Whether it is a copy that threads of the host make when its lane has come to it.
  [[nodiscard]] bool is_served() const { return kind == Kind::Pageable || kind == Kind::Mapped; }
  /// Whether a gate or a wait releases it; else it starts when the command before it in its lane ends.
  [[nodiscard]] bool is_released() const { return gate.has_value() || !waits.empty(); }
  /// Whether its release is recorded: not needed for further pieces of a transfer.
  [[nodiscard]] bool notes_start() const { return is_released() && opens; }
};

/// Commands that are enqueued together: copies of one lane with the same ends in one call, or a single command.
/// Copies of one call have no order among themselves.
struct Run {
  std::uint32_t begin = 0, end = 0;  ///< positions of its commands

  friend bool operator==(const Run&, const Run&) = default;
};

/// Consecutive kernels of one lane. Only the first one's start and the last one's end are known.
struct KernelRun {
  std::uint32_t first = 0, last = 0;  ///< positions; others may be between them
  std::uint32_t count = 0;
  Duration worst{};  ///< of all of them, declared

  friend bool operator==(const KernelRun&, const KernelRun&) = default;
};

/// A batch as entries of hardware queues.
///
/// A *lane* is a queue of one GPU: its commands run in order. Streams of one engine queue (streams that share a copy
/// engine) have a lane on each GPU that they use. An engine used by several merged queues has a lane of its own, and so
/// has a GPU that runs kernels of several queues. The reason: a command follows another sooner within a queue than
/// across queues (H200: 2 us in place of 12), and a second queue whose copies wait for an engine slows the first one
/// down. Any other order of the plan, across lanes, is a wait. *Gates* hold commands until their planned instant.
struct CommandList {
  std::vector<VertexId> lanes;    ///< the GPU of each
  std::vector<Duration> gates;    ///< when each opens, from the batch's start, without the batch's set-up, which is the
                                  ///< time that opening takes. A held command begins with its transfer's set-up
  std::vector<Command> commands;  ///< by planned start, but the commands of a run together at the place of its first
                                  ///< one; each after all commands that it waits for
  std::vector<Run> runs;          ///< every command is in one, in their order
  std::vector<KernelRun> kernels;
};

/// Translates a plan: what runs, when gates open and how transfers are cut is taken from it.
/// @pre the machine of the plan has a GPU.
[[nodiscard]] CommandList make_commands(const ExecutionPlan& plan, Marks marks = Marks::Needed);

}  // namespace tutti::internal
