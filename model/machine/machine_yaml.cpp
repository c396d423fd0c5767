#include "model/machine/machine_yaml.hpp"

#include "model/machine/machine_fields.hpp"

namespace tutti::internal {
namespace {

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

std::string machine_text(const MachineSpec& spec) {
  MachineSpec joint = spec;
  joint.links = both_ways(spec.links);
  Node file;
  file.kind = Node::Kind::Map;
  file.add("version", scalar_node("1"));
  file.add("machine", written(joint));
  return document_text(file);
}

std::string machine_schema() { return file_schema<MachineFile>(); }

}  // namespace tutti::internal
