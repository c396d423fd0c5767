// Calls about streams, events, copies and graphs.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/host_cuda/calls.hpp"
#include "tests/support/host_cuda/memory.hpp"

namespace tutti::internal::host_cuda {
namespace {

bool is_on_gpu(const void* address) {
  const auto region = region_of(address);
  return region && region->device >= 0;
}

/// Whether both ends hold the bytes, and lie where the kind of the copy says.
bool is_valid(const Copy& copy, cudaMemcpyKind kind) {
  if (copy.size > 0 && (copy.to == nullptr || copy.from == nullptr)) return false;
  if (!holds(copy.to, copy.size) || !holds(copy.from, copy.size)) return false;
  if (kind == cudaMemcpyDefault || copy.size == 0) return true;
  const bool to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return is_on_gpu(copy.to) == to && is_on_gpu(copy.from) == from;
}

/// Ends when the rate says so, and moves the bytes then.
Operation copying(Gpu& gpu, std::vector<Copy> copies) {
  std::size_t size = 0;
  for (const Copy& copy : copies) size += copy.size;
  return [&gpu, copies = std::move(copies), size](Instant begin, Instant now) -> std::optional<Instant> {
    const Instant end = begin + static_cast<Instant>(static_cast<double>(size) / gpu.copy_rate);
    if (now < end) return std::nullopt;
    for (const Copy& copy : copies)
      if (copy.size > 0) std::memcpy(copy.to, copy.from, copy.size);
    return end;
  };
}

/// While a call copies from memory of the host to memory of the host, calls that enqueue functions of the host wait.
std::mutex& copies_within_the_host() {
  static std::mutex mutex;
  return mutex;
}

/// A function of the host is called once, when its turn has come, and ends when it returns.
Operation calling(Gpu& gpu, cudaHostFn_t function, void* argument) {
  enum State { kWaiting, kCalled, kReturned };
  const auto state = std::make_shared<std::atomic<int>>(kWaiting);
  return [&gpu, function, argument, state](Instant, Instant now) -> std::optional<Instant> {
    int waiting = kWaiting;
    if (state->compare_exchange_strong(waiting, kCalled))
      gpu.host_calls.add([=, &gpu] {
        if (gpu.fault() == cudaSuccess) function(argument);
        state->store(kReturned, std::memory_order_release);
      });
    return state->load(std::memory_order_acquire) == kReturned ? std::optional(now) : std::nullopt;
  };
}

cudaError_t record(CUevent_st& event, cudaStream_t handle) {
  CUstream_st* stream = nullptr;
  if (const cudaError_t status = find_stream(handle, stream); status != cudaSuccess) return status;
  if (event.gpu != stream->gpu) return cudaErrorInvalidResourceHandle;
  event.capture = stream->capture;
  if (event.capture != nullptr) return event.behind = stream->last, cudaSuccess;
  const std::uint64_t number = event.recorded.fetch_add(1) + 1;
  return enqueue(*stream, [event = event.self, number](Instant begin, Instant) {
    event->at = begin;
    event->reached.store(number, std::memory_order_release);
    return std::optional(begin);
  });
}

/// A stream that waits for an event of a capture is captured too, and goes on behind it.
cudaError_t join(CUstream_st& stream, const CUevent_st& event) {
  if (stream.capture.exchange(event.capture) == nullptr) event.capture->joined.push_back(&stream);
  stream.last.insert(stream.last.end(), event.behind.begin(), event.behind.end());
  return cudaSuccess;
}

/// The stream waits for what the event has recorded by now.
cudaError_t wait_for(cudaStream_t handle, CUevent_st& event) {
  CUstream_st* stream = nullptr;
  if (const cudaError_t status = find_stream(handle, stream); status != cudaSuccess) return status;
  if (event.capture != nullptr) return join(*stream, event);
  const bool one_timer = event.gpu == stream->gpu;
  const std::uint64_t number = event.recorded;
  return enqueue(*stream, [=, event = event.self](Instant begin, Instant now) -> std::optional<Instant> {
    if (event->reached.load(std::memory_order_acquire) < number) return std::nullopt;
    return one_timer ? std::max<Instant>(begin, event->at) : now;
  });
}

cudaError_t query(const CUevent_st& event) {
  if (event.gpu->fault() != cudaSuccess) return event.gpu->fault();
  return event.reached.load(std::memory_order_acquire) == event.recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t elapsed(float& ms, const CUevent_st& from, const CUevent_st& to) {
  const bool comparable = from.timed && to.timed && from.gpu == to.gpu && from.recorded != 0 && to.recorded != 0;
  if (!comparable) return cudaErrorInvalidResourceHandle;
  for (const CUevent_st* event : {&from, &to})
    if (const cudaError_t status = query(*event); status != cudaSuccess) return status;
  ms = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(to.at - from.at)) / 1e6);
  return cudaSuccess;
}

cudaError_t begin_capture(CUstream_st& stream) {
  if (stream.capture != nullptr || this_thread().capture != nullptr) return cudaErrorIllegalState;
  stream.capture = this_thread().capture = new Capture{&stream};
  stream.last.clear();
  if (stream.blocking) ++stream.gpu->blocking_captures;
  return cudaSuccess;
}

/// Whether all that joined streams have recorded comes before what a stream has recorded last.
bool all_came_back(const Capture& capture, const CUstream_st& stream) {
  std::set<const CUgraphNode_st*> before;
  std::vector<CUgraphNode_st*> next = stream.last;
  while (!next.empty()) {
    const CUgraphNode_st* const node = next.back();
    next.pop_back();
    if (before.insert(node).second) next.insert(next.end(), node->before.begin(), node->before.end());
  }
  return std::ranges::all_of(capture.joined, [&](const CUstream_st* joined) {
    return std::ranges::all_of(joined->last, [&](const CUgraphNode_st* node) { return before.contains(node); });
  });
}

cudaError_t end_capture(CUstream_st& stream, cudaGraph_t& graph) {
  graph = nullptr;
  const std::unique_ptr<Capture> capture(stream.capture.exchange(nullptr));
  if (!capture) return cudaErrorIllegalState;
  this_thread().capture = nullptr;
  if (stream.blocking) --stream.gpu->blocking_captures;
  const bool is_joined = all_came_back(*capture, stream);
  for (CUstream_st* const joined : capture->joined) {
    joined->capture = nullptr;
    joined->last.clear();
  }
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!is_joined) return cudaErrorStreamCaptureUnjoined;
  graph = new CUgraph_st{std::move(capture->nodes)};
  return cudaSuccess;
}

/// With CUDA_LAUNCH_BLOCKING the call returns when the kernel has ended.
cudaError_t blocking_launch(CUstream_st& stream, cudaError_t launched) {
  const char* const blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  const bool waits = blocking != nullptr && std::string_view(blocking) != "0" && stream.capture == nullptr;
  return launched == cudaSuccess && waits ? host_cuda::wait_for(stream, stream.enqueued) : launched;
}

/// A kernel that is counted as it begins.
Operation counted(std::atomic<std::uint64_t>& begun, Operation kernel) {
  return [&begun, kernel = std::move(kernel), first = true](Instant begin, Instant now) mutable {
    if (std::exchange(first, false)) ++begun;
    return kernel(begin, now);
  };
}

/// Launches a kernel into a stream of the current GPU.
void launch_into(cudaStream_t handle, Operation kernel, const std::vector<const void*>& touches, bool computes) {
  static_cast<void>(call("cudaLaunchKernel", Scope::Device, [&] {
    CUstream_st* stream = nullptr;
    if (const cudaError_t status = find_stream(handle, stream); status != cudaSuccess) return status;
    Gpu& gpu = *stream->gpu;
    if (&gpu != &current_gpu()) return cudaErrorInvalidResourceHandle;
    for (const void* address : touches)
      if (address != nullptr && !reaches(gpu.ordinal(), address))
        kernel = [&gpu](Instant, Instant) -> std::optional<Instant> {
          gpu.break_with(cudaErrorIllegalAddress);
          return std::nullopt;
        };
    if (computes && stream->capture == nullptr && gpu.hangs_next.exchange(false)) kernel = hanging(gpu);
    kernel = counted((computes ? gpu.computing_on : gpu.waiting_on)[static_cast<std::size_t>(stream->sms)],
                     std::move(kernel));
    return blocking_launch(*stream, enqueue(*stream, CUgraphNode_st{cudaGraphNodeTypeKernel, std::move(kernel), nullptr,
                                                                    nullptr, computes}));
  }));
}

}  // namespace

cudaError_t enqueue_copies(cudaStream_t handle, std::vector<Copy> copies, cudaMemcpyKind kind) {
  CUstream_st* stream = nullptr;
  if (const cudaError_t status = find_stream(handle, stream); status != cudaSuccess) return status;
  bool waits = false, within_the_host = false;
  for (const Copy& copy : copies) {
    if (!is_valid(copy, kind)) return cudaErrorInvalidValue;
    waits |= copy.size > 0 && (!region_of(copy.to) || !region_of(copy.from));
    within_the_host |= copy.size > 0 && !is_on_gpu(copy.to) && !is_on_gpu(copy.from);
  }
  std::unique_lock lock(copies_within_the_host(), std::defer_lock);
  if (within_the_host) lock.lock();
  const Copy first = copies.empty() ? Copy{} : copies.front();
  const cudaError_t status = enqueue(
      *stream, CUgraphNode_st{cudaGraphNodeTypeMemcpy, copying(*stream->gpu, std::move(copies)), first.to, first.from});
  return status == cudaSuccess && (waits || within_the_host) ? wait_for(*stream, stream->enqueued) : status;
}

cudaError_t record_event(cudaEvent_t event, cudaStream_t stream) { return record(*event, stream); }

cudaError_t query_event(cudaEvent_t event) { return query(*event); }

void launch(DeviceStream stream, Operation kernel, const std::vector<const void*>& touches) {
  launch_into(stream, std::move(kernel), touches, true);
}

void launch_gate(DeviceStream stream, Operation kernel, const std::vector<const void*>& touches) {
  launch_into(stream, std::move(kernel), touches, false);
}

}  // namespace tutti::internal::host_cuda

using namespace tutti::internal::host_cuda;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return call("cudaStreamCreateWithFlags", Scope::Device, [&] {
    *stream = current_gpu().make_stream(flags != cudaStreamNonBlocking);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", Scope::Program, [&] { return stream->gpu->destroy(stream), cudaSuccess; });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", Scope::Program, [&] {
    if (stream->capture != nullptr) return refuse_in_capture();
    if (stream->gpu->fault() != cudaSuccess) return stream->gpu->fault();
    return stream->ended.load(std::memory_order_acquire) == stream->enqueued ? cudaSuccess : cudaErrorNotReady;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", Scope::Program, [&] {
    CUstream_st* found = nullptr;
    if (const cudaError_t status = find_stream(stream, found); status != cudaSuccess) return status;
    return found->capture != nullptr ? refuse_in_capture() : wait_for(*found, found->enqueued);
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", Scope::Program, [&] { return wait_for(stream, *event); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call("cudaEventCreateWithFlags", Scope::Device, [&] {
    const auto made = std::make_shared<CUevent_st>();
    made->gpu = &current_gpu();
    made->timed = (flags & cudaEventDisableTiming) == 0;
    made->self = made;
    *event = made.get();
    return cudaSuccess;
  });
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call("cudaEventDestroy", Scope::Program, [&] {
    const auto last = std::move(event->self);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", Scope::Program, [&] { return record(*event, stream); });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", Scope::Program, [&] { return query(*event); });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", Scope::Unsafe, [&] {
    for (Pause pause; query(*event) == cudaErrorNotReady;) pause();
    return query(*event);
  });
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  return call("cudaEventElapsedTime", Scope::Program, [&] { return elapsed(*ms, *from, *to); });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind) {
  return call("cudaMemcpy", Scope::Unsafe, [&] {
    const cudaError_t status = enqueue_copies(nullptr, {{to, from, size}}, kind);
    CUstream_st& stream = *current_gpu().default_stream();
    return status == cudaSuccess ? wait_for(stream, stream.enqueued) : status;
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", Scope::Program, [&] {
    if (to_pitch < width || from_pitch < width) return cudaErrorInvalidPitchValue;
    std::vector<Copy> rows;
    for (size_t row = 0; row < height; ++row)
      rows.push_back(
          {static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width});
    return enqueue_copies(stream, std::move(rows), kind);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", Scope::Program, [&] { return enqueue_copies(stream, {{to, from, size}}, kind); });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaMemcpyBatchAsync(void* const* to, const void* const* from, const size_t* sizes, size_t count,
                                 cudaMemcpyAttributes*, size_t*, size_t, cudaStream_t stream) {
#elif CUDART_VERSION >= 12080
cudaError_t cudaMemcpyBatchAsync(void** to, void** from, size_t* sizes, size_t count, cudaMemcpyAttributes*, size_t*,
                                 size_t, size_t*, cudaStream_t stream) {
#endif
#if CUDART_VERSION >= 12080
  return call("cudaMemcpyBatchAsync", Scope::Program, [&] {
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < count; ++i) copies.push_back({to[i], from[i], sizes[i]});
    return enqueue_copies(stream, std::move(copies), cudaMemcpyDefault);
  });
}
#endif

cudaError_t cudaMemsetAsync(void* memory, int value, size_t size, cudaStream_t stream) {
  return call("cudaMemsetAsync", Scope::Program, [&] {
    if (!holds(memory, size)) return cudaErrorInvalidValue;
    CUstream_st* found = nullptr;
    if (const cudaError_t status = find_stream(stream, found); status != cudaSuccess) return status;
    const auto set = [=](Instant, Instant now) {
      std::memset(memory, value, size);
      return std::optional(now);
    };
    return enqueue(*found, CUgraphNode_st{cudaGraphNodeTypeMemset, set});
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  return call("cudaLaunchHostFunc", Scope::Program, [&] {
    CUstream_st* found = nullptr;
    if (const cudaError_t status = find_stream(stream, found); status != cudaSuccess) return status;
    const std::lock_guard lock(copies_within_the_host());
    return enqueue(*found, CUgraphNode_st{cudaGraphNodeTypeHost, calling(*found->gpu, function, argument)});
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return call("cudaStreamBeginCapture", Scope::Device, [&] { return begin_capture(*stream); });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call("cudaStreamEndCapture", Scope::Program, [&] { return end_capture(*stream, *graph); });
}
}
