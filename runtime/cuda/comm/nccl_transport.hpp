#pragma once
#include <memory>

#include "runtime/comm/transports.hpp"
#include "runtime/cuda/comm/nccl_functions.hpp"

namespace tutti::internal::cuda {

/// Joins the ranks of a job through NCCL. Ranks meet in the shared memory of the job, which also says who lives and who
/// gave up.
///
/// Each direction between two ranks is a communicator of NCCL with a stream of its own, so that no connection waits for
/// another: a receive is enqueued when it is posted, a send behind what the user's stream has so far, and waits are for
/// events behind them. NCCL lets a stream go on behind a short send before its receive is there; the request ends when
/// it is. NCCL has no puts: they are refused.
/// @param nccl  its functions; outlive the transport
/// @errors InvalidInput: as `SharedMapping`. Machine: NCCL or the driver refuses.
[[nodiscard]] Expected<std::unique_ptr<comm::Transport>> join_nccl(const Nccl& nccl, const comm::JoinOptions& options);

}  // namespace tutti::internal::cuda
