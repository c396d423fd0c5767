// A prediction of 8 to 1024 streams beside SimGrid's, on machines of 4 to 512 GPUs; the machines and batches are those
// of tests/support/trees.
//
// Each row predicts the same batches one after the other, warm. Before any timing, all finish times are compared.
// Streams of one GPU and direction follow each other there as here: SimGrid's event loop starts a flow where another
// ends. Its interface is asked about batches without such queues alone, those of 8 streams.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "model/planners/planner.hpp"
#include "tests/bench/rows.hpp"
#include "tests/support/allocations.hpp"
#include "tests/support/trees.hpp"
#ifdef TUTTI_SIMGRID
#include "tests/support/simgrid_peer.hpp"
#endif

namespace tutti::internal {
namespace {

using namespace bench;

/// The published method.
const Planner& published() {
  static const Planner& planner = *find_planner("completion_aligned");
  return planner;
}

constexpr std::size_t kGpus[] = {4, 16, 64, 512};
constexpr std::size_t kFewStreams = 8;

/// So many streams, and as many batches of them as a processor does not learn by heart.
struct Count {
  std::size_t streams, batches;
};
constexpr Count kCounts[] = {{kFewStreams, 64}, {32, 64}, {128, 16}, {1024, 4}};

/// Batches of one machine, and a workspace that has seen them.
struct Case {
  std::string name;
  Topology machine;
  std::size_t streams;
  std::vector<Batch> batches;
  BatchSimulation workspace;
  std::size_t next = 0;

  double predict_next() {
    next = (next + 1) % batches.size();
    return predict(published(), batches[next], Basis::Nominal, workspace);
  }
};

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  for (const test::Tree tree : {test::Tree::Nested, test::Tree::Sockets}) {
    for (const std::size_t gpus : kGpus) {
      const Topology machine = test::make_tree(tree, gpus);
      for (const auto& [streams, batches] : kCounts) {
        for (const bool kernels : {false, true}) {
          test::Random random(gpus);
          Case made{fmt::format("{}, {} GPUs, {} streams{}", tree == test::Tree::Nested ? "nested" : "sockets", gpus,
                                streams, kernels ? ", kernels" : ""),
                    machine,
                    streams,
                    {},
                    {}};
          for (std::size_t i = 0; i < batches; ++i)
            made.batches.push_back(test::make_tree_batch(machine, tree, streams, kernels, random));
          cases.push_back(std::move(made));
        }
      }
    }
  }
  return cases;
}

/// Allocations of a prediction, once the workspace has seen all batches.
double count_allocations(Case& of) {
  for (std::size_t i = 0; i < of.batches.size(); ++i) of.predict_next();
  const std::uint64_t before = test::allocations();
  for (std::size_t i = 0; i < of.batches.size(); ++i) of.predict_next();
  return static_cast<double>(test::allocations() - before) / static_cast<double>(of.batches.size());
}

void bench_tutti(benchmark::State& state, Case& of) {
  for (auto _ : state) benchmark::DoNotOptimize(of.predict_next());
}

#ifdef TUTTI_SIMGRID

/// Streams of one GPU and direction are an engine queue: their transfers in the order of the batch, then their kernels.
std::vector<peer::PeerFlow> flows_of(const Topology& machine, const Batch& batch, std::uint32_t offset) {
  struct EngineQueue {
    std::uint32_t last;
    double kernels;
  };
  std::map<std::pair<VertexId, bool>, EngineQueue> queues;
  std::vector<peer::PeerFlow> flows;
  for (const CommandStream& stream : batch.streams()) {
    const Transfer& transfer = *stream.transfer;
    const auto position = static_cast<std::uint32_t>(flows.size());
    peer::PeerFlow flow;
    for (const LinkId link : machine.route(transfer.from, transfer.to)) flow.links.push_back(offset + link.value);
    flow.bytes = static_cast<double>(transfer.size.count);
    const bool in = machine.vertex(transfer.to).kind == VertexKind::Gpu;
    const auto [queue, is_new] = queues.try_emplace({in ? transfer.to : transfer.from, in}, EngineQueue{position, 0});
    if (!is_new) flows[queue->second.last].after = position;
    queue->second.last = position;
    if (stream.kernel) queue->second.kernels += static_cast<double>(stream.kernel->time.count());
    flows.push_back(std::move(flow));
  }
  for (const auto& [engine, queue] : queues) flows[queue.last].start_ns = queue.kernels;
  return flows;
}

/// The cases as SimGrid sees them: all machines side by side in one network, since only a process's first engine is
/// free of what earlier ones left behind; and each batch as flows of the reverse timeline: the last transfer of an
/// engine queue starts at the length of the queue's kernels, and each before it when that one ends.
struct Peers {
  peer::PeerNetwork network;
  std::vector<Topology> machines;                               // in the network
  std::uint32_t offset = 0;                                     // of the last one's links
  std::vector<std::vector<std::vector<peer::PeerFlow>>> flows;  // [case][batch][stream]
  std::vector<std::vector<std::uint32_t>> routes;
  std::unique_ptr<peer::SimgridSolver> solver;
  std::unique_ptr<peer::SimgridInterface> interface;

  void add(const Case& of) {
    if (machines.empty() || !(machines.back() == of.machine)) add(of.machine);
    flows.emplace_back();
    for (const Batch& batch : of.batches) flows.back().push_back(flows_of(of.machine, batch, offset));
    if (of.streams > kFewStreams) return;
    for (const auto& of_batch : flows.back())
      for (const peer::PeerFlow& flow : of_batch) routes.push_back(flow.links);
  }

  void add(const Topology& machine) {
    offset = static_cast<std::uint32_t>(network.capacities.size());
    for (const Link& link : machine.links()) network.capacities.push_back(link.bandwidth.nominal.value);
    machines.push_back(machine);
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
  std::vector<double> finish(of.streams);
  for (std::size_t b = 0; b < of.batches.size(); ++b) {
    const double latency = predict(published(), of.batches[b], Basis::Nominal, of.workspace);
    predict_flows(flows[b], finish);
    for (std::size_t s = 0; s < of.streams; ++s) {
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
  std::size_t streams = 0;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    streams += cases[c].batches.size() * cases[c].streams;
    largest = std::max(largest, find_difference(cases[c], peers.flows[c], by_solver));
    if (cases[c].streams > kFewStreams) continue;
    largest = std::max(largest, find_difference(cases[c], peers.flows[c], by_interface));
    peers.interface->inside_actor(
        [&] { largest = std::max(largest, find_difference(cases[c], peers.flows[c], by_interface)); });
  }
  fmt::print("finish times of {} streams: largest relative difference from SimGrid {:.1e}, allowed {:.0e}\n", streams,
             largest, kTolerance);
  return largest <= kTolerance;
}

template <class Peer>
void bench_peer(benchmark::State& state, Peer& peer, const std::vector<std::vector<peer::PeerFlow>>& flows) {
  std::vector<double> finish(flows.front().size());
  std::size_t next = 0;
  for (auto _ : state) {
    next = (next + 1) % flows.size();
    peer.predict(flows[next], finish);
    benchmark::DoNotOptimize(finish.data());
  }
}

void register_peers(const std::vector<Case>& cases, Peers& peers) {
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const auto& flows = peers.flows[c];
    add_row(cases[c].name + "/SimGrid solver",
            [&](benchmark::State& state) { bench_peer(state, *peers.solver, flows); });
    if (cases[c].streams > kFewStreams) continue;
    add_row(cases[c].name + "/SimGrid interface",
            [&](benchmark::State& state) { bench_peer(state, *peers.interface, flows); });
    add_row(cases[c].name + "/SimGrid interface, actor", [&](benchmark::State& state) {
      peers.interface->inside_actor([&] { bench_peer(state, *peers.interface, flows); });
    });
  }
}

#endif

void print_table(std::vector<Case>& cases, const Medians& medians) {
  fmt::print("\nmedians of one prediction, us\n\n");
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
  std::vector<Case> cases = make_cases();
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
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
