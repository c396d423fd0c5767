#pragma once
#include <memory>

#include "runtime/comm/shared_mapping.hpp"
#include "runtime/comm/soft_nic.hpp"
#include "runtime/comm/transport.hpp"

namespace tutti::internal::comm {

/// Joins a job as one of its ranks, each in a process of its own. Rank 0 makes the shared memory and serves the soft
/// NIC in a thread, to the end of the last rank. Returns when all ranks have joined; the name is gone then.
/// @errors as `SharedMapping`; InvalidInput: this rank has joined already
[[nodiscard]] Expected<std::unique_ptr<Transport>> join_shared_job(const SharedJob& job, int rank,
                                                                   const NetworkOptions& network);

/// Serves the soft NIC of a job from a process that is none of its ranks: makes the shared memory, and returns when all
/// ranks have left or died. Its ranks call `join_served_job`.
/// @errors as `SharedMapping::create`; Machine: a rank does not join
[[nodiscard]] Expected<void> serve_shared_job(const SharedJob& job, const NetworkOptions& network);
/// Joins a job whose NIC another process serves.
[[nodiscard]] Expected<std::unique_ptr<Transport>> join_served_job(const SharedJob& job, int rank);

}  // namespace tutti::internal::comm
