#include "tests/support/random_machine.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/transfer/transfer_method.hpp"
#include "tests/support/random.hpp"
#include "tests/support/slow_max_min.hpp"

namespace tutti::internal::test {
namespace {

class MachineMaker {
 public:
  MachineMaker(std::uint64_t seed, int scale) : random_(seed), sharing_(seed ^ 0x73686172), scale_(scale) {}

  Topology make() {
    place_vertices();
    share_links();
    spec_.weights = {random_.real(0.4, 2.5), random_.real(0.4, 2.5), random_.real(0.4, 2.5)};
    spec_.peer_access.mode = pick_mode();
    if (random_.one_in(2)) spec_.setup = make_setup();
    spec_.staging.chunk = Bytes{std::int64_t{scale_} * random_.between(1, 16) * 1'000'000};
    auto machine = compile(spec_);
    TUTTI_EXPECTS(machine.has_value(), "the generator makes valid machines");
    return *std::move(machine);
  }

 private:
  void add(const std::string& name, VertexKind kind) {
    Vertex vertex;
    vertex.name = name;
    vertex.kind = kind;
    const int engines = random_.one_in(3) ? 1 : 2 + name.back() % 2;  // of every second GPU three
    if (vertex.kind == VertexKind::Gpu) vertex.copy_engines = engines;
    spec_.vertices.push_back(vertex);
  }

  Bandwidth bandwidth(double low, double high) {
    const double nominal = random_.real(low, high);
    return {GBps{nominal}, GBps{nominal * random_.real(0.8, 1)}};
  }

  void connect(const std::string& a, const std::string& b, double low, double high) {
    const Bandwidth there = bandwidth(low, high);
    spec_.links.push_back({a, b, there, bandwidth(low, high)});
    links_.emplace_back(a, b);
    links_.emplace_back(b, a);
  }

  void place_vertices() {
    const int cpus = random_.between(1, 2);
    for (int i = 0; i < cpus; ++i) {
      add(fmt::format("cpu{}", i), VertexKind::Cpu);
      add(fmt::format("mem{}", i), VertexKind::Memory);
      connect(fmt::format("mem{}", i), fmt::format("cpu{}", i), 15, 60);
    }
    if (cpus == 2) connect("cpu0", "cpu1", 8, 25);
    std::vector<std::string> ports;
    const int hubs = random_.between(1, 3);
    for (int i = 0; i < hubs; ++i) {
      add(fmt::format("hub{}", i), VertexKind::Hub);
      connect(fmt::format("cpu{}", random_.below(static_cast<std::uint64_t>(cpus))), fmt::format("hub{}", i), 6, 20);
      ports.push_back(fmt::format("hub{}", i));
      if (!random_.one_in(2)) continue;
      add(fmt::format("switch{}", i), VertexKind::Switch);
      connect(ports.back(), fmt::format("switch{}", i), 6, 16);
      ports.push_back(fmt::format("switch{}", i));
    }
    const int gpus = random_.between(1, 8);
    for (int i = 0; i < gpus; ++i) {
      add(fmt::format("gpu{}", i), VertexKind::Gpu);
      connect(ports[random_.below(ports.size())], fmt::format("gpu{}", i), 3, 14);
    }
  }

  Cost make_cost(int most) {
    const Duration nominal = scale_ * Duration{random_.between(0, most)};
    return {nominal, nominal + scale_ * Duration{random_.between(0, most)}};
  }

  SetupTimes make_setup() {
    SetupTimes setup;
    setup.batch = make_cost(50'000);
    for (CopyCost& copy : setup.transfer.classes) copy.each = make_cost(20'000);
    for (const CopyKind kind : {CopyKind::SmUp, CopyKind::SmDown}) {
      CopyCost& copy = setup.transfer.of(kind);
      if (sharing_.one_in(2)) copy.weight = sharing_.real(0.3, 4);
      if (sharing_.one_in(2)) copy.load = sharing_.real(1, 3);
    }
    if (random_.one_in(2)) return setup;
    setup.kernel = make_cost(10'000);
    setup.gate = make_cost(30'000);
    setup.host = make_cost(20'000);
    setup.handover = make_cost(15'000);
    setup.turn = make_cost(5'000);
    return setup;
  }

  void share_links() {
    for (int i = random_.between(0, 3); i > 0; --i) {
      SharedSpec shared{fmt::format("shared{}", i), bandwidth(8, 40), {}};
      std::set<std::size_t> members;
      for (int m = random_.between(1, 4); m > 0; --m) members.insert(random_.below(links_.size()));
      for (const std::size_t m : members) {
        shared.members.push_back({links_[m].first, links_[m].second, random_.real(0.5, 2)});
      }
      spec_.shared.push_back(shared);
    }
  }

  PeerMode pick_mode() {
    constexpr PeerMode modes[] = {PeerMode::All, PeerMode::None, PeerMode::SameDomain};
    return modes[random_.below(3)];
  }

  Random random_, sharing_;
  int scale_;
  MachineSpec spec_{.name = "random"};
  std::vector<std::pair<std::string, std::string>> links_;
};

class StreamMaker {
 public:
  StreamMaker(const Topology& machine, std::uint64_t seed, Random& random, const BatchTraits& traits, int scale)
      : machine_(machine), random_(random), methods_(seed ^ 0x6d657468), traits_(traits), scale_(scale) {}

  CommandStream make(int position) {
    CommandStream stream;
    stream.name = fmt::format("s{}", position);
    const VertexId gpu = pick(machine_.gpus());
    if (!random_.one_in(6)) stream.transfer = make_transfer(gpu);
    if (!stream.transfer || random_.one_in(2)) stream.kernel = make_kernel(gpu, stream.transfer.has_value());
    if (!stream.transfer && !stream.kernel) stream.transfer = make_transfer(gpu);
    if (stream.transfer && traits_.methods && methods_.one_in(traits_.one_method_in)) pick_method(*stream.transfer);
    return stream;
  }

 private:
  VertexId pick(std::span<const VertexId> from) { return from[random_.below(from.size())]; }

  Transfer make_transfer(VertexId gpu) {
    const VertexId memory = pick(machine_.memories());
    // Neither a device nor a copy through a memory goes to pageable memory.
    const VertexId pinned = machine_.vertex(memory).pageable ? machine_.memories().front() : memory;
    if (!machine_.devices().empty() && random_.one_in(3)) return make_device_transfer(gpu, pinned);
    const VertexId other = pick(machine_.gpus());
    const bool zero = traits_.zero_sizes && random_.one_in(12);
    const Bytes size{
        zero ? 0
             : scale_ * static_cast<std::int64_t>(1 + random_.below(random_.one_in(8) ? 5'000 : traits_.most_bytes))};
    switch (random_.below(5)) {
      case 0:
      case 1: return {memory, gpu, size, {}, {}};
      case 2: return {gpu, memory, size, {}, {}};
      default: break;
    }
    if (other == gpu) return {memory, gpu, size, {}, {}};
    Transfer peer{gpu, other, size, {}, {}};
    if (random_.one_in(3)) peer.via = pinned;
    return peer;
  }

  void pick_method(Transfer& transfer) {
    if (!goes_up(machine_, transfer) || has_pageable_end(machine_, transfer)) return;
    switch (methods_.below(5)) {
      case 0: transfer.method = CopyMethod::Sm; break;
      case 1: transfer.method = CopyMethod::Mapped; break;
      case 2: transfer.method = CopyMethod::Batch; break;
      case 3:
        transfer.rows.count = methods_.between(2, 50);
        transfer.size.count -= transfer.size.count % (transfer.rows.count * scale_);
        transfer.rows.pitch = Bytes{transfer.row().count + methods_.between(1, 100)};
        break;
      default:
        if (!*goes_up(machine_, transfer)) break;
        transfer.size = Bytes{std::min<std::int64_t>(transfer.size.count, 400 * scale_)};
        transfer.method = CopyMethod::Inline;
    }
  }

  Transfer make_device_transfer(VertexId gpu, VertexId memory) {
    const VertexId device = pick(machine_.devices());
    const VertexId other = random_.one_in(2) ? gpu : memory;
    const Bytes size{scale_ * static_cast<std::int64_t>(1 + random_.below(traits_.most_bytes / 2))};
    return random_.one_in(2) ? Transfer{device, other, size, {}, {}} : Transfer{other, device, size, {}, {}};
  }

  std::optional<Kernel> make_kernel(VertexId gpu, bool has_transfer) {
    const Duration time = scale_ * Duration{random_.one_in(8) ? 0 : random_.between(1, traits_.most_kernel)};
    VertexId on = gpu;
    if (random_.one_in(5)) on = *machine_.find_vertex("cpu0");
    const bool used = machine_.vertex(on).kind == VertexKind::Gpu && !taken_.insert(on).second;
    if (used && !traits_.kernels_share) {
      if (has_transfer) return std::nullopt;
      on = *machine_.find_vertex("cpu0");
    }
    return Kernel{on, time, time + Duration{random_.between(0, 1000)} * scale_, "spin"};
  }

  const Topology& machine_;
  Random& random_;
  Random methods_;
  const BatchTraits& traits_;
  int scale_;
  std::set<VertexId> taken_;
};

}  // namespace

namespace {

Merging pick_merging(Random& random, const BatchTraits& traits) {
  if (!traits.may_unmerge || !random.one_in(4)) return Merging::On;
  return random.one_in(4) ? Merging::Transitive : Merging::Off;
}

}  // namespace

Topology random_machine(std::uint64_t seed, int scale) { return MachineMaker(seed, scale).make(); }

namespace {

/// A rate at which a flow of the machine takes at most a fifth of any guaranteed capacity.
double modest_rate(const Topology& machine, const BackgroundFlow& flow) {
  constexpr double kShare = 0.2;
  const auto costs = slow_costs(machine, flow.route);
  const std::size_t links = machine.links().size();
  double rate = std::numeric_limits<double>::infinity();
  for (std::size_t c = 0; c < costs.size(); ++c) {
    if (costs[c] == 0) continue;
    const Bandwidth& whole = c < links ? machine.links()[c].bandwidth : machine.shared()[c - links].capacity;
    rate = std::min(rate, kShare * whole.guaranteed.value / costs[c]);
  }
  return rate;
}

}  // namespace

Topology with_random_background(const Topology& machine, std::uint64_t seed) {
  Random random(seed);
  MachineSpec spec = machine.spec();
  std::vector<std::string> ends, others;
  for (const Vertex& vertex : machine.vertices()) (is_end(vertex.kind) ? ends : others).push_back(vertex.name);
  for (int d = random.between(1, 2); d > 0; --d) {
    ends.push_back(fmt::format("device{}", d));
    spec.vertices.push_back({.name = ends.back(), .kind = VertexKind::Device});
    spec.links.push_back({ends.back(), others[random.below(others.size())], GBps{10}, GBps{10}});
  }
  for (int flows = random.between(1, 3); flows > 0; --flows) {
    const auto end = [&] { return ends[random.below(ends.size())]; };
    BackgroundSpec flow{end(), end(), GBps{1e-3}};
    if (flow.from == flow.to) flow.from = flow.to = machine.vertex(machine.memories()[0]).name;
    spec.background.push_back(flow);
    const Topology with_flow = compile(spec).value();
    const double most = modest_rate(with_flow, with_flow.background().back());
    spec.background.back().bandwidth = {GBps{most * random.real(0.1, 1)}, GBps{most}};
  }
  return compile(std::move(spec)).value();
}

Batch random_batch(const Topology& machine, std::uint64_t seed, const BatchTraits& traits, int scale) {
  Random random(seed);
  StreamMaker maker(machine, seed, random, traits, scale);
  std::vector<CommandStream> streams;
  const int count = random.between(1, traits.most_streams);
  for (int i = 0; i < count; ++i) streams.push_back(maker.make(i));
  auto batch = Batch::make(machine, std::move(streams), pick_merging(random, traits));
  TUTTI_EXPECTS(batch.has_value(), "the generator makes valid batches");
  return *std::move(batch);
}

std::string describe(const Topology& machine, const Batch& batch) {
  std::string text = fmt::format("merging {}\n", to_string(batch.merging()));
  for (const CommandStream& stream : batch.streams()) {
    text += stream.name;
    if (stream.transfer) {
      const RouteView route = find_route(machine, *stream.transfer);
      text += fmt::format(" {} {} -> {} {} B", route.method.name, machine.vertex(stream.transfer->from).name,
                          machine.vertex(stream.transfer->to).name, stream.transfer->size.count);
    }
    if (stream.kernel) {
      text += fmt::format(" kernel on {} {} ns", machine.vertex(stream.kernel->on).name, stream.kernel->time.count());
    }
    text += '\n';
  }
  return text;
}

}  // namespace tutti::internal::test
