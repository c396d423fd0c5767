#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace tutti::internal::test {

/// How a program comes to the driver's functions.
enum class Route : std::uint8_t {
  Linked,          ///< it is linked with the driver
  LookedUp,        ///< by `dlsym`, as Python's ctypes and older runtimes do
  Asked,           ///< by `cuGetProcAddress`, which `dlsym` finds, as runtimes do since CUDA 11.3
  AskedPerThread,  ///< likewise, where the default stream is one a thread
};
inline constexpr std::array kRoutes{Route::Linked, Route::LookedUp, Route::Asked, Route::AskedPerThread};

[[nodiscard]] constexpr std::string_view to_string(Route route) {
  constexpr std::array<std::string_view, 4> kWords{"linked", "looked_up", "asked", "asked_per_thread"};
  return kWords[static_cast<std::size_t>(route)];
}

/// The driver's copies, as a program has found them.
struct DriverCopies {
  decltype(&cuMemcpy) any;
  decltype(&cuMemcpyAsync) any_async;
  decltype(&cuMemcpyHtoD) up;
  decltype(&cuMemcpyHtoDAsync) up_async;
  decltype(&cuMemcpyDtoH) down;
  decltype(&cuMemcpyDtoHAsync) down_async;
  decltype(&cuMemcpy2DUnaligned) rows;
  decltype(&cuMemcpy2DAsync) rows_async;
  decltype(&cuMemcpy3D) box;
  decltype(&cuMemcpy3DAsync) box_async;

  /// By the kind, as runtimes do.
  [[nodiscard]] CUresult copy(void* to, const void* from, std::size_t size, cudaMemcpyKind kind) const {
    if (kind == cudaMemcpyHostToDevice) return up(address(to), from, size);
    if (kind == cudaMemcpyDeviceToHost) return down(to, address(from), size);
    return any(address(to), address(from), size);
  }
  [[nodiscard]] CUresult copy_async(void* to, const void* from, std::size_t size, cudaMemcpyKind kind,
                                    CUstream stream) const {
    if (kind == cudaMemcpyHostToDevice) return up_async(address(to), from, size, stream);
    if (kind == cudaMemcpyDeviceToHost) return down_async(to, address(from), size, stream);
    return any_async(address(to), address(from), size, stream);
  }
  [[nodiscard]] static CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }
};

/// Fills in all copies.
/// @param find  `find(name, version)`: a function by the name that `cuGetProcAddress` takes, and what its exported name
/// ends with
template <class Find>
[[nodiscard]] DriverCopies copies_by(const Find& find) {
  DriverCopies all{};
  const auto set = [&](auto& function, const char* base, const char* second) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(find(base, second));
  };
  set(all.any, "cuMemcpy", "");
  set(all.any_async, "cuMemcpyAsync", "");
  set(all.up, "cuMemcpyHtoD", "_v2");
  set(all.up_async, "cuMemcpyHtoDAsync", "_v2");
  set(all.down, "cuMemcpyDtoH", "_v2");
  set(all.down_async, "cuMemcpyDtoHAsync", "_v2");
  set(all.rows, "cuMemcpy2DUnaligned", "_v2");
  set(all.rows_async, "cuMemcpy2DAsync", "_v2");
  set(all.box, "cuMemcpy3D", "_v2");
  set(all.box_async, "cuMemcpy3DAsync", "_v2");
  return all;
}

/// As the runtime of CUDA 13 does, which asks for each function by the version that brought it.
[[nodiscard]] inline DriverCopies ask_for_copies(void* driver, bool per_thread) {
  using Ask = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  const auto first = reinterpret_cast<Ask>(dlsym(driver, "cuGetProcAddress_v2"));
  void* second = nullptr;
  if (first == nullptr || first("cuGetProcAddress", &second, 12000, 0, nullptr) != CUDA_SUCCESS) return {};
  return copies_by([&](const char* base, const char* version) {
    void* found = nullptr;
    const int since = per_thread ? 7000 : *version == '\0' ? 4000 : 3020;
    const auto flags = per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_DEFAULT;
    const CUresult status = reinterpret_cast<Ask>(second)(base, &found, since, flags, nullptr);
    return status == CUDA_SUCCESS ? found : nullptr;
  });
}

[[nodiscard]] inline DriverCopies find_copies(Route route) {
  if (route == Route::Linked)
    return {cuMemcpy,          cuMemcpyAsync,       cuMemcpyHtoD,    cuMemcpyHtoDAsync, cuMemcpyDtoH,
            cuMemcpyDtoHAsync, cuMemcpy2DUnaligned, cuMemcpy2DAsync, cuMemcpy3D,        cuMemcpy3DAsync};
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);  // stays open
  if (route != Route::LookedUp) return ask_for_copies(driver, route == Route::AskedPerThread);
  return copies_by(
      [&](const char* base, const char* second) { return dlsym(driver, (std::string(base) + second).c_str()); });
}

}  // namespace tutti::internal::test
