#include "apps/lab/measuring/bus_rates.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "apps/lab/measuring/measuring.hpp"
#include "apps/terminal.hpp"
#include "model/base/expects.hpp"
#include "model/base/quantile.hpp"
#include "model/planners/planner.hpp"
#include "runtime/core/scratch_buffers.hpp"

namespace tutti::internal {
namespace {

constexpr std::size_t kCopies = 6;  // of an engine queue; the first two do not count
enum BusWay : std::size_t { kBusUp, kBusDown, kBusBoth, kBusWays };

bool has_both_ways(const Topology& machine, const BusFlow& flow) {
  return !machine.route(flow.memory, flow.gpu).empty() && !machine.route(flow.gpu, flow.memory).empty();
}

/// How near a memory is: the links between, then the rate, the larger the nearer.
std::pair<std::size_t, double> distance(const Topology& machine, const BusFlow& flow) {
  const std::uint32_t route_class = machine.route_class(flow.memory, flow.gpu);
  return {machine.route(flow.memory, flow.gpu).size(), -machine.route_classes()[route_class].alone.nominal.value};
}

/// The flow of each GPU with the memory that is nearest to it, or farthest; fewer where one has none.
std::vector<BusFlow> flows_by_distance(const Topology& machine, bool nearest) {
  std::vector<BusFlow> chosen;
  for (const VertexId gpu : machine.gpus()) {
    std::vector<BusFlow> flows;
    for (const VertexId memory : machine.memories())
      if (!machine.vertex(memory).pageable && has_both_ways(machine, {memory, gpu})) flows.push_back({memory, gpu});
    const auto by = [&](const BusFlow& flow) { return distance(machine, flow); };
    if (!flows.empty())
      chosen.push_back(nearest ? *std::ranges::min_element(flows, {}, by) : *std::ranges::max_element(flows, {}, by));
  }
  return chosen;
}

/// The first two, the first three, ..., all.
void add_first_ones(std::vector<BusSet>& sets, const std::string& name, const std::vector<BusFlow>& flows) {
  for (std::size_t count = 2; count <= flows.size(); ++count)
    sets.push_back({name, {flows.begin(), flows.begin() + static_cast<std::ptrdiff_t>(count)}});
}

std::vector<CommandStream> bus_streams(const BusSet& set, std::size_t way, Bytes copy) {
  std::vector<CommandStream> streams;
  const auto add = [&](VertexId from, VertexId to) {
    for (std::size_t i = 0; i < kCopies; ++i)
      streams.push_back({fmt::to_string(streams.size()), Transfer{from, to, copy, {}, {}}, {}, {}});
  };
  if (way != kBusDown)
    for (const BusFlow& flow : set.flows) add(flow.memory, flow.gpu);
  if (way != kBusUp)
    for (const BusFlow& flow : set.flows) add(flow.gpu, flow.memory);
  return streams;
}

/// The rate of all streams together, byte/ns: steady where it is, else over all copies.
double rate_of(const Timeline& measured, Bytes copy) {
  double rate = 0;
  if (const auto steady = steady_rates_of(measured, kCopies, copy)) {
    for (const double one : *steady) rate += one;
    return rate;
  }
  Duration start = Duration::max(), end{};
  for (const StreamTimeline& line : measured.streams) {
    start = std::min(start, line.start());
    end = std::max(end, line.end());
  }
  return static_cast<double>(copy.count) * static_cast<double>(measured.streams.size()) / as_ns(end - start);
}

Expected<double> measure_rate(Executor& executor, PreparedBatch& batch, const BusOptions& options,
                              const std::atomic<bool>& interrupted) {
  std::vector<double> rates;
  for (int run = 0; run <= options.runs; ++run) {
    if (interrupted) return invalid_input("interrupted; nothing was reported");
    executor.arm(batch);
    rest(executor);
    if (auto issued = executor.issue(batch); !issued) return tl::unexpected(std::move(issued.error()));
    const auto result = executor.wait_for(batch);
    // As in `InterleavedRuns`: a simulated machine whose host is late has measured that.
    if (!result && executor.backend().tolerated_lag() == Duration{0}) return tl::unexpected(result.error());
    static_cast<void>(executor.review(batch));
    const Bytes copy = batch.plan().batch.streams().front().transfer->size;
    if (run > 0) rates.push_back(rate_of(batch.measured(), copy));  // links wake up in the first
  }
  return median(rates);
}

}  // namespace

std::vector<BusSet> bus_sets(const Topology& machine) {
  std::vector<BusSet> sets;
  std::size_t pinned = 0;
  for (const VertexId memory : machine.memories()) {
    std::vector<BusFlow> flows;
    for (const VertexId gpu : machine.gpus())
      if (has_both_ways(machine, {memory, gpu})) flows.push_back({memory, gpu});
    const Vertex& vertex = machine.vertex(memory);
    if (!vertex.pageable && !flows.empty()) ++pinned;
    for (const BusFlow& flow : flows) sets.push_back({vertex.name, {flow}});
    add_first_ones(sets, vertex.name, flows);
  }
  if (pinned < 2) return sets;
  add_first_ones(sets, "nearest", flows_by_distance(machine, true));
  add_first_ones(sets, "farthest", flows_by_distance(machine, false));
  return sets;
}

Expected<std::vector<BusRates>> measure_bus(Executor& executor, const std::vector<BusSet>& sets,
                                            const BusOptions& options, const std::atomic<bool>& interrupted) {
  std::vector<Batch> batches;  // [sets x ways]
  for (const BusSet& set : sets) {
    for (std::size_t way = 0; way < kBusWays; ++way) {
      auto batch = Batch::make(executor.machine(), bus_streams(set, way, options.copy));
      if (!batch) return tl::unexpected(std::move(batch.error()));
      batches.push_back(*std::move(batch));
    }
  }
  const auto buffers = ScratchBuffers::make(executor.backend(), batches);
  if (!buffers) return tl::unexpected(buffers.error());
  std::vector<BusRates> rates(sets.size());
  programs::Progress progress("rates of the bus", batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    auto prepared = executor.prepare(plan(*find_planner("all_at_once"), batches[i]), buffers->bind(batches[i]));
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    const auto rate = measure_rate(executor, *prepared, options, interrupted);
    if (!rate) return tl::unexpected(rate.error());
    rates[i / kBusWays].gbps[i % kBusWays] = *rate;
    progress.step();
  }
  return rates;
}

std::array<double, 3> percent_of_flows_alone(const std::vector<BusSet>& sets, const std::vector<BusRates>& rates,
                                             std::size_t set) {
  std::array<double, kBusWays> sums{}, percent{};
  for (const BusFlow& flow : sets[set].flows) {
    const auto alone = std::ranges::find(sets, std::vector{flow}, &BusSet::flows);
    TUTTI_EXPECTS(alone != sets.end(), "each flow of the set is measured alone");
    const BusRates& of_flow = rates[static_cast<std::size_t>(alone - sets.begin())];
    for (std::size_t way = 0; way < kBusWays; ++way) sums[way] += of_flow.gbps[way];
  }
  for (std::size_t way = 0; way < kBusWays; ++way) percent[way] = 100 * rates[set].gbps[way] / sums[way];
  return percent;
}

}  // namespace tutti::internal
