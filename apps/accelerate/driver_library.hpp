#pragma once
#include <atomic>

#include <cuda.h>

namespace tutti::internal::cuda {

/// The driver's function with an exported name: null where the program has not loaded the driver, or the driver has
/// none. Once it was found the driver stays loaded.
[[nodiscard]] void* find_in_driver(const char* name);

/// The function of this library that takes the place of the driver's with an exported name; null: none does.
[[nodiscard]] void* stand_in_for(const char* name);

/// A function of the driver, found at its first call.
///
/// Threads: any.
template <class Function>
class DriverFunction {
 public:
  constexpr explicit DriverFunction(const char* name) : name_(name) {}

  template <class... Arguments>
  CUresult operator()(Arguments... arguments) {
    void* function = found_.load(std::memory_order_relaxed);
    if (function == nullptr) found_.store(function = find_in_driver(name_), std::memory_order_relaxed);
    return function == nullptr ? CUDA_ERROR_NOT_INITIALIZED : reinterpret_cast<Function*>(function)(arguments...);
  }

 private:
  const char* name_;
  std::atomic<void*> found_{nullptr};
};

}  // namespace tutti::internal::cuda
