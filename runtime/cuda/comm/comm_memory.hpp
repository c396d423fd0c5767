#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/comm/mover.hpp"
#include "runtime/comm/soft_transport.hpp"
#include "runtime/comm/transports.hpp"
#include "runtime/cuda/base/handles.hpp"

namespace tutti::internal::cuda {

/// Host memory that GPUs reach while this object lives. Move-only.
class ReachedMemory {
 public:
  /// @errors Machine: the driver does not pin it
  [[nodiscard]] static Expected<ReachedMemory> make(std::span<std::byte> memory);

 private:
  using Pinned = std::unique_ptr<std::byte, Destroy<cudaHostUnregister>>;
  explicit ReachedMemory(Pinned memory) : memory_(std::move(memory)) {}

  Pinned memory_;
};

using comm::BufferPlace;

/// Buffers of a rank whose streams are a GPU's, in pinned memory or in its GPU.
[[nodiscard]] std::unique_ptr<comm::SoftMemory> make_gpu_buffers(int device, BufferPlace place);

/// Moves bytes between any GPUs and pinned memory by copies of the driver, also to and from GPU memory of other
/// processes (CUDA IPC). For one thread, which must not be the driver's.
/// @param devices  GPUs, numbered from 0, whose copies it may issue
/// @errors Machine: no such GPU
[[nodiscard]] Expected<std::unique_ptr<comm::Mover>> make_gpu_mover(int devices);

/// Memory for transports whose host moves the bytes of a GPU.
/// @errors Machine: no such GPU
[[nodiscard]] Expected<std::unique_ptr<comm::ProxyMemory>> make_gpu_proxy_memory(int device);

}  // namespace tutti::internal::cuda
