#pragma once
#include <string>
#include <vector>

#include "tests/support/host_cuda/gpu.hpp"

/// What all calls of the runtime have in common: planned failures, faults, captures, the last error.
namespace tutti::internal::host_cuda {

/// What a call has to do with the GPU that is current.
enum class Scope : std::uint8_t {
  Program,  ///< nothing: it works whatever has happened
  Device,   ///< it fails where that GPU is broken
  Unsafe,   ///< it may wait or allocate, which ends a capture as well
};

/// State of the runtime for the calling thread.
struct ThreadState {
  int device = 0;
  cudaError_t last = cudaSuccess;
  Capture* capture = nullptr;  ///< that it has begun
};
[[nodiscard]] ThreadState& this_thread();
[[nodiscard]] inline Gpu& current_gpu() { return gpu(this_thread().device); }

/// What the host has, as tests set it.
struct Host {
  std::atomic<int> devices{4};
  std::atomic<int> version{CUDART_VERSION};
  std::atomic<bool> peer_access{true};
  std::atomic<bool> memory_operations{true};
  std::atomic<bool> graphs_expand{false};
  std::atomic<bool> limits_kernels{false};
  std::atomic<bool> splits_sms{true};
};
[[nodiscard]] Host& host();

/// The failure that a test has planned for this call; 0: none. Counts the call where a test asks for that.
[[nodiscard]] int planned_failure(const char* function);
/// Ends the capture that the calling thread has begun, if it has: its graph will be invalid.
[[nodiscard]] cudaError_t refuse_in_capture();
[[nodiscard]] cudaError_t before_call(const char* function, Scope scope);
/// Remembers a failure. That something is not ready is none.
cudaError_t after_call(cudaError_t status);

/// Makes a call of the runtime.
template <class Body>
cudaError_t call(const char* function, Scope scope, const Body& body) {
  const cudaError_t refused = before_call(function, scope);
  return after_call(refused != cudaSuccess ? refused : body());
}

/// The stream of a handle; null stands for the default stream, which cannot be used while a stream is captured that
/// synchronizes with it.
[[nodiscard]] cudaError_t find_stream(cudaStream_t handle, CUstream_st*& found);

/// Enqueues an operation, or records it as a node where the stream is captured.
cudaError_t enqueue(CUstream_st& stream, CUgraphNode_st node);
cudaError_t enqueue(CUstream_st& stream, Operation operation);
cudaError_t enqueue(cudaStream_t stream, Operation operation);

/// A kernel that ends when its GPU is told to release what hangs.
[[nodiscard]] Operation hanging(Gpu& gpu);

/// What calls of the runtime do that the driver has, too.

struct Copy {
  void* to;
  const void* from;
  std::size_t size;
};
/// Copies as one operation. One from or to host memory that is not pinned waits for its turn in the calling thread; so
/// does one from memory of the host to memory of the host.
cudaError_t enqueue_copies(cudaStream_t stream, std::vector<Copy> copies, cudaMemcpyKind kind);
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream);
[[nodiscard]] cudaError_t query_event(cudaEvent_t event);

/// Waits until all streams of all GPUs have ended what they have by now, broken GPUs aside.
void wait_for_all_gpus();
/// Waits until operations of a stream have ended. @return the fault of its GPU
cudaError_t wait_for(CUstream_st& stream, std::uint64_t operations);

}  // namespace tutti::internal::host_cuda
