#include "runtime/cuda/lanes/captured_kernel.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/cuda/lanes/graph_check.hpp"

namespace tutti::internal::cuda {
namespace {

using std::chrono::steady_clock;

/// For the calls of the callables and their first run, at least: libraries load their kernels then.
constexpr Duration kLeastPatience = std::chrono::seconds{5};

/// Memory of a buffer: its address and its size.
using UsersMemory = std::pair<const std::byte*, std::size_t>;

UsersMemory memory_of(std::span<const std::byte> bytes) { return {bytes.data(), bytes.size()}; }

/// What the kernels read and write, each once.
std::set<UsersMemory> memory_of(const std::vector<DeviceCall>& calls) {
  std::set<UsersMemory> memory;
  for (const DeviceCall& call : calls) {
    for (const ReadBuffer& buffer : call.bound.reads) memory.insert(memory_of(buffer.bytes));
    for (const WrittenBuffer& buffer : call.bound.writes) memory.insert(memory_of(buffer.bytes));
  }
  return memory;
}

/// What the thread works on. It is kept where the thread does not come back.
struct Work {
  int device;
  std::vector<DeviceCall> calls;
  Capture capture;
  cudaStream_t service;
  Stream part;  ///< whose multiprocessors kernels have beside gates of a led run; null: they have all
  Duration patience;
  steady_clock::time_point end = steady_clock::now() + patience;
  std::map<UsersMemory, PooledMemory> memory{};  ///< of the first run, in place of the user's
  bool has_memory = false;
};

/// What came of it.
struct Outcome {
  CapturedKernel kernel{};
  std::string wrong{};  ///< what the kernel does, in words; empty: nothing
  cudaError_t fault = cudaSuccess;
  bool hangs = false;
  std::string kernel_name{};  ///< that was called last
};

std::string failed_with(std::string_view what) {
  return fmt::format("failed: {}; its batch's results are invalid", what);
}
std::string failed_with(cudaError_t refused) { return failed_with(cudaGetErrorString(refused)); }

/// Calls a callable and returns its failure, with the kernel's name; empty where there is none.
std::string call(const DeviceKernel& callable, const BoundCall& bound, cudaStream_t stream) {
  const auto thrown = thrown_by([&] { callable(bound.launch(), stream); });
  return thrown ? failed_with(*thrown) : "";
}

/// Takes memory for the first run, zeroed.
void take_memory(Work& work) {
  work.has_memory = true;
  for (const UsersMemory& users : memory_of(work.calls)) {
    if (users.second == 0) continue;
    auto taken = MemoryPool::instance().take_device(work.device, users.second, work.service);
    if (!taken) work.has_memory = false;
    if (taken) work.memory[users] = *std::move(taken);
  }
}

/// A call on memory of the first run.
BoundCall on_own_memory(const Work& work, BoundCall call) {
  const auto own = [&](auto bytes) {
    const auto found = work.memory.find(memory_of(bytes));
    return found == work.memory.end() ? decltype(bytes){} : decltype(bytes){found->second.data(), bytes.size()};
  };
  for (ReadBuffer& buffer : call.reads) buffer.bytes = own(buffer.bytes);
  for (WrittenBuffer& buffer : call.writes) buffer.bytes = own(buffer.bytes);
  return call;
}

/// In the stream that nothing else waits in. Whatever it must load, plan and allocate is there afterwards.
void run_first(const Work& work, Outcome& outcome) {
  for (const DeviceCall& one : work.calls) {
    outcome.wrong = call(one.form, on_own_memory(work, one.bound), work.service);
    outcome.kernel_name = one.bound.name;
    if (!outcome.wrong.empty()) return;
  }
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

Graph record(const Work& work, cudaStream_t stream, Outcome& outcome) {
  std::string& wrong = outcome.wrong;
  if (const auto ok = check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
      !ok)
    return wrong = ok.error().message, Graph();
  for (const DeviceCall& one : work.calls) {
    if (!wrong.empty()) break;
    outcome.kernel_name = one.bound.name;
    wrong = call(one.form, one.bound, stream);
  }
  cudaGraph_t recorded = nullptr;
  const cudaError_t status = cudaStreamEndCapture(stream, &recorded);
  Graph graph(recorded);
  const cudaError_t refused = cudaGetLastError();
  if (!wrong.empty()) return graph;
  if (status == cudaSuccess && refused != cudaSuccess) wrong = failed_with(refused);
  if (status != cudaSuccess)
    wrong = fmt::format(
        "does more than enqueue ({}); it may launch kernels and asynchronous copies on the stream that it is given, "
        "and must not wait, allocate, free, pin memory or use the default stream: that would wait for closed gates; a "
        "graph is added as a child (cudaGraphAddChildGraphNode) in place of being launched",
        cudaGetErrorName(status));
  return graph;
}

/// In a stream that synchronizes with the default stream: only then is a use of the default stream detected.
Graph record_strictly(const Work& work, Outcome& outcome) {
  const auto stream = make_stream(work.device, cudaStreamDefault);
  if (!stream) return outcome.wrong = stream.error().message, Graph();
  return record(work, stream->get(), outcome);
}

Outcome capture(const Work& work) {
  const DeviceGuard guard(work.device);
  Outcome outcome;
  if (work.has_memory) run_first(work, outcome);
  if (!outcome.wrong.empty() || outcome.fault != cudaSuccess || outcome.hangs) return outcome;
  Graph graph = record_strictly(work, outcome);
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
  if (work.part) graph = record(work, work.part.get(), outcome);
  if (!outcome.wrong.empty()) return outcome;
  auto loaded = put_in_line(graph.get()).and_then([&] { return load_graph(graph.get(), work.service); });
  if (loaded) {
    outcome.kernel.graph = *std::move(loaded);
  } else {
    outcome.wrong = "cannot be loaded: " + loaded.error().message;
  }
  return outcome;
}

Error kernel_error(ErrorCode code, const CommandStream& stream, std::string_view kernel, std::string_view what) {
  return {code, fmt::format("kernel '{}' of stream '{}' {}", kernel, stream.name, what), {}};
}

/// @param what  "ended", "returned"
Error not_done(const Work& work, const CommandStream& stream, std::string_view what) {
  return kernel_error(ErrorCode::Kernel, stream, stream.kernel->name,
                      fmt::format("has not {} within {} when it was prepared; --watchdog sets that limit", what,
                                  to_string(work.patience)));
}

}  // namespace

Expected<CapturedKernel> capture_kernels(BoundDevices& backend, int device, const CommandStream& stream,
                                         const std::vector<DeviceCall>& calls) {
  const Duration patience =
      std::clamp(backend.watchdog.limit(stream.kernel->time), kLeastPatience, Duration{std::chrono::hours{1000}});
  auto part = backend.part_for_kernels(device).and_then([](const GpuPartition* of_device) {
    return of_device != nullptr ? of_device->make_stream(GpuPart::Kernels) : Expected<Stream>(Stream());
  });
  if (!part) return tl::unexpected(std::move(part.error()));
  const auto work = std::make_shared<Work>(
      Work{device, calls, stream.kernel->capture, backend.lanes.at(device).service(), *std::move(part), patience});
  FirstRun first_run{device, stream.kernel->name, {}};
  for (const auto& [address, size] : memory_of(calls)) first_run.sizes.push_back(size);
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
        ErrorCode::Machine, stream, stream.kernel->name,
        fmt::format("has broken the GPU in its first run, on memory of its own: {}, {}; nothing more can run on it",
                    cudaGetErrorName(outcome.fault), cudaGetErrorString(outcome.fault))));
  }
  if (!outcome.wrong.empty())
    return tl::unexpected(kernel_error(ErrorCode::Kernel, stream, outcome.kernel_name, outcome.wrong));
  if (work->has_memory) backend.first_runs.insert(first_run);
  return std::move(outcome.kernel);
}

}  // namespace tutti::internal::cuda
