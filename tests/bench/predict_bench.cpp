// A prediction of eight streams beside SimGrid's, on machines of 4 to 512 GPUs.
//
// Each row predicts the same 64 batches one after the other, warm. Before any timing, all finish times are compared.
// The machines are one memory, one processor and switches with four GPUs each:
//   mem0 - 48 GB/s - cpu0 - 16 GB/s - switchN - 12 GB/s - gpuN
// On four GPUs four of the streams go the other way, so that no two share a copy engine: SimGrid knows nothing of them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "model/planner.hpp"
#include "tests/bench/rows.hpp"
#include "tests/support/allocations.hpp"
#ifdef TUTTI_SIMGRID
#include "tests/support/simgrid_peer.hpp"
#endif

namespace tutti {
namespace {

using namespace bench;

constexpr std::size_t kStreams = 8;
constexpr std::size_t kBatches = 64;
constexpr std::size_t kMachines[] = {4, 16, 64, 512};

/// One machine, its batches, and a workspace that has seen them.
struct Case {
  std::string name;
  std::size_t gpus;
  Topology machine;
  std::vector<BatchOperation> batches;
  BatchSimulation workspace;
  std::size_t next = 0;

  double predict_next() {
    next = (next + 1) % kBatches;
    return predict(planners()[0], machine, batches[next], Basis::Nominal, workspace);
  }
};

Topology make_machine(std::size_t gpus) {
  TopologyBuilder builder("bench");
  const auto vertex = [&](std::string name, VertexKind kind) {
    Vertex made;
    made.name = std::move(name);
    made.kind = kind;
    builder.vertex({made});
  };
  const auto link = [&](std::string from, std::string to, double rate) {
    const Bandwidth bandwidth{{rate}, {rate}};
    builder.link({std::move(from), std::move(to), bandwidth, bandwidth});
  };
  vertex("mem0", VertexKind::Memory);
  vertex("cpu0", VertexKind::Cpu);
  link("mem0", "cpu0", 48);
  for (std::size_t i = 0; i < gpus; ++i) {
    const std::string upstream = fmt::format("switch{}", i / 4);
    if (i % 4 == 0) {
      vertex(upstream, VertexKind::Switch);
      link("cpu0", upstream, 16);
    }
    vertex(fmt::format("gpu{}", i), VertexKind::Gpu);
    link(upstream, fmt::format("gpu{}", i), 12);
  }
  return checked(builder.build());
}

/// Eight streams of 32 to 512 MB; with kernels, each has one of up to 20 ms: on its GPU, or on the processor after a
/// copy out of a GPU.
BatchOperation make_batch(const Topology& machine, bool kernels, std::mt19937& random) {
  std::vector<VertexId> gpus(machine.gpus().begin(), machine.gpus().end());
  std::shuffle(gpus.begin(), gpus.end(), random);
  const VertexId memory = machine.memories()[0];
  std::vector<CommandStream> streams;
  for (std::size_t i = 0; i < kStreams; ++i) {
    const VertexId gpu = gpus[i % gpus.size()];
    const bool in = i < gpus.size();
    const Bytes size{32'000'000 + static_cast<std::int64_t>(random() % 480'000'001)};
    CommandStream stream{fmt::format("stream{}", i), Transfer{in ? memory : gpu, in ? gpu : memory, size, {}, {}}, {}};
    const Duration time{1 + static_cast<std::int64_t>(random() % 20'000'000)};
    if (kernels) stream.kernel = Kernel{in ? gpu : *machine.find_vertex("cpu0"), time, time, "spin"};
    streams.push_back(std::move(stream));
  }
  return checked(BatchOperation::make(machine, std::move(streams)));
}

Case make_case(std::size_t gpus, bool kernels) {
  std::mt19937 random(static_cast<std::uint32_t>(gpus));
  Case made{fmt::format("{} GPUs{}", gpus, kernels ? ", kernels" : ""), gpus, make_machine(gpus), {}, {}};
  for (std::size_t i = 0; i < kBatches; ++i) made.batches.push_back(make_batch(made.machine, kernels, random));
  return made;
}

/// Allocations of a prediction, once the workspace has seen all batches.
double count_allocations(Case& of) {
  for (std::size_t i = 0; i < kBatches; ++i) of.predict_next();
  const std::uint64_t before = test::allocations();
  for (std::size_t i = 0; i < kBatches; ++i) of.predict_next();
  return static_cast<double>(test::allocations() - before) / static_cast<double>(kBatches);
}

void bench_tutti(benchmark::State& state, Case& of) {
  for (auto _ : state) benchmark::DoNotOptimize(of.predict_next());
}

#ifdef TUTTI_SIMGRID

/// The cases as SimGrid sees them: all machines side by side in one network, since only a process's first engine is
/// free of what earlier ones left behind; and each batch as flows of the reverse timeline, where a stream starts at the
/// length of its kernel.
struct Peers {
  peer::PeerNetwork network;
  std::vector<std::vector<std::vector<peer::PeerFlow>>> flows;  // [case][batch][stream]
  std::vector<std::vector<std::uint32_t>> routes;
  std::unique_ptr<peer::SimgridSolver> solver;
  std::unique_ptr<peer::SimgridInterface> interface;

  void add(const Case& of) {
    const auto offset = static_cast<std::uint32_t>(network.capacities.size());
    for (const Link& link : of.machine.links()) network.capacities.push_back(link.bandwidth.nominal.value);
    flows.emplace_back();
    for (const BatchOperation& batch : of.batches) {
      flows.back().emplace_back();
      for (const CommandStream& stream : batch.streams()) {
        peer::PeerFlow flow;
        for (const LinkId link : of.machine.route(stream.transfer->from, stream.transfer->to))
          flow.links.push_back(offset + link.value);
        flow.bytes = static_cast<double>(stream.transfer->size.count);
        if (stream.kernel) flow.start_ns = static_cast<double>(stream.kernel->time.count());
        routes.push_back(flow.links);
        flows.back().back().push_back(std::move(flow));
      }
    }
  }

  void build() {
    solver = std::make_unique<peer::SimgridSolver>(checked(peer::SimgridSolver::build(network)));
    interface = std::make_unique<peer::SimgridInterface>(network, routes);
  }
};

/// The largest relative difference between our times and SimGrid's, read in the reverse timeline.
template <class Predict>
double find_difference(Case& of, const std::vector<std::vector<peer::PeerFlow>>& flows, Predict predict_flows) {
  double largest = 0;
  std::vector<double> finish(kStreams);
  for (std::size_t b = 0; b < kBatches; ++b) {
    const double latency = predict(planners()[0], of.machine, of.batches[b], Basis::Nominal, of.workspace);
    predict_flows(flows[b], finish);
    for (std::size_t s = 0; s < kStreams; ++s) {
      const double ours = latency - of.workspace.times()[s].transfer_start;
      largest = std::max(largest, std::abs(ours - finish[s]) / finish[s]);
    }
  }
  return largest;
}

bool agree(std::vector<Case>& cases, Peers& peers) {
  constexpr double kTolerance = 1e-9;
  const auto by_solver = [&](const auto& flows, auto& finish) { peers.solver->predict(flows, finish); };
  const auto by_interface = [&](const auto& flows, auto& finish) { peers.interface->predict(flows, finish); };
  double largest = 0;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    largest = std::max(largest, find_difference(cases[c], peers.flows[c], by_solver));
    largest = std::max(largest, find_difference(cases[c], peers.flows[c], by_interface));
    peers.interface->inside_actor(
        [&] { largest = std::max(largest, find_difference(cases[c], peers.flows[c], by_interface)); });
  }
  fmt::print("finish times of {} streams: largest relative difference from SimGrid {:.1e}, allowed {:.0e}\n",
             cases.size() * kBatches * kStreams, largest, kTolerance);
  return largest <= kTolerance;
}

template <class Peer>
void bench_peer(benchmark::State& state, Peer& peer, const std::vector<std::vector<peer::PeerFlow>>& flows) {
  std::vector<double> finish(kStreams);
  std::size_t next = 0;
  for (auto _ : state) {
    next = (next + 1) % kBatches;
    peer.predict(flows[next], finish);
    benchmark::DoNotOptimize(finish.data());
  }
}

void register_peers(const std::vector<Case>& cases, Peers& peers) {
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const auto& flows = peers.flows[c];
    add_row(cases[c].name + "/SimGrid solver",
            [&](benchmark::State& state) { bench_peer(state, *peers.solver, flows); });
    add_row(cases[c].name + "/SimGrid interface",
            [&](benchmark::State& state) { bench_peer(state, *peers.interface, flows); });
    add_row(cases[c].name + "/SimGrid interface, actor", [&](benchmark::State& state) {
      peers.interface->inside_actor([&] { bench_peer(state, *peers.interface, flows); });
    });
  }
}

#endif

void print_table(std::vector<Case>& cases, const Medians& medians) {
  fmt::print("\nmedians of one prediction of {} streams, us\n\n", kStreams);
  fmt::print(
      "| machine | tutti | SimGrid solver | ratio | SimGrid interface | ratio | the same, one actor | ratio | "
      "allocations |\n");
  fmt::print("|---|---|---|---|---|---|---|---|---|\n");
  for (Case& of : cases) {
    const double ours = medians.us(of.name + "/tutti");
    fmt::print("| {} | {:.3f} |", of.name, ours);
    for (const char* peer : {"/SimGrid solver", "/SimGrid interface", "/SimGrid interface, actor"}) {
      const double theirs = medians.us(of.name + peer);
      if (std::isnan(theirs)) {
        fmt::print(" - | - |");
      } else {
        fmt::print(" {:.2f} | {:.1f} |", theirs, theirs / ours);
      }
    }
    fmt::print(" {} |\n", count_allocations(of));
  }
}

int run(int argc, char** argv) {
  initialize(argc, argv);
  std::vector<Case> cases;
  for (const bool kernels : {false, true})
    for (const std::size_t gpus : kMachines) cases.push_back(make_case(gpus, kernels));
  for (Case& of : cases) add_row(of.name + "/tutti", [&](benchmark::State& state) { bench_tutti(state, of); });
#ifdef TUTTI_SIMGRID
  Peers peers;
  for (const Case& of : cases) peers.add(of);
  peers.build();
  if (!agree(cases, peers)) return 1;
  register_peers(cases, peers);
#else
  fmt::print("SimGrid is not installed: its columns are missing\n");
#endif
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  print_table(cases, medians);
  return 0;
}

}  // namespace
}  // namespace tutti

int main(int argc, char** argv) { return tutti::run(argc, argv); }
