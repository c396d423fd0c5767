#include "model/batch/batch.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/base/faults.hpp"
#include "model/base/units.hpp"
#include "model/batch/copy_class.hpp"
#include "model/batch/peer_rounds.hpp"
#include "model/machine/ports.hpp"
#include "model/machine/route_class.hpp"
#include "model/transfer/transfer_method.hpp"

namespace tutti::internal {
namespace {

/// Above this a double no longer holds every nanosecond.
constexpr Duration kLongestKernel{1LL << 53};

/// The faults of one stream.
class StreamFaults {
 public:
  StreamFaults(Faults& faults, const CommandStream& stream, std::string path)
      : faults_(faults), stream_(stream), path_(std::move(path)) {}

  void add(std::string message) {
    faults_.add(Error{ErrorCode::InvalidInput, std::move(message), stream_.place, path_});
  }

 private:
  Faults& faults_;
  const CommandStream& stream_;
  std::string path_;
};

/// Whether a transfer can start or end there.
bool check_end(const Topology& machine, VertexId end, StreamFaults& faults) {
  const Vertex& vertex = machine.vertex(end);
  if (is_end(vertex.kind)) return true;
  faults.add(fmt::format("'{}' is a {}; a transfer starts and ends at a memory, a gpu or a device", vertex.name,
                         to_string(vertex.kind)));
  return false;
}

void check_own_route(const Topology& machine, const Transfer& transfer, StreamFaults& faults) {
  VertexId at = transfer.from;
  std::set<VertexId> passed{at};
  for (const LinkId link : transfer.route) {
    if (machine.link(link).from != at) {
      return faults.add(fmt::format("the route breaks at '{}'; each link starts where the one before ended",
                                    machine.vertex(at).name));
    }
    at = machine.link(link).to;
    if (!passed.insert(at).second)
      return faults.add(fmt::format("the route comes to '{}' twice; leave the loop out", machine.vertex(at).name));
    if (at != transfer.to && is_end(machine.vertex(at).kind)) {
      return faults.add(
          fmt::format("the route passes through '{}'; memories, GPUs and devices are never passed through",
                      machine.vertex(at).name));
    }
  }
  if (at != transfer.to) {
    faults.add(fmt::format("the route ends at '{}', the transfer at '{}'; make them agree", machine.vertex(at).name,
                           machine.vertex(transfer.to).name));
  }
}

void check_transfer(const Topology& machine, const Transfer& transfer, StreamFaults& faults) {
  if (!check_end(machine, transfer.from, faults) || !check_end(machine, transfer.to, faults)) return;
  const std::string& from = machine.vertex(transfer.from).name;
  const std::string& to = machine.vertex(transfer.to).name;
  if (transfer.from == transfer.to)
    return faults.add(fmt::format("the transfer goes from '{}' to itself; name two places", from));
  const bool from_gpu = machine.vertex(transfer.from).kind == VertexKind::Gpu;
  const bool to_gpu = machine.vertex(transfer.to).kind == VertexKind::Gpu;
  const bool from_device = machine.vertex(transfer.from).kind == VertexKind::Device;
  const bool to_device = machine.vertex(transfer.to).kind == VertexKind::Device;
  if (from_device && to_device)
    return faults.add(
        fmt::format("'{}' and '{}' are both devices; one end of a transfer is a memory or a gpu", from, to));
  if (!from_gpu && !to_gpu && !from_device && !to_device)
    return faults.add(fmt::format("'{}' and '{}' are both memories; a copy engine needs a gpu at one end", from, to));
  for (const VertexId end : {transfer.from, transfer.to})
    if (machine.vertex(end).pageable && (from_device || to_device))
      return faults.add(
          fmt::format("'{}' is pageable memory, which no device reaches; name the memory of its driver's buffers",
                      machine.vertex(end).name));
  if (transfer.size.count < 0 || transfer.size.count > (1LL << 53))
    faults.add(fmt::format("a transfer of {} bytes is not possible; write 0 to 2^53 bytes", transfer.size.count));
  if (transfer.via && (!from_gpu || !to_gpu))
    return faults.add("'via' is for copies from gpu to gpu; leave it out here");
  if (transfer.via && machine.vertex(*transfer.via).kind != VertexKind::Memory)
    return faults.add(
        fmt::format("'{}' is no memory; a staged copy goes via a memory", machine.vertex(*transfer.via).name));
  if (transfer.via && machine.vertex(*transfer.via).pageable)
    return faults.add(fmt::format("'{}' is pageable, and no GPU reaches it; a staged copy goes via another memory",
                                  machine.vertex(*transfer.via).name));
  if (transfer.size.count % transfer.rows.count != 0)
    return faults.add(fmt::format("{} are not {} equal rows; make 'size' a multiple of 'rows'",
                                  to_string(transfer.size), transfer.rows.count));
  if (transfer.rows.pitch > Bytes{0} && transfer.rows.pitch < transfer.row())
    return faults.add(
        fmt::format("a row of {} does not fit into a pitch of {}; make 'pitch' at least the size of a row",
                    to_string(transfer.row()), to_string(transfer.rows.pitch)));
  if (transfer.rows.count > 1 && transfer.rows.pitch > Bytes{(1LL << 53) / transfer.rows.count})
    return faults.add("the rows reach over more than 2^53 bytes; write a smaller 'pitch'");
  const RouteView route = find_route(machine, transfer);
  if (route.method == TransferMethod{}) return faults.add(why_not(machine, transfer));
  if (!transfer.route.empty() && route.method.chunked)
    return faults.add(fmt::format(
        "'{}' has no peer access to '{}', so the copy is staged; name its memory with 'via' in place of a route", from,
        to));
  if (!transfer.route.empty()) return check_own_route(machine, transfer, faults);
  if (!route.found())
    faults.add(fmt::format("no way leads from '{}' to '{}'; add the missing links or peer access", from, to));
}

void check_kernel(const Topology& machine, const Kernel& kernel, StreamFaults& faults) {
  const Vertex& vertex = machine.vertex(kernel.on);
  if (vertex.kind != VertexKind::Gpu && vertex.kind != VertexKind::Cpu)
    faults.add(fmt::format("a kernel cannot run on '{}', a {}; say 'on' with a gpu or a cpu", vertex.name,
                           to_string(vertex.kind)));
  if (kernel.time < Duration{0} || kernel.worst > kLongestKernel)
    return faults.add("a kernel's time is absurd; write 0 to 100 days");
  if (kernel.worst < kernel.time)
    faults.add(fmt::format("the kernel's worst time {} is below its usual {}; raise 'worst'", to_string(kernel.worst),
                           to_string(kernel.time)));
}

/// Links at GPUs over which copies go that no engine of the GPU issues, rising: the last links of copies between GPUs,
/// and those of copies that devices, kernels or the host make.
std::vector<LinkId> links_met(const Topology& machine, std::span<const CommandStream> streams) {
  std::vector<LinkId> links;
  const auto is_gpu = [&](VertexId end) { return machine.vertex(end).kind == VertexKind::Gpu; };
  for (const CommandStream& stream : streams) {
    if (!stream.transfer) continue;
    const RouteView route = find_route(machine, *stream.transfer);
    const bool beside = route.method.of_device || route.method.by_kernel || route.method.mapped;
    if (!route.method.peer_traffic && !beside) continue;
    if (is_gpu(stream.transfer->to)) links.push_back(route.first.back());
    if (beside && is_gpu(stream.transfer->from)) links.push_back(route.first.front());
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
  return links;
}

/// Whether a copy between GPUs goes over the last link of its route alone. It fills that link where nothing before
/// slows it down: two copies at once end when the second of two in turn ends, and their finishes depend on each other's
/// start. Short copies do not wait, since a signal from another GPU takes time.
bool takes_turns(const Topology& machine, const RouteView& route, const StreamWork& work,
                 const RouteClass& route_class) {
  constexpr double kFills = 1.1;          // possible gain of two at once
  constexpr double kShortest = 20;        // in waits, each as long as a handover,
  constexpr double kLeastHandover = 4e3;  // ns, or this where no handover was measured
  if (!work.peer_traffic || work.bytes == 0) return false;
  const double alone = route_class.alone.nominal.value;
  return machine.capacities(Basis::Nominal)[route.first.back().index()] <= kFills * alone &&
         work.bytes / alone >= kShortest * std::max(as_ns(machine.setup().handover.nominal), kLeastHandover);
}

/// The port of the machine's table at which a copy runs; nothing where the table does not cover it: staged copies and
/// routes of their own.
std::optional<PortId> port_in_table(const Topology& machine, const Transfer& transfer, const RouteView& route) {
  const TransferMethod& method = route.method;
  if (method.chunked || method.by_kernel || method.mapped) return std::nullopt;
  if (machine.table() == nullptr || !transfer.route.empty()) return std::nullopt;
  const auto port = find_port(machine, transfer.from, transfer.to);
  return port && machine.table()->covers(*port) ? port : std::nullopt;
}

/// The order of the streams: copies between GPUs in rounds, so that GPUs meet in pairs; all others keep their places.
/// Empty: the order of the file.
std::vector<std::uint32_t> order_of(std::span<const CommandStream> streams, std::span<const StreamWork> work) {
  std::vector<PeerCopy> copies;
  std::vector<std::uint32_t> places;  // [copies] the stream
  for (std::uint32_t s = 0; s < streams.size(); ++s) {
    if (!work[s].peer_traffic) continue;
    copies.push_back({work[s].engines[0].value, streams[s].transfer->to.value, work[s].bytes});
    places.push_back(s);
  }
  if (copies.empty()) return {};
  std::vector<std::uint32_t> order(streams.size());
  for (std::uint32_t s = 0; s < order.size(); ++s) order[s] = s;
  const std::vector<std::uint32_t> rounds = in_rounds(copies);
  for (std::size_t i = 0; i < copies.size(); ++i) order[places[i]] = places[rounds[i]];
  return std::is_sorted(order.begin(), order.end()) ? std::vector<std::uint32_t>{} : order;
}

}  // namespace

Expected<Batch> Batch::make(const Topology& machine, std::vector<CommandStream> streams, Merging merging,
                            const std::string& list) {
  Faults faults;
  check(machine, streams, std::vector<char>(streams.size(), true), faults, list);
  if (!faults.none()) return tl::unexpected(faults.error());
  return Batch(machine, std::move(streams), merging);
}

void Batch::check(const Topology& machine, std::span<const CommandStream> streams, std::span<const char> sound,
                  Faults& faults, const std::string& list) {
  if (streams.empty()) faults.add(list, "the batch has no streams; it needs at least one");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < std::min(streams.size(), kMostStreams); ++i) {
    const CommandStream& stream = streams[i];
    StreamFaults of_stream(faults, stream, path_of(list, i));
    if (!names.insert(stream.name).second)
      of_stream.add(fmt::format("there are two streams '{}'; names are unique", stream.name));
    if (!sound[i]) continue;
    if (!stream.transfer && !stream.kernel)
      of_stream.add(fmt::format("stream '{}' has neither transfer nor kernel; give it one", stream.name));
    if (stream.transfer) check_transfer(machine, *stream.transfer, of_stream);
    if (stream.kernel) check_kernel(machine, *stream.kernel, of_stream);
  }
  if (streams.size() > kMostStreams)
    StreamFaults(faults, streams[kMostStreams], path_of(list, kMostStreams))
        .add("more than 4096 streams in one batch; cut it into several");
}

Expected<Batch> Batch::with_sizes_of(const Topology& machine, std::vector<CommandStream> streams) const {
  TUTTI_EXPECTS(streams.size() == streams_.size(), "the streams are those of the batch");
  auto other = make(machine, std::move(streams), merging_);
  if (!other) return other;
  other->order_ = order_;
  for (std::size_t s = 0; s < work_.size(); ++s) other->work_[s].last_hop = work_[s].last_hop;
  other->shares_engines_ = other->finds_shared_engines();
  other->application_ = application_;
  return other;
}

Batch::Batch(const Topology& machine, std::vector<CommandStream> streams, Merging merging)
    : machine_(machine), streams_(std::move(streams)), merging_(merging) {
  const std::vector<LinkId> met = links_met(machine_, streams_);
  work_.reserve(streams_.size());
  for (const CommandStream& stream : streams_) work_.push_back(make_work(stream, met));
  drop_lone_landings();
  shares_engines_ = finds_shared_engines();
  if (merging_ == Merging::On) order_ = order_of(streams_, work_);
}

bool Batch::finds_shared_engines() const {
  if (merging_ == Merging::Off) return true;
  return std::ranges::any_of(work_, [&](const StreamWork& work) {
    if (work.route_class == kNone) return false;
    if (work.by_kernel) return true;  // a kernel of another queue may hold its GPU
    return merging_ == Merging::On && (work.engines[0] != work.engines[1] || work.last_hop != kNone);
  });
}

Batch Batch::without_turns() const {
  Batch other = *this;
  for (StreamWork& work : other.work_) work.last_hop = kNone;
  other.shares_engines_ = other.finds_shared_engines();
  return other;
}

Batch Batch::within(ApplicationLoad application) const {
  Batch other = *this;
  other.application_ = std::move(application);
  return other;
}

/// Drops the contention for a last hop where one engine issues all of its copies: these take turns anyway.
void Batch::drop_lone_landings() {
  std::map<std::uint32_t, std::set<EngineId>> issuers;
  for (const StreamWork& work : work_)
    if (work.last_hop != kNone) issuers[work.last_hop].insert(work.engines[0]);
  for (StreamWork& work : work_)
    if (work.last_hop != kNone && issuers[work.last_hop].size() == 1) work.last_hop = kNone;
}

/// @param met  links of GPUs over which copies of other engines go, rising
StreamWork Batch::make_work(const CommandStream& stream, std::span<const LinkId> met) {
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
    own_classes_.push_back(make_route_class(machine_, route.first, second, route.weight, met));
    return static_cast<std::uint32_t>(machine_.route_classes().size() + own_classes_.size() - 1);
  };
  work.bytes = static_cast<double>(transfer.size.count);
  work.engines = merging_ == Merging::Transitive ? route.end_engines : route.engines;
  work.route = machine_.setup().transfer.counted(route.kind);
  work.by_kernel = route.method.by_kernel;
  work.peer_traffic = route.method.peer_traffic;
  const auto meets_others = [&](LinkId link) { return std::binary_search(met.begin(), met.end(), link); };
  work.route_class = transfer.route.empty() ? machine_.route_class(transfer.from, transfer.to) : kNone;
  if (work.route_class == kNone || std::any_of(route.first.begin(), route.first.end(), meets_others)) {
    work.route_class = add_own(route.second);
    own_classes_.back().port = port_in_table(machine_, transfer, route);
  }
  if (auto own = class_by_cost(machine_, transfer, route, route_class(work.route_class))) {
    own_classes_.push_back(*std::move(own));
    work.route_class = static_cast<std::uint32_t>(machine_.route_classes().size() + own_classes_.size() - 1);
  }
  if (route.method.chunked) {  // a stream has one share: its pipeline fill weighs what its data do
    const double weight = route_class(work.route_class).weight;
    work.fill = add_own({});
    own_classes_.back().weight = weight;
  }
  if (merging_ != Merging::Transitive && takes_turns(machine_, route, work, route_class(work.route_class)))
    work.last_hop = route.first.back().value;
  return work;
}

}  // namespace tutti::internal
