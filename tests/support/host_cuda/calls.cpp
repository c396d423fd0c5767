#include "tests/support/host_cuda/calls.hpp"

#include <map>

namespace tutti::internal::host_cuda {
namespace {

struct PlannedFailure {
  int status = 0;
  int before = 0;  ///< calls that go well first
};

/// What tests plan for calls, and want to know of them.
struct PlannedCalls {
  std::atomic<bool> any{false};
  std::mutex mutex;
  std::map<std::string, PlannedFailure> failures;
  std::map<std::string, int> counts;
};

PlannedCalls& planned() {
  static auto* const calls = new PlannedCalls;
  return *calls;
}

}  // namespace

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

Host& host() {
  static auto* const host = new Host;
  return *host;
}

int planned_failure(const char* function) {
  if (!planned().any.load(std::memory_order_relaxed)) return 0;
  const std::lock_guard lock(planned().mutex);
  if (const auto count = planned().counts.find(function); count != planned().counts.end()) ++count->second;
  const auto failure = planned().failures.find(function);
  if (failure == planned().failures.end() || failure->second.before-- > 0) return 0;
  return planned().failures.extract(failure).mapped().status;
}

cudaError_t refuse_in_capture() {
  Capture* const capture = this_thread().capture;
  if (capture == nullptr) return cudaSuccess;
  capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t before_call(const char* function, Scope scope) {
  if (const int planned = planned_failure(function); planned != 0) return static_cast<cudaError_t>(planned);
  if (scope == Scope::Program) return cudaSuccess;
  if (const cudaError_t fault = current_gpu().fault(); fault != cudaSuccess) return fault;
  return scope == Scope::Unsafe ? refuse_in_capture() : cudaSuccess;
}

cudaError_t after_call(cudaError_t status) {
  if (status != cudaSuccess && status != cudaErrorNotReady) this_thread().last = status;
  return status;
}

cudaError_t find_stream(cudaStream_t handle, CUstream_st*& found) {
  found = handle;
  if (handle != nullptr) return cudaSuccess;
  if (Capture* const capture = this_thread().capture; capture != nullptr && capture->stream->blocking) {
    capture->invalid = true;
    return cudaErrorStreamCaptureImplicit;
  }
  if (current_gpu().blocking_captures > 0) return cudaErrorStreamCaptureImplicit;
  found = current_gpu().default_stream();
  return cudaSuccess;
}

cudaError_t enqueue(CUstream_st& stream, CUgraphNode_st node) {
  if (const cudaError_t fault = stream.gpu->fault(); fault != cudaSuccess) return fault;
  if (Capture* const capture = stream.capture) {
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    node.before = stream.last;
    stream.last = {&capture->nodes.emplace_back(std::move(node))};
    return cudaSuccess;
  }
  stream.gpu->enqueue(stream, std::move(node.operation));
  return cudaSuccess;
}

cudaError_t enqueue(CUstream_st& stream, Operation operation) {
  return enqueue(stream, CUgraphNode_st{cudaGraphNodeTypeKernel, std::move(operation)});
}

cudaError_t enqueue(cudaStream_t handle, Operation operation) {
  CUstream_st* stream = nullptr;
  const cudaError_t status = find_stream(handle, stream);
  return status != cudaSuccess ? status : enqueue(*stream, std::move(operation));
}

Operation hanging(Gpu& gpu) {
  return [&gpu, before = gpu.releases.load()](Instant, Instant now) {
    return gpu.releases == before ? std::nullopt : std::optional(now);
  };
}

cudaError_t wait_for(CUstream_st& stream, std::uint64_t operations) {
  for (Pause pause; stream.gpu->fault() == cudaSuccess && stream.ended.load(std::memory_order_acquire) < operations;)
    pause();
  return stream.gpu->fault();
}

void wait_for_all_gpus() {
  const WaitingCall waits;
  std::vector<Gpu::Work> work;
  for (int i = 0; i < host().devices; ++i) work.push_back(gpu(i).work_so_far());
  for (const Gpu::Work& of_gpu : work)
    for (const auto& [stream, operations] : of_gpu) static_cast<void>(wait_for(*stream, operations));
}

// ---- for tests

void Device::lose() const { gpu(ordinal_).break_with(cudaErrorUnknown); }
void Device::hang_next_kernel() const { gpu(ordinal_).hangs_next = true; }
void Device::release() const { ++gpu(ordinal_).releases; }
void Device::copy_rate(double bytes_per_ns) const { gpu(ordinal_).copy_rate = bytes_per_ns; }
void Device::memory(std::size_t size) const { gpu(ordinal_).memory = size; }
std::uint64_t Device::computing_on(int sms) const { return gpu(ordinal_).computing_on[static_cast<std::size_t>(sms)]; }
std::uint64_t Device::waiting_on(int sms) const { return gpu(ordinal_).waiting_on[static_cast<std::size_t>(sms)]; }
Instant Device::timer() const { return gpu(ordinal_).now(); }
std::uint64_t Device::unfinished() const {
  std::uint64_t count = 0;
  for (const auto& [stream, operations] : gpu(ordinal_).work_so_far()) count += operations - stream->ended.load();
  return count;
}

void set_device_count(int count) { host().devices = count; }
void set_driver_version(int version) { host().version = version; }
void set_peer_access(bool reaches) { host().peer_access = reaches; }
void set_memory_operations(bool work) { host().memory_operations = work; }
void set_limits_kernels(bool limits) { host().limits_kernels = limits; }
void set_splits_sms(bool splits) { host().splits_sms = splits; }
void set_graphs_expand(bool expand) { host().graphs_expand = expand; }

void fail_next(const std::string& function, int status, int before) {
  const std::lock_guard lock(planned().mutex);
  planned().failures[function] = {status, before};
  planned().any = true;
}

void count_calls(const std::string& function) {
  const std::lock_guard lock(planned().mutex);
  planned().counts[function] = 0;
  planned().any = true;
}

int counted_calls(const std::string& function) {
  const std::lock_guard lock(planned().mutex);
  return planned().counts.at(function);
}

int waiting_calls() { return WaitingCall::count(); }

}  // namespace tutti::internal::host_cuda
