#pragma once
#include <array>
#include <cstddef>

#include <cuda_runtime_api.h>

#include "model/base/error.hpp"

namespace tutti::internal::cuda {

/// Functions of NCCL, which are looked up in the library that is installed: a program built with CUDA starts without
/// one. The types are those of its binary interface, which has been the same since version 2.7.
struct Nccl {
  /// A communicator; null: none.
  using Comm = struct NcclComm*;
  /// Names a communicator among the processes that join it.
  struct UniqueId {
    std::array<char, 128> bytes;
  };
  /// 0: it went well.
  using Result = int;
  static constexpr int kBytes = 0;          // ncclInt8
  static constexpr Result kInProgress = 7;  // ncclInProgress

  Result (*get_version)(int*);
  Result (*get_unique_id)(UniqueId*);
  Result (*init_rank)(Comm*, int ranks, UniqueId, int rank);
  Result (*abort)(Comm);
  Result (*destroy)(Comm);
  Result (*async_error)(Comm, Result*);
  const char* (*error_text)(Result);
  Result (*send)(const void*, std::size_t count, int type, int peer, Comm, cudaStream_t);
  Result (*receive)(void*, std::size_t count, int type, int peer, Comm, cudaStream_t);
  Result (*group_start)();
  Result (*group_end)();
};

/// @errors Machine: libnccl.so.2 is not installed, or lacks a function; the sentence has the remedy.
[[nodiscard]] Expected<Nccl> find_nccl();

}  // namespace tutti::internal::cuda
