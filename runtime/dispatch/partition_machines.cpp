#include "runtime/dispatch/partition_machines.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/units.hpp"
#include "runtime/core/notes.hpp"
#include "runtime/core/watchdog.hpp"
#include "runtime/host/cuda_library.hpp"
#include "runtime/sim/sim_backend.hpp"

namespace tutti::internal {
namespace {

using MadeBackend = Expected<std::unique_ptr<DeviceBackend>>;

std::unique_ptr<Clock> clock_of(const tutti::BackendOptions& options) {
  const bool is_virtual = options.clock == ClockKind::Virtual ||
                          (options.clock == ClockKind::OfBackend && options.kind == BackendKind::Simulated);
  if (is_virtual) return std::make_unique<VirtualClock>();
  return std::make_unique<RealClock>(options.waiting);
}

/// The role of a thread that runs tasks. On GPUs it waits for batches, by spinning but for `Block`; a simulated machine
/// lets it sleep.
ThreadRole role_of(const tutti::BackendOptions& options) {
  return {options.real_time.priority, options.kind == BackendKind::Cuda && options.waiting != WaitKind::Block,
          options.real_time.cores};
}

/// The GPUs of this host, by the library that is opened for them.
MadeBackend make_cuda(const Topology& machine, const KernelRegistry& kernels, Clock& clock,
                      const CudaOptions& options) {
  if (!clock.runs_by_itself())
    return invalid_input("GPUs run in real time; take the real clock, or leave the clock to the backend");
  return open_cuda_library().and_then(
      [&](const CudaFunctions* cuda) { return cuda->make_backend(machine, kernels, clock, options); });
}

}  // namespace

Expected<BackendStack> BackendStack::make(const tutti::BackendOptions& options, const Topology& machine,
                                          const KernelRegistry& kernels, std::optional<std::vector<VertexId>> gpus,
                                          std::shared_ptr<Clock> clock) {
  if (auto ok = check_watchdog(options.watchdog); !ok) return tl::unexpected(std::move(ok.error()));
  if (options.pinned_limit && options.pinned_limit->count <= 0)
    return invalid_input(fmt::format("a limit of {} for pinned memory leaves none for copies; give more than 0",
                                     to_string(*options.pinned_limit)));
  BackendStack stack;
  stack.clock_ = clock != nullptr ? std::move(clock) : clock_of(options);
  const bool is_real = stack.clock_->runs_by_itself();
  auto setup = RealTimeSetup::make(is_real ? options.real_time : RealTimeOptions{});
  if (!setup) return tl::unexpected(std::move(setup.error()));
  stack.setup_.emplace(*std::move(setup));
  const auto backend = [&]() -> MadeBackend {
    if (options.kind == BackendKind::Simulated) return std::make_unique<SimBackend>(machine, kernels, *stack.clock_);
    CudaOptions cuda = cuda_options(options, machine.spec());
    cuda.gpus = std::move(gpus);
    return make_cuda(machine, kernels, *stack.clock_, cuda);
  };
  return backend().map([&](std::unique_ptr<DeviceBackend>&& made) {
    stack.backend_ = std::move(made);
    stack.executor_ =
        std::make_unique<Executor>(machine, *stack.backend_, *stack.clock_, is_real ? role_of(options) : ThreadRole{});
    return std::move(stack);
  });
}

void BackendStack::add_notes(std::vector<std::string>& notes) const {
  for (const auto& own : {setup_->notes(), backend_->notes(), backend_->foreign_load()})
    internal::add_notes(notes, own);
}

Expected<PartitionMachines> PartitionMachines::make(const tutti::BackendOptions& options, const PlannedTaskSet& planned,
                                                    const Topology& machine, const KernelRegistry& kernels) {
  PartitionMachines made(options, machine, kernels);
  made.overlaps_ = planned.overlap.has_value();
  for (const Partition& partition : planned.partitions) {
    std::optional<std::vector<VertexId>> gpus;
    if (planned.partitions.size() > 1) gpus = gpus_of(planned.tasks, partition);
    auto stack = BackendStack::make(options, machine, kernels, gpus);
    if (!stack) return tl::unexpected(std::move(stack.error()));
    const auto all = machine.gpus();
    made.gpus_.push_back(gpus.value_or(std::vector<VertexId>(all.begin(), all.end())));
    made.executors_.push_back(&stack->executor());
    made.machines_.push_back(*std::move(stack));
  }
  return made;
}

RunPlace PartitionMachines::place() const {
  const BackendStack& first = machines_.front();
  RunPlace place{std::string(first.backend().name()), std::string(first.clock().name()), machines_.size()};
  place.overlaps = overlaps_;
  place.pinned = first.backend().pinned_memory();  // all backends have one pool
  for (const auto* const some : {&machines_, &spares_})
    for (const BackendStack& machine : *some) machine.add_notes(place.notes);
  return place;
}

Expected<Executor*> PartitionMachines::without(std::size_t partition, std::span<const VertexId> lost) {
  std::vector<VertexId> left = gpus_[partition];
  std::erase_if(left, [&](VertexId gpu) { return std::ranges::find(lost, gpu) != lost.end(); });
  const std::lock_guard lock(*making_);
  return BackendStack::make(options_, *machine_, *kernels_, std::move(left), machines_[partition].shared_clock())
      .map([&](BackendStack&& stack) { return &spares_.emplace_back(std::move(stack)).executor(); });
}

}  // namespace tutti::internal
