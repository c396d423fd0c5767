#include "model/machine/machine_yaml.hpp"

#include "model/machine/machine_fields.hpp"

namespace tutti::internal {
namespace {

/// The node of the machine; a map.
const Node& machine_node(const Node& document) {
  return Fields(document, "a machine file", {"version", "machine"}).require("machine");
}

/// Links with both directions in one, where they follow each other.
std::vector<LinkSpec> both_ways(std::span<const LinkSpec> links) {
  std::vector<LinkSpec> joint;
  for (const LinkSpec& link : links) {
    const bool is_back = !joint.empty() && !joint.back().back && !link.back && joint.back().from == link.to &&
                         joint.back().to == link.from;
    if (is_back)
      joint.back().back = link.bandwidth;
    else
      joint.push_back(link);
  }
  return joint;
}

}  // namespace

Expected<MachineSpec> read_machine_spec(const Node& document) {
  return reading([&] { return &machine_node(document); }).and_then([](const Node* machine) {
    return read_record<MachineSpec>(*machine);
  });
}

Error at_machine_places(Error error, const Node& document) {
  const Node* machine = document.find("machine");
  return at_places(std::move(error), machine == nullptr ? document : *machine);
}

std::string machine_text(const MachineSpec& spec) {
  MachineSpec joint = spec;
  joint.links = both_ways(spec.links);
  Node file;
  file.kind = Node::Kind::Map;
  file.add("version", scalar_node("1"));
  file.add("machine", written(joint));
  return document_text(file);
}

}  // namespace tutti::internal
