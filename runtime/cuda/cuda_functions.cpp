// The one exported function of libtutti_cuda.so.
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/discovery.hpp"
#include "runtime/cuda/examination.hpp"
#include "runtime/cuda/pageable_speeds.hpp"
#include "runtime/host/cuda_library.hpp"

extern "C" [[gnu::visibility("default")]] const tutti::internal::CudaFunctions* tutti_cuda_v3() {
  using namespace tutti::internal;
  static constexpr CudaFunctions functions{TUTTI_VERSION, make_cuda_backend, discover_host,
                                           current_link,  examine_gpu,       measure_pageable};
  return &functions;
}
