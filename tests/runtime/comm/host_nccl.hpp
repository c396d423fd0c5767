#pragma once
#include "runtime/cuda/comm/nccl_functions.hpp"

namespace tutti::internal::cuda {

/// NCCL for ranks of this process, on GPUs that are executed on the host.
[[nodiscard]] Nccl host_nccl();

}  // namespace tutti::internal::cuda
