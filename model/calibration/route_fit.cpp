#include "model/calibration/route_fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/base/digits.hpp"
#include "model/calibration/graph_fit.hpp"
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
  }

  RouteFit run() {
    improve();
    for (auto& [link, value] : values_) value = to_digits(value, kFittedDigits);
    return {build(), find_disturbed()};
  }

 private:
  [[nodiscard]] Topology build() const {
    MachineSpec spec = graph_of(machine_);
    for (const auto& [link, value] : values_) spec.links[link.index()].bandwidth = {GBps{value}};
    return compile(spec).value();
  }

  /// Sum of the loss of log(predicted / measured) over all rates.
  [[nodiscard]] double loss() {
    const Topology machine = build();
    double loss = 0;
    for (const RouteCombination& combination : combinations_) {
      const auto predicted = rates_.find(machine, Basis::Nominal, ports_of(machine, combination.copy_routes));
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
      for (auto& [link, value] : values_) {
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
      const auto predicted = rates_.find(machine, Basis::Nominal, ports_of(machine, combination.copy_routes));
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
  SteadyRates rates_;
};

}  // namespace

RouteFit fit_routes(const Topology& fitted, const std::vector<RouteCombination>& combinations) {
  if (combinations.empty()) return {fitted, {}};
  return RouteFitting(fitted, combinations).run();
}

}  // namespace tutti::internal
