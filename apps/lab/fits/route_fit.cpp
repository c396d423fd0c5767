#include "apps/lab/fits/route_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "apps/lab/fits/graph_fit.hpp"
#include "model/base/digits.hpp"
#include "model/base/quantile.hpp"
#include "model/sharing/compile_machine.hpp"
#include "model/sharing/steady_rates.hpp"

namespace tutti::internal {
namespace {

constexpr double kDisturbed = 0.9;  // of the predicted rate: less is reported

std::set<LinkId> links_of_first_memory(const Topology& machine) {
  std::set<LinkId> links;
  for (std::size_t port = 0; port < 2 * machine.gpus().size(); ++port) {
    const auto route = links_at(machine, PortId(port));
    links.insert(route.begin(), route.end());
  }
  return links;
}

class RouteFitting {
 public:
  RouteFitting(const Topology& machine, const std::vector<RouteCombination>& combinations)
      : machine_(machine), combinations_(combinations) {
    const std::set<LinkId> others = links_of_first_memory(machine);
    for (const RouteCombination& combination : combinations) {
      std::map<LinkId, double> load;
      const auto ports = ports_of(machine, combination.copy_routes);
      for (std::size_t i = 0; i < ports.size(); ++i)
        for (const LinkId link : links_at(machine, ports[i]))
          if (!others.contains(link)) load[link] += combination.rates[i];
      for (const auto& [link, rate] : load) {
        double& most = values_[link];
        most = std::max(most, rate);
      }
    }
    find_rates_of_one();
    find_host_memories();
  }

  RouteFit run() {
    improve();
    for (double* const value : parameters()) *value = to_digits(*value, kFittedDigits);
    return {build(), find_disturbed(), of_one_};
  }

 private:
  /// The class of copies of pageable memory that a port's are of.
  [[nodiscard]] std::optional<CopyKind> pageable_kind(PortId port) const {
    const auto [from, to] = ends_of(machine_, port);
    if (machine_.vertex(from).pageable) return CopyKind::PageableUp;
    return machine_.vertex(to).pageable ? std::optional(CopyKind::PageableDown) : std::nullopt;
  }

  void find_rates_of_one() {
    std::map<CopyKind, std::vector<double>> alone;
    std::map<CopyKind, double> lowest;
    std::set<CopyKind> together;
    for (const RouteCombination& combination : combinations_) {
      const auto ports = ports_of(machine_, combination.copy_routes);
      std::map<CopyKind, int> copies;
      for (const PortId port : ports)
        if (const auto kind = pageable_kind(port)) ++copies[*kind];
      for (const auto& [kind, count] : copies) {
        if (count > 1) together.insert(kind);
        if (ports.size() > 1) continue;
        alone[kind].push_back(combination.rates[0]);
        const auto [known, is_new] = lowest.emplace(kind, combination.lowest[0]);
        known->second = std::min(known->second, combination.lowest[0]);
      }
    }
    for (auto& [kind, rates] : alone)
      if (together.contains(kind)) {
        const double rate = to_digits(quantile(std::move(rates), 0.5), kFittedDigits);
        of_one_[kind] = {GBps{rate}, GBps{down_to_digits(std::min(lowest[kind], rate), kFittedDigits)}};
      }
  }

  /// A capacity of the host's memory for each pageable one: a byte of that is read, written and read again.
  void find_host_memories() {
    constexpr double kTimes = 3;
    if (of_one_.empty()) return;
    for (const VertexId heap : machine_.memories()) {
      if (!machine_.vertex(heap).pageable) continue;
      for (const Link& link : machine_.links()) {
        if (link.from != heap) continue;
        const auto beside = std::ranges::find_if(machine_.memories(), [&](VertexId memory) {
          return !machine_.vertex(memory).pageable && machine_.find_link(memory, link.to);
        });
        if (beside == machine_.memories().end()) continue;
        SharedSpec shared{fmt::format("{}-{}", machine_.vertex(*beside).name, machine_.vertex(heap).name), {}, {}};
        for (const auto& [memory, cost] : {std::pair(*beside, 1.0), std::pair(heap, kTimes)})
          for (const auto& [from, to] : {std::pair(memory, link.to), std::pair(link.to, memory)})
            if (machine_.find_link(from, to))
              shared.members.push_back({machine_.vertex(from).name, machine_.vertex(to).name, cost});
        memories_.push_back({std::move(shared), most_load(*beside, heap, kTimes)});
      }
    }
  }

  /// The most that was seen of a host's memory.
  [[nodiscard]] double most_load(VertexId pinned, VertexId heap, double times) const {
    double most = 0;
    for (const RouteCombination& combination : combinations_) {
      double load = 0;
      const auto ports = ports_of(machine_, combination.copy_routes);
      for (std::size_t i = 0; i < ports.size(); ++i) {
        const auto [from, to] = ends_of(machine_, ports[i]);
        if (from == pinned || to == pinned) load += combination.rates[i];
        if (from == heap || to == heap) load += times * combination.rates[i];
      }
      most = std::max(most, load);
    }
    return most;
  }

  /// What is fitted.
  [[nodiscard]] std::vector<double*> parameters() {
    std::vector<double*> all;
    for (auto& [link, value] : values_) all.push_back(&value);
    for (auto& [shared, value] : memories_) all.push_back(&value);
    return all;
  }

  /// Rates of a combination by the graph; those of pageable memory no higher than that of one alone.
  [[nodiscard]] std::vector<double> predict(const Topology& machine, const RouteCombination& combination) {
    const auto ports = ports_of(machine, combination.copy_routes);
    std::vector<double> rates = rates_.find(machine, Basis::Nominal, ports);
    for (std::size_t i = 0; i < ports.size(); ++i)
      if (const auto kind = pageable_kind(ports[i]); kind && of_one_.contains(*kind))
        rates[i] = std::min(rates[i], of_one_.at(*kind).nominal.value);
    return rates;
  }

  [[nodiscard]] Topology build() const {
    MachineSpec spec = graph_of(machine_);
    for (const auto& [link, value] : values_) spec.links[link.index()].bandwidth = {GBps{value}};
    for (const auto& [shared, value] : memories_) {
      std::erase_if(spec.shared, [&](const SharedSpec& known) { return known.name == shared.name; });
      spec.shared.push_back(shared);
      spec.shared.back().capacity = {GBps{value}};
    }
    return compile(spec).value();
  }

  /// Sum of the loss of log(predicted / measured) over all rates.
  [[nodiscard]] double loss() {
    const Topology machine = build();
    double loss = 0;
    for (const RouteCombination& combination : combinations_) {
      const auto predicted = predict(machine, combination);
      for (std::size_t i = 0; i < predicted.size(); ++i) {
        const double off = std::log(predicted[i] / combination.rates[i]) / kLargeResidual;
        loss += std::sqrt(off * off + 1) - 1;
      }
    }
    return loss;
  }

  void improve() {
    constexpr double kFirstStep = 0.05, kLastStep = 5e-4;
    double least = loss();
    for (double step = kFirstStep; step >= kLastStep;) {
      bool better = false;
      for (double* const parameter : parameters()) {
        double& value = *parameter;
        for (const double factor : {1 + step, 1 / (1 + step)}) {
          const double before = value;
          value *= factor;
          const double now = loss();
          if (now < least * (1 - 1e-6)) {
            least = now;
            better = true;
            break;
          }
          value = before;
        }
      }
      if (!better) step /= 2;
    }
  }

  std::vector<std::string> find_disturbed() {
    const Topology machine = build();
    std::vector<std::string> sentences;
    for (const RouteCombination& combination : combinations_) {
      const auto predicted = predict(machine, combination);
      for (std::size_t i = 0; i < predicted.size(); ++i) {
        if (combination.rates[i] >= kDisturbed * predicted[i]) continue;
        sentences.push_back(fmt::format(
            "{} runs at {:.1f} GB/s in [{}], and at {:.1f} by the graph, which has nothing that slows it down; "
            "the table has it in this combination alone, and guaranteed bandwidths allow for it",
            routes_text({combination.copy_routes[i]}), combination.rates[i], routes_text(combination.copy_routes),
            predicted[i]));
        break;  // one sentence per combination
      }
    }
    return sentences;
  }

  const Topology& machine_;
  const std::vector<RouteCombination>& combinations_;
  std::map<LinkId, double> values_;
  std::map<CopyKind, Bandwidth> of_one_;
  std::vector<std::pair<SharedSpec, double>> memories_;
  SteadyRates rates_;
};

}  // namespace

RouteFit fit_routes(const Topology& fitted, const std::vector<RouteCombination>& combinations) {
  if (combinations.empty()) return {fitted, {}, {}};
  return RouteFitting(fitted, combinations).run();
}

}  // namespace tutti::internal
