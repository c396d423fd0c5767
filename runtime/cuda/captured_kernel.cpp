#include "runtime/cuda/captured_kernel.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "runtime/cuda/graph_check.hpp"

namespace tutti::internal::cuda {
namespace {

using std::chrono::steady_clock;

/// For the calls of a callable and its first run, at least: libraries load their kernels then.
constexpr Duration kLeastPatience = std::chrono::seconds{5};

/// What the thread works on. It is kept where the thread does not come back.
struct Work {
  int device;
  DeviceKernel callable;
  KernelLaunch launch;
  Capture capture;
  cudaStream_t service;
  Duration patience;
  steady_clock::time_point end = steady_clock::now() + patience;
  std::vector<std::byte> parameters{launch.parameters.begin(), launch.parameters.end()};  ///< which it has then, too
  PooledMemory input{}, output{};                                                         ///< of the first run
  bool has_memory = false;
};

/// What came of it.
struct Outcome {
  CapturedKernel kernel{};
  std::string wrong{};  ///< what the kernel does, in words; empty: nothing
  cudaError_t fault = cudaSuccess;
  bool hangs = false;
};

std::string failed_with(cudaError_t refused) {
  return fmt::format("failed: {}; its batch's results are invalid", cudaGetErrorString(refused));
}

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

/// Takes memory for the first run, zeroed.
void take_memory(Work& work) {
  MemoryPool& pool = MemoryPool::instance();
  const auto take = [&](std::size_t size, PooledMemory& memory) {
    if (size == 0) return true;
    auto taken = pool.take_device(work.device, size, work.service);
    if (taken) memory = *std::move(taken);
    return taken.has_value();
  };
  work.has_memory = take(work.launch.input.size(), work.input) && take(work.launch.output.size(), work.output);
}

/// In the stream that nothing else waits in. Whatever it must load, plan and allocate is there afterwards.
void run_first(const Work& work, Outcome& outcome) {
  KernelLaunch launch = work.launch;
  launch.input = {work.input.data(), launch.input.size()};
  launch.output = {work.output.data(), launch.output.size()};
  outcome.wrong = call(work.callable, launch, work.service);
  if (!outcome.wrong.empty()) return;
  if (const cudaError_t refused = cudaGetLastError(); refused != cudaSuccess) {
    outcome.wrong = failed_with(refused);
    return;
  }
  cudaError_t status = cudaErrorNotReady;
  while ((status = cudaStreamQuery(work.service)) == cudaErrorNotReady) {
    if (steady_clock::now() > work.end) {
      outcome.hangs = true;
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds{50});
  }
  outcome.fault = status;
}

/// The stream must synchronize with the default stream: only then is a use of the default stream detected.
Graph record(const Work& work, std::string& wrong) {
  const auto stream = make_stream(work.device, cudaStreamDefault);
  if (!stream) return wrong = stream.error().message, Graph();
  if (const auto ok =
          check(cudaStreamBeginCapture(stream->get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
      !ok)
    return wrong = ok.error().message, Graph();
  wrong = call(work.callable, work.launch, stream->get());
  cudaGraph_t recorded = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream->get(), &recorded);
  Graph graph(recorded);
  const cudaError_t refused = cudaGetLastError();
  if (!wrong.empty()) return graph;
  if (status == cudaSuccess && refused != cudaSuccess) wrong = failed_with(refused);
  if (status != cudaSuccess)
    wrong = fmt::format(
        "does more than enqueue ({}); it may launch kernels and asynchronous copies on the stream that it is given, "
        "and must not wait, allocate, free, pin memory or use the default stream: that would wait for closed gates",
        cudaGetErrorName(status));
  return graph;
}

Expected<ExecutableGraph> load(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t loaded = nullptr;
  if (auto ok = check(cudaGraphInstantiate(&loaded, graph, 0), "cudaGraphInstantiate"); !ok)
    return tl::unexpected(std::move(ok.error()));
  ExecutableGraph executable(loaded);
  return check(cudaGraphUpload(loaded, stream), "cudaGraphUpload")
      .and_then([&] { return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); })
      .map([&] { return std::move(executable); });
}

Outcome capture(const Work& work) {
  const DeviceGuard guard(work.device);
  Outcome outcome;
  if (work.has_memory) run_first(work, outcome);
  if (!outcome.wrong.empty() || outcome.fault != cudaSuccess || outcome.hangs) return outcome;
  const Graph graph = record(work, outcome.wrong);
  if (outcome.wrong.empty()) outcome.wrong = fault_of_graph(work.device, graph.get(), work.capture);
  if (!outcome.wrong.empty()) return outcome;
  if (work.capture == Capture::Never) {
    outcome.kernel.operations = size_of_graph(graph.get());
    if (outcome.kernel.operations > kQueueCapacity)
      outcome.wrong = fmt::format(
          "enqueues {} operations, of which a queue takes {} ahead of its gate; leave out 'capture: never', so that "
          "they are one",
          outcome.kernel.operations, kQueueCapacity);
    return outcome;
  }
  auto loaded = put_in_line(graph.get()).and_then([&] { return load(graph.get(), work.service); });
  if (loaded) {
    outcome.kernel.graph = *std::move(loaded);
  } else {
    outcome.wrong = "cannot be loaded: " + loaded.error().message;
  }
  return outcome;
}

Error kernel_error(ErrorCode code, const CommandStream& stream, std::string_view what) {
  return {code, fmt::format("kernel '{}' of stream '{}' {}", stream.kernel->name, stream.name, what), {}};
}

/// @param what  "ended", "returned"
Error not_done(const Work& work, const CommandStream& stream, std::string_view what) {
  return kernel_error(ErrorCode::Kernel, stream,
                      fmt::format("has not {} within {} when it was prepared; --watchdog sets that limit", what,
                                  to_string(work.patience)));
}

}  // namespace

Expected<CapturedKernel> capture_kernel(BoundDevices& backend, int device, const CommandStream& stream,
                                        const DeviceKernel& callable, const KernelLaunch& launch) {
  const Duration patience =
      std::clamp(backend.watchdog.limit(launch.declared), kLeastPatience, Duration{std::chrono::hours{1000}});
  const auto work = std::make_shared<Work>(
      Work{device, callable, launch, stream.kernel->capture, backend.lanes.at(device).service(), patience});
  const auto first_run = std::tuple(device, stream.kernel->name, launch.input.size(), launch.output.size());
  work->launch.parameters = work->parameters;
  if (work->capture == Capture::Once && !backend.first_runs.contains(first_run)) take_memory(*work);
  std::packaged_task<Outcome()> task([work] { return capture(*work); });
  std::future<Outcome> result = task.get_future();
  std::thread thread(std::move(task));
  // The kernel's own time is over first, so that what hangs is told from what does not return.
  if (result.wait_until(work->end + std::chrono::seconds{1}) != std::future_status::ready) {
    thread.detach();  // it cannot be stopped
    return tl::unexpected(not_done(*work, stream, "returned"));
  }
  thread.join();
  Outcome outcome = result.get();
  if (outcome.hangs) {
    // Where gates are closed it may wait for one of them; otherwise it never ends.
    if (!MemoryPool::instance().has_runs()) backend.lose(device);
    return tl::unexpected(not_done(*work, stream, "ended"));
  }
  if (outcome.fault != cudaSuccess) {
    backend.lose(device);
    return tl::unexpected(kernel_error(
        ErrorCode::Machine, stream,
        fmt::format("has broken the GPU in its first run, on memory of its own: {}, {}; nothing more can run on it",
                    cudaGetErrorName(outcome.fault), cudaGetErrorString(outcome.fault))));
  }
  if (!outcome.wrong.empty()) return tl::unexpected(kernel_error(ErrorCode::Kernel, stream, outcome.wrong));
  if (work->has_memory) backend.first_runs.insert(first_run);
  return std::move(outcome.kernel);
}

}  // namespace tutti::internal::cuda
