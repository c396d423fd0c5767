#include "apps/lab/measuring/memory_load.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "apps/lab/measuring/load_threads.hpp"

namespace tutti::internal {
namespace {

constexpr std::chrono::milliseconds kThreadsSettle{200};

/// Of the first memory: the first GPU alone, and all GPUs together.
std::vector<BusSet> ends_of_scale(const Topology& machine) {
  const std::string& first = machine.vertex(machine.memories().front()).name;
  std::vector<BusSet> chosen;
  for (BusSet& set : bus_sets(machine)) {
    if (set.memory != first || (!chosen.empty() && set.flows.size() <= chosen.back().flows.size())) continue;
    if (chosen.size() == 2) chosen.pop_back();
    chosen.push_back(std::move(set));
  }
  return chosen;
}

}  // namespace

Expected<MemoryLoadEffect> measure_memory_load(Executor& executor, const BusOptions& options,
                                               const std::atomic<bool>& interrupted) {
  using Seconds = std::chrono::duration<double>;
  MemoryLoadEffect effect{};
  effect.sets = ends_of_scale(executor.machine());
  auto idle = measure_bus(executor, effect.sets, options, interrupted);
  if (!idle) return tl::unexpected(std::move(idle.error()));
  effect.idle = *std::move(idle);
  const LoadThreads threads(LoadKind::Memory);
  effect.threads = threads.count();
  std::this_thread::sleep_for(kThreadsSettle);
  const std::uint64_t before = threads.copied();
  const auto start = std::chrono::steady_clock::now();
  auto busy = measure_bus(executor, effect.sets, options, interrupted);
  if (!busy) return tl::unexpected(std::move(busy.error()));
  effect.busy = *std::move(busy);
  const Seconds passed = std::chrono::steady_clock::now() - start;
  effect.copied = static_cast<double>(threads.copied() - before) / passed.count() / 1e9;
  return effect;
}

}  // namespace tutti::internal
