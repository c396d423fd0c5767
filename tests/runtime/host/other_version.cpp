// A `libtutti_cuda.so` of another version of the project.
#include "runtime/host/cuda_library.hpp"

extern "C" const tutti::internal::CudaFunctions* tutti_cuda_v3() {
  static constexpr tutti::internal::CudaFunctions functions{"0.0.1", nullptr, nullptr, nullptr, nullptr, nullptr};
  return &functions;
}
