// A machine file: read, compiled, written back, its routes and rates, a batch over all of it under every planner.
#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "apps/lab/fits/measurement_plan.hpp"
#include "model/base/document.hpp"
#include "model/batch/compile_batch.hpp"
#include "model/batch/safe_bound.hpp"
#include "model/machine/ports.hpp"
#include "model/planners/planner.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"
#include "tests/fuzz/refusal.hpp"
#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

// Bounds of what is planned: time grows with the square of the streams.
constexpr std::size_t kMostGpusPlanned = 4;
constexpr std::size_t kMostMemoriesPlanned = 2;
constexpr std::size_t kMostStreamsPlanned = 12;

Expected<Topology> read_machine(std::string_view text) {
  return parse_document(text, std::string(kFile)).and_then(machine_from);
}

/// Copies between the first memories and GPUs, and between GPUs, wherever there is a route.
std::optional<Batch> batch_over(const Topology& machine) {
  BatchSpec spec;
  std::vector<VertexId> ends;
  for (const VertexId memory : machine.memories().first(std::min(machine.memories().size(), kMostMemoriesPlanned)))
    ends.push_back(memory);
  for (const VertexId gpu : machine.gpus().first(std::min(machine.gpus().size(), kMostGpusPlanned)))
    ends.push_back(gpu);
  for (const VertexId from : ends)
    for (const VertexId to : ends)
      if (spec.streams.size() < kMostStreamsPlanned && !machine.route(from, to).empty())
        spec.streams.push_back({.from = machine.vertex(from).name,
                                .to = machine.vertex(to).name,
                                .size = Bytes{1'000'000},
                                .kernel = machine.vertex(to).kind == VertexKind::Gpu
                                              ? std::optional(KernelSpec{.time = Duration{10'000}})
                                              : std::nullopt});
  auto batch = compile(spec, machine);
  return batch ? std::optional(*std::move(batch)) : std::nullopt;
}

void plan_over(const Topology& machine) {
  const auto batch = batch_over(machine);
  if (!batch) return;
  for (const Planner& planner : planners()) {
    ExecutionPlan planned = plan(planner, *batch);
    const auto violation = find_violation(machine, *batch, planned.timeline);
    require(!violation, fmt::format("a plan of {} is sound: {}", planner.name, violation.value_or("")));
    require(latest_finish(planned).batch >= planned.timeline.latency,
            fmt::format("a batch under {} ends by its latest finish", planner.name));
  }
}

void look_at_table(const Topology& machine) {
  if (machine.table() == nullptr) return;
  const Topology graph = compile(graph_of(machine)).value();
  SteadyRates steady;
  for (const PortRates& row : machine.table()->entries()) {
    const auto rates = steady.find(graph, Basis::Nominal, row.ports);
    require(rates.rates.size() == row.rates.size(), "a row has a rate for each of its copies");
  }
}

}  // namespace

bool takes_machine(std::string_view bytes) {
  const auto machine = read_machine(bytes);
  if (!machine) return refused(machine.error());
  const std::string text = machine_yaml(*machine);
  const auto again = read_machine(text);
  require(again.has_value(), "a machine that is written is read: " + (again ? "" : again.error().text()) + "\n" + text);
  require(*again == *machine, "a machine reads back as it was:\n" + text);
  if (machine->vertices().size() > 64) return true;
  plan_over(*machine);
  look_at_table(*machine);
  if (machine->gpus().size() <= kMostGpusPlanned) (void)plan_measurements(*machine);
  return true;
}

}  // namespace tutti::internal::fuzz
