#include "runtime/cuda/dry_run.hpp"

#include <chrono>
#include <future>
#include <thread>

#include <fmt/format.h>

#include "runtime/cuda/handles.hpp"

namespace tutti::internal::cuda {
namespace {

constexpr auto kTimeLimit = std::chrono::seconds{5};

/// Calls the callable and returns its failure; empty where there is none.
std::string call(const DeviceKernel& callable, const KernelLaunch& launch, cudaStream_t stream) {
  try {
    callable(launch, stream);
  } catch (const std::exception& exception) {
    return fmt::format("failed: {}; its batch's results are invalid", exception.what());
  } catch (...) {
    return "failed: it threw something that is no std::exception; its batch's results are invalid";
  }
  return "";
}

/// The stream must synchronize with the default stream: only then is a use of the default stream detected.
std::string record(int device, const DeviceKernel& callable, const KernelLaunch& launch) {
  const auto stream = make_stream(device, cudaStreamDefault);
  if (!stream) return stream.error().message;
  const DeviceGuard guard(device);
  if (const auto ok =
          check(cudaStreamBeginCapture(stream->get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
      !ok)
    return ok.error().message;
  const std::string wrong = call(callable, launch, stream->get());
  cudaGraph_t recorded = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream->get(), &recorded);
  const Graph graph(recorded);
  static_cast<void>(cudaGetLastError());
  if (!wrong.empty()) return wrong;
  if (status != cudaSuccess)
    return fmt::format(
        "does more than enqueue ({}); it may launch kernels and asynchronous copies on the stream that it is given, "
        "and "
        "must not wait, allocate, free, pin memory or use the default stream: that would wait for closed gates",
        cudaGetErrorName(status));
  cudaGraphExec_t loaded = nullptr;
  const auto ok = check(cudaGraphInstantiate(&loaded, graph.get(), 0), "cudaGraphInstantiate");
  const ExecutableGraph executable(loaded);
  return ok ? "" : "cannot be loaded: " + ok.error().message;
}

}  // namespace

Expected<void> try_kernel(int device, std::string_view kernel, std::string_view stream, const DeviceKernel& callable,
                          const KernelLaunch& launch) {
  std::packaged_task<std::string()> task([=] { return record(device, callable, launch); });
  std::future<std::string> result = task.get_future();
  std::thread thread(std::move(task));
  std::string wrong;
  if (result.wait_for(kTimeLimit) == std::future_status::ready) {
    thread.join();
    wrong = result.get();
  } else {
    thread.detach();  // it cannot be stopped
    wrong = fmt::format("has not returned within {} s of its dry run; it must enqueue its work and return",
                        kTimeLimit.count());
  }
  if (wrong.empty()) return {};
  return tl::unexpected(
      Error{ErrorCode::Kernel, fmt::format("kernel '{}' of stream '{}' {}", kernel, stream, wrong), {}});
}

}  // namespace tutti::internal::cuda
