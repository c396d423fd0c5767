#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/kernel_registry.hpp"
#include "runtime/host/cuda_options.hpp"
#include "runtime/host/gpu_condition.hpp"
#include "runtime/host/host_facts.hpp"
#include "runtime/host/pageable_measurement.hpp"

namespace tutti::internal {

/// The functions of the CUDA backend, which is a library of its own. A program that never asks for GPUs needs neither
/// that library nor CUDA.
///
/// The functions take and return C++ types, so both sides are built from one version of the project.
struct CudaFunctions {
  const char* version;  ///< of the project that the library was built from: "0.2.0"
  /// As `make_cuda_backend` in `runtime/cuda/backend/cuda_backend.hpp`.
  Expected<std::unique_ptr<DeviceBackend>> (*make_backend)(const Topology& machine, const KernelRegistry& kernels,
                                                           Clock& clock, const CudaOptions& options);
  /// As in `runtime/cuda/discovery/discovery.hpp`.
  Expected<HostFacts> (*discover_host)();
  /// As in `runtime/cuda/discovery/discovery.hpp`.
  std::optional<PcieLink> (*current_link)(const std::string& bus_id);
  /// As in `runtime/cuda/discovery/examination.hpp`.
  GpuCondition (*examine_gpu)(const DeviceFacts& device);
  /// As in `runtime/cuda/memory/pageable_speeds.hpp`.
  Expected<PageableMeasurement> (*measure_pageable)(int device);
};

/// The one function that the library exports. Its name changes whenever `CudaFunctions` does.
inline constexpr const char* kCudaEntry = "tutti_cuda_v3";
using CudaEntry = const CudaFunctions* (*)();

/// The folders that are searched first: the program's, and that of the library or program that this code is part of.
[[nodiscard]] std::vector<std::filesystem::path> cuda_library_folders();

/// What is said of a library that does not load: "WHAT does not load (...); install FILE beside the tutti library,
/// REMEDY".
struct LibraryWords {
  const char* what;
  const char* remedy;
};
inline constexpr LibraryWords kCudaWords{"the CUDA backend",
                                         "and the CUDA runtime that it needs, or use the sim backend"};

/// Opens a library that not every host can load, in the first folder that has it, else wherever the loader finds it
/// (its run path, LD_LIBRARY_PATH, its cache). It stays open to the end of the program. May be called again, from any
/// thread.
/// @param function  name of a function that it exports
/// @return  that function, never null
/// @errors Machine: no such library, one that does not load, one without the function.
[[nodiscard]] Expected<void*> open_function(const char* library, const char* function,
                                            const std::vector<std::filesystem::path>& folders = cuda_library_folders(),
                                            const LibraryWords& words = kCudaWords);

/// The file of a library, in the first folder that has it, else where the loader finds it.
/// @errors Machine: no such library, one that does not load.
[[nodiscard]] Expected<std::filesystem::path> path_of_library(
    const char* library, const std::vector<std::filesystem::path>& folders = cuda_library_folders());

/// Opens `libtutti_cuda.so` as `open_function` does.
/// @return  never null
/// @errors Machine: no such library, a library that does not load (it needs the CUDA runtime), or one of another
///         version of the project. Whether the host has a driver and GPUs is a question for its functions.
[[nodiscard]] Expected<const CudaFunctions*> open_cuda_library(
    const std::vector<std::filesystem::path>& folders = cuda_library_folders());

}  // namespace tutti::internal
