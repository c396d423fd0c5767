#include "runtime/cuda/backend/cuda_backend.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/base/joined.hpp"
#include "model/transfer/transfer_method.hpp"
#include "runtime/core/plain_backend.hpp"
#include "runtime/cuda/baselines/memcpy_batch.hpp"
#include "runtime/cuda/baselines/plain_copy.hpp"
#include "runtime/cuda/baselines/wait_probe.hpp"
#include "runtime/cuda/batches/cuda_batch.hpp"
#include "runtime/cuda/batches/cuda_operation.hpp"
#include "runtime/cuda/discovery/device_watch.hpp"
#include "runtime/cuda/discovery/discovery.hpp"
#include "runtime/cuda/fused/ping_pong.hpp"
#include "runtime/cuda/fused/stencil_exchange.hpp"
#include "runtime/cuda/lanes/pointers.hpp"
#include "runtime/cuda/led/gpu_conductor.hpp"

namespace tutti::internal {
namespace cuda {
namespace {

/// The buffers of a backend, each with its block of the pool.
class CudaMemory final : public BufferSource {
 public:
  explicit CudaMemory(const Topology& machine) : used_(machine.vertices().size()) {}

  Expected<std::byte*> take(const BoundDevices& devices, VertexId where, Bytes size, Contents contents) {
    const Vertex& vertex = devices.machine.vertex(where);
    Bytes& used = used_[where.index()];
    if (vertex.memory && size > *vertex.memory - used) return does_not_fit(size, vertex.name, used, *vertex.memory);
    if (vertex.pageable) {
      auto ordinary = take_ordinary(size);
      if (ordinary) used += size;
      return ordinary;
    }
    auto memory =
        vertex.kind == VertexKind::Gpu ? take_device(devices, where, size) : take_host(devices, where, size, contents);
    if (!memory) return tl::unexpected(std::move(memory.error()));
    used += size;
    std::byte* const data = memory->data();
    blocks_.emplace(data, *std::move(memory));
    return data;
  }

  void give_back(const BufferView& memory) noexcept override {
    used_[memory.where.index()] = used_[memory.where.index()] - memory.size;
    blocks_.erase(memory.data);
    ordinary_.erase(memory.data);
  }

 private:
  Expected<std::byte*> take_ordinary(Bytes size) {
    std::unique_ptr<std::byte[]> memory(new (std::nothrow) std::byte[static_cast<std::size_t>(size.count)]());
    if (!memory) return machine_error(fmt::format("the host has no {} left for a buffer", to_string(size)));
    std::byte* const data = memory.get();
    ordinary_.emplace(data, std::move(memory));
    return data;
  }

  static Expected<PooledMemory> take_host(const BoundDevices& devices, VertexId where, Bytes size, Contents contents) {
    return MemoryPool::instance().take_host(static_cast<std::size_t>(size.count), devices.numa_node_of(where),
                                            contents);
  }

  static Expected<PooledMemory> take_device(const BoundDevices& devices, VertexId where, Bytes size) {
    const int device = devices.device_of(where);
    MemoryPool& pool = MemoryPool::instance();
    auto memory = pool.take_device(device, static_cast<std::size_t>(size.count), devices.lanes.at(device).service());
    if (memory) return memory;
    const DeviceGuard guard(device);
    std::size_t free = 0, total = 0;
    if (auto ok = check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"); !ok)
      return tl::unexpected(std::move(ok.error()));
    auto refused =
        does_not_fit(size, devices.machine.vertex(where).name, Bytes{static_cast<std::int64_t>(total - free)},
                     Bytes{static_cast<std::int64_t>(total)});
    if (const std::size_t kept = pool.kept({device}); kept > 0)
      refused.value().message += fmt::format("; {} of that were given back, and are free once no batch is armed",
                                             to_string(Bytes{static_cast<std::int64_t>(kept)}));
    return refused;
  }

  std::vector<Bytes> used_;  // [vertices]
  std::map<std::byte*, PooledMemory> blocks_;
  std::map<std::byte*, std::unique_ptr<std::byte[]>> ordinary_;  // buffers in pageable memory
};

class CudaBaselines final : public Baselines {
 public:
  CudaBaselines(DeviceBackend& backend, BoundDevices& devices) : backend_(backend), devices_(devices) {}

  Expected<std::unique_ptr<DeviceBackend>> memcpy_batch() override {
    return make_memcpy_batch_backend(backend_, devices_);
  }
  Expected<CopyTimes> time_plain_copy(const BufferView& from, const BufferView& to) override {
    return cuda::time_plain_copy(from, to);
  }
  Expected<std::unique_ptr<PlainQueue>> plain_queue(std::vector<PlainStep> steps) override {
    return make_plain_queue(devices_, std::move(steps));
  }
  Expected<std::unique_ptr<WaitProbe>> wait_probe(VertexId gpu, GateKind gate, bool beside_copies) override {
    if (auto ok = check_launches(); !ok) return tl::unexpected(std::move(ok.error()));
    return make_wait_probe(devices_, gpu, gate, beside_copies);
  }
  Expected<std::unique_ptr<Stencil>> stencil(StencilSpec spec, const std::vector<VertexId>& gpus) override {
    if (auto ok = check_launches(); !ok) return tl::unexpected(std::move(ok.error()));
    spec.gpus.clear();
    for (const VertexId gpu : gpus) spec.gpus.push_back(devices_.device_of(gpu));
    return make_stencil(spec);
  }
  Expected<std::unique_ptr<PingPong>> ping_pong(PingPongSpec spec, const std::array<VertexId, 2>& gpus) override {
    if (auto ok = check_launches(); !ok) return tl::unexpected(std::move(ok.error()));
    spec.gpus = {devices_.device_of(gpus[0]), devices_.device_of(gpus[1])};
    return make_ping_pong(spec);
  }

 private:
  /// What waits for words of the host needs launches that return.
  Expected<void> check_launches() const {
    if (devices_.launches_return) return {};
    return machine_error(
        "the launch of a kernel waits here until the kernel has ended, so nothing that waits for the host can be "
        "measured; unset CUDA_LAUNCH_BLOCKING, and leave sanitizers and debuggers out");
  }

  DeviceBackend& backend_;
  BoundDevices& devices_;
};

class CudaBackend final : public PlainBackend {
 public:
  CudaBackend(std::unique_ptr<BoundDevices> bound, DeviceWatch watch)
      : devices_(std::move(bound)),
        memory_(std::make_shared<CudaMemory>(devices_->machine)),
        watch_(std::move(watch)) {}
  ~CudaBackend() override {
    TUTTI_EXPECTS(devices_->batches.empty(), "batches are gone before their backend");
    MemoryPool::instance().trim();
  }

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] bool starts_cold() const override { return true; }
  [[nodiscard]] bool links_runs() const override { return devices_->timed_by_gpus(); }
  [[nodiscard]] bool busy() const override { return devices_->conductor.busy() || !devices_->overlapping.empty(); }
  void begin_overlapping(Waker& caller) override {
    MemoryPool::instance().begin_run();
    devices_->caller->pass_to(&caller);
  }
  void end_overlapping() override {
    devices_->caller->pass_to(nullptr);
    MemoryPool::instance().end_run();
  }
  [[nodiscard]] Duration next_event() const override {
    return devices_->overlapping.empty() || devices_->sleeps() ? kNever : devices_->clock.now();
  }
  [[nodiscard]] std::uint64_t begin_job(const JobLabel& job) override {
    return ToolRange::of_job(job.task, job.index).number();
  }
  void end_job(std::uint64_t shown) override { ToolRange::numbered(shown).end(); }
  [[nodiscard]] Duration processor_time() const override { return devices_->conductor.processor_time(); }
  [[nodiscard]] std::vector<PinnedUse> pinned_memory() const override { return MemoryPool::instance().pinned(); }
  [[nodiscard]] std::vector<std::string> notes() const override {
    std::vector<std::string> notes = devices_->conductor.notes();
    if (devices_->serialize)
      notes.emplace_back(
          "--serialize: the host waits after each command, to find the one that breaks a GPU; so gates and times mean "
          "nothing, and deadlines and bounds do not count");
    if (!devices_->launches_return)
      notes.emplace_back(
          "the launch of a kernel, or of a graph, waits here until it has ended (CUDA_LAUNCH_BLOCKING, a sanitizer or "
          "a "
          "debugger): no gate can be closed, so the host starts each command; starts are late and copies wait for "
          "kernels, so deadlines and bounds do not count");
    for (const auto& [device, pool] : devices_->lanes)
      if (devices_->launches_return && pool.size() < LanePool::kMostLanes)
        notes.push_back(
            fmt::format("only {} streams of a GPU do not wait for each other: fewer batches can be armed ahead; leave "
                        "CUDA_DEVICE_MAX_CONNECTIONS to this program, or set it to 32",
                        pool.size()));
    return notes;
  }
  [[nodiscard]] std::vector<std::string> foreign_load() const override { return watch_.look(); }
  [[nodiscard]] std::vector<VertexId> lost_gpus() override {
    std::vector<VertexId> lost;
    for (const VertexId gpu : devices_->machine.gpus())
      if (const int device = devices_->device_of(gpu); device >= 0 && devices_->has_lost(device)) lost.push_back(gpu);
    return lost;
  }
  [[nodiscard]] int cuda_device(VertexId gpu) const override { return devices_->device_of(gpu); }
  [[nodiscard]] Baselines* baselines() override { return &baselines_; }
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size) override {
    return allocate(where, size, Contents::Zeros);
  }
  [[nodiscard]] Expected<Buffer> allocate_unwritten(VertexId where, Bytes size) override {
    return allocate(where, size, Contents::Anything);
  }
  [[nodiscard]] Expected<Buffer> wrap(VertexId where, std::span<std::byte> memory,
                                      std::shared_ptr<void> owner) override;
  void unpin_given_up() override { MemoryPool::instance().unpin_given_up(); }
  [[nodiscard]] Expected<std::unique_ptr<BackendBatch>> prepare(BoundPlan bound) override;
  [[nodiscard]] Expected<std::unique_ptr<LedRun>> lead(LedSet set) override;
  [[nodiscard]] Expected<void> set_gates_apart() override;

 private:
  [[nodiscard]] Expected<Buffer> allocate(VertexId where, Bytes size, Contents contents);
  /// Checks a plan with its data, and completes it.
  [[nodiscard]] Expected<void> accept(BoundPlan& bound);
  [[nodiscard]] Expected<void> check_is_mine(VertexId where) const {
    const Vertex& vertex = devices_->machine.vertex(where);
    if (vertex.kind == VertexKind::Device)
      return invalid_input(fmt::format(
          "'{}' is a device, whose own driver moves its bytes; leave its copies out of the batch and declare "
          "them under 'background' of the machine, or take the sim backend",
          vertex.name));
    if (vertex.kind != VertexKind::Gpu || devices_->device_of(where) >= 0) return {};
    return invalid_input(
        fmt::format("'{}' is none of the GPUs that this backend opened; it belongs to another one", vertex.name));
  }

  std::unique_ptr<BoundDevices> devices_;
  std::shared_ptr<CudaMemory> memory_;
  CudaBaselines baselines_{*this, *devices_};
  mutable DeviceWatch watch_;  // remembers what it saw
};

Expected<Buffer> CudaBackend::allocate(VertexId where, Bytes size, Contents contents) {
  const Vertex& vertex = devices_->machine.vertex(where);
  if (auto ok = check_buffer_place(vertex, size); !ok) return tl::unexpected(std::move(ok.error()));
  if (auto ok = check_is_mine(where); !ok) return tl::unexpected(std::move(ok.error()));
  const DeviceGuard guard(devices_->some_device());
  return memory_->take(*devices_, where, size, contents).map([&](std::byte* data) {
    return Buffer({where, data, size}, memory_);
  });
}

Expected<Buffer> CudaBackend::wrap(VertexId where, std::span<std::byte> memory, std::shared_ptr<void> owner) {
  if (auto ok = check_wrapped(devices_->machine.vertex(where), memory); !ok)
    return tl::unexpected(std::move(ok.error()));
  if (auto ok = check_is_mine(where); !ok) return tl::unexpected(std::move(ok.error()));
  const BufferView view{where, memory.data(), Bytes{static_cast<std::int64_t>(memory.size())}};
  if (memory.empty()) return borrowed(view, std::move(owner));
  const DeviceGuard guard(devices_->some_device());
  const auto is_there = [&] { return lies_at(*devices_, where, memory); };
  const Vertex& vertex = devices_->machine.vertex(where);
  if (vertex.kind == VertexKind::Gpu || vertex.pageable)
    return is_there().map([&](bool) { return borrowed(view, std::move(owner)); });
  return MemoryPool::instance().pin_users(memory, owner, is_there).map([&](std::shared_ptr<UsersPin>&& pin) {
    return borrowed(view, pin != nullptr ? std::shared_ptr<void>(std::move(pin)) : std::move(owner));
  });
}

Expected<void> CudaBackend::accept(BoundPlan& bound) {
  if (auto ok = check_bindings(bound.plan.batch, bound.bindings); !ok) return ok;
  if (devices_->machine.gpus().empty()) return invalid_input("this machine has no GPU; the sim backend needs none");
  if (devices_->lanes.empty())
    return invalid_input(
        "host work waits for its turn in the queue of a GPU, and nothing of its partition uses one; copy something to "
        "one in the same task, or take the sim backend");
  for (const CommandStream& stream : bound.plan.batch.streams()) {
    const TransferMethod method =
        stream.transfer ? find_route(devices_->machine, *stream.transfer).method : TransferMethod{};
    if (method.of_device) {
      const bool sends = devices_->machine.vertex(stream.transfer->from).kind == VertexKind::Device;
      return tl::unexpected(check_is_mine(sends ? stream.transfer->from : stream.transfer->to).error());
    }
    if (!stream.kernel) continue;
    if (auto known = devices_->kernels.check(stream); !known) return known;
    if (auto ok = check_is_mine(stream.kernel->on); !ok) return ok;
  }
  fill_kernel_inputs(bound.plan.batch, bound.bindings);
  return {};
}

Expected<std::unique_ptr<BackendBatch>> CudaBackend::prepare(BoundPlan bound) {
  if (auto ok = accept(bound); !ok) return tl::unexpected(std::move(ok.error()));
  const DeviceGuard guard(devices_->some_device());
  const auto as_batch = [](auto&& made) -> std::unique_ptr<BackendBatch> { return std::move(made); };
  if (bound.overlaps) return CudaOperation::make(*devices_, std::move(bound)).map(as_batch);
  return CudaBatch::make(*devices_, std::move(bound)).map(as_batch);
}

/// The lanes of all open GPUs that have none yet, and where gates wait for timers their doorbells.
Expected<void> make_lanes(BoundDevices& bound) {
  for (const int device : bound.ordinal) {
    if (device < 0 || bound.lanes.contains(device)) continue;
    auto pool = bound.part_for_kernels(device).and_then([&](const GpuPartition* part) {
      return LanePool::make(device, bound.driver, bound.launches_return ? std::optional(bound.gate) : std::nullopt,
                            part);
    });
    if (!pool) return tl::unexpected(std::move(pool.error()));
    LanePool& lanes = bound.lanes.emplace(device, *std::move(pool)).first->second;
    if (!bound.timed_by_gpus()) continue;
    auto bell = Doorbell::make(device, lanes.lend());
    if (!bell) return tl::unexpected(std::move(bell.error()));
    bound.bells.emplace(device, *std::move(bell));
  }
  return {};
}

Expected<std::unique_ptr<LedRun>> CudaBackend::lead(LedSet set) {
  if (devices_->timed_by_host())
    return invalid_input(
        "a GPU can only lead runs that wait behind its gates, and here the host starts every command (host_timed)");
  for (auto& sets : set.plans)
    for (auto& batches : sets)
      for (BoundPlan& bound : batches)
        if (auto ok = accept(bound); !ok) return tl::unexpected(std::move(ok.error()));
  const DeviceGuard guard(devices_->some_device());
  return GpuConductor::make(*devices_, std::move(set)).map([](auto&& made) -> std::unique_ptr<LedRun> {
    return std::move(made);
  });
}

Expected<void> CudaBackend::set_gates_apart() {
  devices_->kernels_apart = true;
  devices_->bells.clear();  // each has a lane
  devices_->lanes.clear();
  return make_lanes(*devices_);
}

// ---- binding a machine to this host

std::string devices_text(const HostFacts& host) {
  std::vector<std::string> lines;
  for (const DeviceFacts& device : host.devices) lines.push_back(fmt::format("{} ({})", device.bus_id, device.name));
  return joined(lines);
}

/// The id of a GPU: the user's, or the machine's.
Expected<std::string> id_of(const Vertex& gpu, const HostFacts& host, const CudaOptions& options) {
  const auto bound =
      std::find_if(options.bind.begin(), options.bind.end(), [&](const auto& pair) { return pair.first == gpu.name; });
  if (bound != options.bind.end()) return bound->second;
  if (!gpu.uuid.empty()) return gpu.uuid;
  if (!gpu.bus_id.empty()) return gpu.bus_id;
  return invalid_input(
      fmt::format("'{0}' of the machine has no bus_id and no uuid; write one into its file, or give "
                  "--bind {0}=BUSID; this host has {1}",
                  gpu.name, devices_text(host)));
}

Expected<void> check_names(const Topology& machine, const CudaOptions& options) {
  for (const auto& [name, id] : options.bind) {
    const auto vertex = machine.find_vertex(name);
    if (!vertex || machine.vertex(*vertex).kind != VertexKind::Gpu)
      return invalid_input(
          fmt::format("--bind {}={}: the machine '{}' has no GPU '{}'", name, id, machine.name(), name));
  }
  return {};
}

Expected<std::vector<int>> bind_gpus(const Topology& machine, const HostFacts& host, const CudaOptions& options) {
  if (auto ok = check_names(machine, options); !ok) return tl::unexpected(std::move(ok.error()));
  const std::vector<VertexId> all(machine.gpus().begin(), machine.gpus().end());
  const std::vector<VertexId>& wanted = options.gpus ? *options.gpus : all;
  if (wanted.size() > host.devices.size() && !options.may_share)
    return machine_error(fmt::format("the machine '{}' has {} GPUs, this host {}: {}", machine.name(), wanted.size(),
                                     host.devices.size(), devices_text(host)));
  std::vector<int> ordinal(machine.vertices().size(), -1);
  std::map<int, std::string> taken;
  for (const VertexId vertex : all) {  // also those of other backends: no two may have one GPU of the host
    const Vertex& gpu = machine.vertex(vertex);
    const bool mine = std::find(wanted.begin(), wanted.end(), vertex) != wanted.end();
    const auto id = id_of(gpu, host, options);
    if (!id && mine) return tl::unexpected(id.error());
    const DeviceFacts* device = id ? find_device(host, *id) : nullptr;
    if (device == nullptr && !mine) continue;
    if (device == nullptr)
      return machine_error(
          fmt::format("'{}' is {}, which this host has not; it has {}", gpu.name, *id, devices_text(host)));
    const auto [other, free] = taken.try_emplace(device->ordinal, gpu.name);
    if (!free && !options.may_share)
      return invalid_input(fmt::format("'{}' and '{}' are both {}; each GPU of the machine is another one of the host",
                                       other->second, gpu.name, device->bus_id));
    if (mine) ordinal[vertex.index()] = device->ordinal;
  }
  return ordinal;
}

/// Whether the host lets one GPU reach another.
bool host_has_access(const HostFacts& host, int from, int to) {
  const auto place_of = [&](int device) {
    return static_cast<std::size_t>(std::find_if(host.devices.begin(), host.devices.end(),
                                                 [&](const DeviceFacts& facts) { return facts.ordinal == device; }) -
                                    host.devices.begin());
  };
  return host.devices[place_of(from)].peer_access[place_of(to)];
}

/// Lets GPUs reach each other where the machine says that they do, for as long as the bound devices live.
Expected<void> enable_peers(BoundDevices& bound, const HostFacts& host) {
  const Topology& machine = bound.machine;
  for (const VertexId from : machine.gpus()) {
    for (const VertexId to : machine.gpus()) {
      const int a = bound.device_of(from), b = bound.device_of(to);
      if (a == b || a < 0 || b < 0 || !machine.has_peer_access(from, to) || bound.peers.contains({a, b})) continue;
      if (!host_has_access(host, a, b))
        return machine_error(
            fmt::format("'{}' and '{}' reach each other in the machine '{}', but not on this host; "
                        "write peer_access as 'tutti topology detect' does, or give --no-peer",
                        machine.vertex(from).name, machine.vertex(to).name, machine.name()));
      const DeviceGuard guard(a);
      const cudaError_t status = cudaDeviceEnablePeerAccess(b, 0);
      const bool known = status == cudaErrorPeerAccessAlreadyEnabled;  // by the program itself, which keeps it
      if (known) {
        static_cast<void>(cudaGetLastError());
      } else if (auto ok = check(status, "cudaDeviceEnablePeerAccess"); !ok) {
        return ok;
      }
      bound.peers.emplace(std::pair(a, b), !known);
    }
  }
  return {};
}

Expected<void> check_gate(const BoundDevices& bound, const HostFacts& host) {
  for (const DeviceFacts& device : host.devices)
    if (bound.gate == GateKind::MemoryWait && !device.memory_operations &&
        std::find(bound.ordinal.begin(), bound.ordinal.end(), device.ordinal) != bound.ordinal.end())
      return machine_error(fmt::format("the streams of {} ({}) cannot wait for memory; give --gate polling_kernel",
                                       device.bus_id, device.name));
  return {};
}

DeviceWatch watch_devices(const BoundDevices& bound, const HostFacts& host) {
  DeviceWatch watch;
  for (const VertexId gpu : bound.machine.gpus())
    for (const DeviceFacts& device : host.devices)
      if (device.ordinal == bound.device_of(gpu)) watch.add(bound.machine.vertex(gpu).name, device.bus_id);
  return watch;
}

/// Where launches wait nothing can hold a stream, so the host keeps time.
Expected<void> try_launches(BoundDevices& bound, const CudaOptions& options) {
  if (!options.tries_launches) return {};
  auto returns = launches_return(bound.some_device());
  if (!returns) return tl::unexpected(std::move(returns.error()));
  bound.launches_return = *returns;
  if (!*returns) bound.gate = GateKind::HostTimed;
  return {};
}

/// Sets the GPUs' timers to the host's clock, twice: their drift shows only over some time.
Expected<void> set_clocks(BoundDevices& bound) {
  constexpr Duration kBetween = std::chrono::milliseconds{60};
  if (!bound.timed_by_gpus()) return {};
  for (const auto& [device, pool] : bound.lanes) {
    auto timer = GpuClock::make(device, bound.clock);
    if (!timer) return tl::unexpected(std::move(timer.error()));
    bound.clocks.emplace(device, *std::move(timer));
  }
  bound.clock.wait_until(bound.clock.now() + kBetween);
  for (auto& [device, timer] : bound.clocks) timer.refresh();
  return {};
}

}  // namespace

}  // namespace cuda

Expected<std::unique_ptr<DeviceBackend>> make_cuda_backend(const Topology& machine, const KernelRegistry& kernels,
                                                           Clock& clock, const CudaOptions& options) {
  if (!clock.runs_by_itself()) return invalid_input("real GPUs run in real time; give --clock real, or leave it out");
  cuda::set_environment();
  const auto host = discover_host();
  if (!host) return tl::unexpected(host.error());
  auto ordinal = cuda::bind_gpus(machine, *host, options);
  if (!ordinal) return tl::unexpected(std::move(ordinal.error()));
  const auto driver = cuda::find_driver();
  if (!driver) return tl::unexpected(driver.error());
  auto bound = std::make_unique<cuda::BoundDevices>(machine, kernels, clock, options);
  bound->cores = Cores();  // now that the conductor has taken its own
  bound->ordinal = *std::move(ordinal);
  bound->driver = *driver;
  bound->numa_nodes = host->numa_nodes;
  if (auto ok = cuda::check_gate(*bound, *host); !ok) return tl::unexpected(std::move(ok.error()));
  const cuda::DeviceGuard guard(bound->some_device());
  if (auto ok = cuda::try_launches(*bound, options); !ok) return tl::unexpected(std::move(ok.error()));
  if (auto ok = cuda::make_lanes(*bound); !ok) return tl::unexpected(std::move(ok.error()));
  if (auto ok = cuda::enable_peers(*bound, *host); !ok) return tl::unexpected(std::move(ok.error()));
  if (auto ok = cuda::set_clocks(*bound); !ok) return tl::unexpected(std::move(ok.error()));
  cuda::DeviceWatch watch = cuda::watch_devices(*bound, *host);
  return std::make_unique<cuda::CudaBackend>(std::move(bound), std::move(watch));
}

}  // namespace tutti::internal
