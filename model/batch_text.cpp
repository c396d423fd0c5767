#include <fmt/format.h>

#include "model/batch_yaml.hpp"
#include "model/joined.hpp"

namespace tutti::internal {
namespace {

std::string transfer_text(const Topology& machine, const Transfer& transfer) {
  const auto name = [&](VertexId vertex) { return machine.vertex(vertex).name; };
  std::string text =
      fmt::format("from: {}, to: {}, size: {}", name(transfer.from), name(transfer.to), to_string(transfer.size));
  if (transfer.via) text += ", via: " + name(*transfer.via);
  if (!transfer.route.empty()) {
    std::vector<std::string> places{name(transfer.from)};
    for (const LinkId link : transfer.route) places.push_back(name(machine.link(link).to));
    text += fmt::format(", route: [{}]", joined(places));
  }
  return text;
}

std::string kernel_text(const Topology& machine, const Kernel& kernel) {
  std::string text = fmt::format("kernel: {{on: {}, time: {}", machine.vertex(kernel.on).name, to_string(kernel.time));
  if (kernel.worst != kernel.time) text += ", worst: " + to_string(kernel.worst);
  return text + fmt::format(", name: {}}}", kernel.name);
}

}  // namespace

std::string batch_yaml(const Batch& batch, const std::string& machine_path) {
  const Topology& machine = batch.machine();
  std::string text =
      fmt::format("version: 1\nmachine: \"{}\"\nmerging: {}\nstreams:\n", machine_path, to_string(batch.merging()));
  for (const CommandStream& stream : batch.streams()) {
    std::vector<std::string> parts{"name: " + stream.name};
    if (stream.transfer) parts.push_back(transfer_text(machine, *stream.transfer));
    if (stream.kernel) parts.push_back(kernel_text(machine, *stream.kernel));
    text += fmt::format("  - {{{}}}\n", joined(parts));
  }
  return text;
}

}  // namespace tutti::internal
