#include "model/batch_yaml.hpp"

#include <cmath>

#include <fmt/format.h>

#include "model/document.hpp"
#include "model/topology_yaml.hpp"

namespace tutti::internal {
namespace {

VertexId read_vertex(const Node& node, const Topology& machine) {
  const std::string name = read_id(node);
  if (const auto vertex = machine.find_vertex(name)) return *vertex;
  std::vector<std::string_view> names;
  for (const Vertex& vertex : machine.vertices()) names.push_back(vertex.name);
  const std::string guess = suggestion(name, names);
  fail(node.place, fmt::format("machine '{}' has no vertex '{}';{}", machine.name(), name,
                               guess.empty() ? " use one of its names" : guess));
}

/// "32 MB", "image", or "40% of image".
Bytes read_size(const Node& node, const Parameters& parameters) {
  const std::string& text = read_text(node);
  const auto lookup = [&](std::string_view name) -> Bytes {
    if (const auto found = parameters.find(name); found != parameters.end()) return found->second;
    std::vector<std::string_view> names;
    for (const auto& [known, size] : parameters) names.push_back(known);
    const std::string guess = suggestion(name, names);
    fail(node.place,
         fmt::format("no parameter '{}' is defined;{}", name,
                     guess.empty() ? " write a size like 32 MB, or add it to 'parameters' of a task set" : guess));
  };
  if (const std::size_t of = text.find("% of "); of != std::string::npos) {
    const std::string_view whole(text);
    return value_at(node.place, parse_percentage(whole.substr(0, of), lookup(whole.substr(of + 5))));
  }
  const bool word = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) != 0 || text[0] == '_');
  return word ? lookup(text) : read_bytes(node);
}

/// A route, given by its vertices, as links.
std::vector<LinkId> read_route(const Node& node, const Topology& machine) {
  const auto items = read_sequence(node, "'route'");
  if (items.size() < 2) fail(node.place, "a route has at least its two ends; write [mem0, cpu0, gpu0]");
  std::vector<LinkId> route;
  VertexId at = read_vertex(items.front(), machine);
  for (const Node& item : items.subspan(1)) {
    const VertexId next = read_vertex(item, machine);
    const auto link = machine.find_link(at, next);
    if (!link) {
      fail(item.place, fmt::format("no link leads from '{}' to '{}'; a route follows the machine's links",
                                   machine.vertex(at).name, machine.vertex(next).name));
    }
    route.push_back(*link);
    at = next;
  }
  return route;
}

Transfer read_transfer(const Fields& stream, const Topology& machine, const Parameters& parameters) {
  Transfer transfer;
  transfer.from = read_vertex(stream.require("from"), machine);
  transfer.to = read_vertex(stream.require("to"), machine);
  transfer.size = read_size(stream.require("size"), parameters);
  if (const Node* route = stream.find("route")) transfer.route = read_route(*route, machine);
  if (const Node* via = stream.find("via")) transfer.via = read_vertex(*via, machine);
  return transfer;
}

Duration read_kernel_time(const Fields& kernel, const std::optional<Transfer>& transfer) {
  const Node* time = kernel.find("time");
  const Node* throughput = kernel.find("throughput");
  if ((time == nullptr) == (throughput == nullptr)) {
    fail(kernel.place(), "a kernel has either 'time' or 'throughput'; write one of the two");
  }
  if (time != nullptr) return read_duration(*time);
  if (!transfer) fail(throughput->place, "'throughput' needs a transfer to count its bytes; write 'time'");
  return round_up_ns(static_cast<double>(transfer->size.count) / read_rate(*throughput).value);
}

Kernel read_kernel(const Node& node, const Topology& machine, const std::optional<Transfer>& transfer) {
  const Fields fields(node, "a kernel", {"time", "throughput", "worst", "on", "name"});
  Kernel kernel;
  kernel.time = read_kernel_time(fields, transfer);
  const Node* worst = fields.find("worst");
  kernel.worst = worst == nullptr ? kernel.time : read_duration(*worst);
  if (const Node* name = fields.find("name")) kernel.name = read_id(*name);
  if (const Node* on = fields.find("on")) {
    kernel.on = read_vertex(*on, machine);
  } else if (transfer) {
    kernel.on = transfer->to;
  } else {
    fail(node.place, "a kernel without a transfer needs a place; add 'on: gpu0'");
  }
  return kernel;
}

CommandStream read_stream(const Node& node, std::size_t position, const Topology& machine,
                          const Parameters& parameters) {
  const Fields fields(node, "a stream", {"name", "from", "to", "size", "kernel", "route", "via"});
  CommandStream stream;
  const Node* name = fields.find("name");
  stream.name = name == nullptr ? fmt::format("stream{}", position) : read_id(*name);
  stream.place = node.place;
  bool transfer = false;
  for (const std::string_view key : {"from", "to", "size", "route", "via"}) transfer |= fields.find(key) != nullptr;
  if (transfer) stream.transfer = read_transfer(fields, machine, parameters);
  if (const Node* kernel = fields.find("kernel")) stream.kernel = read_kernel(*kernel, machine, stream.transfer);
  return stream;
}

}  // namespace

std::vector<CommandStream> read_streams(const Node& node, const Topology& machine, const Parameters& parameters) {
  std::vector<CommandStream> streams;
  for (const Node& item : read_sequence(node, "'streams'")) {
    streams.push_back(read_stream(item, streams.size(), machine, parameters));
  }
  return streams;
}

Merging read_merging(const Node* node) {
  if (node == nullptr) return Merging::On;
  if (node->kind == Node::Kind::Scalar && node->text == to_string(Merging::Transitive)) return Merging::Transitive;
  return read_switch(*node) ? Merging::On : Merging::Off;
}

std::optional<Topology> read_named_machine(const Node* machine, const std::optional<std::string>& override_path) {
  if (override_path) return value_at(Place{}, load_machine(*override_path));
  if (machine == nullptr) return std::nullopt;
  auto loaded = load_machine(path_beside(machine->place.file, read_text(*machine)));
  if (!loaded && loaded.error().place.line == 0) {  // the whole file: point at its name
    fail(machine->place, fmt::format("{}: {}", loaded.error().place.file, loaded.error().message));
  }
  return value_at(machine->place, std::move(loaded));
}

Expected<BatchFile> load_batch(const std::string& path, const std::optional<std::string>& machine_path) {
  return read_document(path).and_then([&](const Node& document) {
    return reading([&] {
      const Fields fields(document, "a batch file", {"version", "machine", "merging", "streams"});
      auto machine = read_named_machine(fields.find("machine"), machine_path);
      if (!machine) fail(document.place, "'machine' is missing; add it or give --machine");
      const Node* merging = fields.find("merging");
      auto streams = read_streams(fields.require("streams"), *machine, {});
      auto batch =
          value_at(fields.require("streams").place, Batch::make(*machine, std::move(streams), read_merging(merging)));
      return BatchFile{*std::move(machine), std::move(batch)};
    });
  });
}

}  // namespace tutti::internal
