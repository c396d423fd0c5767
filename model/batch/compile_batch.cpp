#include "model/batch/compile_batch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/base/suggestion.hpp"
#include "model/batch/batch_fields.hpp"
#include "model/batch/choose_methods.hpp"

namespace tutti::internal {
namespace {

/// Resolves one stream; a fault leaves its part of the result empty.
class StreamCompiler {
 public:
  StreamCompiler(const StreamSpec& spec, const Topology& machine, const Parameters& parameters, Faults& faults,
                 std::string path)
      : spec_(spec), machine_(machine), parameters_(parameters), faults_(faults), path_(std::move(path)) {}

  CommandStream compile(std::size_t position) {
    CommandStream stream;
    stream.name = spec_.name.empty() ? fmt::format("stream{}", position) : spec_.name;
    stream.place = spec_.place;
    const bool has_transfer = !spec_.from.empty() || !spec_.to.empty() || spec_.size || !spec_.route.empty() ||
                              !spec_.via.empty() || spec_.method != CopyMethod::Automatic || spec_.rows != 1 ||
                              spec_.pitch;
    if (has_transfer) stream.transfer = transfer();
    if (spec_.kernel) stream.kernel = kernel(*spec_.kernel, stream.transfer);
    return stream;
  }

 private:
  void fault(std::string_view field, std::string message) { faults_.add(path_of(path_, field), std::move(message)); }

  VertexId vertex(const std::string& name, std::string_view field) {
    if (const auto vertex = machine_.find_vertex(name)) return *vertex;
    std::vector<std::string_view> names;
    for (const Vertex& known : machine_.vertices()) names.push_back(known.name);
    const std::string guess = suggestion(name, names);
    fault(field, fmt::format("machine '{}' has no vertex '{}';{}", machine_.name(), name,
                             guess.empty() ? " use one of its names" : guess));
    return {};
  }

  Bytes size(const SizeSpec& size) {
    if (size.parameter.empty()) return size.bytes;
    const auto parameter = parameters_.find(size.parameter);
    if (parameter == parameters_.end()) {
      if (faults_.unread("parameters")) return {};
      std::vector<std::string_view> names;
      for (const auto& [known, bytes] : parameters_) names.push_back(known);
      const std::string guess = suggestion(size.parameter, names);
      const std::string remedy =
          guess.empty() ? " write a size like 32 MB, or add it to 'parameters' of a task set" : guess;
      return fault("size", fmt::format("no parameter '{}' is defined;{}", size.parameter, remedy)), Bytes{};
    }
    if (size.percent.empty()) return parameter->second;
    const auto share = parse_percentage(size.percent, parameter->second);
    if (!share) return fault("size", share.error().message), Bytes{};
    return *share;
  }

  /// A route, given by its vertices, as links.
  std::vector<LinkId> route() {
    std::vector<LinkId> links;
    if (spec_.route.size() == 1) fault("route", "a route has at least its two ends; write [mem0, cpu0, gpu0]");
    for (std::size_t i = 0; i + 1 < spec_.route.size(); ++i) {
      const std::string field = path_of("route", i + 1);
      const auto from = machine_.find_vertex(spec_.route[i]);
      const auto to = machine_.find_vertex(spec_.route[i + 1]);
      if (i == 0 && !from) vertex(spec_.route[0], "route[0]");
      if (!to) vertex(spec_.route[i + 1], field);
      if (!from || !to) continue;
      if (const auto link = machine_.find_link(*from, *to))
        links.push_back(*link);
      else
        fault(field, fmt::format("no link leads from '{}' to '{}'; a route follows the machine's links", spec_.route[i],
                                 spec_.route[i + 1]));
    }
    return links;
  }

  VertexId end(const std::string& name, std::string_view field) {
    if (!name.empty()) return vertex(name, field);
    return fault("", fmt::format("'{}' is missing in a stream; add it", field)), VertexId{};
  }

  Transfer transfer() {
    Transfer transfer;
    transfer.from = end(spec_.from, "from");
    transfer.to = end(spec_.to, "to");
    if (spec_.size)
      transfer.size = size(*spec_.size);
    else
      fault("", "'size' is missing in a stream; add it");
    transfer.route = route();
    if (!spec_.via.empty()) transfer.via = vertex(spec_.via, "via");
    transfer.method = spec_.method;
    if (spec_.rows >= 1) transfer.rows.count = spec_.rows;
    if (spec_.pitch && *spec_.pitch < Bytes{1}) fault("pitch", "a pitch is above 0; write the distance of two rows");
    transfer.rows.pitch = spec_.pitch.value_or(Bytes{});
    return transfer;
  }

  Duration time(const KernelSpec& kernel, const std::optional<Transfer>& transfer) {
    if (kernel.time.has_value() == kernel.throughput.has_value())
      return fault("kernel", "a kernel has either 'time' or 'throughput'; write one of the two"), Duration{};
    if (kernel.time) return *kernel.time;
    if (!transfer) {
      if (!faults_.unread(path_))
        fault("kernel.throughput", "'throughput' needs a transfer to count its bytes; write 'time'");
      return Duration{};
    }
    if (!(kernel.throughput->value > 0))
      return fault("kernel.throughput", "this throughput is not above 0; write a rate like 10 GB/s"), Duration{};
    return round_up_ns(static_cast<double>(transfer->size.count) / kernel.throughput->value);
  }

  Kernel kernel(const KernelSpec& spec, const std::optional<Transfer>& transfer) {
    Kernel kernel;
    kernel.time = time(spec, transfer);
    kernel.worst = spec.worst.value_or(kernel.time);
    kernel.name = spec.name;
    kernel.capture = spec.capture;
    if (!spec.on.empty()) {
      kernel.on = vertex(spec.on, "kernel.on");
    } else if (transfer) {
      kernel.on = transfer->to;
    } else if (!faults_.unread(path_)) {
      fault("kernel", "a kernel without a transfer needs a place; add 'on: gpu0'");
    }
    return kernel;
  }

  const StreamSpec& spec_;
  const Topology& machine_;
  const Parameters& parameters_;
  Faults& faults_;
  std::string path_;
};

}  // namespace

std::optional<Batch> compile_streams(std::span<const StreamSpec> streams, Merging merging, const Topology& machine,
                                     const Parameters& parameters, Faults& faults, const std::string& path) {
  std::vector<CommandStream> resolved;
  std::vector<char> sound;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::string at = path_of(path, i);
    const std::size_t before = faults.added();
    check_fields(streams[i], faults, at);
    resolved.push_back(StreamCompiler(streams[i], machine, parameters, faults, at).compile(i));
    sound.push_back(faults.added() == before && !faults.unread(at));
  }
  if (std::ranges::count(sound, false) > 0 || faults.unread(path)) {
    Batch::check(machine, resolved, sound, faults, path);
    return std::nullopt;
  }
  auto batch = Batch::make(machine, std::move(resolved), merging, path);
  if (!batch) return faults.add(std::move(batch.error())), std::nullopt;
  return *std::move(batch);
}

Expected<Batch> compile(const BatchSpec& spec, const Topology& machine, const Parameters& parameters, Faults faults) {
  auto batch = compile_streams(spec.streams, spec.merging, machine, parameters, faults, "streams");
  if (!faults.none()) return tl::unexpected(faults.error());
  return choose_methods(*std::move(batch), Basis::Nominal);
}

std::vector<Error> notes_on(std::span<const StreamSpec> streams, const Parameters& parameters,
                            const std::string& path) {
  std::vector<Error> notes;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (!streams[i].size) continue;
    const SizeSpec& size = *streams[i].size;
    const auto note = [&](std::string message) {
      Error said{ErrorCode::InvalidInput, std::move(message)};
      said.field = path_of(path_of(path, i), "size");
      notes.push_back(std::move(said));
    };
    const auto parameter = parameters.find(size.parameter);
    const Bytes whole = parameter == parameters.end() ? size.bytes : parameter->second;
    const bool is_share = !size.percent.empty();
    if (whole == Bytes{0} || (is_share && parse_percentage(size.percent, whole) == Bytes{0}))
      note("this transfer moves nothing; give it a size above 0, or leave it out");
    else if (is_share && parse_percentage(size.percent, Bytes{100}).value_or(Bytes{}) > Bytes{100})
      note(fmt::format("{}% of '{}' is more than all of it; a share is at most 100%", size.percent, size.parameter));
  }
  return notes;
}

BatchSpec spec_of(const Batch& batch) {
  const auto name = [&](VertexId vertex) { return batch.machine().vertex(vertex).name; };
  BatchSpec spec{.merging = batch.merging()};
  for (const CommandStream& stream : batch.streams()) {
    StreamSpec& written = spec.streams.emplace_back();
    written.name = stream.name;
    if (const auto& transfer = stream.transfer) {
      written.from = name(transfer->from);
      written.to = name(transfer->to);
      written.size = transfer->size;
      if (transfer->via) written.via = name(*transfer->via);
      if (!transfer->chosen) written.method = transfer->method;
      written.rows = transfer->rows.count;
      if (transfer->rows.pitch > Bytes{0}) written.pitch = transfer->rows.pitch;
      if (!transfer->route.empty()) written.route.push_back(written.from);
      for (const LinkId link : transfer->route) written.route.push_back(name(batch.machine().link(link).to));
    }
    if (const auto& kernel = stream.kernel) {
      written.kernel =
          KernelSpec{.on = name(kernel->on), .time = kernel->time, .name = kernel->name, .capture = kernel->capture};
      if (kernel->worst != kernel->time) written.kernel->worst = kernel->worst;
    }
  }
  return spec;
}

}  // namespace tutti::internal
