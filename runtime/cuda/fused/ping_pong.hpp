#pragma once
#include <memory>

#include "runtime/core/ping_pong.hpp"

namespace tutti::internal {

/// Memory for messages on two GPUs, with the streams and words for all modes.
/// @errors InvalidInput: a GPU that is not there, GPUs that do not reach each other, no room for a kernel. Machine: a
///         call failed, such as for memory; no driver with stream memory operations.
[[nodiscard]] Expected<std::unique_ptr<PingPong>> make_ping_pong(const PingPongSpec& spec);

}  // namespace tutti::internal
