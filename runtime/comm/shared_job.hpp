#pragma once
#include <memory>

#include "runtime/comm/shared_mapping.hpp"
#include "runtime/comm/soft_nic.hpp"
#include "runtime/comm/soft_transport.hpp"
#include "runtime/comm/transport.hpp"

namespace tutti::internal::comm {

struct GpuFunctions;

/// What a rank has of GPUs. Its streams reach the shared memory of the job, and the NIC reaches its buffers in a GPU by
/// CUDA IPC.
struct RankGpu {
  const GpuFunctions* functions = nullptr;  ///< null: nothing
  int device = 0;
  BufferPlace buffers = BufferPlace::Device;  ///< what the rank allocates; `Pinned`: in shared memory
};

/// Joins a job as one of its ranks, each in a process of its own. Rank 0 makes the shared memory and serves the soft
/// NIC in a thread, to the end of the last rank. Returns when all ranks have joined; the name is gone then.
/// @errors as `SharedMapping`; InvalidInput: this rank has joined already, or there is no such GPU; Machine: GPUs
///         do not reach the shared memory, or a rank has buffers in a GPU and this process has no GPUs
[[nodiscard]] Expected<std::unique_ptr<Transport>> join_shared_job(const SharedJob& job, int rank,
                                                                   const NetworkOptions& network,
                                                                   const RankGpu& gpu = {});

/// Serves the soft NIC of a job from a process that is none of its ranks: makes the shared memory, and returns when all
/// ranks have left or died. Its ranks call `join_served_job`.
/// @param gpus  where a rank has buffers in a GPU; null: those of `libtutti_cuda.so`, which is opened then
/// @errors as `SharedMapping::create`; Machine: a rank does not join, or has buffers in a GPU and this process has none
[[nodiscard]] Expected<void> serve_shared_job(const SharedJob& job, const NetworkOptions& network,
                                              const GpuFunctions* gpus = nullptr);
/// Joins a job whose NIC another process serves. @errors as `join_shared_job`
[[nodiscard]] Expected<std::unique_ptr<Transport>> join_served_job(const SharedJob& job, int rank,
                                                                   const RankGpu& gpu = {});

}  // namespace tutti::internal::comm
