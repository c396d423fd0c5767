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
  StreamCompiler(const StreamSpec& spec, const StreamWords& words, Faults& faults, std::string path)
      : spec_(spec), machine_(words.machine), words_(words), faults_(faults), path_(std::move(path)) {}

  CommandStream compile(std::size_t position) {
    CommandStream stream;
    stream.name = spec_.name.empty() ? fmt::format("stream{}", position) : spec_.name;
    stream.place = spec_.place;
    if (has_transfer()) {
      const std::size_t before = faults_.added();
      if (is_by_name())
        stream.copied = copied();
      else if (spec_.at != SizeSpec{} || spec_.to_at != SizeSpec{})
        fault(spec_.at != SizeSpec{} ? "at" : "to_at", "'at' and 'to_at' are for 'copy'; leave them out beside 'from'");
      stream.transfer = transfer(stream.copied);
      is_sound_ = faults_.added() == before && (stream.copied || !is_by_name());
    }
    stream.kernel = kernel(stream.transfer);
    return stream;
  }
  /// Whether all that the stream names is known; where it is not, there need not be a fault of the stream's own.
  [[nodiscard]] bool is_complete() const { return is_complete_; }

 private:
  void fault(std::string_view field, std::string message) { faults_.add(path_of(path_, field), std::move(message)); }

  [[nodiscard]] bool is_by_name() const { return !spec_.copy.empty() || !words_.buffers.empty(); }
  [[nodiscard]] bool has_transfer() const {
    return !spec_.from.empty() || !spec_.to.empty() || spec_.size || !spec_.copy.empty() || spec_.at != SizeSpec{} ||
           spec_.to_at != SizeSpec{} || !spec_.route.empty() || !spec_.via.empty() ||
           spec_.method != CopyMethod::Automatic || spec_.rows != 1 || spec_.pitch;
  }

  VertexId vertex(const std::string& name, std::string_view field) {
    return vertex_of(machine_, name, faults_, path_of(path_, field));
  }
  Bytes size(const SizeSpec& size, std::string_view field, Rounding rounding = Rounding::Up) {
    return bytes_of(size, words_.parameters, faults_, path_of(path_, field), rounding);
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

  /// The ends of a transfer between buffers with names; nothing where one is not known.
  std::optional<CopiedBuffers> copied() {
    if (spec_.copy.empty()) {
      fault("", "a task with 'buffers' copies them by name; write {copy: NAME, to: NAME}");
      return std::nullopt;
    }
    if (!spec_.from.empty()) fault("from", "the buffer that is copied says where it lies; leave 'from' out");
    if (spec_.to.empty()) fault("", "'to' is missing in a stream; name the buffer that it copies into");
    const auto from = buffer(spec_.copy, "copy");
    const auto to = spec_.to.empty() ? std::nullopt : buffer(spec_.to, "to");
    if (!from || !to) return std::nullopt;
    return CopiedBuffers{*from, *to, offset(spec_.at, "at", *from), offset(spec_.to_at, "to_at", *to)};
  }
  /// Where a copy begins in a buffer. Shares are rounded down, so that one behind 60 % never reaches over the end.
  Bytes offset(const SizeSpec& spec, std::string_view field, BufferId in) {
    const Bytes at = size(spec, field, Rounding::Down);
    const NamedBuffer& buffer = words_.buffers[in.index()];
    if (at < Bytes{0})
      fault(field, "a copy cannot begin before its buffer; write an offset of 0 or more");
    else if (at > buffer.size && buffer.size > Bytes{0})
      fault(field, fmt::format("buffer '{}' has {}, and this begins at {}; begin before its end", buffer.name,
                               to_string(buffer.size), to_string(at)));
    return at;
  }
  std::optional<BufferId> buffer(const std::string& name, std::string_view field) {
    const auto found = find_buffer(words_, name, faults_, path_of(path_, field));
    is_complete_ = is_complete_ && found;
    return found;
  }

  /// @param copied  where it is between buffers with names
  Transfer transfer(const std::optional<CopiedBuffers>& copied) {
    Transfer transfer;
    if (!is_by_name()) {
      transfer.from = end(spec_.from, "from");
      transfer.to = end(spec_.to, "to");
    }
    if (spec_.size)
      transfer.size = size(*spec_.size, "size");
    else if (!is_by_name() || spec_.pitch)
      fault("", "'size' is missing in a stream; add it");
    transfer.route = route();
    if (!spec_.via.empty()) transfer.via = vertex(spec_.via, "via");
    transfer.method = spec_.method;
    if (spec_.rows >= 1) transfer.rows.count = spec_.rows;
    if (spec_.pitch && *spec_.pitch < Bytes{1}) fault("pitch", "a pitch is above 0; write the distance of two rows");
    transfer.rows.pitch = spec_.pitch.value_or(Bytes{});
    if (copied) join(transfer, *copied);
    return transfer;
  }
  /// Lets a transfer begin and end in buffers.
  void join(Transfer& transfer, const CopiedBuffers& copied) {
    const NamedBuffer &from = words_.buffers[copied.from.index()], &to = words_.buffers[copied.to.index()];
    transfer.from = from.in;
    transfer.to = to.in;
    if (!spec_.size && !spec_.pitch && copied.at < from.size) transfer.size = from.size - copied.at;
    check_part(transfer, from, copied.at, "at");
    check_part(transfer, to, copied.to_at, "to_at");
  }
  void check_part(const Transfer& transfer, const NamedBuffer& buffer, Bytes at, std::string_view field) {
    const Rows& rows = transfer.rows;
    const bool is_refused = rows.count > 1 && rows.pitch > Bytes{(1LL << 53) / rows.count};
    const bool begins_outside = at < Bytes{0} || at > buffer.size;
    if (is_refused || begins_outside) return;  // by themselves
    const Bytes length = bytes_at(machine_, transfer, buffer.in);
    if (length <= buffer.size - at) return;
    const std::string_view from = at == Bytes{0} ? "size" : field;
    fault(spec_.size || from == field ? from : "",
          fmt::format("buffer '{}' has {}, and this reaches over {} from {} on; copy less, or give it a larger 'size'",
                      buffer.name, to_string(buffer.size), to_string(length), to_string(at)));
  }

  Duration time(const KernelSpec& kernel, const std::optional<Transfer>& transfer, const std::string& field) {
    counted_.reset();
    if (kernel.time.has_value() == kernel.throughput.has_value())
      return fault(field, "a kernel has either 'time' or 'throughput'; write one of the two"), Duration{};
    if (!kernel.of.empty() && kernel.time)
      fault(path_of(field, "of"), "'of' is for 'throughput'; leave it out beside 'time'");
    if (kernel.time) return *kernel.time;
    if (!(kernel.throughput->value > 0))
      return fault(path_of(field, "throughput"), "this throughput is not above 0; write a rate like 10 GB/s"),
             Duration{};
    std::optional<Bytes> bytes = transfer ? std::optional(transfer->size) : std::nullopt;
    if (!kernel.of.empty()) {
      counted_ = buffer(kernel.of, path_of(field, "of"));
      if (!counted_) return Duration{};
      bytes = words_.buffers[counted_->index()].size;
    }
    if (bytes) return round_up_ns(static_cast<double>(bytes->count) / kernel.throughput->value);
    if (!faults_.unread(path_))
      fault(path_of(field, "throughput"),
            fmt::format("'throughput' needs a transfer to count its bytes{}; write 'time'",
                        words_.buffers.empty() ? "" : ", or 'of' and the name of a buffer"));
    return Duration{};
  }

  /// The buffers that a kernel names, of which each is to lie where it runs.
  std::vector<BufferId> buffers(const std::vector<std::string>& names, VertexId on, const std::string& field) {
    std::vector<BufferId> known;
    const auto found = find_buffers(words_, names, faults_, path_of(path_, field));
    for (std::size_t i = 0; i < found.size(); ++i) {
      is_complete_ = is_complete_ && found[i];
      if (!found[i]) continue;
      known.push_back(*found[i]);
      if (is_sound_ && is_placed_) check_place(*found[i], on, path_of(field, i));
    }
    return known;
  }
  /// That what runs somewhere reaches a buffer.
  void check_place(BufferId id, VertexId on, const std::string& field) {
    const NamedBuffer& buffer = words_.buffers[id.index()];
    const Vertex &place = machine_.vertex(on), &lies = machine_.vertex(buffer.in);
    if (place.kind == VertexKind::Cpu && lies.kind != VertexKind::Memory)
      fault(field, fmt::format("this runs on '{}', and buffer '{}' lies in '{}'; copy it into a memory first",
                               place.name, buffer.name, lies.name));
    if (place.kind == VertexKind::Gpu && place.name != lies.name)
      fault(field, fmt::format("this runs on '{}', and buffer '{}' lies in '{}'; copy it first, to a buffer in '{}'",
                               place.name, buffer.name, lies.name, place.name));
  }

  /// Where a kernel runs that does not say it: where the transfer ends, else where its buffers lie.
  std::optional<VertexId> place_of(const KernelSpec& kernel, const std::optional<Transfer>& transfer) {
    if (transfer) return transfer->to;
    for (const std::vector<std::string>* names : {&kernel.writes, &kernel.reads})
      for (const std::string& name : *names) {
        const auto found = std::ranges::find(words_.buffers, name, &NamedBuffer::name);
        if (found != words_.buffers.end() && machine_.vertex(found->in).kind == VertexKind::Gpu) return found->in;
      }
    return std::nullopt;
  }
  VertexId place(const KernelSpec& kernel, const std::optional<Transfer>& transfer, const std::string& field) {
    if (!kernel.on.empty()) {
      const std::size_t before = faults_.added();
      const VertexId named = vertex(kernel.on, path_of(field, "on"));
      is_placed_ = is_placed_ && faults_.added() == before;
      return named;
    }
    const auto found = place_of(kernel, transfer);
    is_placed_ = is_placed_ && found.has_value() && is_sound_;
    if (!found && is_complete_ && !faults_.unread(path_))
      fault(field, "a kernel without a transfer needs a place; add 'on: gpu0'");
    return found.value_or(VertexId{});
  }

  std::optional<Kernel> kernel(const std::optional<Transfer>& transfer) {
    if (spec_.kernel && !spec_.kernels.empty())
      fault("kernels", "'kernel' is one and 'kernels' are several; write one of the two");
    if (spec_.kernels.empty() && !spec_.kernel) return std::nullopt;
    const bool is_one = spec_.kernel.has_value();
    const std::span<const KernelSpec> specs = is_one ? std::span(&*spec_.kernel, 1) : std::span(spec_.kernels);
    Kernel all;
    all.name.clear();
    for (std::size_t i = 0; i < specs.size(); ++i)
      add(specs[i], transfer, all, is_one ? "kernel" : path_of("kernels", i));
    const bool is_of_task = !words_.buffers_field.empty();
    if (!is_one && is_of_task && words_.buffers.empty() && words_.left_out.empty() &&
        !faults_.incomplete(words_.buffers_field))
      fault("kernels",
            "several kernels need 'buffers' of the task, which say what each of them reads and writes; add them, or "
            "write 'kernel'");
    if (is_one && words_.buffers.empty()) all.calls.clear();
    return all;
  }
  /// One more of a stream's kernels.
  void add(const KernelSpec& spec, const std::optional<Transfer>& transfer, Kernel& all, const std::string& field) {
    const bool is_first = all.calls.empty();
    const bool first_was_placed = is_placed_;
    const VertexId on = is_first || !spec.on.empty() ? place(spec, transfer, field) : all.on;
    const Duration usual = time(spec, transfer, field);
    if (is_first) all.on = on;
    if (is_first) all.capture = spec.capture;
    if (!is_first && first_was_placed && is_placed_ && on != all.on)
      fault(path_of(field, "on"), "the kernels of a stream run in one place; write this one in a stream of its own");
    if (spec.capture != all.capture)
      fault(path_of(field, "capture"), "the kernels of a stream are captured together; write the same for all of them");
    if (spec.worst && *spec.worst < usual && !words_.buffers.empty())
      fault(path_of(field, "worst"), fmt::format("the kernel's worst time {} is below its usual {}; raise 'worst'",
                                                 to_string(*spec.worst), to_string(usual)));
    if (usual < Duration{0} && !words_.buffers.empty())
      fault(path_of(field, "time"), "a time below 0; write 0 or more");
    all.time = add_saturating(all.time, usual);
    all.worst = add_saturating(all.worst, spec.worst.value_or(usual));
    all.name += (is_first ? "" : ", ") + spec.name;
    all.calls.push_back({spec.name, usual, buffers(spec.reads, on, path_of(field, "reads")),
                         buffers(spec.writes, on, path_of(field, "writes")), counted_});
  }

  const StreamSpec& spec_;
  const Topology& machine_;
  const StreamWords& words_;
  Faults& faults_;
  std::string path_;
  bool is_sound_ = true;             // the transfer
  bool is_placed_ = true;            // the kernels so far
  bool is_complete_ = true;          // what is named
  std::optional<BufferId> counted_;  // by the time of the kernel that is being read
};

}  // namespace

VertexId vertex_of(const Topology& machine, const std::string& name, Faults& faults, const std::string& path) {
  if (const auto vertex = machine.find_vertex(name)) return *vertex;
  std::vector<std::string_view> names;
  for (const Vertex& known : machine.vertices()) names.push_back(known.name);
  faults.add(path, fmt::format("machine '{}' has no vertex '{}';{}", machine.name(), name,
                               suggestion_or(name, names, "use one of its names")));
  return {};
}

Bytes bytes_of(const SizeSpec& size, const Parameters& parameters, Faults& faults, const std::string& path,
               Rounding rounding) {
  if (size.parameter.empty()) return size.bytes;
  const auto parameter = parameters.find(size.parameter);
  if (parameter == parameters.end()) {
    if (faults.unread("parameters")) return {};
    std::vector<std::string_view> names;
    for (const auto& [known, bytes] : parameters) names.push_back(known);
    const std::string remedy =
        suggestion_or(size.parameter, names, "write a size like 32 MB, or add it to 'parameters' of a task set");
    return faults.add(path, fmt::format("no parameter '{}' is defined;{}", size.parameter, remedy)), Bytes{};
  }
  if (size.percent.empty()) return parameter->second;
  const auto share = parse_percentage(size.percent, parameter->second, rounding);
  if (!share) return faults.add(path, share.error().message), Bytes{};
  return *share;
}

std::optional<BufferId> find_buffer(const StreamWords& words, const std::string& name, Faults& faults,
                                    const std::string& path) {
  const std::span<const NamedBuffer> buffers = words.buffers;
  const auto found = std::ranges::find(buffers, name, &NamedBuffer::name);
  if (found != buffers.end()) return BufferId{static_cast<std::size_t>(found - buffers.begin())};
  if (std::ranges::find(words.left_out, name) != words.left_out.end()) return std::nullopt;
  if (!words.buffers_field.empty() && faults.incomplete(words.buffers_field)) return std::nullopt;
  if (words.buffers_field.empty()) {
    faults.add(path, "buffers with names are those of a task; write 'from', 'to' and 'size' here");
    return std::nullopt;
  }
  std::vector<std::string_view> names;
  for (const NamedBuffer& known : buffers) names.push_back(known.name);
  for (const NamedBuffer& known : words.of_others) names.push_back(known.name);
  const std::string remedy = suggestion_or(name, names, "add it to 'buffers' of the task");
  faults.add(path, fmt::format("no buffer '{:.80}' is defined;{}", name, remedy));
  return std::nullopt;
}

std::vector<std::optional<BufferId>> find_buffers(const StreamWords& words, const std::vector<std::string>& names,
                                                  Faults& faults, const std::string& path) {
  std::vector<std::optional<BufferId>> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto one = find_buffer(words, names[i], faults, path_of(path, i));
    if (one && std::ranges::find(found, one) != found.end())
      faults.add(path_of(path, i), fmt::format("buffer '{:.80}' comes twice here; name it once", names[i]));
    found.push_back(one);
  }
  return found;
}

std::optional<Batch> compile_streams(std::span<const StreamSpec> streams, Merging merging, const StreamWords& words,
                                     Faults& faults, const std::string& path) {
  std::vector<CommandStream> resolved;
  std::vector<char> sound;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::string at = path_of(path, i);
    const std::size_t before = faults.added();
    check_fields(streams[i], faults, at);
    StreamCompiler compiler(streams[i], words, faults, at);
    resolved.push_back(compiler.compile(i));
    sound.push_back(faults.added() == before && !faults.unread(at) && compiler.is_complete());
  }
  if (std::ranges::count(sound, false) > 0 || faults.unread(path)) {
    Batch::check(words.machine, resolved, sound, faults, path);
    return std::nullopt;
  }
  auto batch = Batch::make(words.machine, std::move(resolved), merging, path);
  if (!batch) return faults.add(std::move(batch.error())), std::nullopt;
  return *std::move(batch);
}

Expected<Batch> compile(const BatchSpec& spec, const Topology& machine, const Parameters& parameters, Faults faults) {
  auto batch = compile_streams(spec.streams, spec.merging, {machine, parameters}, faults, "streams");
  if (!faults.none()) return tl::unexpected(faults.error());
  return choose_methods(*std::move(batch), Basis::Nominal);
}

std::vector<Error> notes_on(std::span<const StreamSpec> streams, const Parameters& parameters,
                            const std::string& path) {
  std::vector<Error> notes;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (!streams[i].size || !streams[i].copy.empty())
      continue;  // of copies by name the task tells (`notes_on_buffers`)
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
      const auto spec_of_kernel = [&](const std::string& called, Duration time) {
        return KernelSpec{.on = name(kernel->on), .time = time, .name = called, .capture = kernel->capture};
      };
      for (const KernelCall& call : kernel->calls) written.kernels.push_back(spec_of_kernel(call.name, call.time));
      if (kernel->calls.empty()) written.kernel = spec_of_kernel(kernel->name, kernel->time);
      KernelSpec& last = written.kernel ? *written.kernel : written.kernels.back();
      if (kernel->worst != kernel->time) last.worst = *last.time + kernel->worst - kernel->time;
    }
  }
  return spec;
}

}  // namespace tutti::internal
