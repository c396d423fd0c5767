#include "model/machine/machine_fields.hpp"

namespace tutti::internal {

std::vector<Vertex> Form<std::vector<Vertex>>::read(Reader& reader, const Node& node, const FieldRules&) {
  if (node.kind != Node::Kind::Map) fail(node.place, "'vertices' is a map; write 'gpu0: {kind: gpu}'");
  std::vector<Vertex> vertices;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = node.items[i];
    reader.attempt([&] {
      Vertex& vertex = vertices.emplace_back();
      vertex.name = read_id(node.key(i));
      read_fields(reader, item, fmt::format("the vertex '{}'", vertex.name), vertex);
      const Node* kind = item.find("kind");
      if (kind == nullptr || kind->text != to_string(vertex.kind)) return;
      const auto only = [&](VertexKind owner, std::initializer_list<std::string_view> keys) {
        if (vertex.kind == owner) return;
        for (const std::string_view key : keys)
          if (const Node* value = item.find(key))
            fail(value->place,
                 fmt::format("'{}' stands at a {}; only a {} has it", key, to_string(vertex.kind), to_string(owner)));
      };
      only(VertexKind::Gpu, {"copy_engines", "memory", "bus_id", "uuid"});
      only(VertexKind::Cpu, {"cores"});
      only(VertexKind::Memory, {"pageable", "producers", "buffer", "crossover"});
    });
  }
  return vertices;
}

Node Form<std::vector<Vertex>>::write(const std::vector<Vertex>& vertices) {
  Node map;
  map.kind = Node::Kind::Map;
  for (const Vertex& vertex : vertices) map.add(vertex.name, written(vertex));
  return map;
}

void Form<std::vector<Vertex>>::check(const std::vector<Vertex>& vertices, const FieldRules&, Faults& faults,
                                      const std::string& path) {
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    if (!is_name(vertices[i].name)) faults.add(path_of(path, i), name_sentence(vertices[i].name));
    check_fields(vertices[i], faults, path_of(path, i));
  }
}

std::string Form<std::vector<Vertex>>::schema(const FieldRules&) {
  return schema_of_map(schema_of_keys(key_schemas<Vertex>()));
}

PeerSpec Form<PeerSpec>::read(Reader& reader, const Node& node, const FieldRules&) {
  PeerSpec peers;
  if (node.kind == Node::Kind::Scalar) {
    if (node.text == "all") return peers.mode = PeerMode::All, peers;
    if (node.text == "none") return peers.mode = PeerMode::None, peers;
    if (node.text == "same_domain") return peers;
    fail(node.place,
         fmt::format("'{:.80}' is no peer access; write all, none, same_domain or [[gpu0, gpu1], ...]", node.text));
  }
  peers.mode = PeerMode::Pairs;
  for (const Node& pair : read_sequence(node, "'peer_access'")) {
    peers.pairs.emplace_back();
    reader.attempt([&] {
      const auto ends = read_sequence(pair, "a pair of GPUs");
      if (ends.size() != 2) fail(pair.place, "a pair has two GPUs; write [gpu0, gpu1]");
      peers.pairs.back() = {read_id(ends[0]), read_id(ends[1])};
    });
  }
  return peers;
}

Node Form<PeerSpec>::write(const PeerSpec& peers) {
  switch (peers.mode) {
    case PeerMode::All: return scalar_node("all");
    case PeerMode::None: return scalar_node("none");
    case PeerMode::SameDomain: return scalar_node("same_domain");
    case PeerMode::Pairs: break;
  }
  std::vector<std::vector<std::string>> pairs;
  for (const auto& [from, to] : peers.pairs) pairs.push_back({from, to});
  return written(pairs);
}

std::string Form<PeerSpec>::schema(const FieldRules&) {
  constexpr std::array<std::string_view, 3> words{"all", "none", "same_domain"};
  return schema_of_any(std::array{schema_of_words(words), schema_of_list(schema_of_list(schema_of_name()))});
}

namespace {

/// The fields of a copy's cost in a map of its own.
struct CopyCostMap {
  Duration nominal{};
  std::optional<Duration> guaranteed = {};
  Cost first = {};
  std::optional<Cost> led_first = {};
  std::optional<SizeCost> carried = {};
  std::optional<Bytes> below = {};
  std::optional<Bandwidth> bandwidth = {};
  std::vector<SizeCost> sizes = {};
  Gap gap = {};
  double weight = 1;
  double load = 1;
};

}  // namespace

template <>
struct Record<SizeCost> {
  static constexpr std::string_view what = "a cost of a size";
  static constexpr std::tuple fields{Field{"size", &SizeCost::size}.required(),
                                     Field{"more", &SizeCost::more}.required()};
};
template <>
struct Record<CopyCostMap> {
  static constexpr std::tuple fields{Field{"nominal", &CopyCostMap::nominal}.required(),
                                     Field{"guaranteed", &CopyCostMap::guaranteed},
                                     Field{"first", &CopyCostMap::first},
                                     Field{"led_first", &CopyCostMap::led_first},
                                     Field{"carried", &CopyCostMap::carried},
                                     Field{"below", &CopyCostMap::below},
                                     Field{"bandwidth", &CopyCostMap::bandwidth},
                                     Field{"sizes", &CopyCostMap::sizes},
                                     Field{"gap", &CopyCostMap::gap},
                                     Field{"weight", &CopyCostMap::weight}.within(1e-3, 1e3),
                                     Field{"load", &CopyCostMap::load}.within(1e-3, 1e3)};
};

CopyCost Form<CopyCost>::read(Reader& reader, const Node& node, const FieldRules& rules) {
  if (node.kind != Node::Kind::Map) return {Cost(read_duration(node)), {}, {}};
  CopyCostMap map;
  read_fields(reader, node, fmt::format("'{}'", rules.key), map);
  if (map.below && !map.bandwidth)
    fail(node.find("below")->place, "'below' needs 'bandwidth': copies smaller than the one run at the other");
  const Bytes below = map.below.value_or(map.bandwidth ? kEverySize : Bytes{});
  CopyCost cost{{map.nominal, map.guaranteed.value_or(map.nominal)},
                below,
                map.bandwidth,
                map.first,
                map.carried.value_or(SizeCost{}),
                map.led_first};
  if (map.carried && map.carried->size <= Bytes{0})
    fail(node.find("carried")->place,
         "a command carries copies of some size; write one above 0, or leave 'carried' out");
  Bytes last{};
  for (const SizeCost& size : map.sizes)
    if (size.size <= std::exchange(last, size.size))
      fail(node.find("sizes")->place, "the sizes of 'sizes' rise, from above 0; sort them");
  if (map.sizes.size() > cost.sizes.size())
    fail(node.find("sizes")->place, fmt::format("'sizes' has at most {} entries; leave some out", cost.sizes.size()));
  std::ranges::copy(map.sizes, cost.sizes.begin());
  cost.gap = map.gap;
  cost.weight = map.weight;
  cost.load = map.load;
  return cost;
}

Node Form<CopyCost>::write(const CopyCost& cost) {
  if (cost == CopyCost{cost.each, {}}) return written(cost.each);
  CopyCostMap map{cost.each.nominal, cost.each.guaranteed, cost.first, cost.led_first, {}, {}, cost.small, {},
                  cost.gap,          cost.weight,          cost.load};
  if (cost.carried.size > Bytes{0}) map.carried = cost.carried;
  for (const SizeCost& size : cost.sizes)
    if (size.size > Bytes{0}) map.sizes.push_back(size);
  if (cost.small && cost.below != kEverySize) map.below = cost.below;
  Node node;
  node.kind = Node::Kind::Map;
  write_fields(map, node);
  return node;
}

std::string Form<CopyCost>::schema(const FieldRules& rules) {
  return schema_of_any(std::array{Form<Duration>::schema(rules), schema_of_keys(key_schemas<CopyCostMap>())});
}

namespace {

/// Refuses what a class of rows cannot have, or no other.
void check_rows(const Node& node, CopyKind kind, const CopyCost& cost) {
  if (is_of_rows(kind) && cost.small)
    fail(node.place, fmt::format("'{}' has no 'bandwidth': rows have the rate of their route, and each one costs a "
                                 "'gap' more; write that",
                                 to_string(kind)));
  if (!is_of_rows(kind) && cost.gap != Gap{})
    fail(node.find("gap")->place, "'gap' is a cost of rows; write it in 'rows_up' or 'rows_down'");
}

}  // namespace

CopyCosts Form<CopyCosts>::read(Reader& reader, const Node& node, const FieldRules& rules) {
  CopyCosts costs;
  const auto has_class = [&](CopyKind kind) { return node.find(to_string(kind)) != nullptr; };
  if (node.kind != Node::Kind::Map || std::ranges::none_of(kCopyKinds, has_class)) {
    costs.classes.fill(Form<CopyCost>::read(reader, node, rules));
    check_rows(node, kCopyKinds.front(), costs.classes.front());
    return costs;
  }
  std::vector<std::string_view> known;
  for (const CopyKind kind : kCopyKinds) known.push_back(to_string(kind));
  refuse_unknown_keys(reader, node, "'transfer'", known);
  for (const CopyKind kind : kCopyKinds) {
    FieldRules of_class;
    of_class.key = to_string(kind);
    if (const Node* cost = node.find(of_class.key))
      reader.attempt([&] {
        costs.of(kind) = Form<CopyCost>::read(reader, *cost, of_class);
        check_rows(*cost, kind, costs.of(kind));
      });
  }
  return costs;
}

Node Form<CopyCosts>::write(const CopyCosts& costs) {
  const auto equals_first = [&](const CopyCost& cost) { return cost == costs.classes.front(); };
  if (std::ranges::all_of(costs.classes, equals_first)) return written(costs.classes.front());
  Node map;
  map.kind = Node::Kind::Map;
  for (const CopyKind kind : kCopyKinds)
    if (costs.of(kind) != CopyCost{}) map.add(to_string(kind), written(costs.of(kind)));
  return map;
}

std::string Form<CopyCosts>::schema(const FieldRules& rules) {
  const std::string one = Form<CopyCost>::schema(rules);
  std::vector<KeySchema> classes;
  for (const CopyKind kind : kCopyKinds) classes.push_back({to_string(kind), {}, {}, one});
  return schema_of_any(std::array{one, schema_of_keys(classes)});
}

}  // namespace tutti::internal
