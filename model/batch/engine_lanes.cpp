#include "model/batch/engine_lanes.hpp"

#include <utility>

#include <fmt/format.h>

namespace tutti::internal {

EngineLanes::EngineLanes(const Topology& machine, std::span<const Batch* const> batches)
    : machine_(machine), of_engine_(machine.engine_count(), kNone), of_vertex_(machine.vertices().size(), kNone) {
  std::vector<bool> engines(of_engine_.size()), processors(of_vertex_.size());
  for (const Batch* batch : batches) note(*batch, engines, processors);
  for (const VertexId gpu : machine_.gpus()) {
    add_engines(gpu, engines);
    if (processors[gpu.index()]) add(of_vertex_[gpu.index()], gpu, "kernels", false);
    processors[gpu.index()] = false;
  }
  for (const VertexId device : machine_.devices())
    for (const auto& [engine, what] :
         {std::pair{machine_.engine_in(device), "in"}, {machine_.engine_out(device), "out"}})
      if (engines[engine.index()]) add(of_engine_[engine.index()], device, what, false);
  for (std::size_t v = 0; v < processors.size(); ++v) {
    if (!processors[v]) continue;
    const bool copies = machine_.vertices()[v].kind == VertexKind::Memory;
    add(of_vertex_[v], VertexId(v), copies ? "mapped copies" : "host work", !copies);
  }
}

void EngineLanes::note(const Batch& batch, std::vector<bool>& engines, std::vector<bool>& processors) const {
  for (std::size_t s = 0; s < batch.streams().size(); ++s) {
    const CommandStream& stream = batch.streams()[s];
    if (stream.transfer)
      for (const EngineId engine : batch.work()[s].engines) {
        const auto vertex = machine_.moving_vertex(engine);
        (vertex ? processors[vertex->index()] : engines[engine.index()]) = true;
      }
    if (stream.kernel) processors[stream.kernel->on.index()] = true;
  }
}

std::size_t EngineLanes::of(EngineId engine) const {
  const auto vertex = machine_.moving_vertex(engine);
  return vertex ? of(*vertex) : of_engine_[engine.index()];
}

std::vector<std::size_t> EngineLanes::of_transfer(const Batch& batch, std::size_t stream) const {
  const auto [issuing, other] = batch.work()[stream].engines;
  std::vector<std::size_t> lanes{of(issuing)};
  if (of(other) != lanes.front()) lanes.push_back(of(other));
  return lanes;
}

std::string EngineLanes::name(std::size_t lane) const {
  return fmt::format("{} {}", machine_.vertex(lanes_[lane].device).name, lanes_[lane].engine);
}

void EngineLanes::add_engines(VertexId gpu, const std::vector<bool>& used) {
  const bool one = machine_.engine_in(gpu) == machine_.engine_out(gpu);
  for (const auto& [engine, what] : {std::pair{machine_.engine_in(gpu), one ? "copies" : "up"},
                                     {machine_.engine_out(gpu), "down"},
                                     {machine_.peer_engine_in(gpu), "peer in"},
                                     {machine_.peer_engine_out(gpu), "peer"}})
    if (used[engine.index()] && of(engine) == kNone) add(of_engine_[engine.index()], gpu, what, false);
}

void EngineLanes::add(std::uint32_t& lane, VertexId device, std::string_view engine, bool overlaps) {
  lane = static_cast<std::uint32_t>(lanes_.size());
  lanes_.push_back({device, engine, overlaps});
}

}  // namespace tutti::internal
