#include "model/machine/machine_yaml.hpp"

#include "model/machine/machine_fields.hpp"

namespace tutti::internal {

/// A machine file.
struct MachineFile {
  MachineSpec machine;
};
template <>
struct Record<MachineFile> {
  static constexpr std::string_view what = "a machine file";
  static constexpr bool is_file = true;
  static constexpr std::tuple fields{Field{"machine", &MachineFile::machine}.required()};
};

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

Expected<MachineSpec> read_machine_spec(const Node& document) {
  return read_record<MachineFile>(document).map([](MachineFile&& file) { return std::move(file.machine); });
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
