#include "runtime/core/busy_copies.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/planners/planner.hpp"

namespace tutti::internal {
namespace {

constexpr Bytes kLargest{16LL << 20};
constexpr std::int64_t kMost = 100, kMostInAll = 4000;

/// One copy to and one from each GPU where there is a way, of a sixteenth of the smallest GPU's memory where that is
/// less than 16 MiB.
std::vector<CommandStream> one_each(const Topology& machine) {
  Bytes size = kLargest;
  for (const VertexId gpu : machine.gpus())
    if (const auto memory = machine.vertex(gpu).memory)
      size = std::min(size, Bytes{std::max<std::int64_t>(memory->count / 16, 1)});
  std::vector<CommandStream> streams;
  if (machine.memories().empty()) return streams;
  const VertexId memory = machine.memories().front();
  const auto add = [&](VertexId from, VertexId to) {
    if (machine.route_class(from, to) == kNone) return;
    streams.push_back({fmt::format("copy {}", streams.size()), Transfer{from, to, size, {}, {}}, {}, {}});
  };
  for (const VertexId gpu : machine.gpus()) {
    add(memory, gpu);
    add(gpu, memory);
  }
  return streams;
}

}  // namespace

Expected<BusyCopies> BusyCopies::make(Executor& executor, Duration length) {
  const auto once = one_each(executor.machine());
  if (once.empty()) return invalid_input("the machine has no memory that its GPUs copy to or from");
  const auto batch = Batch::make(executor.machine(), once);
  if (!batch) return tl::unexpected(batch.error());
  auto buffers = ScratchBuffers::make(executor.backend(), std::span(&*batch, 1));
  if (!buffers) return tl::unexpected(std::move(buffers.error()));
  const Duration shortest = std::max(plan(*find_planner("all_at_once"), *batch).timeline.latency, Duration{1});
  const std::int64_t rounds =
      std::min({length / shortest + 1, kMost, kMostInAll / static_cast<std::int64_t>(once.size())});
  const std::vector<StreamBinding> bindings = buffers->bind(*batch);
  BusyCopies copies{*std::move(buffers), {}, {}};
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (CommandStream stream : once) {
      stream.name += fmt::format(" {}", round);
      copies.streams.push_back(std::move(stream));
    }
    copies.bindings.insert(copies.bindings.end(), bindings.begin(), bindings.end());
  }
  return copies;
}

}  // namespace tutti::internal
