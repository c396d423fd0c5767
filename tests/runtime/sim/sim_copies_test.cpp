// Copies that start and stop one by one, against the definition of sharing by an independent program.
#include "runtime/sim/sim_copies.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "model/machine/route_class.hpp"
#include "model/transfer/transfer_method.hpp"
#include "tests/support/overlap_sets.hpp"
#include "tests/support/random.hpp"
#include "tests/support/slow_max_min.hpp"
#include "tests/support/yaml_text.hpp"

namespace tutti::internal {
namespace {

using test::Random;
using test::SlowFlow;

std::vector<LinkId> all_links(const Topology& machine) {
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < machine.links().size(); ++i) links.emplace_back(i);
  return links;
}

/// The copies of the machine, up and down each GPU, and how a slow program sees them.
struct Copies {
  explicit Copies(const Topology& the_machine) : machine(the_machine), copies(machine) {
    const VertexId memory = *machine.find_vertex("mem0");
    for (const VertexId gpu : machine.gpus())
      for (const bool up : {true, false}) {
        const Transfer transfer{up ? memory : gpu, up ? gpu : memory, Bytes{1}, {}, {}};
        const RouteView route = find_route(machine, transfer);
        copies.add(make_route_class(machine, route.first, {}, route.weight, all_links(machine)));
        flows.push_back({route.weight, test::slow_costs(machine, route.first)});
      }
  }

  const Topology& machine;
  SimCopies copies;
  std::vector<SlowFlow> flows;
};

// Random starts, stops and changes of the links: the end of each copy that is under way is where the slow program's
// rates bring it.
TEST(SimCopies, FlowAsMaxMinSharingSays) {
  Random random(3);
  const Topology machine = test::overlap_machine();
  const Topology slower = test::changed(machine, [](MachineSpec& spec) {
    for (LinkSpec& link : spec.links)
      if (link.to == "cpu0" || link.to == "gpu1") link.bandwidth = Bandwidth{GBps{3}, GBps{2.5}};
  });
  const std::vector<double> usual = test::slow_capacities(machine, Basis::Guaranteed);
  const std::vector<double> slow = test::slow_capacities(slower, Basis::Guaranteed);
  for (int round = 0; round < test::rounds(200); ++round) {
    Copies all(machine);
    std::vector<double> left(all.flows.size(), 0);
    double now = 0;
    bool is_slow = false;
    for (int event = 0; event < 40; ++event) {
      std::vector<std::size_t> active;
      std::vector<SlowFlow> flows;
      for (std::size_t i = 0; i < left.size(); ++i)
        if (left[i] > 0) active.push_back(i), flows.push_back(all.flows[i]);
      const std::vector<double> rates = test::slow_max_min(is_slow ? slow : usual, flows);
      double next = std::numeric_limits<double>::infinity();
      for (std::size_t a = 0; a < active.size(); ++a) {
        const double end = now + left[active[a]] / rates[a];
        ASSERT_NEAR(all.copies.end(static_cast<std::uint32_t>(active[a])), end, 1e-6 * end + 1e-6) << round;
        next = std::min(next, end);
      }
      const double then = std::min(next, now + random.real(1, 500));
      for (std::size_t a = 0; a < active.size(); ++a) left[active[a]] -= (then - now) * rates[a];
      now = then;
      for (const std::size_t i : active) {
        if (left[i] > 1e-6) continue;
        left[i] = 0;
        all.copies.stop(static_cast<std::uint32_t>(i), now);
      }
      if (random.one_in(4)) {
        is_slow = !is_slow;
        all.copies.share_as(is_slow ? slower : machine, now);
      }
      const std::size_t one = random.below(left.size());
      if (left[one] > 0) continue;
      left[one] = random.real(1, 5000);
      all.copies.start(static_cast<std::uint32_t>(one), left[one], now);
    }
  }
}

}  // namespace
}  // namespace tutti::internal
