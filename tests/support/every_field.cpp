#include "tests/support/every_field.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/transfer/transfer_method.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_machine.hpp"
#include "tests/support/slow_max_min.hpp"

namespace tutti::internal::test {
namespace {

/// What is drawn has one value in three at its default, so that nothing hides behind another.
class CostMaker {
 public:
  explicit CostMaker(Random& random) : random_(random) {}

  SetupTimes make() {
    SetupTimes setup;
    auto& [batch, transfer, kernel, gate, host, handover, turn, dispatch, job, conductor, conductor_job, conductor_jobs,
           conductor_visit, conductor_lane] = setup;
    for (Cost* cost : {&batch, &kernel, &gate, &host, &handover, &turn, &dispatch, &job}) *cost = cost_up_to(30'000);
    for (const CopyKind kind : kCopyKinds) transfer.of(kind) = copy(kind);
    if (random_.one_in(2))  // a machine has both or none
      for (std::optional<Cost>* cost : {&conductor, &conductor_job, &conductor_jobs, &conductor_visit, &conductor_lane})
        *cost = cost_up_to(30'000);
    return setup;
  }

 private:
  Cost cost_up_to(int most) {
    if (random_.one_in(3)) return {};
    const Duration nominal{random_.between(0, most)};
    return {nominal, nominal + Duration{random_.between(0, most)}};
  }

  Gap gap_up_to(int most) {
    const Bytes nominal{random_.between(0, most)};
    Gap gap{nominal, nominal + Bytes{random_.between(1, most)}};
    if (random_.one_in(2)) gap.in_step = gap.guaranteed + Bytes{random_.between(1, most)};
    return gap;
  }

  CopyCost copy(CopyKind kind) {
    CopyCost cost;
    auto& [each, below, small, first, carried, led_first, sizes, gap, weight, load] = cost;
    each = cost_up_to(20'000);
    first = cost_up_to(10'000);
    carried = {Bytes{10'000 * each.nominal.count()}, first.nominal / 2};  // up to 200 MB
    if (random_.one_in(2)) led_first = cost_up_to(10'000);
    if (random_.one_in(3)) below = Bytes{random_.between(1, 100'000'000)};
    if (below > Bytes{0}) small = Bandwidth{GBps{random_.real(2, 12)}, GBps{random_.real(0.5, 2)}};
    Bytes size{};
    Cost more{};
    for (int i = random_.one_in(2) ? 0 : random_.between(1, 3); i > 0; --i) {
      size += Bytes{random_.between(1, 50'000'000)};
      more = {more.nominal + Duration{random_.between(0, 500'000)},
              more.guaranteed + Duration{random_.between(500'000, 900'000)}};
      sizes[static_cast<std::size_t>(std::ranges::find(sizes, SizeCost{}) - sizes.begin())] = {size, more};
    }
    if (is_of_rows(kind) && random_.one_in(2)) gap = gap_up_to(1000);
    if (random_.one_in(2)) weight = random_.real(0.3, 4);
    if (random_.one_in(2)) load = random_.real(1, 3);
    return cost;
  }

  Random& random_;
};

// Whoever adds a field draws it here: a list of names must have as many as there are fields.

void draw(Vertex& vertex, std::size_t number, Random& random) {
  auto& [name, kind, engines, cores, pageable, producers, buffer, crossover, memory, bus_id, uuid, domain] = vertex;
  const bool is_gpu = kind == VertexKind::Gpu;
  if (is_gpu) engines = random.between(1, 4);
  if (kind == VertexKind::Cpu) cores = random.between(16, 64);
  if (pageable) {
    producers = random.between(1, 2);
    buffer = Bytes{random.between(1 << 16, 1 << 26)};
    crossover = Bytes{random.between(0, 1 << 20)};
  }
  if (is_gpu && random.one_in(2)) memory = Bytes{std::int64_t{random.between(8, 80)} << 30};
  if (is_gpu && random.one_in(2)) bus_id = fmt::format("0000:{:02x}:00.0", number);
  if (is_gpu && random.one_in(2)) uuid = "GPU-" + name;
  if ((is_gpu || kind == VertexKind::Device) && random.one_in(3)) domain = random.one_in(2) ? "left" : "right";
}

void draw(LinkSpec& link, Random& random) {
  auto& [from, to, there, back] = link;
  for (LinkBandwidth* bandwidth : {&there, back ? &*back : nullptr})
    if (bandwidth != nullptr && random.one_in(2))
      bandwidth->theoretical = GBps{bandwidth->nominal.value * random.real(1, 1.5)};
}

void draw(SharedSpec& shared, Random& random) {
  auto& [name, capacity, members] = shared;
  capacity.guaranteed.value *= random.real(0.9, 1);
  for (auto& [from, to, cost] : members) cost *= random.real(0.8, 1.2);
}

/// Of a few pairs of GPUs, or of none.
PeerSpec draw_peers(PeerSpec drawn, const std::vector<std::string>& gpus, Random& random) {
  auto& [mode, pairs] = drawn;
  if (gpus.size() < 2 || !random.one_in(3)) return drawn;
  mode = PeerMode::Pairs;
  pairs = {{gpus[0], gpus[1 + random.below(gpus.size() - 1)]}};
  return drawn;
}

/// Often with a capacity that both ways of the first memory share: that is where a `load` counts.
Topology with_both_ways(const Topology& machine, Random& random) {
  if (random.one_in(3)) return machine;
  MachineSpec spec = machine.spec();
  const LinkSpec& first = spec.links.front();
  const double nominal = first.bandwidth.nominal.value * random.real(0.5, 1.5);
  spec.shared.push_back(
      {"both", {GBps{nominal}, GBps{nominal * 0.9}}, {{first.from, first.to, 1}, {first.to, first.from, 1}}});
  return compile(std::move(spec)).value();
}

/// At which a copy from the first memory to the first GPU goes alone.
double first_rate(const Topology& machine) {
  const Transfer transfer{machine.memories().front(), machine.gpus().front(), Bytes{1}, {}, {}};
  const SlowFlow flow{1, slow_costs(machine, find_route(machine, transfer).first)};
  return slow_max_min(slow_capacities(machine, Basis::Guaranteed), {&flow, 1}).front();
}

}  // namespace

Topology with_every_cost(const Topology& machine, std::uint64_t seed) {
  Random random(seed);
  MachineSpec spec = machine.spec();
  spec.vertices.push_back({.name = "heap0", .kind = VertexKind::Memory, .pageable = true, .producers = 2});
  spec.links.push_back({"heap0", "cpu0", GBps{random.real(5, 20)}, GBps{random.real(5, 20)}});
  for (Vertex& vertex : spec.vertices)
    if (vertex.name == "cpu0") vertex.cores = 8;
  spec.setup = CostMaker(random).make();
  auto costly = compile(std::move(spec));
  TUTTI_EXPECTS(costly.has_value(), "the generator makes valid machines");
  return *std::move(costly);
}

Topology with_every_field(const Topology& machine, std::uint64_t seed) {
  Random random(seed ^ 0x6669656c64);
  MachineSpec spec = with_random_background(with_both_ways(with_every_cost(machine, seed), random), seed).spec();
  auto& [name, provenance, vertices, links, shared, background, weights, peers, setup, margin, spread, staging, gate,
         conductor_sms, symmetric, table] = spec;
  name = fmt::format("drawn-{}", seed);
  if (random.one_in(2)) provenance = Provenance{"today", "here", "1234", 3, 0};
  std::vector<std::string> gpus;
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    draw(vertices[v], v, random);
    if (vertices[v].kind == VertexKind::Gpu) gpus.push_back(vertices[v].name);
  }
  for (LinkSpec& link : links) draw(link, random);
  for (SharedSpec& capacity : shared) draw(capacity, random);
  for (auto& [from, to, rate] : background) rate.nominal.value *= random.real(0.5, 1);
  auto& [h2d, d2h, peer] = weights;
  for (double* weight : {&h2d, &d2h, &peer}) *weight = random.real(0.4, 2.5);
  conductor_sms = random.one_in(2) ? 0 : random.between(1, kMostGateSms);
  peers = draw_peers(std::move(peers), gpus, random);
  setup.dispatch = random.one_in(3) ? Cost{} : Cost{Duration{random.between(0, 20'000)}};
  auto& [relative, absolute] = margin;
  if (random.one_in(2)) relative = random.real(0, 0.2);
  if (random.one_in(2)) absolute = Duration{random.between(0, 20'000)};
  spread = random.real(0, kWidestSpread);
  auto& [chunk] = staging;
  chunk = Bytes{random.between(0, 16) * 1'000'000};
  gate = kGateWords[random.below(kGateWords.size())];
  if (random.one_in(3)) {
    symmetric = {{gpus[0]}};  // others may be faster
    table = {{.h2d = {{gpus[0], GBps{first_rate(machine) * random.real(0.9, 1.2)}}}}};
  }
  auto compiled = compile(std::move(spec));
  TUTTI_EXPECTS(compiled.has_value(), "the generator makes valid machines");
  return *std::move(compiled);
}

std::vector<Forgotten> forgotten_costs() {
  const auto of_copies = [](auto member, auto value) {
    return [=](SetupTimes& setup) {
      for (CopyCost& cost : setup.transfer.classes) cost.*member = value;
    };
  };
  return {
      {"batch", [](SetupTimes& setup) { setup.batch = {}; }},
      {"kernel", [](SetupTimes& setup) { setup.kernel = {}; }},
      {"gate", [](SetupTimes& setup) { setup.gate = {}; }},
      {"host", [](SetupTimes& setup) { setup.host = {}; }},
      {"handover", [](SetupTimes& setup) { setup.handover = {}; }},
      {"turn", [](SetupTimes& setup) { setup.turn = {}; }},
      {"each", of_copies(&CopyCost::each, Cost{})},
      {"small", of_copies(&CopyCost::small, std::optional<Bandwidth>())},
      {"first", of_copies(&CopyCost::first, Cost{})},
      {"sizes", of_copies(&CopyCost::sizes, decltype(CopyCost::sizes){})},
      {"gap", of_copies(&CopyCost::gap, Gap{})},
      {"weight", of_copies(&CopyCost::weight, 1.0)},
      {"load", of_copies(&CopyCost::load, 1.0)},
  };
}

}  // namespace tutti::internal::test
