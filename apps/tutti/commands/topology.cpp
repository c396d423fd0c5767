#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/output_file.hpp"
#include "apps/table.hpp"
#include "apps/tutti/commands/command.hpp"
#include "apps/tutti/commands/file_kind.hpp"
#include "apps/tutti/commands/topology_detect.hpp"
#include "apps/tutti/commands/topology_import.hpp"
#include "apps/tutti/reports/report.hpp"
#include "apps/tutti/reports/setup_report.hpp"
#include "apps/tutti/reports/topology_output.hpp"
#include "apps/tutti/reports/topology_svg.hpp"
#include "model/base/joined.hpp"
#include "model/batch/batch_yaml.hpp"
#include "model/machine/ports.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/rate_residual.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kWorstShown = 10;

std::string rate_text(const std::optional<GBps>& rate) { return rate ? fmt::format("{:.2f}", rate->value) : "-"; }

std::string link_name(const Topology& machine, LinkId id) {
  const Link& link = machine.link(id);
  return machine.vertex(link.from).name + " -> " + machine.vertex(link.to).name;
}

std::string members_text(const Topology& machine, const SharedCapacity& shared) {
  std::vector<std::string> members;
  for (const CapacityMember& member : shared.members) {
    const std::string name = link_name(machine, member.link);
    members.push_back(member.cost == 1 ? name : fmt::format("{} x {}", name, member.cost));
  }
  return joined(members);
}

std::string route_text(const Topology& machine, std::span<const LinkId> route) {
  std::string text = machine.vertex(machine.link(route.front()).from).name;
  for (const LinkId link : route) text += " -> " + machine.vertex(machine.link(link).to).name;
  return text;
}

std::vector<std::string> device_names(const Topology& machine) {
  std::vector<std::string> names;
  for (const VertexId device : machine.devices()) names.push_back(machine.vertex(device).name);
  return names;
}

/// Columns of a capacity: its bandwidth, and beside background flows what they leave of it.
std::vector<std::string> bandwidth_columns(const Topology& machine, std::size_t capacity, const Bandwidth& bandwidth) {
  std::vector<std::string> columns{rate_text(bandwidth.nominal), rate_text(bandwidth.guaranteed)};
  if (machine.background().empty()) return columns;
  for (const Basis basis : {Basis::Nominal, Basis::Guaranteed})
    columns.push_back(rate_text(GBps{machine.capacities(basis)[capacity]}));
  return columns;
}

std::vector<std::string> bandwidth_titles(const Topology& machine) {
  std::vector<std::string> titles{"nominal GB/s", "guaranteed GB/s"};
  if (!machine.background().empty()) titles.insert(titles.end(), {"nominal left", "guaranteed left"});
  return titles;
}

std::vector<std::string> joined_columns(std::vector<std::string> first, const std::vector<std::string>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

void show_background(const Topology& machine) {
  if (const auto devices = device_names(machine); !devices.empty()) programs::print("\ndevices: {}\n", joined(devices));
  if (machine.background().empty()) return programs::print("\nbackground: none\n");
  programs::Table flows({"background", "nominal GB/s", "most GB/s"});
  for (const BackgroundFlow& flow : machine.background())
    flows.add({route_text(machine, flow.route), rate_text(flow.bandwidth.nominal), rate_text(flow.bandwidth.most)});
  programs::print("\n{}", flows.text());
}

/// What copies, computes and buffers: engines of GPUs, cores of cpus, threads of pageable memories.
void show_vertices(const Topology& machine) {
  const auto or_dash = [](const std::string& text) { return text.empty() ? std::string("-") : text; };
  if (!machine.gpus().empty()) {
    programs::Table gpus({"gpu", "copy engines", "serve", "memory", "bus id"});
    for (const std::size_t column : {2U, 4U}) gpus.align_left(column);
    for (const VertexId id : machine.gpus()) {
      const Vertex& gpu = machine.vertex(id);
      const std::string_view serve = gpu.copy_engines == 1             ? "both directions"
                                     : gpu.copy_engines < kPeerEngines ? "one direction each"
                                                                       : "one direction each, and copies between GPUs";
      gpus.add({gpu.name, fmt::to_string(gpu.copy_engines), std::string(serve),
                gpu.memory ? to_string(*gpu.memory) : "-", or_dash(gpu.bus_id)});
    }
    programs::print("\n{}", gpus.text());
  }
  for (const Vertex& vertex : machine.vertices()) {
    if (vertex.kind == VertexKind::Cpu)
      programs::print("{}: host work on {} core{}\n", vertex.name, vertex.cores, vertex.cores == 1 ? "" : "s");
    if (vertex.pageable)
      programs::print("{}: pageable, {} threads beside each copy engine, buffers of {}, without them below {}\n",
                      vertex.name, vertex.producers, to_string(vertex.buffer), to_string(vertex.crossover));
  }
}

std::string peer_text(const PeerSpec& peer) {
  switch (peer.mode) {
    case PeerMode::All: return "all GPUs";
    case PeerMode::None: return "none";
    case PeerMode::SameDomain: return "GPUs of the same PCIe domain";
    case PeerMode::Pairs: break;
  }
  std::vector<std::string> pairs;
  for (const auto& [a, b] : peer.pairs) pairs.push_back(a + " and " + b);
  return joined(pairs);
}

/// What a guarantee adds to the rates: costs of commands, the margin, how streams are held until their instants.
void show_guarantees(const Topology& machine) {
  programs::print("\nset-up\n{}", setup_text(machine.setup()));
  const Margin& margin = machine.margin();
  programs::print("margin: {:g} % and {}, added to the length of every batch\n", 100 * margin.relative,
                  to_string(margin.absolute));
  programs::print("gate: {}, on hardware\n", machine.spec().gate);
  if (const int sms = machine.spec().conductor_sms; sms > 0)
    programs::print(
        "where a GPU leads jobs that overlap: gates on {} multiprocessors of each GPU, kernels on the others\n", sms);
  programs::print("peer access: {}\n", peer_text(machine.spec().peer_access));
  programs::print("staged copies: chunks of {}\n", to_string(machine.staging_chunk()));
  if (machine.spread() > 0) programs::print("spread: rates vary by {:g} % from run to run\n", 100 * machine.spread());
}

/// The measured rows of the table beside the rates of the graph alone, the largest deviation first.
/// @param machine  without background flows, as it was measured
std::vector<Residual> residuals_of(const Topology& machine) {
  std::vector<Residual> residuals;
  if (machine.table() == nullptr) return residuals;
  const Topology graph = compile(graph_of(machine)).value();
  SteadyRates steady;
  for (const PortRates& row : machine.table()->entries()) {
    if (row.source != RateSource::Table) continue;
    residuals.push_back({row.ports, row.rates, steady.find(graph, Basis::Nominal, row.ports).rates, row.source});
  }
  return worst_first(std::move(residuals));
}

/// "h2d 0 1, d2h 2"; with copies of further memories or between GPUs: "mem0 -> gpu0, gpu0 -> gpu1", in the order of
/// ports.
std::string copies_text(const Topology& machine, const PortSet& ports) {
  if (is_of_first_memory(machine, ports.last())) return ports_text(ports);
  std::vector<std::string> copies;
  for (const PortId port : ports) {
    const auto [from, to] = ends_of(machine, port);
    copies.push_back(machine.vertex(from).name + " -> " + machine.vertex(to).name);
  }
  return fmt::to_string(fmt::join(copies, ", "));
}

/// The rates in the order of that text.
std::string copies_rates_text(const Topology& machine, const PortSet& ports, const std::vector<double>& rates) {
  if (is_of_first_memory(machine, ports.last())) return rates_text(ports, rates);
  return fmt::format("{:.1f}", fmt::join(rates, " "));
}

/// @param machine  without background flows, as it was measured
void show_table(const Topology& machine) {
  if (machine.table() == nullptr) return;
  const MeasuredTable& measured = *machine.table();
  for (const auto& group : measured.symmetric()) {
    std::vector<std::string> names;
    for (const std::uint32_t gpu : group) names.push_back(machine.vertex(machine.gpus()[gpu]).name);
    programs::print("symmetric: {}\n", joined(names));
  }
  const auto residuals = residuals_of(machine);
  programs::print("table: {} combinations measured, {} interpolated\n", residuals.size(),
                  measured.entries().size() - residuals.size());
  if (residuals.empty()) return;
  programs::Table worst({"where the graph alone is furthest off", "measured GB/s", "graph GB/s", "off by"});
  for (const std::size_t column : {1U, 2U}) worst.align_left(column);
  for (std::size_t i = 0; i < std::min(kWorstShown, residuals.size()); ++i)
    worst.add({copies_text(machine, residuals[i].streams),
               copies_rates_text(machine, residuals[i].streams, residuals[i].measured),
               copies_rates_text(machine, residuals[i].streams, residuals[i].predicted),
               fmt::format("{:+.1f} %", 100 * residuals[i].worst())});
  programs::print("\n{}", worst.text());
}

void show_text(const Topology& machine) {
  programs::print("{}: {} vertices, {} links, {} shared capacities\n", machine.name(), machine.vertices().size(),
                  machine.links().size(), machine.shared().size());
  if (const auto& from = machine.spec().provenance)
    programs::print("calibrated from {} combinations and {} batches of {}, date {}, fingerprint {}\n",
                    from->combinations, from->batches, from->host.empty() ? "an unnamed host" : from->host, from->date,
                    from->fingerprint);
  programs::Table links(joined_columns({"link", "theoretical GB/s"}, bandwidth_titles(machine)));
  for (std::size_t i = 0; i < machine.links().size(); ++i) {
    const LinkBandwidth& bandwidth = machine.links()[i].bandwidth;
    links.add(joined_columns({link_name(machine, LinkId(i)), rate_text(bandwidth.theoretical)},
                             bandwidth_columns(machine, i, bandwidth)));
  }
  programs::print("\n{}", links.text());
  if (!machine.shared().empty()) {
    const auto titles = joined_columns({"shared capacity"}, bandwidth_titles(machine));
    programs::Table shared(joined_columns(titles, {"links x cost"}));
    shared.align_left(titles.size());
    for (std::size_t s = 0; s < machine.shared().size(); ++s) {
      const SharedCapacity& capacity = machine.shared()[s];
      const auto columns = bandwidth_columns(machine, machine.links().size() + s, capacity.capacity);
      shared.add(joined_columns(joined_columns({capacity.name}, columns), {members_text(machine, capacity)}));
    }
    programs::print("\n{}", shared.text());
  }
  show_vertices(machine);
  show_background(machine);
  show_guarantees(machine);
  programs::print("weights: h2d {}, d2h {}, peer {}\n", machine.weights().h2d, machine.weights().d2h,
                  machine.weights().peer);
  show_table(without_background(machine));
}

std::vector<LinkOutput> links_output(const Topology& machine) {
  std::vector<LinkOutput> links;
  for (std::size_t i = 0; i < machine.links().size(); ++i) {
    const Link& link = machine.links()[i];
    links.push_back({machine.vertex(link.from).name, machine.vertex(link.to).name, link.bandwidth.theoretical,
                     link.bandwidth.nominal, link.bandwidth.guaranteed, machine.capacities(Basis::Nominal)[i],
                     machine.capacities(Basis::Guaranteed)[i]});
  }
  return links;
}

std::vector<SharedOutput> shared_output(const Topology& machine) {
  std::vector<SharedOutput> shared;
  for (std::size_t s = 0; s < machine.shared().size(); ++s) {
    const SharedCapacity& capacity = machine.shared()[s];
    const std::size_t c = machine.links().size() + s;
    SharedOutput& row = shared.emplace_back(
        SharedOutput{capacity.name, capacity.capacity.nominal, capacity.capacity.guaranteed,
                     machine.capacities(Basis::Nominal)[c], machine.capacities(Basis::Guaranteed)[c]});
    for (const CapacityMember& member : capacity.members)
      row.members.push_back({machine.vertex(machine.link(member.link).from).name,
                             machine.vertex(machine.link(member.link).to).name, member.cost});
  }
  return shared;
}

std::vector<BackgroundOutput> background_output(const Topology& machine) {
  std::vector<BackgroundOutput> flows;
  for (std::size_t i = 0; i < machine.background().size(); ++i) {
    const BackgroundFlow& flow = machine.background()[i];
    const BackgroundSpec& spec = machine.spec().background[i];
    BackgroundOutput& row = flows.emplace_back(
        BackgroundOutput{spec.from, spec.to, flow.bandwidth.nominal, flow.bandwidth.most, {spec.from}});
    for (const LinkId link : flow.route) row.route.push_back(machine.vertex(machine.link(link).to).name);
  }
  return flows;
}

TopologyShowOutput show_output(const Topology& machine) {
  TopologyShowOutput output{{},
                            machine.name(),
                            links_output(machine),
                            shared_output(machine),
                            device_names(machine),
                            background_output(machine)};
  for (const Residual& residual : residuals_of(without_background(machine)))
    output.residuals.push_back(
        {copies_text(machine, residual.streams), residual.measured, residual.predicted, residual.worst()});
  return output;
}

struct ShowCommand {
  std::string path;
  std::string svg;
  std::string batch;
  bool json = false;
};

/// Draws the machine.
Expected<void> draw(const ShowCommand& command, const Topology& machine) {
  if (command.svg.empty()) return {};
  std::optional<Batch> batch;
  if (!command.batch.empty()) {
    auto loaded = load_batch_aloud(command.batch, command.path);
    if (!loaded) return tl::unexpected(std::move(loaded.error()));
    batch = *std::move(loaded);
  }
  return programs::write_file(command.svg, topology_svg(machine, batch));
}

int show(const ShowCommand& command) {
  const auto machine = load_machine_aloud(command.path);
  if (!machine) return report_error(machine.error());
  if (const auto drawn = draw(command, *machine); !drawn) return report_error(drawn.error());
  if (command.json) {
    programs::print("{}", json_report(json_of(show_output(*machine))));
  } else {
    show_text(*machine);
  }
  return kOk;
}

}  // namespace

void add_topology(programs::CommandLine& program) {
  programs::CommandLine command = program.command("topology", "what a machine consists of");
  command.needs_command();
  programs::CommandLine show_command = command.command(
      "show",
      "links and shared capacities with their bandwidths, engines, background load, what a guarantee adds (set-up, "
      "margin, gate), and where the graph is furthest off");
  command.footer(
      "Examples:\n  tutti topology show configs/machines/h200x4.yaml\n"
      "  tutti topology detect --out machine.yaml\n"
      "  tutti topology import host.xml --out machine.yaml");
  show_command.footer("Example:\n  tutti topology show configs/machines/h200x4.yaml --svg h200x4.svg");
  const auto options = std::make_shared<ShowCommand>();
  reads(show_command.add("file", &options->path, "machine file"), {FileKind::Machine}).required();
  programs::Option svg = show_command.add("--svg", &options->svg, "draw the machine into this file").output();
  reads(show_command.add("--batch", &options->batch, "colour links by what this batch uses of them"), {FileKind::Batch})
      .needs(svg);
  show_command.add("--json", &options->json, "print one JSON object");
  show_command.runs([options] { return show(*options); });
  add_topology_detect(command);
  add_topology_import(command);
}

}  // namespace tutti::internal
