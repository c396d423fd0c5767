#include "apps/partition_machines.hpp"

#include <algorithm>
#include <utility>

namespace tutti::internal {

Expected<PartitionMachines> PartitionMachines::make(const BackendOptions& options, const PlannedTaskSet& planned,
                                                    const Topology& machine, const KernelRegistry& kernels) {
  PartitionMachines made;
  BackendPart part;
  for (std::size_t i = 0; i < planned.partitions.size(); ++i) {
    if (planned.partitions.size() > 1) part.gpus = gpus_of(planned.tasks, planned.partitions[i]);
    auto clock = make_clock(options);
    if (!clock) return tl::unexpected(std::move(clock.error()));
    auto backend = make_backend(options, machine, kernels, **clock, part);
    if (!backend) return tl::unexpected(std::move(backend.error()));
    auto executor = std::make_unique<Executor>(machine, **backend, **clock);
    made.executors_.push_back(executor.get());
    made.machines_.push_back({*std::move(clock), *std::move(backend), std::move(executor)});
  }
  return made;
}

RunPlace PartitionMachines::place() const {
  const OfOne& first = machines_.front();
  RunPlace place{std::string(first.backend->name()), std::string(first.clock->name()), machines_.size()};
  for (const OfOne& machine : machines_)
    for (auto& notes : {machine.backend->notes(), machine.backend->foreign_load()})
      for (const std::string& note : notes)
        if (std::ranges::find(place.notes, note) == place.notes.end()) place.notes.push_back(note);
  return place;
}

}  // namespace tutti::internal
