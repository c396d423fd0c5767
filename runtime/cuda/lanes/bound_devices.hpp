#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/core/backend.hpp"
#include "runtime/core/clock.hpp"
#include "runtime/core/kernel_registry.hpp"
#include "runtime/cuda/base/call_thread.hpp"
#include "runtime/cuda/base/copies.hpp"
#include "runtime/cuda/gates/conductor.hpp"
#include "runtime/cuda/gates/doorbell.hpp"
#include "runtime/cuda/gates/gpu_clock.hpp"
#include "runtime/cuda/gates/gpu_partition.hpp"
#include "runtime/cuda/lanes/copy_server.hpp"
#include "runtime/cuda/lanes/lane_pool.hpp"
#include "runtime/cuda/memory/bar_window.hpp"
#include "runtime/cuda/memory/pageable_copier.hpp"
#include "runtime/host/cuda_options.hpp"
#include "runtime/pageable/pin_threads.hpp"

namespace tutti::internal::cuda {

class CudaBatch;
class GateOpener;

/// What the operations of a GPU that run beside each other queue for. `Mapped` and behind it: the mover of a memory
/// each.
enum class EngineQueue : std::uint32_t { Up, Down, BetweenGpus, Kernels, Mapped };

/// What copies pageable memory to or from a GPU. The server goes first.
struct PageableServer {
  std::unique_ptr<PageableCopier> copier;
  std::unique_ptr<CopyServer> server;
};

/// A first run of the kernels of a stream.
struct FirstRun {
  int device = 0;
  std::string kernels;             ///< names
  std::vector<std::size_t> sizes;  ///< of the memory that they use

  friend auto operator<=>(const FirstRun&, const FirstRun&) = default;
};

/// State that the batches of a backend share: the machine, bound to this host's GPUs.
struct BoundDevices {
  BoundDevices(const Topology& the_machine, const KernelRegistry& the_kernels, Clock& the_clock,
               const CudaOptions& options)
      : machine(the_machine),
        kernels(the_kernels),
        clock(the_clock),
        serialize(options.serialize),
        gate(serialize ? GateKind::HostTimed : options.gate),
        waiting(options.waiting),
        watchdog(options.watchdog),
        pinned_limit(options.pinned_limit),
        conductor(the_clock, {options.priority, options.waiting != WaitKind::Block, options.cores}) {}
  BoundDevices(const BoundDevices&) = delete;  // batches know it by its address
  BoundDevices& operator=(const BoundDevices&) = delete;
  ~BoundDevices() {
    if (lost) {  // what hangs on a GPU would be waited for
      for (auto& [port, server] : pageable) static_cast<void>(server.release());
      for (auto& [device, part] : parts) part.abandon();
    }
    for (const auto& [pair, mine] : peers) {
      const DeviceGuard guard(pair.first);
      if (mine && !MemoryPool::instance().keeps_all()) static_cast<void>(cudaDeviceDisablePeerAccess(pair.second));
    }
  }

  Topology machine;
  const KernelRegistry& kernels;
  Clock& clock;
  bool serialize;               ///< the host waits after each command
  bool launches_return = true;  ///< otherwise no gate can be closed
  GateKind gate;
  WaitKind waiting;
  Watchdog watchdog;
  PinnedLimit pinned_limit;
  Driver driver{};
  Cores cores{};                        ///< for threads that it starts: those of the program without the conductor's
  std::vector<int> numa_nodes;          ///< the system's numbers
  std::vector<int> ordinal;             ///< [vertices] of GPUs that are open, as CUDA counts; below 0 of the others
  std::map<int, GpuPartition> parts;    ///< by ordinal, as needed; they outlive their streams
  std::map<int, LanePool> lanes;        ///< by ordinal
  std::map<int, GpuClock> clocks;       ///< by ordinal; where gates wait for the GPUs' timers
  std::map<int, Doorbell> bells;        ///< by ordinal; where gates wait for the GPUs' timers
  bool kernels_apart = false;           ///< all streams are on the parts for kernels
  bool batches_copies = has_batches();  ///< several copies go in one call
  std::map<std::pair<int, int>, bool> peers;  ///< from and to with access: whether this object enabled it
  std::set<FirstRun> first_runs;              ///< of kernels, on memory of their own
  std::vector<CudaBatch*> batches;
  const CudaBatch* submitted_last = nullptr;                   ///< of them, if it still exists
  std::map<std::pair<int, EngineQueue>, cudaStream_t> queues;  ///< by ordinal: of operations that overlap
  std::map<std::pair<int, CopyDirection>, std::unique_ptr<PageableServer>> pageable;  ///< by ordinal, as needed
  std::map<VertexId, std::unique_ptr<CopyServer>> movers;  ///< of memories, as needed: of mapped copies
  std::shared_ptr<const GdrCopy> maps;                     ///< opened as needed
  std::vector<GateOpener*> overlapping;                    ///< such operations under way
  OwnWaker caller{new StreamWaker};  ///< streams call it where such an operation ends, if the host sleeps
  std::atomic<bool> lost{false};     ///< a GPU is broken or hangs: nothing of it can be waited for or given back
  std::atomic<std::uint64_t> lost_devices{0};  ///< which ones were seen to be, a bit each by ordinal
  Conductor conductor;
  CallThread calls;  ///< for what may not come back; made when the conductor has its core, which this one stays off

  /// Whether nothing holds a stream: the conductor enqueues each command when it is due.
  [[nodiscard]] bool timed_by_host() const { return gate == GateKind::HostTimed; }
  /// Whether gates wait for the timers of their GPUs.
  [[nodiscard]] bool timed_by_gpus() const { return gate == GateKind::DeviceTimer; }
  /// Whether the conductor sleeps where it need not act.
  [[nodiscard]] bool sleeps() const { return !conductor.spins(); }
  [[nodiscard]] int device_of(VertexId gpu) const { return ordinal[gpu.index()]; }
  /// An open device, or else 0. Calls that name no device go to the current one, and fail where that is lost.
  [[nodiscard]] int some_device() const {
    const auto open = std::ranges::find_if(ordinal, [](int device) { return device >= 0; });
    return open == ordinal.end() ? 0 : *open;
  }
  /// Device that runs a lane. A lane for host work alone may be of a GPU that is not open: the first open one runs it.
  [[nodiscard]] int device_of_lane(VertexId gpu) const {
    return device_of(gpu) < 0 ? lanes.begin()->first : device_of(gpu);
  }
  /// Whether a GPU can write into another's memory, or its own.
  [[nodiscard]] bool reaches(int from, int to) const { return from == to || peers.contains({from, to}); }
  /// The stream of all operations that queue for this, lent from now on.
  /// @errors Machine: all streams of the GPU are lent.
  [[nodiscard]] Expected<cudaStream_t> stream_of(int device, EngineQueue queue) {
    if (const auto found = queues.find({device, queue}); found != queues.end()) return found->second;
    LanePool& pool = lanes.at(device);
    if (pool.free() == 0)
      return machine_error(
          "no stream of a GPU is left for jobs that overlap: batches that are armed have them all; disarm some, or "
          "leave CUDA_DEVICE_MAX_CONNECTIONS to this program");
    return queues.emplace(std::pair(device, queue), pool.lend()).first->second;
  }
  /// The parts of a GPU. @pre `conductor_sms` of the machine is above 0
  /// @errors Machine: as `GpuPartition::make`
  [[nodiscard]] Expected<const GpuPartition*> part_of(int device) {
    if (const auto found = parts.find(device); found != parts.end()) return &found->second;
    return GpuPartition::make(device, machine.spec().conductor_sms).map([&](GpuPartition&& made) {
      return &std::as_const(parts.emplace(device, std::move(made)).first->second);
    });
  }
  /// The part that all kernels of a GPU have; null: they have all of it.
  /// @errors Machine: as `part_of`
  [[nodiscard]] Expected<const GpuPartition*> part_for_kernels(int device) {
    return kernels_apart ? part_of(device) : nullptr;
  }
  /// What copies pageable memory to or from a GPU.
  /// @param memory  that the first such copy is of: its threads and buffers serve all
  /// @errors Machine: all streams of the GPU are lent, no room for its buffers, no thread.
  [[nodiscard]] Expected<PageableServer*> pageable_server(int device, CopyDirection direction, const Vertex& memory) {
    auto& server = pageable[{device, direction}];
    if (server) return server.get();
    LanePool& pool = lanes.at(device);
    if (pool.free() == 0) return machine_error("no stream of a GPU is left for copies of pageable memory");
    CopierOptions options;
    options.threads = static_cast<unsigned>(memory.producers);
    options.buffer = static_cast<std::size_t>(memory.buffer.count);
    const OnCores all(cores);  // the caller may have one core of its own, which is none for eight threads
    auto copier = PageableCopier::make(device, direction, pool.lend(), options);
    if (!copier) return tl::unexpected(std::move(copier.error()));
    auto started = CopyServer::start(clock, !sleeps());
    if (!started) return tl::unexpected(std::move(started.error()));
    server = std::make_unique<PageableServer>(PageableServer{*std::move(copier), *std::move(started)});
    return server.get();
  }
  /// What makes the mapped copies of a memory, whichever GPUs they are of.
  /// @errors Machine: no thread.
  [[nodiscard]] Expected<CopyServer*> mover(VertexId memory) {
    auto& mover = movers[memory];
    if (mover) return mover.get();
    const OnCores all(cores);
    auto started = CopyServer::start(clock, !sleeps());
    if (!started) return tl::unexpected(std::move(started.error()));
    return (mover = *std::move(started)).get();
  }
  /// The library that maps the memory of GPUs, opened when it is asked for first.
  /// @errors as `GdrCopy::open`
  [[nodiscard]] Expected<std::shared_ptr<const GdrCopy>> gdrcopy() {
    if (maps) return maps;
    return GdrCopy::open().map([&](auto&& opened) { return maps = opened; });
  }
  /// A GPU is broken or hangs. For any thread.
  void lose(int device) {
    lost_devices.fetch_or(bit_of(device));
    lost = true;
    MemoryPool::instance().keep_all();
  }
  /// Whether a GPU was seen to be broken or to hang, or the driver says so now. Asks the driver; for one thread at a
  /// time.
  [[nodiscard]] bool has_lost(int device) const {
    if ((lost_devices.load() & bit_of(device)) != 0) return true;
    const cudaError_t status = answer(cudaStreamQuery(lanes.at(device).service()));
    return status != cudaSuccess && status != cudaErrorNotReady;
  }
  /// Memories are the host's NUMA nodes, in their order; below 0 where the host has but one.
  [[nodiscard]] int numa_node_of(VertexId memory) const {
    std::size_t place = 0;
    for (const VertexId other : machine.memories()) {
      if (other == memory) break;
      if (!machine.vertex(other).pageable) ++place;
    }
    return numa_nodes.size() < 2 || place >= numa_nodes.size() ? -1 : numa_nodes[place];
  }

 private:
  static std::uint64_t bit_of(int device) { return std::uint64_t{1} << (static_cast<unsigned>(device) % 64); }
};

}  // namespace tutti::internal::cuda
