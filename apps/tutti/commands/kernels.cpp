#include "apps/tutti/commands/kernels.hpp"

#include "apps/wafer_inspection/inspection_kernel.hpp"
#include "model/base/expects.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal {

KernelRegistry kernels_of_this_program() {
  KernelRegistry registry = KernelRegistry::with_builtins();
  const auto added = wafer::add_inspection(registry);
  TUTTI_EXPECTS(added.has_value(), "no built-in kernel bears these names");
  return registry;
}

Expected<Topology> idle_machine() {
  return compile({.name = "idle", .vertices = {{.name = "mem0", .kind = VertexKind::Memory}}});
}

}  // namespace tutti::internal
