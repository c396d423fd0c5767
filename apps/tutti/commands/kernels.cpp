#include "apps/tutti/commands/kernels.hpp"

#include "apps/wafer_inspection/inspection_kernel.hpp"
#include "model/expects.hpp"

namespace tutti::internal {

KernelRegistry kernels_of_this_program() {
  KernelRegistry registry = KernelRegistry::with_builtins();
  const auto added = wafer::add_inspection_kernel(registry);
  TUTTI_EXPECTS(added.has_value(), "no built-in kernel bears this name");
  return registry;
}

Expected<Topology> idle_machine() {
  Vertex memory;
  memory.name = "mem0";
  memory.kind = VertexKind::Memory;
  return TopologyBuilder("idle").vertex({memory}).build();
}

}  // namespace tutti::internal
