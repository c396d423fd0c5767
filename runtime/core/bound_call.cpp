#include "runtime/core/bound_call.hpp"

#include <tuple>

namespace tutti::internal {
namespace {

/// The kernel of a stream without names: it has one buffer to read and one to write, or none.
BoundCall lone_call(const KernelRegistry& kernels, const Topology& machine, const CommandStream& stream,
                    const StreamBinding& binding) {
  const auto& [input, output] = std::tie(binding.kernel_input, binding.kernel_output);
  BoundCall call{stream.kernel->name, kernels.find(stream.kernel->name)};
  if (input.data != nullptr) call.reads.push_back({"", machine.vertex(input.where).name, input.bytes()});
  if (output.data != nullptr) call.writes.push_back({"", machine.vertex(output.where).name, output.bytes()});
  call.parameters = binding.parameters;
  call.declared = stream.kernel->time;
  return call;
}

}  // namespace

std::vector<BoundCall> calls_of(const KernelRegistry& kernels, const Topology& machine, const CommandStream& stream,
                                const StreamBinding& binding) {
  if (stream.kernel->calls.empty()) return {lone_call(kernels, machine, stream, binding)};
  std::vector<BoundCall> calls;
  for (const KernelCall& kernel : stream.kernel->calls) {
    BoundCall& call = calls.emplace_back(BoundCall{kernel.name, kernels.find(kernel.name)});
    call.declared = kernel.time;
    if (binding.calls.empty()) continue;
    const CallBinding& bound = binding.calls[calls.size() - 1];
    const auto place = [&](const NamedView& view) { return machine.vertex(view.memory.where).name; };
    for (const NamedView& view : bound.reads) call.reads.push_back({view.name, place(view), view.memory.bytes()});
    for (const NamedView& view : bound.writes) call.writes.push_back({view.name, place(view), view.memory.bytes()});
    call.parameters = bound.parameters;
  }
  return calls;
}

}  // namespace tutti::internal
