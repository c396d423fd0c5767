#include "model/topology_yaml.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/document.hpp"

namespace tutti::internal {
namespace {

VertexKind read_kind(const Node& node) {
  constexpr std::array kinds{VertexKind::Memory, VertexKind::Cpu, VertexKind::Hub, VertexKind::Switch, VertexKind::Gpu};
  std::array<std::string_view, kinds.size()> names;
  for (std::size_t i = 0; i < kinds.size(); ++i) names[i] = to_string(kinds[i]);
  const std::string& text = read_text(node);
  for (const VertexKind kind : kinds)
    if (to_string(kind) == text) return kind;
  fail(node.place, fmt::format("'{}' is no kind of vertex;{} the kinds are memory, cpu, hub, switch, gpu", text,
                               suggestion(text, names)));
}

/// "8 GB/s", or {nominal: 8 GB/s, guaranteed: 7.8 GB/s, theoretical: 8.5 GB/s}.
/// @param theoretical  where the theoretical rate goes; null where there is none.
Bandwidth read_bandwidth(const Node& node, std::optional<GBps>* theoretical = nullptr) {
  if (node.kind != Node::Kind::Map) {
    const GBps rate = read_rate(node);
    return {rate, rate};
  }
  const Fields fields = theoretical == nullptr ? Fields(node, "a bandwidth", {"nominal", "guaranteed"})
                                               : Fields(node, "a bandwidth", {"nominal", "guaranteed", "theoretical"});
  if (theoretical != nullptr && fields.find("theoretical") != nullptr)
    *theoretical = read_rate(*fields.find("theoretical"));
  const GBps nominal = read_rate(fields.require("nominal"));
  const Node* guaranteed = fields.find("guaranteed");
  return {nominal, guaranteed == nullptr ? nominal : read_rate(*guaranteed)};
}

void refuse_unless_gpu(const Fields& fields, VertexKind kind, std::initializer_list<std::string_view> keys) {
  if (kind == VertexKind::Gpu) return;
  for (const std::string_view key : keys) {
    if (const Node* node = fields.find(key)) {
      fail(node->place, fmt::format("'{}' stands at a {}; only a gpu has it", key, to_string(kind)));
    }
  }
}

VertexEntry read_vertex(const std::string& name, const Place& place, const Node& node) {
  const Fields fields(node, fmt::format("the vertex '{}'", name),
                      {"kind", "copy_engines", "memory", "bus_id", "uuid", "domain"});
  Vertex vertex;
  vertex.name = name;
  vertex.kind = read_kind(fields.require("kind"));
  refuse_unless_gpu(fields, vertex.kind, {"copy_engines", "memory", "bus_id", "uuid"});
  if (const Node* engines = fields.find("copy_engines")) vertex.copy_engines = read_whole(*engines, 1, 64);
  if (const Node* memory = fields.find("memory")) vertex.memory = read_bytes(*memory);
  if (const Node* bus_id = fields.find("bus_id")) vertex.bus_id = read_text(*bus_id);
  if (const Node* uuid = fields.find("uuid")) vertex.uuid = read_text(*uuid);
  if (const Node* domain = fields.find("domain")) vertex.domain = read_id(*domain);
  return {std::move(vertex), place};
}

void read_vertices(TopologyBuilder& builder, const Node& node) {
  if (node.kind != Node::Kind::Map) fail(node.place, "'vertices' is a map; write 'gpu0: {kind: gpu}'");
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const auto& [name, place] = node.keys[i];
    Node name_node;
    name_node.kind = Node::Kind::Scalar;
    name_node.text = name;
    name_node.place = place;
    builder.vertex(read_vertex(read_id(name_node), place, node.items[i]));
  }
}

LinkEntry read_link(const Node& node) {
  const Fields fields(node, "a link", {"from", "to", "bandwidth", "back"});
  LinkEntry link;
  link.from = read_id(fields.require("from"));
  link.to = read_id(fields.require("to"));
  link.bandwidth = read_bandwidth(fields.require("bandwidth"), &link.theoretical);
  if (const Node* back = fields.find("back")) link.back = read_bandwidth(*back, &link.back_theoretical);
  link.place = node.place;
  return link;
}

SharedEntry read_shared(const Node& node) {
  const Fields fields(node, "a shared capacity", {"name", "capacity", "members"});
  SharedEntry shared;
  shared.name = read_id(fields.require("name"));
  shared.capacity = read_bandwidth(fields.require("capacity"));
  shared.place = node.place;
  for (const Node& item : read_sequence(fields.require("members"), "'members'")) {
    const Fields member(item, "a member", {"from", "to", "cost"});
    const Node* cost = member.find("cost");
    shared.members.push_back({read_id(member.require("from")), read_id(member.require("to")),
                              cost == nullptr ? 1 : read_number(*cost, 1e-3, 1e3), item.place});
  }
  return shared;
}

SharingWeights read_weights(const Node& node) {
  const Fields fields(node, "'weights'", {"h2d", "d2h", "peer"});
  SharingWeights weights;
  if (const Node* h2d = fields.find("h2d")) weights.h2d = read_number(*h2d, 1e-3, 1e3);
  if (const Node* d2h = fields.find("d2h")) weights.d2h = read_number(*d2h, 1e-3, 1e3);
  if (const Node* peer = fields.find("peer")) weights.peer = read_number(*peer, 1e-3, 1e3);
  return weights;
}

PeerAccessEntry read_peer_access(const Node& node) {
  PeerAccessEntry entry;
  entry.place = node.place;
  if (node.kind == Node::Kind::Scalar) {
    if (node.text == "all") return entry.mode = PeerAccess::Mode::All, entry;
    if (node.text == "none") return entry.mode = PeerAccess::Mode::None, entry;
    if (node.text == "same_domain") return entry;
    fail(node.place,
         fmt::format("'{}' is no peer access; write all, none, same_domain or [[gpu0, gpu1], ...]", node.text));
  }
  entry.mode = PeerAccess::Mode::Pairs;
  for (const Node& pair : read_sequence(node, "'peer_access'")) {
    const auto ends = read_sequence(pair, "a pair of GPUs");
    if (ends.size() != 2) fail(pair.place, "a pair has two GPUs; write [gpu0, gpu1]");
    entry.pairs.emplace_back(read_id(ends[0]), read_id(ends[1]));
  }
  return entry;
}

/// The nominal and the guaranteed side of a cost, where a map has both.
Cost read_cost(const Fields& fields) {
  const Node& nominal = fields.require("nominal");
  Cost cost(read_duration(nominal));
  const Node* guaranteed = fields.find("guaranteed");
  if (guaranteed == nullptr) return cost;
  cost.guaranteed = read_duration(*guaranteed);
  if (cost.guaranteed < cost.nominal) {
    fail(guaranteed->place,
         fmt::format("guaranteed {} is below nominal {}; guaranteed is what the machine never exceeds, so raise it",
                     to_string(cost.guaranteed), to_string(cost.nominal)));
  }
  return cost;
}

/// "8.8 us", or {nominal: 8.8 us, guaranteed: 14 us}.
Cost read_cost(const Node& node, const std::string& what) {
  if (node.kind != Node::Kind::Map) return Cost(read_duration(node));
  return read_cost(Fields(node, what, {"nominal", "guaranteed"}));
}

/// A cost; in a map also a `first`, and {below: 256 KiB, bandwidth: 12 GB/s}, together.
CopyCost read_copy_cost(const Node& node, const std::string& what) {
  if (node.kind != Node::Kind::Map) return {Cost(read_duration(node)), {}, {}};
  const Fields fields(node, what, {"nominal", "guaranteed", "first", "below", "bandwidth"});
  CopyCost cost{read_cost(fields), {}, {}};
  if (const Node* first = fields.find("first")) cost.first = read_cost(*first, "'first'");
  const Node* below = fields.find("below");
  const Node* bandwidth = fields.find("bandwidth");
  if ((below == nullptr) != (bandwidth == nullptr))
    fail(below == nullptr ? bandwidth->place : below->place,
         "'below' and 'bandwidth' go together: copies smaller than the one run at the other");
  if (below != nullptr) {
    cost.below = read_bytes(*below);
    cost.small = read_bandwidth(*bandwidth);
  }
  return cost;
}

/// One cost for all copies, or a map with one for each route class; a class that is left out costs nothing.
CopyCosts read_copy_costs(const Node& node) {
  CopyCosts costs;
  const auto is_class = [](const auto& key) {
    return std::any_of(kCopyKinds.begin(), kCopyKinds.end(),
                       [&](CopyKind route) { return to_string(route) == key.first; });
  };
  if (node.kind != Node::Kind::Map || std::none_of(node.keys.begin(), node.keys.end(), is_class)) {
    costs.classes.fill(read_copy_cost(node, "'transfer'"));
    return costs;
  }
  const Fields fields(node, "'transfer'", {"up", "down", "peer", "staged"});
  for (const CopyKind route : kCopyKinds)
    if (const Node* cost = fields.find(to_string(route)))
      costs.of(route) = read_copy_cost(*cost, fmt::format("'{}'", to_string(route)));
  return costs;
}

SetupTimes read_setup(const Node& node) {
  const Fields fields(node, "'setup'",
                      {"batch", "transfer", "kernel", "gate", "host", "handover", "turn", "dispatch", "job"});
  SetupTimes setup;
  if (const Node* batch = fields.find("batch")) setup.batch = read_cost(*batch, "'batch'");
  if (const Node* transfer = fields.find("transfer")) setup.transfer = read_copy_costs(*transfer);
  for (const NamedCost& named : kFurtherCosts)
    if (const Node* cost = fields.find(named.key)) setup.*named.cost = read_cost(*cost, fmt::format("'{}'", named.key));
  return setup;
}

Margin read_margin(const Node& node) {
  const Fields fields(node, "'margin'", {"relative", "absolute"});
  Margin margin;
  if (const Node* relative = fields.find("relative")) margin.relative = read_number(*relative, 0, 100);
  if (const Node* absolute = fields.find("absolute")) margin.absolute = read_duration(*absolute);
  return margin;
}

Bytes read_chunk(const Node& node) {
  const Fields fields(node, "'staging'", {"chunk"});
  return read_bytes(fields.require("chunk"));
}

Provenance read_provenance(const Node& node) {
  const Fields fields(node, "'provenance'",
                      {"date", "host", "fingerprint", "combinations", "batches", "repetitions", "sizes"});
  Provenance provenance;
  if (const Node* date = fields.find("date")) provenance.date = read_text(*date);
  if (const Node* host = fields.find("host")) provenance.host = read_text(*host);
  if (const Node* fingerprint = fields.find("fingerprint")) provenance.fingerprint = read_text(*fingerprint);
  if (const Node* sizes = fields.find("sizes")) provenance.sizes = read_text(*sizes);
  constexpr int kMost = 1'000'000;
  if (const Node* count = fields.find("combinations")) provenance.combinations = read_whole(*count, 0, kMost);
  if (const Node* count = fields.find("batches")) provenance.batches = read_whole(*count, 0, kMost);
  if (const Node* count = fields.find("repetitions")) provenance.repetitions = read_whole(*count, 1, kMost);
  return provenance;
}

/// {gpu0: 49.6 GB/s, gpu2: 50 GB/s}
std::vector<std::pair<std::string, double>> read_rates(const Node& node) {
  if (node.kind != Node::Kind::Map) fail(node.place, "rates are a map; write {gpu0: 49.6 GB/s}");
  std::vector<std::pair<std::string, double>> rates;
  for (std::size_t i = 0; i < node.items.size(); ++i)
    rates.emplace_back(node.keys[i].first, read_rate(node.items[i]).value);
  return rates;
}

TableEntry read_table_entry(const Node& node) {
  const Fields fields(node, "a measured combination", {"h2d", "d2h", "source"});
  TableEntry entry;
  entry.place = node.place;
  if (const Node* rates = fields.find("h2d")) entry.h2d = read_rates(*rates);
  if (const Node* rates = fields.find("d2h")) entry.d2h = read_rates(*rates);
  if (const Node* source = fields.find("source")) {
    const std::string& text = read_text(*source);
    if (text != "table" && text != "interpolated")
      fail(source->place, fmt::format("'{}' is no source of rates; write table or interpolated", text));
    if (text == "interpolated") entry.source = RateSource::Interpolated;
  }
  return entry;
}

GateKind read_gate(const Node& node) {
  const std::string& text = read_text(node);
  for (const GateKind kind : kGateKinds)
    if (to_string(kind) == text) return kind;
  fail(node.place,
       fmt::format("there is no gate '{}'; write polling_kernel, memory_wait, host_timed or device_timer", text));
}

void read_options(TopologyBuilder& builder, const Fields& machine) {
  if (const Node* weights = machine.find("weights")) builder.weights(read_weights(*weights));
  if (const Node* peers = machine.find("peer_access")) builder.peer_access(read_peer_access(*peers));
  if (const Node* setup = machine.find("setup")) builder.setup(read_setup(*setup));
  if (const Node* margin = machine.find("margin")) builder.margin(read_margin(*margin));
  if (const Node* spread = machine.find("spread")) builder.spread(read_number(*spread, 0, kWidestSpread));
  if (const Node* staging = machine.find("staging")) builder.staging_chunk(read_chunk(*staging));
  if (const Node* gate = machine.find("gate")) builder.gate(read_gate(*gate));
  if (const Node* provenance = machine.find("provenance")) builder.provenance(read_provenance(*provenance));
  const Node* symmetric = machine.find("symmetric");
  if (const Node* old_name = machine.find("alike")) {
    if (symmetric != nullptr) fail(old_name->place, "'alike' is an older name of 'symmetric'; write one of them");
    symmetric = old_name;
  }
  if (symmetric != nullptr) {
    for (const Node& group : read_sequence(*symmetric, "'symmetric'")) {
      std::vector<std::string> gpus;
      for (const Node& gpu : read_sequence(group, "a group of symmetric GPUs")) gpus.push_back(read_id(gpu));
      builder.symmetric(std::move(gpus), group.place);
    }
  }
  if (const Node* table = machine.find("table"))
    for (const Node& entry : read_sequence(*table, "'table'")) builder.table(read_table_entry(entry));
}

Topology read_machine(const Node& document) {
  const Fields top(document, "a machine file", {"version", "machine"});
  const Fields machine(top.require("machine"), "the machine",
                       {"name", "vertices", "links", "shared", "weights", "peer_access", "setup", "margin", "spread",
                        "staging", "gate", "provenance", "symmetric", "alike", "table"});
  TopologyBuilder builder(read_id(machine.require("name")));
  read_vertices(builder, machine.require("vertices"));
  for (const Node& link : read_sequence(machine.require("links"), "'links'")) builder.link(read_link(link));
  if (const Node* shared = machine.find("shared")) {
    for (const Node& item : read_sequence(*shared, "'shared'")) builder.shared(read_shared(item));
  }
  read_options(builder, machine);
  return value_at(top.require("machine").place, builder.build());
}

}  // namespace

Expected<Topology> machine_from(const Node& document) {
  return reading([&] { return read_machine(document); });
}

Expected<Topology> load_machine(const std::string& path) {
  return read_document(path).and_then([](const Node& document) { return machine_from(document); });
}

}  // namespace tutti::internal
