#include <fmt/format.h>

#include "model/joined.hpp"
#include "model/topology_yaml.hpp"

namespace tutti::internal {
namespace {

/// A text in double quotes.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + '"';
}

std::string bandwidth_text(const Bandwidth& bandwidth, const std::optional<GBps>& theoretical = std::nullopt) {
  if (bandwidth.nominal == bandwidth.guaranteed && !theoretical) return to_string(bandwidth.nominal);
  std::string text = "{nominal: " + to_string(bandwidth.nominal);
  if (bandwidth.nominal != bandwidth.guaranteed) text += ", guaranteed: " + to_string(bandwidth.guaranteed);
  if (theoretical) text += ", theoretical: " + to_string(*theoretical);
  return text + "}";
}

class Writer {
 public:
  explicit Writer(const Topology& machine) : machine_(machine) {}

  std::string text() {
    line("version: 1");
    line("machine:");
    line(fmt::format("  name: {}", machine_.name()));
    add_provenance();
    line("  vertices:");
    for (const Vertex& vertex : machine_.vertices()) add_vertex(vertex);
    line("  links:");
    add_links();
    add_shared();
    add_options();
    if (machine_.table() != nullptr) add_table(*machine_.table());
    return std::move(text_);
  }

 private:
  void line(std::string_view text) { text_.append(text).append("\n"); }
  [[nodiscard]] const std::string& name(VertexId id) const { return machine_.vertex(id).name; }
  [[nodiscard]] const std::string& gpu(std::uint32_t position) const { return name(machine_.gpus()[position]); }

  void add_provenance() {
    if (!machine_.provenance()) return;
    const Provenance& from = *machine_.provenance();
    line("  provenance:");
    line(fmt::format("    date: {}", quoted(from.date)));
    line(fmt::format("    host: {}", quoted(from.host)));
    line(fmt::format("    fingerprint: {}", quoted(from.fingerprint)));
    line(fmt::format("    combinations: {}", from.combinations));
    line(fmt::format("    batches: {}", from.batches));
    line(fmt::format("    repetitions: {}", from.repetitions));
    line(fmt::format("    sizes: {}", quoted(from.sizes)));
  }

  void add_vertex(const Vertex& vertex) {
    std::string text = fmt::format("    {}: {{kind: {}", vertex.name, to_string(vertex.kind));
    if (vertex.kind == VertexKind::Gpu) text += fmt::format(", copy_engines: {}", vertex.copy_engines);
    if (vertex.memory) text += fmt::format(", memory: {}", to_string(*vertex.memory));
    if (!vertex.bus_id.empty()) text += fmt::format(", bus_id: {}", quoted(vertex.bus_id));
    if (!vertex.uuid.empty()) text += fmt::format(", uuid: {}", quoted(vertex.uuid));
    if (!vertex.domain.empty()) text += fmt::format(", domain: {}", vertex.domain);
    line(text + "}");
  }

  void add_links() {
    const auto links = machine_.links();
    for (std::size_t i = 0; i < links.size(); ++i) {
      const Link& link = links[i];
      std::string text = fmt::format("    - {{from: {}, to: {}, bandwidth: {}", name(link.from), name(link.to),
                                     bandwidth_text(link.bandwidth, link.theoretical));
      if (i + 1 < links.size() && links[i + 1].from == link.to && links[i + 1].to == link.from) {
        const Link& back = links[++i];
        text += ", back: " + bandwidth_text(back.bandwidth, back.theoretical);
      }
      line(text + "}");
    }
  }

  void add_shared() {
    if (!machine_.shared().empty()) line("  shared:");
    for (const SharedCapacity& shared : machine_.shared()) {
      line(fmt::format("    - name: {}", shared.name));
      line(fmt::format("      capacity: {}", bandwidth_text(shared.capacity)));
      std::vector<std::string> members;
      for (const CapacityMember& member : shared.members) {
        const Link& link = machine_.link(member.link);
        members.push_back(fmt::format("{{from: {}, to: {}{}}}", name(link.from), name(link.to),
                                      member.cost == 1 ? "" : fmt::format(", cost: {}", member.cost)));
      }
      line(fmt::format("      members: [{}]", joined(members)));
    }
  }

  void add_options() {
    const SharingWeights& weights = machine_.weights();
    line(fmt::format("  weights: {{h2d: {}, d2h: {}, peer: {}}}", weights.h2d, weights.d2h, weights.peer));
    line(fmt::format("  peer_access: {}", peer_access_text()));
    add_setup(machine_.setup());
    line(fmt::format("  margin: {{relative: {}, absolute: {}}}", machine_.margin().relative,
                     to_string(machine_.margin().absolute)));
    if (machine_.spread() > 0) line(fmt::format("  spread: {}", machine_.spread()));
    line(fmt::format("  staging: {{chunk: {}}}", to_string(machine_.staging_chunk())));
    if (machine_.gate() != kGateKinds.front()) line(fmt::format("  gate: {}", to_string(machine_.gate())));
  }

  void add_setup(const SetupTimes& setup) {
    const CopyCosts& copies = setup.transfer;
    const bool same = std::all_of(copies.classes.begin(), copies.classes.end(),
                                  [&](const CopyCost& cost) { return cost == copies.classes.front(); });
    std::string rest;
    for (const NamedCost& named : kFurtherCosts)
      if (setup.*named.cost != Cost{}) rest += fmt::format(", {}: {}", named.key, cost_text(setup.*named.cost));
    if (same) {
      line(fmt::format("  setup: {{batch: {}, transfer: {}{}}}", cost_text(setup.batch),
                       copy_cost_text(copies.classes.front()), rest));
      return;
    }
    line("  setup:");
    line(fmt::format("    batch: {}", cost_text(setup.batch)));
    line("    transfer:");
    for (const CopyKind route : kCopyKinds)
      if (copies.of(route) != CopyCost{})
        line(fmt::format("      {}: {}", to_string(route), copy_cost_text(copies.of(route))));
    for (const NamedCost& named : kFurtherCosts)
      if (setup.*named.cost != Cost{}) line(fmt::format("    {}: {}", named.key, cost_text(setup.*named.cost)));
  }

  [[nodiscard]] static std::string cost_text(const Cost& cost) {
    if (cost.nominal == cost.guaranteed) return to_string(cost.nominal);
    return fmt::format("{{nominal: {}, guaranteed: {}}}", to_string(cost.nominal), to_string(cost.guaranteed));
  }

  [[nodiscard]] static std::string copy_cost_text(const CopyCost& cost) {
    if (!cost.small && cost.first == Cost{}) return cost_text(cost.each);
    std::string text =
        fmt::format("nominal: {}, guaranteed: {}", to_string(cost.each.nominal), to_string(cost.each.guaranteed));
    if (cost.first != Cost{}) text += fmt::format(", first: {}", cost_text(cost.first));
    if (cost.small)
      text += fmt::format(", below: {}, bandwidth: {}", to_string(cost.below), bandwidth_text(*cost.small));
    return fmt::format("{{{}}}", text);
  }

  [[nodiscard]] std::string peer_access_text() const {
    switch (machine_.peer_access().mode) {
      case PeerAccess::Mode::All: return "all";
      case PeerAccess::Mode::None: return "none";
      case PeerAccess::Mode::SameDomain: return "same_domain";
      case PeerAccess::Mode::Pairs: break;
    }
    std::vector<std::string> pairs;
    for (const auto& [from, to] : machine_.peer_access().pairs)
      pairs.push_back(fmt::format("[{}, {}]", name(from), name(to)));
    return fmt::format("[{}]", joined(pairs));
  }

  void add_table(const MeasuredTable& table) {
    if (!table.symmetric().empty()) line("  symmetric:");
    for (const auto& group : table.symmetric()) {
      std::vector<std::string> names;
      for (const std::uint32_t position : group) names.push_back(gpu(position));
      line(fmt::format("    - [{}]", joined(names)));
    }
    line("  table:");
    for (const PortRates& entry : table.entries()) {
      std::vector<std::string> fields;
      for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost})
        if (const std::string rates = rates_text(entry, direction); !rates.empty())
          fields.push_back(fmt::format("{}: {{{}}}", to_string(direction), rates));
      if (entry.source == RateSource::Interpolated) fields.emplace_back("source: interpolated");
      line(fmt::format("    - {{{}}}", joined(fields)));
    }
  }

  [[nodiscard]] std::string rates_text(const PortRates& entry, Direction direction) const {
    std::vector<std::string> rates;
    const auto positions = positions_of(entry.streams);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const CopyPort stream = CopyPort::at(positions[i]);
      if (stream.direction == direction)
        rates.push_back(fmt::format("{}: {}", gpu(stream.gpu), to_string(GBps{entry.rates[i]})));
    }
    return joined(rates);
  }

  const Topology& machine_;
  std::string text_;
};

}  // namespace

std::string machine_yaml(const Topology& machine) { return Writer(machine).text(); }

}  // namespace tutti::internal
