#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "model/planners/planner.hpp"
#include "runtime/core/executor.hpp"
#include "runtime/cuda/backend/cuda_backend.hpp"
#include "runtime/cuda/discovery/discovery.hpp"
#include "runtime/sim/sim_backend.hpp"
#include "tests/support/random.hpp"
#include "tests/support/yaml_text.hpp"
#ifdef TUTTI_HOST_CUDA
#include "tests/support/host_cuda/sharing_clock.hpp"
#endif

namespace tutti::internal::test {

// How tests on GPUs keep the time and wait. GPUs that are executed on the host are late where its cores are busy, and
// threads that wait leave them the cores.
#ifdef TUTTI_HOST_CUDA
using DeviceClock = host_cuda::SharingClock;
inline constexpr WaitKind kDeviceWait = WaitKind::Block, kBusyWait = WaitKind::Yield;
inline constexpr bool kDevicesAreInTime = false;
#else
using DeviceClock = RealClock;
inline constexpr WaitKind kDeviceWait = WaitKind::Spin, kBusyWait = WaitKind::Spin;
inline constexpr bool kDevicesAreInTime = true;
#endif

/// Three GPUs behind links of 1 byte/ns, so that n bytes take n ns; what they share is never full. gpu0 and gpu1 reach
/// each other; to and from gpu2, which has 100 kB, a copy goes through mem0 in chunks of 1000 bytes: its data starts
/// 1000 ns late. heap0 is pageable memory.
/// @param memory_link  of mem0; below 3 GB/s copies to and from the GPUs get into each other's way, and rates change.
inline Topology small_machine(const std::string& memory_link = "8 GB/s") {
  return make_machine(R"(  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu}
    hub0: {kind: hub}
    hub1: {kind: hub}
    gpu0: {kind: gpu}
    gpu1: {kind: gpu}
    gpu2: {kind: gpu, memory: 100 kB}
    heap0: {kind: memory, pageable: true, producers: 2, buffer: 64 KiB, crossover: 8 KiB}
  links:
    - {from: mem0, to: cpu0, bandwidth: )" +
                      memory_link + ", back: " + memory_link + R"(}
    - {from: cpu0, to: hub0, bandwidth: 8 GB/s, back: 8 GB/s}
    - {from: cpu0, to: hub1, bandwidth: 8 GB/s, back: 8 GB/s}
    - {from: hub0, to: gpu0, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub0, to: gpu1, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: hub1, to: gpu2, bandwidth: 1 GB/s, back: 1 GB/s}
    - {from: heap0, to: cpu0, bandwidth: 8 GB/s, back: 8 GB/s}
  staging: {chunk: 1000 B}
)");
}

/// A plan whose transfers are cut into chunks of this size; 0: not cut.
inline ExecutionPlan paced(ExecutionPlan plan, Bytes chunk) {
  plan.chunk = chunk;
  return plan;
}

/// A part of a buffer.
inline BufferView part_of(const BufferView& buffer, std::int64_t offset, std::int64_t size) {
  return {buffer.where, buffer.data + offset, Bytes{size}};
}

/// Bytes that are the same for the same seed.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

inline CommandStream copy_stream(std::string name, VertexId from, VertexId to, std::int64_t size) {
  return {std::move(name), Transfer{from, to, Bytes{size}, {}, {}}, {}, {}};
}

inline CommandStream kernel_stream(std::string name, VertexId on, std::string kernel, std::int64_t ns = 10) {
  return {std::move(name), {}, Kernel{on, Duration{ns}, Duration{ns}, std::move(kernel)}, {}};
}

/// The form of its kernel for GPUs is called in each run.
inline CommandStream uncaptured(CommandStream stream) {
  stream.kernel->capture = Capture::Never;
  return stream;
}

inline StreamBinding bound(const BufferView& source, const BufferView& destination) {
  return {source, destination, {}, {}, {}};
}

/// Forms for GPUs of what the conformance suite runs.
struct DeviceForms {
  DeviceKernel invert;
  DeviceKernel mark;
};
using MakeDeviceForms = DeviceForms (*)(const HostKernel& mark);

/// Of a build with CUDA: `mark` is called by the host when its turn comes on the GPU.
DeviceForms device_forms(const HostKernel& mark);

/// The first GPUs of this host as those of the machine; where there are fewer, some are the same. @pre there is one.
inline CudaOptions host_gpus(const Topology& machine) {
  const HostFacts host = discover_host().value();
  CudaOptions options;
  options.may_share = true;
  options.tries_launches =
      std::getenv("TUTTI_TEST_GATES") == nullptr;  // tools/bench-gpus closes gates under a sanitizer
  options.waiting = kDeviceWait;
  for (std::size_t i = 0; i < machine.gpus().size(); ++i)
    options.bind.emplace_back(machine.vertex(machine.gpus()[i]).name, host.devices[i % host.devices.size()].bus_id);
  return options;
}

/// @param patience  seconds beyond the plan until a run is given up: many, since tests run beside others that keep the
///                  host busy, and few where one waits for what hangs
template <GateKind gate, WaitKind waiting = kDeviceWait, int patience = 60>
std::unique_ptr<DeviceBackend> make_cuda(const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
  CudaOptions options = host_gpus(machine);
  options.gate = gate;
  options.waiting = waiting;
  options.watchdog.beyond = std::chrono::seconds{patience};
  auto backend = make_cuda_backend(machine, kernels, clock, options);
  if (!backend) ADD_FAILURE() << backend.error().text();
  return std::move(backend).value();
}
inline constexpr auto kPolling = make_cuda<GateKind::PollingKernel>;

/// The host waits after each command.
template <WaitKind waiting>
std::unique_ptr<DeviceBackend> make_serialized(const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
  CudaOptions options = host_gpus(machine);
  options.waiting = waiting;
  options.serialize = true;
  options.watchdog.beyond = std::chrono::minutes{1};
  auto backend = make_cuda_backend(machine, kernels, clock, options);
  if (!backend) ADD_FAILURE() << backend.error().text();
  return std::move(backend).value();
}

/// The small machine with a backend, and what tests do with it. Device memory is reached only through batches.
class Station {
 public:
  using MakeBackend = std::unique_ptr<DeviceBackend> (*)(const Topology&, const KernelRegistry&, Clock&);

  static std::unique_ptr<DeviceBackend> make_sim(const Topology& machine, const KernelRegistry& kernels, Clock& clock) {
    return std::make_unique<SimBackend>(machine, kernels, clock);
  }

  explicit Station(std::unique_ptr<Clock> the_clock = std::make_unique<VirtualClock>(),
                   MakeBackend make_backend = make_sim, Topology the_machine = small_machine())
      : machine(std::move(the_machine)),
        clock(std::move(the_clock)),
        backend(make_backend(machine, kernels, *clock)),
        executor(machine, *backend, *clock) {}
  Station(const Station&) = delete;  // its parts point at each other
  Station& operator=(const Station&) = delete;

  [[nodiscard]] VertexId at(std::string_view name) const { return machine.find_vertex(name).value(); }

  [[nodiscard]] Batch batch(std::vector<CommandStream> streams) const {
    return Batch::make(machine, std::move(streams)).value();
  }
  [[nodiscard]] ExecutionPlan planned(std::vector<CommandStream> streams) const {
    return plan(planners().front(), batch(std::move(streams)));
  }

  Buffer allocate(VertexId where, std::size_t size) {
    auto buffer = backend->allocate(where, Bytes{static_cast<std::int64_t>(size)});
    if (!buffer) ADD_FAILURE() << buffer.error().text();
    return std::move(buffer).value();
  }

  PreparedBatch prepare(std::vector<CommandStream> streams, std::vector<StreamBinding> bindings) {
    auto prepared = executor.prepare(planned(std::move(streams)), std::move(bindings));
    if (!prepared) ADD_FAILURE() << prepared.error().text();
    return std::move(prepared).value();
  }

  /// A batch that others may run beside.
  Expected<PreparedBatch> prepare_overlapping(CommandStream stream, StreamBinding binding) {
    return executor.prepare(planned({std::move(stream)}), {std::move(binding)}, "an operation", Marks::Needed, true);
  }

  /// Why a batch is not prepared; empty where it is.
  std::string refusal(std::vector<CommandStream> streams, std::vector<StreamBinding> bindings) {
    const auto prepared = executor.prepare(planned(std::move(streams)), std::move(bindings));
    if (prepared) return "";
    EXPECT_EQ(prepared.error().code, ErrorCode::InvalidInput);
    return prepared.error().message;
  }

  /// Waits for a batch that must go well. On a real clock a busy host may lag behind the plan, which is no matter here.
  void expect_fine(const Expected<BatchResult>& result) const {
    if (result || result.error().message.find("the host is too slow") == 0) return;
    ADD_FAILURE() << result.error().text();
  }

  void run(PreparedBatch& prepared) { expect_fine(executor.run(prepared)); }

  /// A batch that copies all of one buffer to the start of another.
  PreparedBatch copying(const BufferView& from, const BufferView& to) {
    return prepare({copy_stream("copy", from.where, to.where, from.size.count)}, {bound(from, to)});
  }

  void copy(const BufferView& from, const BufferView& to) {
    auto prepared = copying(from, to);
    run(prepared);
  }

  [[nodiscard]] bool is_of_host(const BufferView& buffer) const {
    return machine.vertex(buffer.where).kind == VertexKind::Memory;
  }

  void write(const BufferView& to, const std::vector<std::byte>& bytes) {
    if (is_of_host(to)) {
      std::copy(bytes.begin(), bytes.end(), to.data);
      return;
    }
    const Buffer from = allocate(at("mem0"), bytes.size());
    write(from.view(), bytes);
    copy(from.view(), to);
  }

  std::vector<std::byte> read(const BufferView& from) {
    if (is_of_host(from)) return {from.bytes().begin(), from.bytes().end()};
    const Buffer to = allocate(at("mem0"), static_cast<std::size_t>(from.size.count));
    copy(from, to.view());
    return read(to.view());
  }

  Topology machine;
  KernelRegistry kernels = KernelRegistry::with_builtins();
  std::unique_ptr<Clock> clock;
  std::unique_ptr<DeviceBackend> backend;
  Executor executor;
};

}  // namespace tutti::internal::test
