// What a measured table and the safe bound cost beside a prediction, and how long a fit takes.
//
// The machine is the four H200s, calibrated from tests/golden/h200x4-measured.json; the batches have eight streams, one
// for each GPU and direction, half of them with a kernel. "links alone" is the same machine without its
// table, shared capacities and weights, "graph" without its table alone; "guaranteed" has the guaranteed bandwidths.
#include <chrono>
#include <memory>
#include <random>

#include "apps/lab/fits/calibration.hpp"
#include "apps/lab/reports/measured_json.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "tests/bench/rows.hpp"

namespace tutti::internal {
namespace {

using namespace bench;

/// The published method.
const Planner& published() {
  static const Planner& planner = *find_planner("completion_aligned");
  return planner;
}

constexpr std::size_t kBatches = 64;

Batch make_batch(const Topology& machine, bool kernels, std::mt19937& random) {
  const VertexId memory = machine.memories()[0];
  std::vector<CommandStream> streams;
  for (const VertexId gpu : machine.gpus()) {
    for (const bool in : {true, false}) {
      const Bytes size{32'000'000 + static_cast<std::int64_t>(random() % 480'000'001)};
      CommandStream& stream = streams.emplace_back();
      stream.name = fmt::format("stream{}", streams.size());
      stream.transfer = Transfer{in ? memory : gpu, in ? gpu : memory, size, {}, {}};
      const Duration time{1 + static_cast<std::int64_t>(random() % 20'000'000)};
      if (kernels && in) stream.kernel = Kernel{gpu, time, time, "spin"};
    }
  }
  return checked(Batch::make(machine, std::move(streams)));
}

/// The same batches on one machine.
struct Case {
  std::string name;
  Topology machine;
  Basis basis;
  std::vector<Batch> batches;
  BatchSimulation workspace;
  BatchBound bound;
  std::size_t next = 0;

  Case(std::string of, const Topology& on, Basis at, bool kernels) : name(std::move(of)), machine(on), basis(at) {
    std::mt19937 random(1);
    for (std::size_t i = 0; i < kBatches; ++i) batches.push_back(make_batch(machine, kernels, random));
  }

  double predict_next() {
    next = (next + 1) % kBatches;
    return predict(published(), batches[next], basis, workspace);
  }

  double bound_next() {
    predict_next();
    return bound.find(workspace, workspace.gates(), 0).front();
  }
};

int run(int argc, char** argv) {
  initialize(argc, argv);
  const Measurements measured = checked(load_measurements("tests/golden/h200x4-measured.json"));
  const auto start = std::chrono::steady_clock::now();
  const Topology table = checked(calibrate(measured, std::nullopt)).machine;
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print("a fit of 4 GPUs from 64 combinations and 40 batches: {:.2f} s\n", took.count());
  const Topology graph = compile(graph_of(table)).value();
  const Topology links = plain_model(table);

  std::vector<std::unique_ptr<Case>> cases;
  for (const bool kernels : {false, true}) {
    const char* with = kernels ? ", kernels" : "";
    cases.push_back(std::make_unique<Case>(fmt::format("links alone{}", with), links, Basis::Nominal, kernels));
    cases.push_back(std::make_unique<Case>(fmt::format("graph{}", with), graph, Basis::Nominal, kernels));
    cases.push_back(std::make_unique<Case>(fmt::format("table{}", with), table, Basis::Nominal, kernels));
    cases.push_back(std::make_unique<Case>(fmt::format("guaranteed{}", with), table, Basis::Guaranteed, kernels));
  }
  for (auto& of : cases) {
    add_row(of->name + "/predict", [&](benchmark::State& state) {
      for (auto _ : state) benchmark::DoNotOptimize(of->predict_next());
    });
    add_row(of->name + "/bound", [&](benchmark::State& state) {
      for (auto _ : state) benchmark::DoNotOptimize(of->bound_next());
    });
  }
  Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  fmt::print("\nmedians, eight streams on four GPUs, us; the bound without its prediction\n\n");
  fmt::print("| rates | prediction | against links alone | bound | against the prediction |\n|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const double predicted = medians.us(cases[i]->name + "/predict");
    const double bound = medians.us(cases[i]->name + "/bound") - predicted;
    const double by_graph = medians.us(cases[i - i % 4]->name + "/predict");
    fmt::print("| {} | {:.3f} | {:.2f} | {:.2f} | {:.1f} |\n", cases[i]->name, predicted, predicted / by_graph, bound,
               bound / predicted);
  }
  return 0;
}

}  // namespace
}  // namespace tutti::internal

int main(int argc, char** argv) { return tutti::internal::run(argc, argv); }
