#include "model/sharing/compile_machine.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/faults.hpp"
#include "model/machine/machine_fields.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/background_load.hpp"
#include "model/sharing/below_table.hpp"
#include "model/sharing/lower_capacity.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

/// "h2d gpu0 gpu1, d2h gpu2, gpu0 -> gpu1".
std::string names_of(const Topology& machine, const PortSet& ports) {
  std::string text;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : ", ") + words; };
  for (const Direction direction : {Direction::HostToDevice, Direction::DeviceToHost}) {
    std::string names;
    for (const PortId port : ports)
      if (is_of_first_memory(machine, port) && CopyPort::at(port).direction == direction)
        names += " " + machine.vertex(machine.gpus()[CopyPort::at(port).gpu]).name;
    if (!names.empty()) add(to_string(direction) + names);
  }
  for (const PortId port : ports) {
    if (is_of_first_memory(machine, port)) continue;
    const auto [from, to] = ends_of(machine, port);
    add(machine.vertex(from).name + " -> " + machine.vertex(to).name);
  }
  return text;
}

/// Sentences on the bandwidths that were lowered.
std::vector<Error> notes_on(const Topology& machine, std::span<const double> before, const BelowTable& below) {
  constexpr double kNotWorthAWord = 1 - 1e-3;  // of what it was; the last digit of a file is less
  std::vector<Error> notes;
  for (const BelowTable::Reason& why : below.reasons()) {
    const double was = before[why.capacity.index()];
    const double now = machine.capacities(Basis::Guaranteed)[why.capacity.index()];
    if (now > was * kNotWorthAWord) continue;
    Error& note = notes.emplace_back();
    note.message = fmt::format(
        "with [{}] active the table gives {} {:.4g} GB/s, and the links guarantee it {:.4g}; {} counts as guaranteed "
        "{:.4g} GB/s in place of {:.4g}; write that there, or measure the row again",
        names_of(machine, why.ports), names_of(machine, PortSet(why.port)), why.table, why.graph,
        machine.capacity_name(why.capacity), now, was);
    note.field = path_of("table", machine.table()->row(why.ports) - 1);
  }
  return notes;
}

/// The combination of the table that asks most of a link.
struct MostAsked {
  double load = 0;  ///< GB/s
  double part = 0;  ///< of the link's nominal bandwidth
  const PortRates* row = nullptr;
};

/// Sentences on rows that are clearly above what the links carry: each row counts at the link that it exceeds most, and
/// each link has one sentence, on its worst row. Shared capacities are left out: they are fitted to many rows at once,
/// and single rows of sound measurements are above them by more.
std::vector<Error> notes_on_rows_above(const Topology& machine) {
  constexpr double kClearlyAbove = 1.05;  // fitted links are off by less
  const auto links = machine.capacities(Basis::Nominal).first(machine.links().size());
  std::vector<MostAsked> most(links.size());
  for (const PortRates& row : machine.table()->entries()) {
    if (!can_be_active(machine, row.ports)) continue;
    const std::vector<PortId> ports = list_of(row.ports);
    const std::vector<double> load = loads_of(machine, links_of(machine, ports), row.rates);
    std::size_t worst = 0;
    for (std::size_t l = 1; l < links.size(); ++l)
      if (load[l] / links[l] > load[worst] / links[worst]) worst = l;
    const double part = load[worst] / links[worst];
    if (part > std::max(kClearlyAbove, most[worst].part)) most[worst] = {load[worst], part, &row};
  }
  std::vector<Error> notes;
  for (std::size_t l = 0; l < most.size(); ++l) {
    if (most[l].row == nullptr) continue;
    Error& note = notes.emplace_back();
    note.message = fmt::format(
        "with [{}] active the table puts {:.4g} GB/s on {}, whose nominal bandwidth is {:.4g}; one of the two is "
        "wrong, and predictions use the first",
        names_of(machine, most[l].row->ports), most[l].load, machine.capacity_name(CapacityId(l)), links[l]);
    note.field = path_of("table", machine.table()->row(most[l].row->ports) - 1);
  }
  return notes;
}

Error note_on_margin(double relative) {
  return {ErrorCode::InvalidInput,
          fmt::format("a margin of {:g} is {:g} %, which makes each bound {:g} times as long; did you mean {:g}?",
                      relative, 100 * relative, 1 + relative, relative / 100),
          {},
          "margin.relative"};
}

/// Links that are said to be faster than their standard allows.
std::vector<Error> notes_on_links(std::span<const LinkSpec> links) {
  std::vector<Error> notes;
  const auto look = [&](const LinkBandwidth& bandwidth, std::size_t link, std::string_view key) {
    if (!bandwidth.theoretical || bandwidth.nominal <= *bandwidth.theoretical) return;
    Error& note = notes.emplace_back();
    note.message = fmt::format(
        "this link moves {:.4g} GB/s where its standard allows {:.4g}; one of the two is wrong, and plans use the "
        "first",
        bandwidth.nominal.value, bandwidth.theoretical->value);
    note.field = path_of(path_of("links", link), key);
  };
  for (std::size_t i = 0; i < links.size(); ++i) {
    look(links[i].bandwidth, i, "bandwidth");
    if (links[i].back) look(*links[i].back, i, "back");
  }
  return notes;
}

/// Lowers guaranteed bandwidths until the graph guarantees no more than any row of the table, and notes where a row is
/// clearly above the graph.
Topology held_below_table(Topology machine) {
  if (machine.table() == nullptr) return machine;
  const auto capacities = machine.capacities(Basis::Guaranteed);
  const std::vector<double> before(capacities.begin(), capacities.end());
  BelowTable below(machine);
  machine = below.lower(std::move(machine));
  std::vector<Error> notes = notes_on(machine, before, below);
  std::ranges::move(notes_on_rows_above(machine), std::back_inserter(notes));
  return machine.with_notes(std::move(notes));
}

}  // namespace

Expected<Topology> compile(MachineSpec spec, Faults faults) {
  std::vector<Error> said = notes_on_links(spec.links);
  if (spec.margin.relative > 1) said.push_back(note_on_margin(spec.margin.relative));
  auto machine =
      Topology::assemble(std::move(spec), std::move(faults)).map(held_below_table).and_then(beside_background);
  if (!machine || said.empty()) return machine;
  std::vector<Error> notes(machine->notes().begin(), machine->notes().end());
  std::ranges::move(said, std::back_inserter(notes));
  return machine->with_notes(std::move(notes));
}

MachineSpec graph_of(const Topology& machine) {
  MachineSpec spec = machine.spec();
  spec.symmetric.clear();
  spec.table.clear();
  return spec;
}

MachineSpec left_graph_of(const Topology& machine) {
  MachineSpec spec = graph_of(machine);
  spec.background.clear();
  const auto left = [&](std::size_t c) {
    return Bandwidth{GBps{machine.capacities(Basis::Nominal)[c]}, GBps{machine.capacities(Basis::Guaranteed)[c]}};
  };
  const std::size_t links = spec.links.size();
  for (std::size_t l = 0; l < links; ++l) spec.links[l].bandwidth = {left(l), spec.links[l].bandwidth.theoretical};
  for (std::size_t s = 0; s < spec.shared.size(); ++s) spec.shared[s].capacity = left(links + s);
  return spec;
}

Topology without_background(const Topology& machine) {
  if (machine.background().empty()) return machine;
  MachineSpec spec = machine.spec();
  spec.background.clear();
  return compile(std::move(spec)).value();
}

MachineSpec with_copy_engines(MachineSpec spec, std::span<const int> engines) {
  auto next = engines.begin();
  for (Vertex& vertex : spec.vertices)
    if (vertex.kind == VertexKind::Gpu && next != engines.end()) vertex.copy_engines = *next++;
  return spec;
}

Expected<Topology> machine_from(const Node& document) {
  const auto assembled = [](MachineFile file, Faults faults) {
    return compile(std::move(file.machine), std::move(faults));
  };
  return compiled<MachineFile>(document, assembled, "machine").map([&](const Topology& machine) {
    std::vector<Error> notes(machine.notes().begin(), machine.notes().end());
    return machine.with_notes(at_places(std::move(notes), *document.find("machine")));
  });
}

Expected<Topology> load_machine(const std::string& path) {
  return read_document(path).and_then([](const Node& document) { return machine_from(document); });
}

}  // namespace tutti::internal
