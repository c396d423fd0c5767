#pragma once
#include <memory>
#include <span>

#include "runtime/comm/mover.hpp"
#include "runtime/comm/soft_transport.hpp"
#include "runtime/comm/transports.hpp"

namespace tutti::internal::comm {

/// The functions of `libtutti_cuda.so` for communication, behind an entry of their own. A program that never asks for
/// GPUs needs neither that library nor CUDA. Both sides are built from one version of the project.
struct GpuFunctions {
  const char* version;  ///< of the project that the library was built from
  /// GPUs that this process sees; 0: none, or no driver.
  int (*devices)();
  /// As `make_comm_stream` in `runtime/cuda/comm/comm_stream.hpp`.
  Expected<std::unique_ptr<Stream>> (*make_stream)(int device);
  /// As in `runtime/cuda/comm/comm_memory.hpp`, all four.
  std::unique_ptr<SoftMemory> (*make_buffers)(int device, BufferPlace place);
  Expected<std::unique_ptr<Mover>> (*make_mover)(int devices);
  Expected<std::unique_ptr<ProxyMemory>> (*make_proxy_memory)(int device);
  /// GPUs reach memory of the host while the object lives that is returned.
  Expected<std::shared_ptr<void>> (*reach)(std::span<std::byte> memory);
  /// Whether NCCL can be used. @errors Machine: why it cannot, and the remedy
  Expected<void> (*check_nccl)();
  /// As in `runtime/cuda/comm/nccl_transport.hpp`.
  Expected<std::unique_ptr<Transport>> (*join_nccl)(const JoinOptions& options);
};

/// The function that exports them. Its name changes whenever `GpuFunctions` does.
inline constexpr const char* kGpuEntry = "tutti_cuda_comm_v2";
using GpuEntry = const GpuFunctions* (*)();

/// Opens `libtutti_cuda.so`.
/// @return  never null
/// @errors Machine: no such library, one that does not load, or one of another version of the project
[[nodiscard]] Expected<const GpuFunctions*> gpu_functions();

}  // namespace tutti::internal::comm
