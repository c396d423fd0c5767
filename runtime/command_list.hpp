#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/backend.hpp"

namespace tutti {

/// A piece of work that hardware does without a break: one entry of a hardware queue.
struct Command {
  enum class Kind : std::uint8_t {
    Copy,    ///< `bytes` from `offset` on, direct or peer
    Staged,  ///< a whole transfer through host memory, over two lanes
    Kernel,  ///< on a GPU
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

  [[nodiscard]] bool is_kernel() const { return kind == Kind::Kernel || kind == Kind::HostWork; }
};

/// A batch as hardware queues take it.
///
/// A *lane* is a queue of one GPU: its commands run in order. Streams of one chain (those that share a copy engine)
/// have a lane on each GPU that they use, so that one copy engine and direction has one lane. Whatever the plan orders
/// beyond that, over lanes, is a wait. *Gates* hold commands until their planned instant.
struct CommandList {
  std::vector<VertexId> lanes;    ///< the GPU of each
  std::vector<Duration> gates;    ///< when each opens, from the batch's start; set-up of the batch left out, since that
                                  ///< is what opening takes. What it holds begins with the set-up of its transfer
  std::vector<Command> commands;  ///< in the order of their planned starts: each after all that it waits for
};

/// @pre the bindings fit, the plan was made for the batch, and the machine has a GPU.
[[nodiscard]] CommandList make_commands(const Topology& machine, const ExecutableBatch& batch);

}  // namespace tutti
