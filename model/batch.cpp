#include "model/batch.hpp"

#include <set>

#include <fmt/format.h>

#include "model/document.hpp"
#include "model/route.hpp"
#include "model/way_kind.hpp"

namespace tutti {
namespace {

/// Above this a double no longer holds every nanosecond.
constexpr Duration kLongestKernel{1LL << 53};

void check_end(const Topology& machine, VertexId end, const Place& place) {
  const Vertex& vertex = machine.vertex(end);
  if (vertex.kind == VertexKind::Memory || vertex.kind == VertexKind::Gpu) return;
  fail(place, fmt::format("'{}' is a {}; a transfer starts and ends at a memory or a gpu", vertex.name,
                          to_string(vertex.kind)));
}

void check_own_route(const Topology& machine, const Transfer& transfer, const Place& place) {
  VertexId at = transfer.from;
  std::set<VertexId> passed{at};
  for (const LinkId link : transfer.route) {
    if (machine.link(link).from != at) {
      fail(place, fmt::format("the route breaks at '{}'; each link starts where the one before ended",
                              machine.vertex(at).name));
    }
    at = machine.link(link).to;
    if (!passed.insert(at).second)
      fail(place, fmt::format("the route comes to '{}' twice; leave the loop out", machine.vertex(at).name));
    const VertexKind kind = machine.vertex(at).kind;
    if (at != transfer.to && (kind == VertexKind::Memory || kind == VertexKind::Gpu)) {
      fail(place, fmt::format("the route passes through '{}'; memories and GPUs are never passed through",
                              machine.vertex(at).name));
    }
  }
  if (at != transfer.to) {
    fail(place, fmt::format("the route ends at '{}', the transfer at '{}'; make them agree", machine.vertex(at).name,
                            machine.vertex(transfer.to).name));
  }
}

void check_transfer(const Topology& machine, const Transfer& transfer, const Place& place) {
  check_end(machine, transfer.from, place);
  check_end(machine, transfer.to, place);
  const std::string& from = machine.vertex(transfer.from).name;
  const std::string& to = machine.vertex(transfer.to).name;
  if (transfer.from == transfer.to)
    fail(place, fmt::format("the transfer goes from '{}' to itself; name two places", from));
  const bool from_gpu = machine.vertex(transfer.from).kind == VertexKind::Gpu;
  const bool to_gpu = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  if (!from_gpu && !to_gpu) {
    fail(place, fmt::format("'{}' and '{}' are both memories; a copy engine needs a gpu at one end", from, to));
  }
  if (transfer.size.count < 0 || transfer.size.count > (1LL << 53)) {
    fail(place, fmt::format("a transfer of {} bytes is not possible; write 0 to 2^53 bytes", transfer.size.count));
  }
  if (transfer.via && (!from_gpu || !to_gpu)) fail(place, "'via' is for copies from gpu to gpu; leave it out here");
  if (transfer.via && machine.vertex(*transfer.via).kind != VertexKind::Memory) {
    fail(place, fmt::format("'{}' is no memory; a staged copy goes via a memory", machine.vertex(*transfer.via).name));
  }
  const RouteView route = find_route(machine, transfer);
  if (!transfer.route.empty() && route.path == CopyPath::Staged) {
    fail(place,
         fmt::format(
             "'{}' has no peer access to '{}', so the copy is staged; name its memory with 'via' in place of a route",
             from, to));
  }
  check_own_route(machine, transfer.route.empty() ? Transfer{transfer.from, transfer.from, {}, {}, {}} : transfer,
                  place);
  if (!route.found()) {
    fail(place, fmt::format("no way leads from '{}' to '{}'; add the missing links or peer access", from, to));
  }
}

void check_kernel(const Topology& machine, const Kernel& kernel, const Place& place) {
  const Vertex& vertex = machine.vertex(kernel.on);
  if (vertex.kind != VertexKind::Gpu && vertex.kind != VertexKind::Cpu) {
    fail(place, fmt::format("a kernel cannot run on '{}', a {}; say 'on' with a gpu or a cpu", vertex.name,
                            to_string(vertex.kind)));
  }
  if (kernel.time < Duration{0} || kernel.worst > kLongestKernel) {
    fail(place, "a kernel's time is absurd; write 0 to 100 days");
  }
  if (kernel.worst < kernel.time) {
    fail(place, fmt::format("the kernel's worst time {} is below its usual {}; raise 'worst'", to_string(kernel.worst),
                            to_string(kernel.time)));
  }
}

}  // namespace

Expected<BatchOperation> BatchOperation::make(const Topology& machine, std::vector<CommandStream> streams,
                                              bool merging) {
  return reading([&] {
    if (streams.empty()) fail({}, "the batch has no streams; it needs at least one");
    if (streams.size() > kMostStreams) {
      fail(streams[kMostStreams].place, "more than 4096 streams in one batch; cut it into several");
    }
    std::set<std::string_view> names;
    for (const CommandStream& stream : streams) {
      if (!names.insert(stream.name).second) {
        fail(stream.place, fmt::format("there are two streams '{}'; names are unique", stream.name));
      }
      if (!stream.transfer && !stream.kernel) {
        fail(stream.place, fmt::format("stream '{}' has neither transfer nor kernel; give it one", stream.name));
      }
      if (stream.transfer) check_transfer(machine, *stream.transfer, stream.place);
      if (stream.kernel) check_kernel(machine, *stream.kernel, stream.place);
    }
    return BatchOperation(machine, std::move(streams), merging);
  });
}

BatchOperation::BatchOperation(const Topology& machine, std::vector<CommandStream> streams, bool merging)
    : machine_(machine), streams_(std::move(streams)), merging_(merging) {
  work_.reserve(streams_.size());
  for (const CommandStream& stream : streams_) work_.push_back(make_work(stream));
}

StreamWork BatchOperation::make_work(const CommandStream& stream) {
  StreamWork work;
  if (stream.kernel) {
    work.has_kernel = true;
    work.kernel = as_ns(stream.kernel->time);
    work.kernel_worst = as_ns(stream.kernel->worst);
    if (machine_.vertex(stream.kernel->on).kind == VertexKind::Gpu) work.gpu = stream.kernel->on.value;
  }
  if (!stream.transfer) return work;
  const Transfer& transfer = *stream.transfer;
  const RouteView route = find_route(machine_, transfer);
  const auto add_own = [&](std::span<const LinkId> second) {
    own_ways_.push_back(make_way_kind(machine_, route.first, second, route.weight));
    return static_cast<std::uint32_t>(machine_.way_kinds().size() + own_ways_.size() - 1);
  };
  work.bytes = static_cast<double>(transfer.size.count);
  work.engines = route.engines;
  work.way = transfer.route.empty() ? machine_.way_kind(transfer.from, transfer.to) : kNone;
  if (work.way == kNone) work.way = add_own(route.second);
  if (route.path == CopyPath::Staged) work.lead = add_own({});
  return work;
}

}  // namespace tutti
