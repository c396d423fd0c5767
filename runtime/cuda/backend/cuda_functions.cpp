// The exported functions of libtutti_cuda.so: of the backend, and of communication.
#include "runtime/comm/gpu_functions.hpp"
#include "runtime/cuda/backend/cuda_backend.hpp"
#include "runtime/cuda/comm/comm_memory.hpp"
#include "runtime/cuda/comm/comm_stream.hpp"
#include "runtime/cuda/comm/nccl_transport.hpp"
#include "runtime/cuda/discovery/discovery.hpp"
#include "runtime/cuda/discovery/examination.hpp"
#include "runtime/cuda/memory/pageable_speeds.hpp"
#include "runtime/host/cuda_library.hpp"

extern "C" [[gnu::visibility("default")]] const tutti::internal::CudaFunctions* tutti_cuda_v3() {
  using namespace tutti::internal;
  static constexpr CudaFunctions functions{TUTTI_VERSION, make_cuda_backend, discover_host,
                                           current_link,  examine_gpu,       measure_pageable};
  return &functions;
}

extern "C" [[gnu::visibility("default")]] const tutti::internal::comm::GpuFunctions* tutti_cuda_comm_v2() {
  using namespace tutti::internal;
  using tutti::Expected;
  cuda::set_environment();
  static constexpr comm::GpuFunctions functions{
      TUTTI_VERSION,
      [] {
        int count = 0;
        return cuda::answer(cudaGetDeviceCount(&count)) == cudaSuccess ? count : 0;
      },
      cuda::make_comm_stream,
      cuda::make_gpu_buffers,
      cuda::make_gpu_mover,
      cuda::make_gpu_proxy_memory,
      [](std::span<std::byte> memory) -> Expected<std::shared_ptr<void>> {
        return cuda::ReachedMemory::make(memory).map([](cuda::ReachedMemory&& reached) -> std::shared_ptr<void> {
          return std::make_shared<cuda::ReachedMemory>(std::move(reached));
        });
      },
      [] { return cuda::find_nccl().map([](const cuda::Nccl&) {}); },
      [](const comm::JoinOptions& options) {
        return cuda::find_nccl().and_then([&](const cuda::Nccl& nccl) { return cuda::join_nccl(nccl, options); });
      }};
  return &functions;
}
