// The input of a builder, before anything is checked.
#include <utility>

#include "model/topology.hpp"

namespace tutti::internal {

std::vector<LinkEntry> link_entries(const Topology& machine) {
  const auto name = [&](VertexId id) { return machine.vertex(id).name; };
  std::vector<LinkEntry> entries;
  for (const Link& link : machine.links())
    entries.push_back({name(link.from), name(link.to), link.bandwidth, std::nullopt, {}, link.theoretical});
  return entries;
}

std::vector<SharedEntry> shared_entries(const Topology& machine) {
  std::vector<SharedEntry> entries;
  for (const SharedCapacity& shared : machine.shared()) {
    entries.push_back({shared.name, shared.capacity, {}});
    for (const CapacityMember& member : shared.members) {
      const Link& link = machine.link(member.link);
      entries.back().members.push_back({machine.vertex(link.from).name, machine.vertex(link.to).name, member.cost});
    }
  }
  return entries;
}

TopologyBuilder::TopologyBuilder(const Topology& machine)
    : name_(machine.name()),
      links_(link_entries(machine)),
      shared_(shared_entries(machine)),
      weights_(machine.weights()),
      setup_(machine.setup()),
      margin_(machine.margin()),
      spread_(machine.spread()),
      staging_chunk_(machine.staging_chunk()),
      gate_(machine.gate()),
      provenance_(machine.provenance()) {
  const auto name = [&](VertexId id) { return machine.vertex(id).name; };
  for (const Vertex& vertex : machine.vertices()) vertices_.push_back({vertex});
  peer_access_.mode = machine.peer_access().mode;
  for (const auto& [from, to] : machine.peer_access().pairs) peer_access_.pairs.emplace_back(name(from), name(to));
}

TopologyBuilder& TopologyBuilder::provenance(Provenance provenance) {
  return provenance_ = std::move(provenance), *this;
}
TopologyBuilder& TopologyBuilder::symmetric(std::vector<std::string> gpus, Place place) {
  return symmetric_.emplace_back(std::move(gpus), std::move(place)), *this;
}
TopologyBuilder& TopologyBuilder::table(TableEntry entry) { return table_.push_back(std::move(entry)), *this; }
TopologyBuilder& TopologyBuilder::copy_engines(const std::vector<int>& engines) {
  auto next = engines.begin();
  for (VertexEntry& entry : vertices_)
    if (entry.vertex.kind == VertexKind::Gpu && next != engines.end()) entry.vertex.copy_engines = *next++;
  return *this;
}
TopologyBuilder& TopologyBuilder::links(std::vector<LinkEntry> entries) { return links_ = std::move(entries), *this; }
TopologyBuilder& TopologyBuilder::shared(std::vector<SharedEntry> entries) {
  return shared_ = std::move(entries), *this;
}
TopologyBuilder& TopologyBuilder::vertex(VertexEntry entry) { return vertices_.push_back(std::move(entry)), *this; }
TopologyBuilder& TopologyBuilder::link(LinkEntry entry) { return links_.push_back(std::move(entry)), *this; }
TopologyBuilder& TopologyBuilder::shared(SharedEntry entry) { return shared_.push_back(std::move(entry)), *this; }
TopologyBuilder& TopologyBuilder::weights(SharingWeights weights) { return weights_ = weights, *this; }
TopologyBuilder& TopologyBuilder::peer_access(PeerAccessEntry entry) { return peer_access_ = std::move(entry), *this; }
TopologyBuilder& TopologyBuilder::setup(SetupTimes setup) { return setup_ = setup, *this; }
TopologyBuilder& TopologyBuilder::margin(Margin margin) { return margin_ = margin, *this; }
TopologyBuilder& TopologyBuilder::spread(double relative) { return spread_ = relative, *this; }
TopologyBuilder& TopologyBuilder::staging_chunk(Bytes chunk) { return staging_chunk_ = chunk, *this; }
TopologyBuilder& TopologyBuilder::gate(GateKind kind) { return gate_ = kind, *this; }

}  // namespace tutti::internal
