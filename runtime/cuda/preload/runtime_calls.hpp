#pragma once
#include <array>
#include <atomic>
#include <cstddef>

#include <cuda_runtime_api.h>

namespace tutti::internal::cuda {

/// The calls of the CUDA runtime that this library takes the place of, as its callers would reach them without it.
struct RuntimeCalls {
  decltype(&cudaMemcpy) memcpy = nullptr;
  decltype(&cudaMemcpyAsync) memcpy_async = nullptr;
  decltype(&cudaMemcpy) memcpy_per_thread = nullptr;  ///< where the default stream is one a thread
  decltype(&cudaMemcpyAsync) memcpy_async_per_thread = nullptr;
};

/// Finds the runtime of each caller: a program may have loaded several, one of them for itself, others for libraries
/// that it has opened without letting all see their symbols.
///
/// Threads: any.
class RuntimeOfCaller {
 public:
  constexpr RuntimeOfCaller() = default;
  /// @param caller  the address that the call returns to
  /// @return the calls, null where the caller has no runtime that this library sees
  [[nodiscard]] const RuntimeCalls& of(const void* caller);

 private:
  struct Entry {
    std::atomic<const void*> caller{nullptr};
    const RuntimeCalls* calls = nullptr;  // set before the caller is
  };
  std::array<Entry, 1024> entries_;  // by a hash of the address; one that finds no place is looked up each time
};

}  // namespace tutti::internal::cuda
